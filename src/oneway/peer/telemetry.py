"""Telemetry: from what a running peer knows to its status."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass, field

from oneway.errors import ConfigError
from oneway.methods.transforms import restarts
from oneway.peer.identity.keys import key_text
from oneway.peer.measuring import measures_in
from oneway.peer.node import Node
from oneway.protocol.audit import books_of
from oneway.protocol.fixed_point import ONE, mass_of
from oneway.protocol.state import LIVE, InEdge, Key, OutEdge, OutPhase
from oneway.records.status import PrivacyStatus, ReceiverStatus, SenderStatus, Status
from oneway.transport.base import Link, Transport


@dataclass
class Activity:
    """What a running peer does around its node in this life; fields are those of a `Status`."""

    api: str = ""
    finished: bool = False
    commits: int = 0
    commit_seconds: float = 0.0
    frames_in: int = 0
    frames_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    waits_for: list[str] = field(default_factory=list)

    def note_commit(self, seconds: float) -> None:
        """Count a commit, and how long it took: the mean is one of the last hundred or so."""
        self.commits += 1
        self.commit_seconds += (seconds - self.commit_seconds) / min(self.commits, 100)


def status_of(node: Node, transport: Transport, activity: Activity) -> Status:
    """One moment of a running peer."""
    with node.lock:
        state, journal = node.snapshot.state, node.snapshot.journal
        recent, losses = node.recent_losses, transport.losses
        samples, books = journal.samples, books_of(state)
        return Status(
            name=node.config.name,
            key=key_text(transport.key),
            card=_card(node, transport.key),
            task=node.task.fingerprint.hex(),
            pid=os.getpid(),
            started=_wall_clock(node, node.started),
            time=time.time(),
            samples=samples,
            average_loss=journal.loss_sum / samples if samples else None,
            recent_loss=sum(recent) / len(recent) if recent else None,
            accuracy=journal.correct / samples if samples and node.task.classifies else None,
            last_sample=_wall_clock(node, node.last_sample),
            skipped=journal.skipped,
            last_skipped=node.last_skipped,
            mass=state.mass,
            mass_units=books.held,
            minted=state.has_minted,
            replenished=max(0.0, mass_of(state.minted) / ONE - 1.0),
            leaving=state.leaving,
            drained=node.is_drained,
            paused=node.config.paused,
            disk_problem=node.disk_problem,
            disk_problem_since=node.disk_problem_since,
            refused=sum(losses.refused.values()) + losses.refused_others,
            undecodable=losses.malformed + losses.oversized,
            receivers=_receivers(node, transport),
            senders=_senders(node),
            brought_units=books.brought,
            sent_units={key_text(key): units for key, units in books.sent.items()},
            heard_units={key_text(key): units for key, units in books.heard.items()},
            mass_limit=node.task.impossible_mass,
            owed=state.debt,
            stopped=node.stopped,
            copies=node.inbox.copies.warning(node.config.name, node.name_of),
            unheard=[node.name_of(key) for key in node.unheard],
            receipts=len(state.receipts),
            forgotten=journal.forgotten,
            privacy=_privacy(node),
            measures=measures_in(node.snapshot.measures, node.task, node.snapshot.history.curve()),
            personal=node.personal_note,
            restarts=_restarts(node),
            measured_samples=samples,
            **asdict(activity),
        )


def _restarts(node: Node) -> list[int]:
    """Where the learning rate restarted, in samples: an update is one, or a batch."""
    return [node.learner.samples_per_step * it for it in restarts(node.snapshot.memory)]


def _privacy(node: Node) -> PrivacyStatus:
    learned, sends = node.learner.as_learned, node.learner.exchanges
    own, floor = (it.privacy.guarantee if sends else None for it in (learned, node.task))
    count = node.snapshot.memory.get("batch.count")
    return PrivacyStatus(
        brief=learned.privacy_in_words,
        sentence=learned.privacy_sentence,
        epsilon=None if own is None else own.epsilon,
        delta=None if own is None else own.delta,
        floor=node.task.privacy_in_words,
        floor_epsilon=None if floor is None else floor.epsilon,
        samples_per_push=learned.samples_per_push if sends else 0,
        waiting=0 if count is None else int(count[0, 0]),
        needs_restart=node.config.privacy != node.learner.own,
    )


def _receivers(node: Node, transport: Transport) -> list[ReceiverStatus]:
    weights = {receiver.key: receiver.weight for receiver in node.config.receivers}
    links, edges = transport.links, dict[Key, OutEdge]()
    for edge in node.snapshot.state.out.values():
        # Of several edges to one receiver, the live one tells.
        if edge.receiver not in edges or edge.phase in LIVE:
            edges[edge.receiver] = edge
    return [
        _receiver(node, key, edges.get(key), weights.get(key, 0.0), links.get(key))
        for key in {**weights, **edges}
    ]


def _receiver(
    node: Node, key: Key, edge: OutEdge | None, weight: float, link: Link | None
) -> ReceiverStatus:
    contact = node.snapshot.contacts.get(key)
    link = link or Link("connecting", node.started)
    lag = node.schedule.lagging.get((key, edge.epoch)) if edge else None
    return ReceiverStatus(
        name=node.name_of(key),
        key=key_text(key),
        address=contact.address if contact else "",
        phase=str(edge.phase) if edge else "none",
        weight=weight,
        link=link.state,
        link_since=_wall_clock(node, link.since),
        seq=edge.seq if edge else 0,
        acked=edge.acked if edge else 0,
        lag=node.clock() - lag[1] if lag else 0.0,
        last_answer=_wall_clock(node, node.inbox.answered.get(key)),
        problem=_problem(node, key),
        left=_has_left(node, key),
        in_flight_mass=edge.mass_in_flight / ONE if edge else 0.0,
        held_back=node.held_back(key),
        claims=node.inbox.claims[key],
        round_trip=node.schedule.round_trips.get(key, 0.0),
        has_dead_edge=any(
            other.receiver == key and other.phase is OutPhase.DEAD
            for other in node.snapshot.state.out.values()
        ),
    )


def _senders(node: Node) -> list[SenderStatus]:
    admitted = {sender.key for sender in node.config.senders}
    edges: dict[Key, InEdge] = {}
    for edge in node.snapshot.state.in_.values():
        known = edges.get(edge.sender)
        if known is None or (known.closed, -known.session) > (edge.closed, -edge.session):
            edges[edge.sender] = edge
    keys = {**dict.fromkeys(admitted), **edges, **node.inbox.pushed}
    return [_sender(node, key, edges.get(key), key in admitted) for key in keys]


def _sender(node: Node, key: Key, edge: InEdge | None, admitted: bool) -> SenderStatus:
    conduct = node.guard.about(key)
    return SenderStatus(
        name=node.name_of(key),
        key=key_text(key),
        admitted=admitted or node.config.anyone,
        seq=edge.seq if edge else 0,
        closed=edge.closed if edge else False,
        last_push=_wall_clock(node, node.inbox.pushed.get(key)),
        rejected=dict(conduct.rejected),
        clipped=conduct.clipped,
        strikes=conduct.strikes,
        quarantined=node.guard.is_quarantined(key),
        problem=_problem(node, key),
        left=_has_left(node, key),
        last_heard=_wall_clock(node, node.inbox.heard.get(key)),
    )


def _problem(node: Node, key: Key) -> str:
    name, mismatch = node.name_of(key), node.guard.about(key).mismatch
    if node.guard.runs_twice(key):
        return (
            f"two copies of {name} ran with one key, and only one of them is heard: ask {name} to "
            "keep one folder, and to delete the other"
        )
    return f"{name}'s {mismatch}" if mismatch else ""


def _has_left(node: Node, key: Key) -> bool:
    life = node.snapshot.state.lives.get(key)
    return life is not None and life.leaving


def _card(node: Node, key: Key) -> str:
    try:
        return str(node.config.card(key))
    except ConfigError:
        return ""


def _wall_clock(node: Node, moment: float | None) -> float:
    """A moment of the node's clock, as seconds since 1970; 0 if it never was."""
    return 0.0 if moment is None else time.time() - (node.clock() - moment)
