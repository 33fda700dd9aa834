"""Commands and their options: what is shown for them in --help."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer


def add_commands(
    app: typer.Typer, before: str, commands: Mapping[str, tuple[Callable[..., None], str]]
) -> None:
    """Add commands by name, each with the arguments of the example that ends its help."""
    for name, (command, arguments) in commands.items():
        app.command(name, epilog=f"Example: {before} {name} {arguments}".rstrip())(command)


def option(metavar: str, text: str, default: str = "", panel: str = "", **more: Any) -> Any:
    """An option with a value; `default` says in words what holds without it."""
    return typer.Option(
        metavar=metavar,
        help=text,
        show_default=default or True,
        rich_help_panel=panel or None,
        **more,
    )


def switch(name: str, text: str, panel: str = "", **more: Any) -> Any:
    """An option that is on or off."""
    return typer.Option(
        name, metavar="", help=text, show_default=False, rich_help_panel=panel or None, **more
    )


def argument(metavar: str, text: str, default: str = "") -> Any:
    """A value that stands at its place; `default` says in words what holds without it."""
    return typer.Argument(metavar=metavar, help=text, show_default=default or False)


On = Annotated[
    str,
    option("WHERE", "Where runs are carried out: local, ray, or ray://HOST:PORT (extra ray)."),
]
