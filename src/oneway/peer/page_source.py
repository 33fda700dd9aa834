"""Data source of a peer's page: the folder of the peer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from oneway.errors import OnewayError
from oneway.peer import trust
from oneway.peer.disclosure import disclosed_curve
from oneway.peer.home.home import Home
from oneway.peer.identity.card import Card, parse_card_or_key
from oneway.peer.identity.keys import key_text
from oneway.peer.machine import free_bytes, last_status
from oneway.peer.offline import stored_personal
from oneway.peer.store.store import read_curve
from oneway.records.curve import Curve
from oneway.web.peer_page import PeerLook, Prediction, ToldEdge


class FolderSource:
    """Reads what is on the disk, and writes peers.toml; a `PeerSource`."""

    def __init__(self, home: Home) -> None:
        """Read the peer's name and nothing else.

        Raises:
            ConfigError: If peer.toml is malformed.
        """
        self._home = home
        self._last = PeerLook(home.config().name, str(home.folder.absolute()))
        self._task_stamp: tuple[int, int] | None = None

    def look(self) -> PeerLook:
        """Return how the peer is doing; what cannot be read is as it was, and is named."""
        look = replace(self._last, process=self._home.running_process(), time=time.time())
        problems: list[str] = []
        for part in (self._folder, self._config, self._task, self._curve):
            try:
                look = replace(look, **part())
            except OnewayError as error:
                problems.append(f"{error}.")
                if part == self._folder:
                    # One sentence says it all: nothing else can be read either.
                    break
        self._last = replace(look, problem=" ".join(problems))
        return self._last

    def predict(self, sample: Mapping[str, str]) -> Prediction:
        """Return what the personal model on the disk expects."""
        model = stored_personal(self._home)
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
        changes: dict[str, Any] = {"store_bytes": 0, "disk_free": free_bytes(home.folder)}
        with suppress(OSError):
            # A file may go while it is looked at; the next look is a second away.
            stores = home.folder.glob(f"{home.store_path.name}*")
            changes["store_bytes"] = sum(path.stat().st_size for path in stores)
        # A status that cannot be read is none; that there was one before is worth more.
        return {**changes, "status": last_status(home, time.time()) or self._last.status}

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
        return {"curve": disclosed_curve(read_curve(path)) if path.exists() else Curve()}
