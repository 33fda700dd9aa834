"""A peer for its page: from its folder, and from its local API while it runs and has one."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from oneway.cli.peer_home import how_it_follows
from oneway.cli.peer_predict import predict_on_disk
from oneway.cli.peer_trust import admit_no_more, admit_one, send_no_more_to, send_to
from oneway.dashboard.peer.client import PeerClient
from oneway.dashboard.peer.source import (
    ChoiceField,
    FeatureField,
    PeerLook,
    PredictForm,
    Prediction,
    Receiver,
    SampleField,
    Sender,
)
from oneway.errors import OnewayError, TransportError
from oneway.peer.home.config import PeerConfig
from oneway.peer.home.home import Home
from oneway.peer.identity.card import Card, parse_card_or_key
from oneway.peer.identity.keys import key_text
from oneway.peer.status import read_status
from oneway.peer.store.store import read_curve
from oneway.records.curve import Curve
from oneway.records.status import Status
from oneway.task.choices import Choice, with_choices
from oneway.task.task import Feature, Task

_REST_SECONDS = 5.0
"""An API that did not answer is left in peace for so long."""

_Value = TypeVar("_Value")


class FolderSource:
    """Reads what is on the disk, asks the running peer, and writes peer.toml; a `PeerSource`."""

    def __init__(self, home: Home, api_token: str = "") -> None:
        """Nothing is read yet but the peer's name.

        Args:
            home: Whose page it is.
            api_token: What its local API wants to be shown; empty for nothing.

        Raises:
            ConfigError: If peer.toml is malformed.
        """
        self._home = home
        self._token = api_token
        self._last = PeerLook(home.config().name, str(home.folder.absolute()))
        self._api_url = ""
        self._ask_again = 0.0
        self._answered: Status | None = None
        self._task_stamp: tuple[int, int] | None = None

    def look(self) -> PeerLook:
        """Return how the peer is doing; what cannot be read is as it was, and is named."""
        problems: list[str] = []
        process = self._home.running_process()
        look = replace(self._last, process=process, time=time.time(), problem="", note="")
        try:
            Home.open(self._home.folder)
        except OnewayError as error:
            # One sentence says it all: nothing else can be read either.
            problems.append(f"{error}.")
        else:
            look = self._with_config(look, problems)
            look = self._with_task(look, problems)
            look = self._with_files(look, problems)
            look = self._with_answers(look)
        self._last = replace(look, problem=" ".join(problems))
        return self._last

    def predict(self, sample: Mapping[str, str]) -> Prediction:
        """Return what the running peer expects, or what its model on the disk does."""
        if self._api_url:
            try:
                with closing(PeerClient(self._api_url, self._token)) as client:
                    return client.predict(sample)
            except TransportError:
                # It has just stopped, or wants a token: its model is on the disk as well.
                pass
        label, probabilities = predict_on_disk(self._home, sample)
        return Prediction.of(label, probabilities, is_live=False)

    def trust(self, card: str, weight: float) -> str:
        """Let the peer send to the one with this card."""
        receiver = Card.parse(card)
        _, said = send_to(self._home, receiver, weight)
        return f"{said} {self._follows()} {receiver.name} takes it in once it has admitted you."

    def admit(self, card_or_key: str) -> str:
        """Let the one with this card or key send to the peer."""
        _, said = admit_one(self._home, parse_card_or_key(card_or_key))
        return f"{said} {self._follows()}"

    def distrust(self, key: str) -> str:
        """Let the peer send no more to a receiver."""
        _, said = send_no_more_to(self._home, key)
        return f"{said} {self._follows()}"

    def revoke(self, key: str) -> str:
        """Let a sender send no more to the peer."""
        _, said = admit_no_more(self._home, key)
        return f"{said} {self._follows()}"

    def _follows(self) -> str:
        said = how_it_follows(self._home, self._last.name)
        return said if said.endswith(".") else f"{said}."

    def _with_config(self, look: PeerLook, problems: list[str]) -> PeerLook:
        config = _tried(self._home.config, problems)
        if config is None:
            return look
        card, card_problem = _card(self._home, config)
        return replace(
            look,
            name=config.name,
            card=card,
            card_problem=card_problem,
            receivers=tuple(
                Receiver(peer.name, key_text(peer.key), peer.address, peer.weight)
                for peer in config.receivers
            ),
            senders=tuple(
                Sender(config.name_of(peer.key), key_text(peer.key)) for peer in config.senders
            ),
            anyone=config.anyone,
        )

    def _with_task(self, look: PeerLook, problems: list[str]) -> PeerLook:
        stamp = _stamp(self._home.task_path)
        if stamp == self._task_stamp:
            # A task with thousands of features takes a while to read.
            return look
        task = _tried(self._home.task, problems)
        if task is None:
            return look
        self._task_stamp = stamp
        return replace(look, form=_form(task), has_classes=task.classifies)

    def _with_files(self, look: PeerLook, problems: list[str]) -> PeerLook:
        home = self._home
        curve = _tried(lambda: _curve(home), problems)
        return replace(
            look,
            # A status that cannot be read is none; that there was one before is worth more.
            status=latest(read_status(home.status_path) or look.status, self._answered),
            curve=look.curve if curve is None else curve,
            disk_free=_disk_free(home),
            store_bytes=sum(_size(path) for path in home.folder.glob(f"{home.store_path.name}*")),
        )

    def _with_answers(self, look: PeerLook) -> PeerLook:
        """Put what the running peer says in the place of what it has written."""
        status = look.status
        is_its_own = status is not None and status.pid == look.process
        self._api_url = status.api if status is not None and is_its_own else ""
        if not self._api_url or time.monotonic() < self._ask_again:
            return replace(look, note=self._last.note if self._api_url else "")
        try:
            with closing(PeerClient(self._api_url, self._token)) as client:
                self._answered = client.status()
                return replace(look, status=self._answered, curve=client.curve())
        except TransportError as error:
            self._ask_again = time.monotonic() + _REST_SECONDS
            return replace(look, note=f"{error}; what you see is from the peer's folder.")


def _tried(read: Callable[[], _Value], problems: list[str]) -> _Value | None:
    try:
        return read()
    except OnewayError as error:
        problems.append(f"{error}.")
        return None


def latest(written: Status | None, answered: Status | None) -> Status | None:
    """What a peer said last: it writes once a second, and may have answered since.

    Told by what only grows in the life of a process; clocks can be set back.
    """
    if written is None or answered is None or written.pid != answered.pid:
        return written
    is_older = (written.samples, written.commits) < (answered.samples, answered.commits)
    return answered if is_older else written


def _card(home: Home, config: PeerConfig) -> tuple[str, str]:
    """The card, or why there is none."""
    try:
        return str(config.card(home.keys().public)), ""
    except OnewayError as error:
        return "", str(error)


def _form(task: Task) -> PredictForm:
    return PredictForm(task.label, tuple(map(_field, with_choices(task.features))))


def _field(found: Feature | Choice) -> SampleField:
    if isinstance(found, Choice):
        features = {option: feature.name for option, feature in found.options.items()}
        return ChoiceField(found.name, features, found.most_frequent)
    return FeatureField(found.name, found.center)


def _stamp(path: Path) -> tuple[int, int] | None:
    """What is another when a file is another."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _curve(home: Home) -> Curve:
    # A peer that has never run has no store, and nothing is wrong with that.
    return read_curve(home.store_path) if home.store_path.exists() else Curve()


def _disk_free(home: Home) -> int | None:
    try:
        return shutil.disk_usage(home.folder).free
    except OSError:
        return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
