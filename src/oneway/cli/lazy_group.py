"""Groups of commands whose modules are imported, and whose flags are made, when asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

Commands = Mapping[str, tuple[str, str]]
"""By name: `module:function`, and the arguments of the example that ends its help.

The function is a command of Typer, or it returns another group.
"""


class LazyGroup(TyperGroup):
    """A group that knows its commands by name.

    Attributes:
        path: How the group is typed, as "oneway peer".
        table: Its commands.
        debug: Whether errors show their traceback.
    """

    path: str
    table: Commands
    debug = False

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command with its flags, made once; None if there is none of that name."""
        if cmd_name in self.table and cmd_name not in self.commands:
            self.commands[cmd_name] = self._build(cmd_name)
        return self.commands.get(cmd_name)

    def _build(self, name: str) -> Any:
        where, arguments = self.table[name]
        module, _, attribute = where.partition(":")
        found = getattr(import_module(module), attribute)
        if attribute == "command_line":
            group = found()
            group.name = name
            return group
        app = typer.Typer(add_completion=False, rich_markup_mode="rich")
        example = f"Example: {self.path} {name} {arguments}".rstrip()
        app.command(name, epilog=example)(found)
        return typer.main.get_command(app)


def make_group(
    path: str, table: Commands, callback: Callable[..., None], *, example: str
) -> LazyGroup:
    """A group; the docstring of `callback`, which has the group's own flags, is its help."""
    app = typer.Typer(
        cls=LazyGroup,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(epilog=f"Example: {path} {example}")(callback)
    group = typer.main.get_command(app)
    assert isinstance(group, LazyGroup)
    group.path, group.table = path, table
    return group
