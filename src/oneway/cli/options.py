"""Commands and their options: what is shown for them in --help."""

from __future__ import annotations

from typing import Annotated, Any

import typer


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


Allow = Annotated[
    list[str] | None,
    option("NAME", "Let files name this code, as package.module:function; once for each.", "none"),
]

On = Annotated[
    str,
    option("WHERE", "Where runs are carried out: local, ray, or ray://HOST:PORT (extra ray)."),
]
