"""Presentation of a peer's status: its state, figures, edges and complaints, in words."""

from __future__ import annotations

from shlex import quote
from typing import NamedTuple

from oneway.dashboard.components.elements import Figure, Mood
from oneway.dashboard.components.numbers import ago, counted, number, size
from oneway.metrics.baselines import is_worse
from oneway.metrics.measure_rows import beside
from oneway.records.measures import Measures
from oneway.records.status import REPEATED, REST_SECONDS, ReceiverStatus, SenderStatus, Status
from oneway.sentences import listed, short_age
from oneway.web.peer_page import PeerLook

SILENT_SECONDS = 3 * REST_SECONDS
"""A running peer without a newer status is halted, or the machine is very busy."""

_SETTLING_SECONDS = 3.0
"""A link that has just begun to connect is nobody's fault."""

_LINKS: dict[str, tuple[str, str]] = {
    "connecting": (
        "nobody answers",
        "{name} is not running, or {address} cannot be reached from here.",
    ),
    "refused": (
        "does not admit this peer",
        "{name} has to admit this peer: hand it the card below.",
    ),
    "stranger": (
        "a stranger answers",
        "Somebody else answers at {address}: ask {name} for its new card.",
    ),
    "unresponsive": (
        "does not answer",
        "{address} accepts connections, but {name} does not answer: it may be stopped.",
    ),
}
"""By the state of a link that is down: what it is, and its remedy."""

_PHASES: dict[str, tuple[str, Mood]] = {
    "resync": ("catching up", "quiet"),
    "closing": ("closing: what has not arrived comes back", "quiet"),
    "dead": ("given up: what had not arrived is back", "bad"),
}


_SILENT = "silent"


class State(NamedTuple):
    """What a peer does in a word, what there is to say about it, and what to type about it."""

    word: str
    mood: Mood
    sentence: str = ""
    command: str = ""


class EdgeRow(NamedTuple):
    """One edge of the peer: who is at the other end, and what it does.

    Attributes:
        facts: Names and values, with units.
        problem: What is wrong, as a sentence; empty if nothing is.
        can_end: Whether it can be ended: it can if the peer is told to have it.
    """

    key: str
    name: str
    state: str
    mood: Mood
    facts: list[tuple[str, str]]
    problem: str = ""
    can_end: bool = True


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
            f"{name} has left: it has handed over everything.{_unheard(status)} To take part "
            "again, make a new peer in another folder:",
            f"oneway peer init {quote(name)} --task {quote(f'{look.folder}/task.toml')} --home DIR",
        )
    if status.stopped:
        return State("stopped", "bad", f"{name} stopped itself: {status.stopped}.")
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
            f"{name} runs as process {look.process}, but has said nothing for "
            f"{short_age(silence)}: it is halted, or the machine is very busy.",
        )
    if status.leaving:
        hands_over = f"{name} hands over what it has, and stops.{_unheard(status)}"
        return State("leaving", "quiet", hands_over)
    if status.paused:
        return State(
            "paused",
            "quiet",
            f"{name} neither learns nor pushes. To let it go on, set paused = false in "
            f"{look.folder}/peers.toml.",
        )
    if status.finished:
        return State("running", "good", f"The stream has ended; {name} goes on exchanging models.")
    return State("running", "good")


def _unheard(status: Status) -> str:
    names = status.unheard
    has = "has" if len(names) == 1 else "have"
    return f" {listed(names)} {has} not heard that it leaves." if names else ""


