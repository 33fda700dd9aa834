"""The `oneway` command: its subcommands, and how errors reach a person."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import oneway
from oneway.cli import data, demo, graph, lab, peer, reproduce, runs, simulate, theory
from oneway.cli.output import complain
from oneway.errors import OnewayError


def command_line() -> typer.Typer:
    """All commands. They import what they run when they run, so that --help is quick."""
    app = typer.Typer(
        name="oneway",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(epilog="Example: oneway demo --rounds 300")(_oneway)
    for command in (demo, simulate, peer, lab, runs, graph, data, reproduce, theory):
        command.register(app)
    return app


def main() -> None:
    """Run the command line; an error raised on purpose becomes one sentence and exit code 2."""
    try:
        command_line()()
    except OnewayError as error:
        complain(str(error))
        sys.exit(2)
    except (OSError, MemoryError) as error:
        complain(f"the machine refuses: {error}; give it a shorter name, room, or a smaller task")
        sys.exit(2)
    except ModuleNotFoundError as error:
        if (error.name or "oneway").startswith("oneway"):
            raise
        complain(f"{error.name} is not installed; run: pip install 'oneway[lab]'")
        sys.exit(2)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"oneway {oneway.__version__}")
        raise typer.Exit


def _oneway(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar="",
            callback=_show_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Learn together over one-way trust, without a server."""
