"""Data source of a peer's page: its folder, and its local API while it runs and has one."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

from oneway.errors import OnewayError, TransportError
from oneway.peer import trust
from oneway.peer.api.client import PeerClient
from oneway.peer.home.home import Home
from oneway.peer.identity.card import Card, parse_card_or_key
from oneway.peer.identity.keys import key_text
from oneway.peer.offline import stored_model
from oneway.peer.store.store import read_curve
from oneway.records.curve import Curve
from oneway.records.status import Status
from oneway.web.peer_page import PeerLook, Prediction, ToldEdge

_BACKOFF_SECONDS = 5.0
"""An API that did not answer is left in peace for so long."""


class FolderSource:
    """Reads what is on the disk, asks the running peer, and writes peer.toml; a `PeerSource`."""

    def __init__(self, home: Home, api_token: str = "") -> None:
        """Read the peer's name and nothing else; its local API is shown the token, if there is one.

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
        look = replace(self._last, process=self._home.running_process(), time=time.time(), note="")
        problems: list[str] = []
        for part in (self._folder, self._config, self._task, self._curve):
            try:
                look = replace(look, **part())
            except OnewayError as error:
                problems.append(f"{error}.")
                if part == self._folder:
                    # One sentence says it all: nothing else can be read either.
                    break
        else:
            look = self._with_answers(look)
        self._last = replace(look, problem=" ".join(problems))
        return self._last

    def predict(self, sample: Mapping[str, str]) -> Prediction:
        """Return what the running peer expects, or what its model on the disk does."""
        if self._api_url:
            # If it has just stopped, or wants a token: its model is on the disk as well.
            with (
                suppress(TransportError),
                closing(PeerClient(self._api_url, self._token)) as client,
            ):
                return client.predict(sample)
        model = stored_model(self._home)
        shares = model.predict_proba_one(sample) if model.says_probabilities else {}
        return Prediction.of(model.predict_one(sample), shares, is_live=False)

    def trust(self, card: str, weight: float) -> str:
        """Let the peer send to the one with this card."""
        receiver = Card.parse(card)
        said = self._done(trust.send_to(self._home, receiver, weight))
        return f"{said} {receiver.name} takes it in once it has admitted you."

    def admit(self, card_or_key: str) -> str:
        """Let the one with this card or key send to the peer."""
        return self._done(trust.admit_one(self._home, parse_card_or_key(card_or_key)))

    def distrust(self, key: str) -> str:
        """Let the peer send no more to a receiver."""
        return self._done(trust.send_no_more_to(self._home, key)[1])

    def revoke(self, key: str) -> str:
        """Let a sender send no more to the peer."""
        return self._done(trust.admit_no_more(self._home, key))

    def _done(self, said: str) -> str:
        return f"{said} {trust.how_it_follows(self._home)}"

    def _folder(self) -> dict[str, Any]:
        home = Home.open(self._home.folder)
        changes: dict[str, Any] = {"store_bytes": 0}
        with suppress(OSError):
            changes["disk_free"] = shutil.disk_usage(home.folder).free
            # A file may go while it is looked at; the next look is a second away.
            stores = home.folder.glob(f"{home.store_path.name}*")
            changes["store_bytes"] = sum(path.stat().st_size for path in stores)
        # A status that cannot be read is none; that there was one before is worth more.
        written = home.status() or self._last.status
        return {**changes, "status": latest(written, self._answered)}

    def _config(self) -> dict[str, Any]:
        config = self._home.config()
        card, card_problem = "", ""
        try:
            card = str(config.card(self._home.keys().public))
        except OnewayError as error:
            card_problem = str(error)
        return {
            "name": config.name,
            "card": card,
            "card_problem": card_problem,
            "receivers": tuple(
                ToldEdge(peer.name, key_text(peer.key), peer.weight) for peer in config.receivers
            ),
            "senders": tuple(
                ToldEdge(config.name_of(peer.key), key_text(peer.key)) for peer in config.senders
            ),
            "anyone": config.anyone,
        }

    def _task(self) -> dict[str, Any]:
        stamp = None
        with suppress(OSError):
            found = self._home.task_path.stat()
            stamp = found.st_mtime_ns, found.st_size
        if stamp == self._task_stamp:
            # A task with thousands of features takes a while to read.
            return {}
        task = self._home.task()
        self._task_stamp = stamp
        return {"task": task}

    def _curve(self) -> dict[str, Any]:
        # A peer that has never run has no store, and nothing is wrong with that.
        path = self._home.store_path
        return {"curve": read_curve(path) if path.exists() else Curve()}

    def _with_answers(self, look: PeerLook) -> PeerLook:
        """Put what the running peer says in the place of what it has written."""
        status = look.status
        self._api_url = status.api if status is not None and status.pid == look.process else ""
        if not self._api_url:
            return look
        if time.monotonic() < self._ask_again:
            return replace(look, note=self._last.note)
        try:
            with closing(PeerClient(self._api_url, self._token)) as client:
                self._answered = client.status()
                return replace(look, status=self._answered, curve=client.curve())
        except TransportError as error:
            self._ask_again = time.monotonic() + _BACKOFF_SECONDS
            return replace(look, note=f"{error}; what you see is from the peer's folder.")


def latest(written: Status | None, answered: Status | None) -> Status | None:
    """What a peer said last: it writes once a second, and may have answered since.

    Told by what only grows in the life of a process; clocks can be set back.
    """
    if written is None or answered is None or written.pid != answered.pid:
        return written
    is_older = (written.samples, written.commits) < (answered.samples, answered.commits)
    return answered if is_older else written
