"""Console output: results to stdout, progress and errors to stderr, JSON for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, ProgressColumn
from rich.text import Text

AsJson = Annotated[
    bool, typer.Option("--json", metavar="", help="Print the result as JSON, for programs.")
]


def complain(sentence: str) -> None:
    """Say what is wrong, on stderr."""
    _stderr().print(Text.assemble(("Error: ", "bold red"), sentence))


def note(sentence: str) -> None:
    """Say something about progress, on stderr."""
    _stderr().print(Text(sentence, style="dim"))


@contextmanager
def on_interrupt(sentence: str) -> Iterator[None]:
    """Let Ctrl-C in the block end the command with a sentence and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        note(sentence)
        raise typer.Exit(130) from None


def progress_bar(*columns: ProgressColumn) -> Progress:
    """A bar on stderr that goes away when it is done; nothing if stderr is not a terminal."""
    console = _stderr()
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def print_json(result: Any) -> None:
    """Print a result for programs; numbers that JSON cannot hold become null."""
    typer.echo(json.dumps(_finite(result), indent=2))


def print_facts(title: str, facts: Mapping[str, str]) -> None:
    """Print names and values, one pair a line, never cutting or wrapping a value."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(title, style="bold"))
    width = max(map(len, facts))
    for name, value in facts.items():
        console.print(Text.assemble((name.ljust(width), "dim"), "  ", value))


def _stderr() -> Console:
    return Console(file=sys.stderr, soft_wrap=True, highlight=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
