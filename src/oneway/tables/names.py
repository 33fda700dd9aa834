"""Names of encoded columns that cost no memory: those of an array are made when they are asked for.

An image of a million cells has a million names, of which an error or a page shows one.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import overload

import numpy as np

_CELL = re.compile(r"\[(\d+(?:, \d+)*)\]", re.ASCII)


@dataclass(frozen=True)
class Names(Sequence[str]):
    """A sequence of names that are made when they are asked for."""

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self.index(name) >= 0
        except ValueError:
            return False

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...
    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        if isinstance(place, slice):
            return tuple(self._name(one) for one in range(*place.indices(len(self))))
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        return self._name(place % len(self))

    def _name(self, place: int) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class CellNames(Names):
    """The cells of an array, in C order.

    >>> names = CellNames("image", (1, 28, 28))
    >>> len(names), names[-1], names.index("image[0, 1, 2]"), "image" in names
    (784, 'image[0, 27, 27]', 30, False)
    """

    column: str
    shape: tuple[int, ...]

    def __len__(self) -> int:
        return math.prod(self.shape)

    def _name(self, place: int) -> str:
        return f"{self.column}[{', '.join(map(str, np.unravel_index(place, self.shape)))}]"

    def index(self, value: str, start: int = 0, stop: int | None = None) -> int:
        """The place of a cell's name; a ValueError if it is none."""
        found = _CELL.fullmatch(value.removeprefix(self.column))
        if found is None or not value.startswith(self.column):
            raise ValueError(value)
        indices = tuple(map(int, found[1].split(", ")))
        if len(indices) != len(self.shape):
            raise ValueError(value)
        return int(np.ravel_multi_index(indices, self.shape))


@dataclass(frozen=True)
class ChainedNames(Names):
    """Several sequences of names, one after the other."""

    parts: tuple[Sequence[str], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ends", list(accumulate(map(len, self.parts))))

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def _name(self, place: int) -> str:
        ends: list[int] = self._ends  # type: ignore[attr-defined]
        part = bisect_right(ends, place)
        return self.parts[part][place - ends[part]]

    def index(self, value: str, start: int = 0, stop: int | None = None) -> int:
        """The place of a name; a ValueError if it is none."""
        before = 0
        for part in self.parts:
            if value in part:
                return before + part.index(value)
            before += len(part)
        raise ValueError(value)


def chained(parts: Sequence[Sequence[str]]) -> Sequence[str]:
    """All names in order; a plain tuple where all parts are."""
    if all(isinstance(part, tuple) for part in parts):
        return tuple(name for part in parts for name in part)
    return parts[0] if len(parts) == 1 else ChainedNames(tuple(parts))


def spelled(shape: Sequence[int]) -> str:
    """A shape in a sentence.

    >>> spelled((1, 28, 28)), spelled(())
    ('1 x 28 x 28', 'a single number')
    """
    return " x ".join(map(str, shape)) or "a single number"
