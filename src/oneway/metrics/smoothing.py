"""Smoothing and decimation of series for display: moving mean and range, at most so many points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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
    The limit is an even number, 4 or more.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._points: list[tuple[float, float]] = []
        self._every = 1
        self._count = 0

    def add(self, x: float, y: float) -> None:
        """Go on with a point; one that is not beyond the last takes its place."""
        if self._points and x <= self._points[-1][0]:
            self._points[-1] = (self._points[-1][0], y)
            return
        if self._count and (self._count - 1) % self._every:
            self._points.pop()  # it was there only for being the last
        self._points.append((x, y))
        if self._count % self._every == 0 and len(self._points) >= self._limit:
            del self._points[1::2]
            self._points.append((x, y))
            self._every *= 2
        self._count += 1

    @property
    def points(self) -> list[tuple[float, float]]:
        """What is left, with the last point at the end."""
        return list(self._points)


@dataclass
class Smoothed:
    """Moving mean: of all numbers so far, the last ones, about `memory` of them, counting more.

    >>> lately = Smoothed(memory=2)
    >>> lately.add(4.0), lately.add(2.0), lately.add(2.0)
    (4.0, 3.0, 2.5)
    """

    memory: int
    _count: int = field(default=0, init=False)
    _value: float = field(default=0.0, init=False)

    def add(self, number: float) -> float:
        """Take a number in, and return what the mean is now."""
        self._count = min(self._count + 1, self.memory)
        self._value += (number - self._value) / self._count
        return self._value


@dataclass
class SlowRange:
    """Moving range, smallest and largest number: wider at once, narrower in about `memory` steps.

    >>> scale = SlowRange(memory=2)
    >>> scale.add([1.0, 3.0]), scale.add([2.0]), scale.add([0.0])
    ((1.0, 3.0), (1.5, 2.5), (0.0, 1.25))
    """

    memory: int
    _ends: tuple[float, float] | None = field(default=None, init=False)

    def add(self, numbers: Sequence[float]) -> tuple[float, float] | None:
        """Take numbers in, and return the range; None while there never were any."""
        if numbers:
            low, high = min(numbers), max(numbers)
            before = self._ends or (low, high)
            self._ends = (
                min(low, before[0] + (low - before[0]) / self.memory),
                max(high, before[1] + (high - before[1]) / self.memory),
            )
        return self._ends
