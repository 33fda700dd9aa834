"""Columns that name the owners of rows, for `deal_by`: text, and features of whole numbers.

A table holds its features in float32. Whole numbers that are close enough together survive that:
rounding after undoing the scaling gives them back. Those that are further apart are coded from the
original values. Other numbers cannot name owners.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oneway.records import Floats, Ints
from oneway.streams.arguments import with_missing
from oneway.tables.cells import group_name

if TYPE_CHECKING:
    import polars as pl

MAX_DISTINCT_NAMES = 250_000
# Standardising moves a number by at most 2**-24 of the range in float32.
FLOAT32_REACH = 2.0**20
# Beyond this, the float64 in which means are kept may add a rounding error of its own.
FLOAT64_REACH = 2.0**48
# From here on float64 has no odd numbers: two values may have become one before we saw them.
EXACT_BELOW = 2.0**53
ROWS_AT_FIRST = 1000


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
        """Code an array of strings or numbers; None and nan are empty cells."""
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

    def grouped(self) -> Column:
        """The column with all spellings of a name as one, and empty where a cell names nobody.

        A peer tells owners apart by the same rule, `group_name`.

        >>> Column.of(["7", "007", "NA", " Ada"]).grouped().values.tolist()
        ['7', '7', '', 'Ada']
        """
        groups = [group_name(name) for name in self.names]
        if tuple(groups) == self.names:
            return self
        distinct = list(dict.fromkeys(filter(None, groups)))
        code_of = {name: code for code, name in enumerate(distinct)} | {"": -1}
        codes = np.array([*(code_of[group] for group in groups), -1], dtype=np.int32)
        return Column.from_codes(codes[self.codes], distinct)

    @property
    def values(self) -> NDArray[np.str_]:
        """The name of every row; an empty string where the cell is empty."""
        return np.array([*self.names, ""], dtype=np.str_)[self.codes]

    def __len__(self) -> int:
        return len(self.codes)


class Coder:
    """Codes for values that arrive in blocks, in the order in which they first appear."""

    def __init__(self) -> None:
        self._code_of: dict[Any, int] = {}
        self._blocks: list[NDArray[np.int32]] = []

    def add(self, values: pl.Series) -> None:
        """Code a block of a polars column; null becomes -1."""
        import polars as pl

        distinct = values.unique(maintain_order=True).drop_nulls()
        coded = values.replace_strict(
            distinct, range(len(distinct)), default=-1, return_dtype=pl.Int32
        )
        self.add_coded(distinct.to_list(), coded.to_numpy())

    def add_coded(self, distinct: Iterable[Any], codes: Ints) -> None:
        """Take in a block that is coded by its own distinct values, -1 for none."""
        known = [self._code_of.setdefault(value, len(self._code_of)) for value in distinct]
        self._blocks.append(np.array([*known, -1], dtype=np.int32)[codes])

    @property
    def distinct(self) -> list[Any]:
        """The value of every code."""
        return list(self._code_of)

    @property
    def codes(self) -> NDArray[np.int32]:
        """The codes of all blocks."""
        return np.concatenate(self._blocks)

    @property
    def column(self) -> Column:
        """All blocks as a column of names."""
        return Column.from_codes(self.codes, [str(value) for value in self.distinct])

    def __len__(self) -> int:
        return len(self._code_of)


def encode_column(values: pl.Series) -> Column:
    """Code a whole column of strings."""
    coder = Coder()
    coder.add(values)
    return coder.column


def whole_numbers(
    columns: Iterable[tuple[str, Floats]], *, standardised: bool
) -> tuple[tuple[str, ...], dict[str, Column]]:
    """Find the features that are whole numbers, and so can name owners.

    Returns:
        Those that `recover` gives back from float32, and columns of the others, unless they have
        too many distinct values.
    """
    recoverable, coded = [], {}
    for name, values in columns:
        if not (_are_whole(values[:ROWS_AT_FIRST]) and _are_whole(values)):
            continue
        low, high = float(values.min()), float(values.max())
        size = max(-low, high)
        reach = high - low if standardised else size
        if reach <= FLOAT32_REACH and size <= FLOAT64_REACH:
            recoverable.append(name)
        elif size < EXACT_BELOW:
            distinct, codes = np.unique(values, return_inverse=True)
            if len(distinct) <= MAX_DISTINCT_NAMES:
                names = tuple(str(int(number)) for number in distinct)
                coded[name] = Column(codes.astype(np.int32), names)
    return tuple(recoverable), coded


def recover(feature: NDArray[np.float32], mean: float, scale: float) -> Column:
    """Name the rows by the whole numbers that a recoverable feature was made from."""
    scaled, codes = np.unique(feature, return_inverse=True)
    numbers = np.rint(scaled * np.float64(scale) + mean)
    return Column(codes.astype(np.int32), tuple(str(int(number)) for number in numbers))


def _are_whole(values: Floats) -> bool:
    return bool((values == np.rint(values)).all())


def _sort_key(names: Sequence[str]) -> Callable[[int], Any]:
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return names.__getitem__
    if any(math.isnan(number) for number in numbers):
        return names.__getitem__
    return lambda index: (numbers[index], names[index])
