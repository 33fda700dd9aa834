"""One look at a time, whoever asks and however often."""

from __future__ import annotations

import asyncio
import threading

from oneway.dashboard.peer.page import FRESH_SECONDS, PeerWatcher
from oneway.web.peer_page import PeerLook

LIMIT_SECONDS = 240.0


class CountingSource:
    """Numbers its looks; each begins, and ends when it may."""

    def __init__(self) -> None:
        self.looks = 0
        self.began = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()

    def look(self) -> PeerLook:
        self.looks += 1
        number = self.looks
        self.began.set()
        assert self.may_end.wait(LIMIT_SECONDS)
        return PeerLook(f"look {number}", "folder")


class Clock:
    """Stands still until it is told to go."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_many_who_ask_at_once_share_one_look():
    source, clock = CountingSource(), Clock()
    watcher = PeerWatcher(source, clock)
    clock.now += FRESH_SECONDS

    source.began.clear()
    source.may_end.clear()

    async def ask() -> list[PeerLook]:
        asked = [asyncio.create_task(watcher.look()) for _ in range(20)]
        async with asyncio.timeout(LIMIT_SECONDS):
            while not source.began.is_set():
                await asyncio.sleep(0)
        # By now all have asked, and one look is under way.
        source.may_end.set()
        return await asyncio.gather(*asked)

    assert {look.name for look in asyncio.run(ask())} == {"look 2"}
    assert source.looks == 2
