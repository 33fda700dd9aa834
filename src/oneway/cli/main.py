"""The `oneway` command: its subcommands, and how errors reach a person."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import oneway
from oneway.asynchronous.conditions import Conditions
from oneway.cli import audit, data, demo, graph, lab, peer, reproduce, runs, simulate, theory, tune
from oneway.cli.options import add_commands, switch
from oneway.cli.output import complain
from oneway.cli.settings_flags import with_flags
from oneway.errors import OnewayError, needs_extra


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
    add_commands(
        app,
        "oneway",
        {
            "demo": (demo.demo, "--rounds 300 --out my-demo"),
            "simulate": (
                with_flags(simulate.simulate, besides=Conditions),
                "--data synthetic --rounds 20 --async --level exact",
            ),
            "tune": (
                with_flags(tune.tune, leave_out=tune.LEFT_OUT),
                "--data synthetic --rounds 50 --rates auto,0.1",
            ),
            "lab": (
                with_flags(lab.lab, leave_out=lab.LEFT_OUT),
                "--data synthetic --nodes 3 --samples 50 --loss 0.2",
            ),
            "runs": (runs.runs, ". --listen 0"),
            "graph": (graph.graph, "edges.csv --json"),
            "reproduce": (reproduce.reproduce, "list"),
            "theory": (
                with_flags(theory.theory, only=theory.SETTINGS),
                "--nodes 16 --rounds 1000 --data synthetic",
            ),
        },
    )
    app.add_typer(peer.command_line(), name="peer")
    app.add_typer(data.command_line(), name="data")
    app.add_typer(audit.command_line(), name="audit")
    return app


def main() -> None:
    """Run the command line; an error raised on purpose becomes one sentence and exit code 2."""
    try:
        with needs_extra("this command", "lab"):
            command_line()()
    except OnewayError as error:
        complain(error.for_shell)
        sys.exit(2)
    except (OSError, MemoryError) as error:
        complain(f"the machine refuses: {error}; give it a shorter name, room, or a smaller task")
        sys.exit(2)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"oneway {oneway.__version__}")
        raise typer.Exit


def _oneway(
    version: Annotated[
        bool,
        switch("--version", "Show the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Learn together over one-way trust, without a server."""
