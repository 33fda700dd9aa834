"""What a long command says on stderr; a peer goes on when nobody listens any more."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

_LEVELS = {logging.WARNING: ("Warning: ", "yellow"), logging.ERROR: ("Error: ", "bold red")}


class _Console(Console):
    """A console that falls silent when its reader goes away, instead of ending the process."""

    def on_broken_pipe(self) -> None:
        """Say nothing more."""
        self.quiet = True


class Voice(logging.Handler):
    """Sentences on stderr, and on a terminal one line below them that is always up to date."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._console = _Console(file=sys.stderr, soft_wrap=True, highlight=False)
        self._live: Live | None = None
        # Not `is_terminal`, which FORCE_COLOR makes true: the line needs a real one.
        self.is_live = sys.stderr.isatty()

    def say(self, sentence: str) -> None:
        """Say something about progress."""
        self._print(Text(sentence, style="dim"))

    def warn(self, sentence: str) -> None:
        """Say something that should be looked into."""
        self._print(Text.assemble(("Warning: ", "yellow"), sentence))

    def show(self, line: str) -> None:
        """Replace the line at the bottom."""
        if self._live is not None:
            with suppress(OSError):
                text = Text(line, style="dim", no_wrap=True, overflow="ellipsis")
                self._live.update(text, refresh=True)

    def emit(self, record: logging.LogRecord) -> None:
        """Say what the peer logs."""
        level = logging.ERROR if record.levelno >= logging.ERROR else logging.WARNING
        self._print(Text.assemble(_LEVELS[level], record.getMessage()))

    @contextmanager
    def speaking(self) -> Iterator[None]:
        """Say what the peer logs, and show the line at the bottom, as long as this lasts."""
        log = logging.getLogger("oneway.peer")
        log.addHandler(self)
        try:
            if self.is_live:
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
            yield
        finally:
            log.removeHandler(self)
            if self._live is not None:
                with suppress(OSError):
                    self._live.stop()
                self._live = None

    def _print(self, text: Text) -> None:
        with suppress(OSError):
            self._console.print(text)


def tell(result: str) -> None:
    """Print a result on stdout; that its reader has gone away is no reason to stop."""
    try:
        typer.echo(result)
    except BrokenPipeError:
        # What could not be written is still in the buffer, and would be tried again at the exit.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
