"""Event queue: virtual time, which jumps from one event to the next; ties have a fixed order."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count


class EventQueue:
    """What happens when; nothing waits.

    Attributes:
        now: Virtual time, in seconds.
        done: How many events were carried out.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.done = 0
        self._heap: list[tuple[float, int, int, Callable[[], None]]] = []
        self._numbers = count()

    def at(self, moment: float, owner: int, action: Callable[[], None]) -> None:
        """Let something happen; of the same moment, by owner, and then in the order of calls."""
        heapq.heappush(self._heap, (max(moment, self.now), owner, next(self._numbers), action))

    def run_until(self, moment: float) -> None:
        """Carry out all that happens up to a moment, which is the time then."""
        heap = self._heap
        while heap and heap[0][0] <= moment:
            self.now, _, _, action = heapq.heappop(heap)
            self.done += 1
            action()
        self.now = max(self.now, moment)
