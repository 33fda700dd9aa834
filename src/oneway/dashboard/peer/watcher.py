"""One look at a time, shared by all who have the page open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from oneway.dashboard.peer.source import PeerLook, PeerSource

FRESH_SECONDS = 0.8
"""Who asks within this time sees what the one before saw."""


class PeerWatcher:
    """Looks when somebody asks, and never while another look is under way.

    Attributes:
        source: Whom it asks.
        last: What it saw last.
    """

    def __init__(self, source: PeerSource, clock: Callable[[], float] = time.monotonic) -> None:
        """Look for the first time, here and now."""
        self.source = source
        self.last = source.look()
        self._clock = clock
        self._due = clock() + FRESH_SECONDS
        self._looking = asyncio.Lock()

    async def look(self) -> PeerLook:
        """Return what is to be seen now; files are read in a thread."""
        async with self._looking:
            if self._clock() >= self._due:
                self.last = await asyncio.to_thread(self.source.look)
                self._due = self._clock() + FRESH_SECONDS
        return self.last

    def forget(self) -> None:
        """Look anew when somebody asks next: something was changed."""
        self._due = self._clock()
