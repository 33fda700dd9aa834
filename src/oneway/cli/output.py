"""Results to stdout, progress and complaints to stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for programs.")]


def complain(sentence: str) -> None:
    """Say what is wrong, on stderr."""
    Console(file=sys.stderr, soft_wrap=True, highlight=False).print(
        Text.assemble(("Error: ", "bold red"), sentence)
    )


def note(sentence: str) -> None:
    """Say something about progress, on stderr."""
    Console(file=sys.stderr, soft_wrap=True, highlight=False).print(Text(sentence, style="dim"))


def print_json(result: Any) -> None:
    """Print a result for programs; numbers that JSON cannot hold become null."""
    typer.echo(json.dumps(_finite(result), indent=2))


def print_facts(title: str, facts: Mapping[str, str]) -> None:
    """Print names and values, one pair a line."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in facts.items():
        table.add_row(name, Text(value))
    print_table(table)


def print_table(table: Table) -> None:
    """Print a table on stdout."""
    Console(highlight=False).print(table)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
