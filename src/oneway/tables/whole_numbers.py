"""Features of whole numbers, which can name owners: their values can be had back exactly.

A table holds float32. Whole numbers that are close enough together survive that: rounding after
undoing the scaling gives them back. Those that are further apart are coded while the original
values are at hand. What is neither is no owner.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from oneway.records import Floats
from oneway.tables.column import MAX_DISTINCT_NAMES, Column

# Standardising, twice for a file, moves a number by at most 2**-23 of the range in float32.
FLOAT32_REACH = 2.0**20
# Beyond this, the float64 in which means are kept may add a rounding error of its own.
FLOAT64_REACH = 2.0**48
# From here on float64 has no odd numbers: two values may have become one before we saw them.
EXACT_BELOW = 2.0**53
ROWS_AT_FIRST = 1000


class WholeNumbers:
    """Finds the features that are whole numbers, from rows that arrive in blocks."""

    def __init__(self, feature_names: tuple[str, ...], *, standardise: bool) -> None:
        self._names = feature_names
        self._kept = {index: _Feature(standardise) for index in range(len(feature_names))}

    def add(self, block: Floats) -> None:
        """Take in `block[row, feature]` (at least one row of finite original numbers)."""
        for index in list(self._kept):
            if not self._kept[index].add(block[:, index]):
                del self._kept[index]

    @property
    def recoverable(self) -> tuple[str, ...]:
        """The features that `recover` gives back from float32."""
        return tuple(self._names[i] for i, kept in self._kept.items() if kept.is_recoverable)

    @property
    def coded(self) -> dict[str, Column]:
        """The features that float32 would not keep apart, as columns."""
        return {
            self._names[i]: kept.column for i, kept in self._kept.items() if not kept.is_recoverable
        }


class _Feature:
    """One feature that is whole so far; coded from the first block on or not at all."""

    def __init__(self, standardise: bool) -> None:
        self._standardise = standardise
        self._low, self._high = math.inf, -math.inf
        self._code_of: dict[int, int] = {}
        self._blocks: list[NDArray[np.int32]] | None = None

    def add(self, values: Floats) -> bool:
        """Take in a block; False if the feature cannot name owners."""
        if not (_are_whole(values[:ROWS_AT_FIRST]) and _are_whole(values)):
            return False
        is_first = self._low > self._high
        self._low = min(self._low, float(values.min()))
        self._high = max(self._high, float(values.max()))
        if max(-self._low, self._high) >= EXACT_BELOW:
            return False
        if is_first and not self.is_recoverable:
            self._blocks = []
        if self._blocks is None:
            return self.is_recoverable
        distinct, codes = np.unique(values, return_inverse=True)
        if len(distinct) > MAX_DISTINCT_NAMES:
            return False
        known = [self._code_of.setdefault(int(v), len(self._code_of)) for v in distinct]
        self._blocks.append(np.array(known, dtype=np.int32)[codes])
        return len(self._code_of) <= MAX_DISTINCT_NAMES

    @property
    def is_recoverable(self) -> bool:
        size = max(-self._low, self._high)
        reach = self._high - self._low if self._standardise else size
        return reach <= FLOAT32_REACH and size <= FLOAT64_REACH

    @property
    def column(self) -> Column:
        assert self._blocks is not None, "a feature is coded or recoverable"
        names = [str(value) for value in self._code_of]
        return Column.from_codes(np.concatenate(self._blocks), names)


def recover(feature: NDArray[np.float32], mean: float, scale: float) -> Column:
    """Name the rows by the whole numbers that a recoverable feature was made from."""
    scaled, codes = np.unique(feature, return_inverse=True)
    numbers = np.rint(scaled * np.float64(scale) + mean)
    return Column(codes.astype(np.int32), tuple(str(int(number)) for number in numbers))


def _are_whole(values: Floats) -> bool:
    return bool((values == np.rint(values)).all())
