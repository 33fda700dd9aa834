"""Whom a peer sends to and who sends to it: what it is told, with what it knows about them."""

from __future__ import annotations

from dataclasses import dataclass

from oneway.dashboard.components.amounts import age, ago
from oneway.dashboard.peer.source import PeerLook, Receiver, Sender
from oneway.dashboard.peer.state import Mood
from oneway.records.status import ReceiverStatus, SenderStatus

_LINKS: dict[str, tuple[str, Mood]] = {
    "connecting": ("nobody answers", "bad"),
    "refused": ("does not admit this peer", "bad"),
    "stranger": ("a stranger answers", "bad"),
}

_REMEDIES = {
    "connecting": "{name} is not running, or {address} cannot be reached from here.",
    "refused": "{name} has to admit this peer: hand it the card below.",
    "stranger": "Somebody else answers at {address}: ask {name} for its new card.",
}

_PHASES: dict[str, tuple[str, Mood]] = {
    "resync": ("catching up", "quiet"),
    "closing": ("closing: what has not arrived comes back", "quiet"),
    "dead": ("given up: what had not arrived is back", "bad"),
}

_ENDING = ("closing", "dead")

_SETTLING_SECONDS = 3.0
"""A link that has just begun to connect is nobody's fault."""


@dataclass(frozen=True)
class EdgeRow:
    """One edge of the peer.

    Attributes:
        key: Whom it leads to or comes from.
        name: The same for people.
        state: What it does, in a few words.
        mood: Whether that is good.
        facts: Names and values, with units.
        problem: What is wrong, as a sentence; empty if nothing is.
        can_end: Whether it can be ended: it can if the peer is told to have it.
    """

    key: str
    name: str
    state: str
    mood: Mood
    facts: tuple[tuple[str, str], ...]
    problem: str
    can_end: bool


def receiver_rows(look: PeerLook) -> list[EdgeRow]:
    """Whom the peer sends to, in the order of its configuration, then edges that are closing."""
    known = {} if look.status is None else {peer.key: peer for peer in look.status.receivers}
    told = {peer.key: peer for peer in look.receivers}
    keys = [*told, *(key for key in known if key not in told)]
    return [_receiver_row(key, told.get(key), known.get(key), look) for key in keys]


def sender_rows(look: PeerLook) -> list[EdgeRow]:
    """Who may send to the peer, in the order of its configuration, then others who did."""
    known = {} if look.status is None else {peer.key: peer for peer in look.status.senders}
    told = {peer.key: peer for peer in look.senders}
    keys = [*told, *(key for key in known if key not in told)]
    return [_sender_row(key, told.get(key), known.get(key), look) for key in keys]


def _receiver_row(
    key: str, told: Receiver | None, known: ReceiverStatus | None, look: PeerLook
) -> EdgeRow:
    weight = (("weight", f"{told.weight:g}"),) if told is not None else ()
    if known is None:
        name = key if told is None else told.name
        waits = "begins within a second" if look.is_running else "begins when the peer runs"
        return EdgeRow(key, name, waits, "quiet", weight, "", told is not None)
    state, mood = _receiver_state(known, look)
    facts = (
        *weight,
        ("heard", ago(known.last_answer, look.time)),
        ("acknowledged", f"{known.acked:,} of {known.seq:,} pushes"),
        ("lag", f"{known.lag:.1f} s" if known.lag < 60 else age(known.lag)),
    )
    problem = known.problem
    if mood == "bad" and known.link in _REMEDIES and not problem:
        problem = _REMEDIES[known.link].format(name=known.name, address=known.address)
    return EdgeRow(key, known.name, state, mood, facts, problem, told is not None)


def _receiver_state(known: ReceiverStatus, look: PeerLook) -> tuple[str, Mood]:
    if not look.is_running:
        return "not connected", "quiet"
    if known.phase in _ENDING:
        return _PHASES[known.phase]
    if known.link == "connecting" and look.time - known.link_since < _SETTLING_SECONDS:
        return "connecting", "quiet"
    # Whoever cannot be reached cannot catch up either.
    return _LINKS.get(known.link) or _PHASES.get(known.phase) or ("connected", "good")


def _sender_row(
    key: str, told: Sender | None, known: SenderStatus | None, look: PeerLook
) -> EdgeRow:
    if known is None:
        name = key if told is None else told.name
        facts = (("heard", "never"),)
        return EdgeRow(key, name, "admitted", "quiet", facts, "", told is not None)
    state, mood = _sender_state(known, look)
    facts = (
        ("heard", ago(known.last_push, look.time)),
        ("taken in", f"{known.seq:,} pushes"),
        ("rejected", f"{known.num_rejected:,} messages"),
        ("clipped", f"{known.clipped:,} pushes"),
        *((("strikes", f"{known.strikes:,}"),) if known.strikes else ()),
    )
    return EdgeRow(key, known.name, state, mood, facts, known.problem, told is not None)


def _sender_state(known: SenderStatus, look: PeerLook) -> tuple[str, Mood]:
    if known.quarantined:
        return "in quarantine", "bad"
    if not known.admitted:
        return "not admitted", "quiet"
    if not look.is_running:
        return "not connected", "quiet"
    if known.closed:
        return "has ended it", "quiet"
    return ("sends", "good") if known.last_push else ("admitted", "quiet")
