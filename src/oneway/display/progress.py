"""Progress bar: one line that is kept up to date, in a terminal and in a notebook alike.

In a terminal it is drawn on stderr and goes away in the end. In a notebook it is an HTML bar in the
output of the cell, updated in place, gone in the end too. Elsewhere, in a log or a pipe, there is
none unless it is asked for.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from oneway.display.html import Html, text
from oneway.sentences import short_age

PATIENCE = 1.5
"""Seconds that work takes before its bar appears."""
_PACE = 0.2
"""Seconds between two changes of a bar in a notebook."""


class Bar(Protocol):
    """What is told how far some work is."""

    def update(self, done: int) -> None:
        """So many are done, in all."""


def in_notebook() -> bool:
    """Whether this process is a Jupyter kernel, whose output cells show HTML."""
    # Not imported: what is not there cannot be what runs us.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and getattr(shell, "kernel", None) is not None


@contextmanager
def progress_bar(
    what: str, total: int, shown: bool | None = None, *, patience: float = PATIENCE
) -> Iterator[Bar]:
    """Show how far the work in the block is.

    Args:
        what: What is counted, in a few words.
        total: How many there are.
        shown: Whether there is a bar; by default in a notebook and in a terminal.
        patience: Seconds before it appears: short work has none.
    """
    bar: _Late | _Nothing
    if shown is None:
        shown = in_notebook() or sys.stderr.isatty()
    if not shown:
        bar = _Nothing()
    else:
        make = _Cell if in_notebook() else _Terminal
        bar = _Late(lambda: make(what, total), time.monotonic() + patience)
    try:
        yield bar
    finally:
        bar.close()


class _Nothing:
    """No bar at all."""

    def update(self, done: int) -> None:
        """Say nothing."""

    def close(self) -> None:
        """Leave nothing behind."""


@dataclass
class _Late:
    """A bar that appears once the work turns out to be long."""

    make: Callable[[], _Terminal | _Cell]
    appears: float
    bar: _Terminal | _Cell | None = None

    def update(self, done: int) -> None:
        if self.bar is None and time.monotonic() >= self.appears:
            self.bar = self.make()
        if self.bar is not None:
            self.bar.update(done)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


class _Terminal:
    """A bar of rich."""

    def __init__(self, what: str, total: int) -> None:
        console = Console(file=sys.stderr)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            # What is no terminal is told once, in the end.
            transient=console.is_terminal,
        )
        self._task = self._bar.add_task(what, total=total)
        self._bar.start()

    def update(self, done: int) -> None:
        self._bar.update(self._task, completed=done)

    def close(self) -> None:
        self._bar.stop()


@dataclass
class _Cell:
    """An HTML bar in the output of a notebook's cell."""

    what: str
    total: int
    _began: float = field(default_factory=time.monotonic)
    _next: float = 0.0
    _handle: Any = None

    def update(self, done: int) -> None:
        now = time.monotonic()
        if self._handle is not None and now < self._next and done < self.total:
            return
        self._next = now + _PACE
        self._show(bar_html(self.what, done, self.total, now - self._began))

    def close(self) -> None:
        if self._handle is not None:
            self._show(Html(""))

    def _show(self, markup: Html) -> None:
        from IPython.display import HTML, display

        if self._handle is None:
            self._handle = display(HTML(markup), display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(HTML(markup))  # type: ignore[no-untyped-call]


def bar_html(what: str, done: int, total: int, seconds: float) -> Html:
    """A bar as HTML: how many of how many, and about how long it still takes."""
    share = min(1.0, done / total) if total else 1.0
    left = f", about {short_age(seconds * (1 - share) / share)} left" if 0 < share < 1 else ""
    return Html(
        '<div style="font-family:system-ui,sans-serif;font-size:13px;display:flex;gap:.8em;'
        f'align-items:center"><span>{text(what)}</span><span style="width:16em;height:.7em;'
        'background:rgba(127,127,127,.25);border-radius:.35em;overflow:hidden"><span '
        f'style="display:block;height:100%;width:{share:.1%};background:#0072b2"></span></span>'
        f'<span style="opacity:.65">{done:,} of {total:,}{left}</span></div>'
    )
