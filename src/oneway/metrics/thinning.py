"""Long curves with few points, to look at."""

from __future__ import annotations

import numpy as np

from oneway.records import Ints

MOST_POINTS = 500


def evenly_spread(num_points: int, most: int = MOST_POINTS) -> Ints:
    """Which of so many points to show: at most `most`, evenly spread, the first and the last too.

    >>> evenly_spread(3).tolist(), evenly_spread(10, most=4).tolist()
    ([0, 1, 2], [0, 3, 6, 9])
    """
    shown = min(num_points, most)
    places: Ints = np.round(np.linspace(0, num_points - 1, shown)).astype(np.int64)
    return places


class Thinned:
    """Points in the order of x, thinned out evenly: at most `limit`, and always the last one.

    When there are too many, every second one goes, and from then on every second one that comes.
    """

    def __init__(self, limit: int) -> None:
        """Begin without points.

        Args:
            limit: An even number, 4 or more.
        """
        self._limit = limit
        self._kept: list[tuple[float, float]] = []
        self._last: tuple[float, float] | None = None
        self._every = 1
        self._count = 0

    def add(self, x: float, y: float) -> None:
        """Go on with a point; one that is not beyond the last takes its place."""
        if self._last is not None and x <= self._last[0]:
            x = self._last[0]
            if self._kept and self._kept[-1][0] == x:
                self._kept[-1] = (x, y)
            self._last = (x, y)
            return
        self._last = (x, y)
        if self._count % self._every == 0:
            self._kept.append(self._last)
        self._count += 1
        if len(self._kept) >= self._limit:
            del self._kept[1::2]
            self._every *= 2

    @property
    def points(self) -> list[tuple[float, float]]:
        """What is left, with the last point at the end."""
        if self._last is None or (self._kept and self._kept[-1] == self._last):
            return list(self._kept)
        return [*self._kept, self._last]
