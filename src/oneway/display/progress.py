"""Progress bar of a library call, on stderr of a terminal; it goes away in the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

PATIENCE = 1.5
"""Seconds that work takes before its bar appears."""


class Bar:
    """A bar that appears once the work turns out to take long."""

    def __init__(self, bar: Progress, what: str, total: int) -> None:
        self._bar = bar
        self._task = bar.add_task(what, total=total)
        self._appears = time.monotonic() + PATIENCE

    def update(self, done: int) -> None:
        """Show that this many are done."""
        if not self._bar.live.is_started and time.monotonic() >= self._appears:
            self._bar.start()
        self._bar.update(self._task, completed=done)


@contextmanager
def progress_bar(what: str, total: int, shown: bool | None = None) -> Iterator[Bar]:
    """Show how far the work in the block is.

    Args:
        what: The work, in a few words.
        total: The number of steps.
        shown: Whether there is a bar; by default if stderr is a terminal.
    """
    # Not as a widget of Jupyter, which needs another package; and a kernel, which sets FORCE_COLOR,
    # is no terminal.
    is_terminal = sys.stderr.isatty()
    console = Console(file=sys.stderr, force_jupyter=False, force_terminal=is_terminal)
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=is_terminal,
        disable=not (is_terminal if shown is None else shown),
    )
    try:
        yield Bar(bar, what, total)
    finally:
        if bar.live.is_started:
            bar.stop()
