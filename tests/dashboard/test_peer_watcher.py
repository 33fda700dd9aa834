"""One look at a time, whoever asks and however often."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from oneway.dashboard.peer.source import PeerLook, Prediction
from oneway.dashboard.peer.watcher import FRESH_SECONDS, Watcher


class CountingSource:
    """Numbers its looks."""

    def __init__(self) -> None:
        self.looks = 0
        self.at_once = 0
        self.most_at_once = 0

    def look(self) -> PeerLook:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.looks += 1
        self.at_once -= 1
        return PeerLook(f"look {self.looks}", "folder")

    def predict(self, sample: Mapping[str, str]) -> Prediction:
        raise NotImplementedError

    def trust(self, card: str, weight: float) -> str:
        raise NotImplementedError

    def admit(self, card_or_key: str) -> str:
        raise NotImplementedError

    def distrust(self, key: str) -> str:
        raise NotImplementedError

    def revoke(self, key: str) -> str:
        raise NotImplementedError


class Clock:
    """Stands still until it is told to go."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_first_look_is_there_before_anybody_asks():
    assert Watcher(CountingSource()).last.name == "look 1"


def test_many_who_ask_at_once_share_one_look():
    source, clock = CountingSource(), Clock()
    watcher = Watcher(source, clock)
    clock.now += FRESH_SECONDS

    async def ask() -> list[PeerLook]:
        return await asyncio.gather(*(watcher.look() for _ in range(20)))

    assert {look.name for look in asyncio.run(ask())} == {"look 2"}
    assert source.most_at_once == 1


def test_a_look_that_is_fresh_is_not_repeated_and_one_that_is_not_is():
    source, clock = CountingSource(), Clock()
    watcher = Watcher(source, clock)
    assert asyncio.run(watcher.look()).name == "look 1"
    clock.now += FRESH_SECONDS
    assert asyncio.run(watcher.look()).name == "look 2"


def test_after_a_change_the_next_look_is_a_new_one():
    watcher = Watcher(CountingSource(), Clock())
    watcher.forget()
    assert asyncio.run(watcher.look()).name == "look 2"
