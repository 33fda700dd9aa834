"""Columns that are not features, kept to deal samples to their natural owners."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oneway.records import Ints
from oneway.streams.arguments import with_missing

MAX_DISTINCT_NAMES = 250_000


@dataclass(frozen=True, eq=False)
class Column:
    """One name per row, stored once per distinct name.

    Attributes:
        codes: Per row, the index into `names`; -1 where the cell is empty.
        names: The distinct names in order (of value if all are numbers, else of the alphabet).

    >>> column = Column.of(["JFK", "EWR", "JFK"])
    >>> column.names, column.codes.tolist()
    (('EWR', 'JFK'), [1, 0, 1])
    """

    codes: NDArray[np.int32]
    names: tuple[str, ...]

    @classmethod
    def of(cls, values: ArrayLike) -> Column:
        """Code an array of strings or numbers; None and nan are empty cells.

        Raises:
            DataError: If some of the values are masked.
        """
        array, missing = with_missing(values, "owners")
        distinct, codes_of_filled = np.unique(array[~missing].astype(str), return_inverse=True)
        codes = np.full(array.shape, -1, dtype=np.int32)
        codes[~missing] = codes_of_filled
        return cls.from_codes(codes, distinct.tolist())

    @classmethod
    def from_codes(cls, codes: Ints, names: Sequence[str]) -> Column:
        """Put distinct names, given in any order, in order; -1 stays -1."""
        order = sorted(range(len(names)), key=_sort_key(names))
        new_codes = np.full(len(names) + 1, -1, dtype=np.int32)
        new_codes[order] = np.arange(len(names), dtype=np.int32)
        return cls(new_codes[codes], tuple(names[index] for index in order))

    @property
    def values(self) -> NDArray[np.str_]:
        """The name of every row; an empty string where the cell is empty."""
        return np.array([*self.names, ""], dtype=np.str_)[self.codes]

    def __len__(self) -> int:
        return len(self.codes)


def _sort_key(names: Sequence[str]) -> Callable[[int], Any]:
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return names.__getitem__
    if any(math.isnan(number) for number in numbers):
        return names.__getitem__
    return lambda index: (numbers[index], names[index])
