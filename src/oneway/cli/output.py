"""Results to stdout, progress and complaints to stderr."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, ProgressColumn
from rich.table import Table
from rich.text import Text

from oneway.errors import StoreError

AsJson = Annotated[
    bool, typer.Option("--json", metavar="", help="Print the result as JSON, for programs.")
]

_AS_FLAGS = {
    "graph.largest_strong_component()": "--largest-component (in Python: "
    "graph.largest_strong_component())",
    "OnlinePushSum(cap_step=True)": "--cap-step (in Python: OnlinePushSum(cap_step=True))",
    "resample=NUM_SAMPLES": "--resample NUM_SAMPLES",
    "task='classes' or task='number'": "--model softmax for classes, or --model ridge for numbers",
    "task='binary'": "a two-class model",
    "task='number'": "--model ridge",
    "label='...'": "--label COLUMN",
}
"""Remedies as the library words them, and as somebody at the command line needs them."""


def complain(sentence: str) -> None:
    """Say what is wrong, on stderr, with remedies as flags."""
    for in_python, flag in _AS_FLAGS.items():
        sentence = sentence.replace(in_python, flag)
    _stderr().print(Text.assemble(("Error: ", "bold red"), sentence))


def note(sentence: str) -> None:
    """Say something about progress, on stderr."""
    _stderr().print(Text(sentence, style="dim"))


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


def print_table(table: Table) -> None:
    """Print a table on stdout."""
    Console(highlight=False).print(table)


def require_writable(folder: Path) -> None:
    """Find out before a long run, not after it, whether its results can be written.

    Raises:
        StoreError: If the folder, or a folder it would be made in, cannot be written.
    """
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        reason = f"{existing} is a file"
    elif not os.access(existing, os.W_OK):
        reason = f"you may not write to {existing}"
    else:
        return
    raise StoreError(f"cannot write to {folder}: {reason}; choose another folder with --out")


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
