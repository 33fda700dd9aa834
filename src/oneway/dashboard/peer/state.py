"""What a peer does, in words, and what it did not take in."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote
from typing import Literal, TypeAlias

from oneway.dashboard.components.amounts import age, ago
from oneway.dashboard.peer.source import PeerLook
from oneway.records.status import REPEATED, Status

Mood: TypeAlias = Literal["good", "bad", "quiet"]

SILENT_SECONDS = 5.0
"""A running peer says something about itself every second."""


@dataclass(frozen=True)
class State:
    """What a peer does.

    Attributes:
        word: In one or two words.
        mood: Whether that is good.
        sentence: What there is to say about it; empty if nothing.
        command: What to type in a terminal about it; empty if nothing.
    """

    word: str
    mood: Mood
    sentence: str = ""
    command: str = ""


def state_of(look: PeerLook) -> State:
    """What the peer does, and what to do about it."""
    return _running(look) if look.is_running else _stopped(look)


def _stopped(look: PeerLook) -> State:
    name, status = look.name, look.status
    run = f"oneway peer run --data FILE --home {quote(look.folder)}"
    if status is None:
        return State("never started", "quiet", f"{name} has never run. To start it:", run)
    if status.drained:
        return State(
            "left",
            "quiet",
            f"{name} has left: it has handed over everything. To take part again, make a new peer "
            "in another folder:",
            f"oneway peer init {quote(name)} --task {quote(f'{look.folder}/task.toml')} --home DIR",
        )
    if status.leaving:
        return State(
            "stopped",
            "bad",
            f"{name} is not running, and has not handed over everything yet. To let it:",
            f"oneway peer leave --home {quote(look.folder)}",
        )
    said = ago(status.time, look.time)
    sentence = f"{name} is not running. What you see is what it left, {said}. To start it:"
    return State("stopped", "bad", sentence, run)


def _running(look: PeerLook) -> State:
    name, status = look.name, look.status
    if status is None or status.pid != look.process:
        return State("starting", "quiet", f"{name} has started and has not said anything yet.")
    silence = look.time - status.time
    if silence > SILENT_SECONDS:
        return State(
            "silent",
            "bad",
            f"{name} runs as process {look.process}, but has said nothing for {age(silence)}: "
            "it is halted, or the machine is very busy.",
        )
    if status.leaving:
        return State("leaving", "quiet", f"{name} hands over what it has, and stops.")
    if status.paused:
        return State(
            "paused",
            "quiet",
            f"{name} neither learns nor pushes. To let it go on, set paused = false in "
            f"{look.folder}/peer.toml.",
        )
    if status.finished:
        return State("running", "good", f"The stream has ended; {name} goes on exchanging models.")
    return State("running", "good")


def complaints(status: Status) -> list[str]:
    """What was not taken in, and from whom, in sentences; none if everything was."""
    said = []
    for sender in status.senders:
        if sender.quarantined:
            said.append(f"{sender.name} is in quarantine: what it sends is ignored for a while.")
        if sender.num_rejected:
            reasons = ", ".join(
                f"{count:,} {reason}"
                for reason, count in sorted(sender.rejected.items())
                if reason != REPEATED
            )
            said.append(f"Rejected from {sender.name}: {reasons}.")
        if sender.clipped:
            said.append(f"{_counted(sender.clipped, 'push', 'pushes')} of {sender.name} clipped.")
    if status.refused:
        said.append(
            f"{_counted(status.refused, 'message', 'messages')} refused, from keys that are not "
            "admitted."
        )
    if status.undecodable:
        said.append(
            f"{_counted(status.undecodable, 'message', 'messages')} dropped, too large or not "
            "whole."
        )
    if status.skipped:
        last = f" The last: {status.last_skipped}" if status.last_skipped else ""
        said.append(f"{_counted(status.skipped, 'sample', 'samples')} of the stream skipped.{last}")
    return said


def _counted(count: int, one: str, more: str) -> str:
    return f"{count:,} {one if count == 1 else more}"
