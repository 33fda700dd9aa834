"""Console of a peer process: its log on stderr, its results on stdout, a live status line.

A peer goes on when the reader of its console goes away.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.live import Live
from rich.text import Text

LOG = logging.getLogger("oneway.peer.console")
"""What is logged here is information for people; of the rest of a peer, warnings are shown."""

LINE_SECONDS = 30.0
"""How often the status line is logged where there is no terminal to keep one up to date."""

_PREFIXES = {logging.WARNING: ("Warning: ", "yellow"), logging.ERROR: ("Error: ", "bold red")}


class PeerConsole(logging.Handler):
    """Log handler for people: one sentence a line, and the status line below on a terminal."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._console = _Console(file=sys.stderr, soft_wrap=True, highlight=False)
        self._live: Live | None = None
        self._next_line = time.monotonic() + LINE_SECONDS

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record; information is dim, what should be looked into has a prefix."""
        level = min(record.levelno, logging.ERROR)
        prefix = _PREFIXES.get(level, "")
        style = "" if prefix else "dim"
        with suppress(OSError):
            self._console.print(Text.assemble(prefix, (record.getMessage(), style)))

    def show(self, line: str) -> None:
        """Replace the status line; without a terminal, log it now and then."""
        if self._live is not None:
            with suppress(OSError):
                text = Text(line, style="dim", no_wrap=True, overflow="ellipsis")
                self._live.update(text, refresh=True)
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_SECONDS
            LOG.info(line)

    @contextmanager
    def attached(self) -> Iterator[PeerConsole]:
        """Print what peers log, and show the status line, as long as the block lasts."""
        log, level = logging.getLogger("oneway.peer"), LOG.level
        LOG.setLevel(logging.INFO)
        log.addHandler(self)
        try:
            # Not `is_terminal`, which FORCE_COLOR makes true: the line needs a real one.
            if sys.stderr.isatty():
                # Standard output may be a file: its lines are not to be drawn on the terminal.
                self._live = Live(
                    console=self._console,
                    auto_refresh=False,
                    transient=True,
                    redirect_stdout=False,
                    redirect_stderr=False,
                )
                with suppress(OSError):
                    self._live.start()
            yield self
        finally:
            log.removeHandler(self)
            LOG.setLevel(level)
            if self._live is not None:
                with suppress(OSError):
                    self._live.stop()
                self._live = None


def print_result(result: str) -> None:
    """Print a line on stdout at once; that its reader has gone away is no reason to stop."""
    try:
        sys.stdout.write(f"{result}\n")
        sys.stdout.flush()
    except OSError:  # a closed pipe, a terminal that hung up, a full disk
        # What could not be written is still in the buffer, and would be tried again at the exit.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


class _Console(Console):
    """A console that falls silent when its reader goes away, instead of ending the process."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
