"""Graceful shutdown of a peer and of its edges: hand over all mass, wait for the last answer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from oneway.errors import ConfigError
from oneway.peer.console import PeerConsole
from oneway.peer.home.config import PeerConfig, Receiver
from oneway.peer.home.home import Home
from oneway.peer.identity.keys import key_text
from oneway.peer.peer import Peer
from oneway.peer.service import run_until
from oneway.peer.status_text import what_is_owed, who_has_not_heard
from oneway.peer.trust import how_it_follows
from oneway.records.status import Status

POLL_SECONDS = 0.1
TELL_SECONDS = 5.0


def wait_for_closed_edge(home: Home, gone: Receiver, since: float, seconds: float) -> str:
    """Wait until a running peer has closed the edge to a former receiver; say what came of it.

    It was told at `since`, in seconds since 1970, to send no more; `seconds` is the longest wait.
    """
    name, key = home.config().name, key_text(gone.key)
    if home.running_process() is None:
        return f"{name} is not running; it closes the edge to {gone.name} when it runs next."

    def is_closed(status: Status | None) -> bool:
        # Until the peer has followed, the receiver is still listed.
        return (
            status is not None
            and status.time > since
            and all(peer.key != key for peer in status.receivers)
        )

    deadline = time.monotonic() + seconds
    _wait(home, lambda status: is_closed(status) or time.monotonic() >= deadline)
    if is_closed(home.status()):
        return f"The edge is closed, and what had not arrived at {gone.name} is back."
    if home.running_process() is None:
        return f"{name} has stopped; it closes the edge when it runs next."
    return (
        f"{gone.name} has not answered yet; when it does, what had not arrived there comes back. "
        f"{name} goes on asking as long as it runs."
    )


def leave(home: Home, seconds: float | None, say: Callable[[str], None]) -> tuple[bool, str]:
    """Hand everything over to the receivers and stop; a peer that does not run is run for this.

    It takes `seconds` at most, or until it is done; `say` is told in sentences how it goes.

    Returns:
        Whether nothing is left to hand over, and what came of it, in a sentence.

    Raises:
        ConfigError: If there is no receiver to hand over to.
    """
    name = home.config().name
    if not home.store_path.exists():
        return True, f"{name} has never run, so it has nothing to hand over."
    process = home.running_process()
    if process is None and _is_drained(home):
        return True, f"{name} has handed over everything already."
    home.change(_leaving)
    deadline = time.monotonic() + (math.inf if seconds is None else seconds)
    tell = _Progress(say)

    def takes_too_long(status: Status | None) -> bool:
        tell(status)
        is_drained = status is not None and status.drained
        return not is_drained and time.monotonic() >= deadline

    if process is None:
        with PeerConsole().attached() as console, closing(Peer(home.folder)) as peer:
            run_until(peer, console, takes_too_long)
    else:
        say(f"{name} is running (process {process}) and hands over what it has.")
        _wait(home, takes_too_long)
    process = home.running_process()
    if process is None and _is_drained(home):
        return True, f"{name} has handed over everything and stopped{_who_does_not_know(home)}."
    status = home.status()
    rest = what_is_owed(status) if status is not None else f"{name} has not said anything yet"
    goes_on = f"{name} goes on as process {process}"
    how = goes_on if process is not None else "to go on: oneway peer leave"
    return False, f"{name} has not left yet: {rest}; {how}."


def stay(home: Home) -> str:
    """Take a leave back; what was handed over meanwhile stays with the others.

    Raises:
        ConfigError: The peer is not leaving.
    """

    def staying(config: PeerConfig) -> PeerConfig:
        if not config.leaving:
            raise ConfigError(f"{config.name} is not leaving, so there is nothing to undo")
        return replace(config, leaving=False)

    _, changed = home.change(staying)
    return (
        f"{changed.name} stays. Those who send to it open their edges again within a minute or "
        f"so. {how_it_follows(home)}"
    )


def _leaving(config: PeerConfig) -> PeerConfig:
    if not config.receivers:
        raise ConfigError(
            f"{config.name} sends to nobody, so nobody can take over what it has; first trust "
            "somebody with oneway peer trust CARD, or just stop it"
        )
    return replace(config, leaving=True)


def _who_does_not_know(home: Home) -> str:
    status = home.status()
    unheard = who_has_not_heard(status) if status is not None else ""
    if not unheard:
        return ""
    return (
        f"; {unheard}, and its neighbours keep a receipt, so that what arrived here is not "
        "counted twice when they return"
    )


def _is_drained(home: Home) -> bool:
    status = home.status()
    return status is not None and status.drained


class _Progress:
    """Says what is left now and then, if it is not what was said before."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._next = time.monotonic() + TELL_SECONDS
        self._said = ""

    def __call__(self, status: Status | None) -> None:
        if status is None or not status.leaving or status.drained or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + TELL_SECONDS
        sentence = what_is_owed(status)
        if sentence != self._said:
            self._said = sentence
            self._say(sentence)


def _wait(home: Home, is_enough: Callable[[Status | None], bool]) -> None:
    """Wait until the status of a running peer is enough, or it stops."""
    while home.running_process() is not None and not is_enough(home.status()):
        time.sleep(POLL_SECONDS)