def figures(look: PeerLook) -> list[Figure]:
    """The headline numbers; none before the peer has said something about itself."""
    status = look.status
    if status is None:
        return []
    last = f"the last {ago(status.last_sample, look.time)}" if status.last_sample else ""
    right, percent = "each predicted before it was learned", "%"
    if status.accuracy is None:
        right, percent = "" if look.classifies else "numbers are predicted", ""
    units = f"exactly {status.mass_units:,} units of 2\u207b\u2074\u2070"
    units = units if status.minted else f"{units}; its own 1 is not in it yet"
    units = f"{units}; owes {status.owed:.4g}" if status.owed else units
    if not status.has_possible_mass:
        units = "impossible; see oneway peer doctor"
    ignored = sum(sender.quarantined for sender in status.senders)
    quarantine = f"{ignored or 'nobody'} in quarantine"
    rejected = sum(sender.num_rejected for sender in status.senders) + status.undecodable
    free = "" if look.disk_free is None else f"{' '.join(size(look.disk_free))} free"
    disk, commit = status.disk_problem, f"{1000 * status.commit_seconds:.1f}"
    average, recent = number(status.average_loss, ".4f"), number(status.recent_loss, ".4f")
    accuracy = number(status.accuracy, ".1f", factor=100)
    words = _personal_words(status.measures)
    return [
        Figure("samples", "Samples", f"{status.samples:,}", note=last),
        Figure(
            "average-loss",
            "Your loss" if words else "Average loss",
            average,
            "per sample",
            "; ".join([beside(status.measures) or "over all samples", *words]),
            _bad_if(_is_worse_than_base(status.measures)),
        ),
        Figure("recent-loss", "Loss lately", recent, "per sample", "over the last 200 or so"),
        Figure("accuracy", "Accuracy", accuracy, percent, right),
        Figure(
            "mass",
            "Mass",
            # Not cut to four digits: one that cannot be may have any size.
            f"{status.mass:.4f}" if status.has_possible_mass else f"{status.mass:,.4g}",
            note=units,
            mood=_bad_if(not status.has_possible_mass),
        ),
        Figure(
            "rejected", "Rejected", f"{rejected:,}", "messages", quarantine, _bad_if(bool(ignored))
        ),
        Figure("commit", "A commit to the disk", commit, "ms", disk or free, _bad_if(bool(disk))),
    ]


def _personal_words(measures: Measures | None) -> list[str]:
    """Whom the personal predictions believe, and the verdict; empty without them."""
    if measures is None or not measures.believes:
        return []
    return [f"believes {measures.believes}", *filter(None, [measures.verdict])]


def _is_worse_than_base(measures: Measures | None) -> bool:
    found = None if measures is None else measures.lately
    return found is not None and is_worse(found.loss, found.base_loss, found.base_error)


class PrivacyText(NamedTuple):
    """What a peer promises about its samples, and what there is to know beside it.

    Attributes:
        is_bad: Whether something should be done about it.
        facts: Names and values.
    """

    sentence: str
    is_bad: bool = False
    facts: tuple[tuple[str, str], ...] = ()


def privacy_of(look: PeerLook) -> PrivacyText:
    """What the peer promises; as long as it has never run, what its task does."""
    said = None if look.status is None else look.status.privacy
    if said is None:
        task = look.task
        if task is None:
            return PrivacyText("What it promises is not known.")
        # Not a learner that keeps all to itself: that needs no promise.
        is_none = not task.privacy and task.privacy_in_words == task.privacy.brief
        return PrivacyText(f"{task.privacy_sentence}.", is_none)
    facts = {"all peers of the task": said.floor, "not yet sent": said.progress}
    if said.floor == said.brief:
        del facts["all peers of the task"]
    again = " peer.toml asks for another: start the peer again." if said.needs_restart else ""
    is_bad = said.is_none or said.needs_restart
    shown = tuple((name, value) for name, value in facts.items() if value)
    return PrivacyText(f"{said.sentence}.{again}", is_bad, shown)


def _bad_if(is_bad: bool) -> Mood:
    return "bad" if is_bad else ""


