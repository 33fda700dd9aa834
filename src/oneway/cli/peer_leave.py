"""`oneway peer distrust` and `leave`: parting, so that nothing is lost by it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from oneway.cli.output import note
from oneway.cli.peer_home import HomeFolder, name_or_key, open_home
from oneway.cli.peer_trust import send_no_more_to
from oneway.errors import ConfigError

if TYPE_CHECKING:
    from oneway.peer.home.config import PeerConfig
    from oneway.peer.home.home import Home
    from oneway.records.status import Status

POLL_SECONDS = 0.1
TELL_SECONDS = 5.0

_FOREVER = float("inf")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("distrust", epilog="Example: oneway peer distrust bob")(distrust)
    app.command("leave", epilog="Example: oneway peer leave --home bob")(leave)


def distrust(
    who: Annotated[
        str, typer.Argument(metavar="NAME", help="A receiver, by its name, its key or its card.")
    ],
    wait: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="How long to wait until the edge is closed."),
    ] = 10.0,
    home: HomeFolder = None,
) -> None:
    """Send no more to a peer; what has not arrived there comes back."""
    from oneway.peer.identity.keys import key_text

    mine = open_home(home)
    config = mine.config()
    gone, said = send_no_more_to(mine, name_or_key(who))
    since = time.time()
    typer.echo(said)
    if mine.running_process() is None:
        note(f"{config.name} is not running; it closes the edge to {gone.name} when it runs next.")
        return
    key = key_text(gone.key)

    def is_closed(status: Status | None) -> bool:
        # Until the peer has followed, the receiver is still listed.
        return (
            status is not None
            and status.time > since
            and all(peer.key != key for peer in status.receivers)
        )

    end = _wait(mine, wait, is_closed)
    if is_closed(end):
        note(f"The edge is closed, and what had not arrived at {gone.name} is back.")
    elif mine.running_process() is None:
        note(f"{config.name} has stopped; it closes the edge when it runs next.")
    else:
        note(
            f"{gone.name} has not answered yet; when it does, what had not arrived there comes "
            f"back. {config.name} goes on asking as long as it runs."
        )


def leave(
    wait: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="SECONDS", help="How long to wait.", show_default="until it has left"
        ),
    ] = None,
    home: HomeFolder = None,
) -> None:
    """Hand everything over to those it sends to, and stop for good.

    A peer that does not run is run for this. Ctrl-C ends the waiting; repeat it to go on.
    """
    from oneway.peer.status import read_status

    mine = open_home(home)
    config = mine.config()
    if not mine.store_path.exists():
        typer.echo(f"{config.name} has never run, so it has nothing to hand over.")
        return
    process = mine.running_process()
    last = read_status(mine.status_path)
    if process is None and last is not None and last.drained:
        typer.echo(f"{config.name} has handed over everything already.")
        return
    mine.change(_leaving)
    limit = _FOREVER if wait is None else wait
    if process is None:
        _leave_here(mine, limit)
    else:
        note(f"{config.name} is running (process {process}) and hands over what it has.")
        _wait(mine, limit, lambda _: False, _Telling())
    _say_what_came_of_it(mine, config.name)


def _leaving(config: PeerConfig) -> PeerConfig:
    if not config.receivers:
        raise ConfigError(
            f"{config.name} sends to nobody, so nobody can take over what it has; first trust "
            "somebody with oneway peer trust CARD, or just stop it"
        )
    return replace(config, leaving=True)


def _leave_here(mine: Home, limit: float) -> None:
    """Run the peer until it has left; it ends by itself then."""
    from oneway.cli.peer_live import run_here
    from oneway.cli.peer_voice import Voice
    from oneway.peer.peer import Peer

    telling, deadline = _Telling(), time.monotonic() + limit

    def too_long(status: Status) -> bool:
        telling(status)
        return not status.drained and time.monotonic() >= deadline

    with closing(Peer(mine.folder)) as peer:
        run_here(peer, Voice(), too_long)


def _say_what_came_of_it(mine: Home, name: str) -> None:
    from oneway.peer.status import read_status

    status = read_status(mine.status_path)
    process = mine.running_process()
    if process is None and status is not None and status.drained:
        typer.echo(f"{name} has handed over everything and stopped.")
        return
    rest = _what_is_left(status) if status is not None else f"{name} has not said anything yet"
    how = (
        f"{name} goes on as process {process}"
        if process is not None
        else "to go on: oneway peer leave"
    )
    typer.echo(f"{name} has not left yet: {rest}; {how}.")
    raise typer.Exit(1)


def _what_is_left(status: Status) -> str:
    """What a leaving peer still has, and who has to answer."""
    owing = [
        peer.name for peer in status.receivers if peer.phase != "open" or peer.seq > peer.acked
    ]
    if not status.receivers:
        return f"it holds mass {status.mass:.3g}, and nobody is left to take it over"
    if not owing:
        return f"it holds mass {status.mass:.3g}"
    who = ", ".join(owing)
    has = "has" if len(owing) == 1 else "have"
    return f"{who} {has} not acknowledged, and what is theirs stays here until then"


class _Telling:
    """Says what is left now and then, if it is not what was said before."""

    def __init__(self) -> None:
        self._next = time.monotonic() + TELL_SECONDS
        self._said = ""

    def __call__(self, status: Status) -> None:
        if time.monotonic() < self._next or not status.leaving or status.drained:
            return
        self._next = time.monotonic() + TELL_SECONDS
        sentence = _what_is_left(status)
        if sentence != self._said:
            self._said = sentence
            note(sentence)


def _wait(
    mine: Home,
    seconds: float,
    is_enough: Callable[[Status | None], bool],
    tell: Callable[[Status], None] = lambda _: None,
) -> Status | None:
    """Wait until the peer says enough, or stops, or the time is over; return its last word."""
    from oneway.peer.status import read_status

    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline and mine.running_process() is not None:
            status = read_status(mine.status_path)
            if is_enough(status):
                break
            if status is not None:
                tell(status)
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        note("No longer waiting; the peer goes on.")
        raise typer.Exit(130) from None
    return read_status(mine.status_path)
