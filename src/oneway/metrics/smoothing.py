"""Numbers that jump, made so that an eye can follow them."""

from __future__ import annotations


class Smoothed:
    """Follows a number slowly: the mean of all so far, the later ones counting more.

    >>> lately = Smoothed(memory=2)
    >>> lately.add(4.0), lately.add(2.0), lately.add(2.0)
    (4.0, 3.0, 2.5)
    """

    def __init__(self, memory: int) -> None:
        """Begin without numbers.

        Args:
            memory: About how many of the last numbers count.
        """
        self._memory = memory
        self._count = 0
        self._value = 0.0

    def add(self, number: float) -> float:
        """Take a number in, and return what the mean is now."""
        self._count = min(self._count + 1, self._memory)
        self._value += (number - self._value) / self._count
        return self._value


class SlowRange:
    """The smallest and the largest of many numbers: wider at once, narrower slowly.

    >>> scale = SlowRange(memory=2)
    >>> scale.add([1.0, 3.0]), scale.add([2.0]), scale.add([0.0])
    ((1.0, 3.0), (1.5, 2.5), (0.0, 1.25))
    """

    def __init__(self, memory: int) -> None:
        """Begin without numbers.

        Args:
            memory: In about so many steps it becomes narrower.
        """
        self._memory = memory
        self._ends: tuple[float, float] | None = None

    def add(self, numbers: list[float]) -> tuple[float, float] | None:
        """Take numbers in, and return the range; None while there never were any."""
        if not numbers:
            return self._ends
        low, high = min(numbers), max(numbers)
        if self._ends is not None:
            before = self._ends
            low = min(low, before[0] + (low - before[0]) / self._memory)
            high = max(high, before[1] + (high - before[1]) / self._memory)
        self._ends = (low, high)
        return self._ends
