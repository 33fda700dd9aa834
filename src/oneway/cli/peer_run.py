"""`oneway peer run` and `leave`: learn until stopped, stop for good."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oneway.cli.options import option, switch
from oneway.cli.output import note
from oneway.cli.peer_home import HomeFolder, folder_of, open_home, waiting
from oneway.errors import ConfigError

_DATA = "What to learn from: CSV, JSON lines, arrays (.npy), images; - is standard input."
_UNTIL_DONE = "Stop when the stream has ended and all pushes are acknowledged, or 5 s later."
_SERVE = "Offer a local HTTP API: predict, learn, status, metrics."


def run(
    data: Annotated[str | None, option("FILE", _DATA, "nothing: only exchange models")] = None,
    follow: Annotated[bool, switch("--follow", "Wait at the end of the file for more.")] = False,
    rate: Annotated[float | None, option("N", "Samples per second at most.", "no limit")] = None,
    until_done: Annotated[bool, switch("--until-done", _UNTIL_DONE)] = False,
    serve: Annotated[
        str | None,
        option("[HOST:]PORT", _SERVE, "no API; 127.0.0.1 if only a port is given"),
    ] = None,
    token_file: Annotated[
        Path | None,
        option(
            "FILE",
            "Who uses the API must show what this file holds.",
            "api.token in the peer's folder, made if there is none",
        ),
    ] = None,
    home: HomeFolder = None,
) -> None:
    """Run the peer: learn, push to those it trusts, take in what others push.

    Ctrl-C stops it; what it has learned is on the disk at any moment, and it goes on from there.
    The exit code is 2 if every row of the stream was skipped.
    """
    from oneway.peer.sample_stream import SampleStream
    from oneway.peer.service import run_peer
    from oneway.web.endpoint import Endpoint

    about_a_stream = {
        "--follow": follow,
        "--rate": rate is not None,
        "--until-done": until_done,
    }
    for flag, used in about_a_stream.items():
        if used and data is None:
            raise ConfigError(f"{flag} is about a stream, and there is none; add --data FILE")
    if follow and until_done:
        raise ConfigError("a file that is followed has no end, so --until-done would never stop it")
    if token_file is not None and serve is None:
        raise ConfigError("--token-file is for the local API; add --serve PORT")
    api = None
    if serve is not None:
        api = Endpoint.read(serve, token_file, own_file=open_home(home).token_path)
    run_peer(
        folder_of(home),
        None if data is None else SampleStream(data, follow, rate),
        until_done=until_done,
        api=api,
    )


def leave(
    wait: Annotated[
        float | None, option("SECONDS", "How long to wait.", "until it has left", min=0)
    ] = None,
    undo: Annotated[bool, switch("--undo", "Stay after all, with what is still here.")] = False,
    home: HomeFolder = None,
) -> None:
    """Hand everything over to those it sends to, and stop for good.

    A peer that does not run is run for this. Ctrl-C ends the waiting; repeat it to go on.
    """
    from oneway.peer import departure

    if undo and wait is not None:
        raise ConfigError("--undo and --wait exclude each other; choose one of them")
    mine = open_home(home)
    if undo:
        typer.echo(departure.stay(mine))
        return
    with waiting():
        has_left, said = departure.leave(mine, wait, note)
    typer.echo(said)
    if not has_left:
        raise typer.Exit(1)
