"""Method labels: how a method is called and drawn, everywhere the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias
from zlib import crc32

from oneway.methods.base import METHODS, Method

Dashes: TypeAlias = str | tuple[int, tuple[int, ...]]
"""A line style, as matplotlib has them."""

_COLORS = ("#56b4e9", "#e69f00")
"""For methods that bring no colour of their own."""
_DASHES: tuple[Dashes, ...] = (
    "solid",
    "dashed",
    "dashdot",
    "dotted",
    (0, (5, 1)),
    (0, (1, 3)),
    (0, (3, 1, 1, 1)),
    (0, (8, 2, 1, 2, 1, 2)),
)


@dataclass(frozen=True)
class Label:
    """A method as a reader sees it.

    Attributes:
        title: What it is called.
        meaning: What it does, in a few words.
        color: Told apart with any colour vision.
        dashes: Line style, told apart without colour.
    """

    title: str
    meaning: str
    color: str
    dashes: Dashes


def label_of(method: str) -> Label:
    """The label of a registered method; a name that is not registered stands for itself.

    >>> label_of("ops").title, label_of("a method of tomorrow").title
    ('Online Push-Sum', 'a method of tomorrow')
    """
    names = list(METHODS)
    place = names.index(method) if method in names else crc32(method.encode())
    entry = METHODS[method] if method in names else Method
    return Label(
        entry.label or method,
        entry.meaning,
        entry.colour or _COLORS[place % len(_COLORS)],
        _DASHES[place % len(_DASHES)],
    )
