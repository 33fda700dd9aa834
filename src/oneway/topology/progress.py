"""Progress of work on a large graph, told to whom it may concern: a share from 0 to 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from oneway.display.progress import PATIENCE, progress_bar

Progress: TypeAlias = Callable[[float], None]
"""Is told which share of the work is done."""

LARGE = 5_000_000
"""To look through so many edges takes a while."""


def unseen(_share: float) -> None:
    """Tell nobody."""


def part_of(progress: Progress, first: float, last: float) -> Progress:
    """The progress of one step of the work, which takes it from one share to another.

    >>> part_of(print, 0.5, 1.0)(0.5)
    0.75
    """
    return lambda share: progress(first + share * (last - first))


@contextmanager
def shown_progress(what: str, shown: bool | None, *, at_once: bool = False) -> Iterator[Progress]:
    """Show a bar while the block runs; see `progress_bar` for where.

    Args:
        what: What is done, in a few words.
        shown: Whether there is a bar; None for in a terminal and in a notebook, if it takes long.
        at_once: Whether it appears with the first share, as the next may be long in coming.
    """
    patience = 0.0 if at_once else PATIENCE
    with progress_bar(f"{what}, %", 100, shown, patience=patience) as bar:
        yield lambda share: bar.update(round(100 * share))