def receiver_rows(look: PeerLook) -> list[EdgeRow]:
    """Whom the peer sends to, in the order of its configuration, then edges that are closing."""
    weights = {told.key: [("weight", f"{told.weight:g}")] for told in look.receivers}
    waits = "begins within a second" if look.is_running else "begins when the peer runs"
    rows = {
        told.key: EdgeRow(told.key, told.name, waits, "quiet", weights[told.key])
        for told in look.receivers
    }
    for known in look.status.receivers if look.status else ():
        state, mood = _receiver_state(known, look)
        facts = [
            *weights.get(known.key, []),
            ("heard", ago(known.last_answer, look.time)),
            ("acknowledged", f"{known.acked:,} of {known.seq:,} pushes"),
            ("lag", f"{known.lag:.1f} s" if known.lag < 60 else short_age(known.lag)),
            *_amount("in flight", known.in_flight_mass),
            *([("held back", known.held_back)] if known.held_back and not known.left else []),
        ]
        problem = known.problem
        if known.left and known.key in weights and not problem:
            problem = f"{known.name} has left the network, as it said: distrust it."
        if mood == "bad" and known.link in _LINKS and not problem:
            problem = _LINKS[known.link][1].format(name=known.name, address=known.address)
        can_end = known.key in weights
        rows[known.key] = EdgeRow(known.key, known.name, state, mood, facts, problem, can_end)
    return list(rows.values())


def sender_rows(look: PeerLook) -> list[EdgeRow]:
    """Who may send to the peer, in the order of its configuration, then others who did."""
    told = {edge.key: edge.name for edge in look.senders}
    never = [("heard", "never")]
    rows = {key: EdgeRow(key, name, "admitted", "quiet", never) for key, name in told.items()}
    for known in look.status.senders if look.status else ():
        state, mood = _sender_state(known, look)
        facts = [
            ("heard", ago(max(known.last_heard, known.last_push), look.time)),
            ("taken in", f"{known.seq:,} pushes"),
            ("rejected", f"{known.num_rejected:,} messages"),
            ("clipped", f"{known.clipped:,} pushes"),
            *([("strikes", f"{known.strikes:,}")] if known.strikes else []),
        ]
        problem = known.problem
        if state == _SILENT and not problem:
            problem = f"{known.name} is not running, or cannot reach this peer."
        can_end = known.key in told
        rows[known.key] = EdgeRow(known.key, known.name, state, mood, facts, problem, can_end)
    return list(rows.values())


def _amount(name: str, mass: float) -> list[tuple[str, str]]:
    return [(name, f"{mass:.3g} of mass")] if mass else []


def _receiver_state(known: ReceiverStatus, look: PeerLook) -> tuple[str, Mood]:
    if known.left:
        return "has left", "quiet"
    if not look.is_running:
        return "not connected", "quiet"
    if known.phase in ("closing", "dead"):
        return _PHASES[known.phase]
    if known.link == "connecting" and look.time - known.link_since < _SETTLING_SECONDS:
        return "connecting", "quiet"
    # Whoever cannot be reached cannot catch up either.
    if known.link in _LINKS:
        return _LINKS[known.link][0], "bad"
    return _PHASES.get(known.phase, ("connected", "good"))


def _sender_state(known: SenderStatus, look: PeerLook) -> tuple[str, Mood]:
    if known.quarantined:
        return "in quarantine", "bad"
    if not known.admitted:
        return "not admitted", "quiet"
    if known.left:
        return "has left", "quiet"
    if not look.is_running:
        return "not connected", "quiet"
    if known.closed:
        return "has ended it", "quiet"
    if look.status is not None and look.status.silent_since(known) is not None:
        return _SILENT, "bad"
    return ("sends", "good") if known.last_push else ("admitted", "quiet")


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
            said.append(f"{counted(sender.clipped, 'push', 'pushes')} of {sender.name} clipped.")
    for receiver in status.receivers:
        if receiver.claims:
            times = counted(receiver.claims, "time", "times")
            said.append(f"{receiver.name} claimed {times} to have been restored from a backup.")
    last = f" The last: {status.last_skipped}" if status.last_skipped else ""
    for count, one, more, what in (
        (status.refused, "message", "messages", "refused, from keys that are not admitted."),
        (status.undecodable, "message", "messages", "dropped, too large or not whole."),
        (status.skipped, "sample", "samples", f"of the stream skipped.{last}"),
    ):
        if count:
            said.append(f"{counted(count, one, more)} {what}")
    return said
