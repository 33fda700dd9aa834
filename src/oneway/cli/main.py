"""The `oneway` command: its subcommands, and how errors reach a person."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from functools import cache
from typing import Annotated, NoReturn

import typer

import oneway
from oneway.cli.lazy_group import LazyGroup, make_group
from oneway.cli.options import switch
from oneway.cli.output import complain
from oneway.errors import OnewayError, needs_extra

_COMMANDS = {
    "demo": ("oneway.cli.demo:demo", "--rounds 300 --out my-demo"),
    "simulate": (
        "oneway.cli.simulate:simulate",
        "--data synthetic --rounds 20 --async",
    ),
    "tune": ("oneway.cli.tune:tune", "--data synthetic --rounds 50 --rates 0.1,1 --resume tried"),
    "lab": ("oneway.cli.lab:lab", "--data synthetic --nodes 3 --samples 50 --loss 0.2"),
    "runs": ("oneway.cli.runs:runs", ". --listen 0"),
    "graph": ("oneway.cli.graph:graph", "edges.csv --json"),
    "peer": ("oneway.cli.peer:command_line", "card"),
    "data": ("oneway.cli.data:command_line", "list"),
    "audit": ("oneway.cli.audit:command_line", "privacy --data synthetic --epsilon 1"),
}

_CAUSED_BY_USERS = {
    errno.ENOENT,
    errno.EACCES,
    errno.EPERM,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.ENAMETOOLONG,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
}
"""Errors of the operating system that need no traceback: a wrong path, no permission, no space."""


@cache
def command_line() -> LazyGroup:
    """All commands; the module and the flags of each are made when it is asked for."""
    return make_group("oneway", _COMMANDS, _oneway, example="demo --rounds 300")


def main() -> None:
    """Run the command line; an error that the user caused is one sentence, with exit code 2.

    Any other error is a bug of oneway and ends with its traceback. With `--debug`, or
    ONEWAY_DEBUG=1 in the environment, every error shows its traceback.
    """
    try:
        with needs_extra("this command", "lab"):
            command_line()(prog_name="oneway")
    except OnewayError as error:
        _end_with(error.for_shell)
    except MemoryError as error:
        _end_with(f"not enough memory: {error or 'nothing is left'}; choose a smaller task")
    except OSError as error:
        if error.errno not in _CAUSED_BY_USERS:
            raise
        place = f": {error.filename}" if error.filename is not None else ""
        _end_with(f"{error.strerror}{place}")


def _end_with(sentence: str) -> NoReturn:
    if command_line().debug or os.environ.get("ONEWAY_DEBUG"):
        traceback.print_exc()
    complain(sentence)
    sys.exit(2)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"oneway {oneway.__version__}")
        raise typer.Exit


def _oneway(
    version: Annotated[  # noqa: ARG001
        bool,
        switch("--version", "Show the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
    debug: Annotated[bool, switch("--debug", "Show the traceback of an error.")] = False,
) -> None:
    """Learn together over one-way trust, without a server."""
    command_line().debug = debug
