"""The `oneway` command: its subcommands, and how errors reach a person."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated

import typer

import oneway
from oneway.cli.output import complain
from oneway.errors import OnewayError


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"oneway {oneway.__version__}")
        raise typer.Exit


app = typer.Typer(
    name="oneway",
    help="Learn together over one-way trust, without a server.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(epilog="Example: oneway demo")
def _oneway(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Learn together over one-way trust, without a server."""


def _register() -> None:
    for name in ("demo", "simulate", "graph", "data"):
        import_module(f"oneway.cli.{name}").register(app)


def main() -> None:
    """Run the command line; an error raised on purpose becomes one sentence and exit code 2."""
    try:
        _register()
        app()
    except OnewayError as error:
        complain(str(error))
        sys.exit(2)
    except ModuleNotFoundError as error:
        if (error.name or "oneway").startswith("oneway"):
            raise
        complain(f"{error.name} is not installed; run: pip install 'oneway[lab]'")
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
