"""Observer of a lab: reads statuses, configurations and stores of its peers, and yields frames."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np

from oneway.errors import StoreError
from oneway.lab.lab import Edge, Lab, TrustEdges
from oneway.lab.live_audit import BookReader, LiveAudit, Reading
from oneway.lab.peer_process import Observation, PeerProcess
from oneway.lab.problem import Problem
from oneway.metrics import Thinned, disagreement_of_holders
from oneway.peer.identity.keys import key_text
from oneway.peer.learner import Learner
from oneway.protocol.state import Key
from oneway.records import NetworkState, Vector
from oneway.records.network import EdgeView, LabPhase, NetworkFrame, PeerView
from oneway.records.status import Status

EVENTS_SHOWN = 200

LOOK_SECONDS = 0.25
"""Seconds between two stores that are read for their models."""
MOST_NUMBERS = 4_000_000
"""Disagreement is measured only if all models together have at most this many parameters."""
MOST_POINTS = 2048


class Observer:
    """Makes the frames of one lab; all are to be made by the same.

    Attributes:
        models: Measures the disagreement.
    """

    def __init__(self, lab: Lab) -> None:
        """Prepare the first frame."""
        self.models = ModelObserver(lab)
        self._lab = lab
        self._title = title_of(lab.problem)
        self._positions = circle(lab.problem.names)
        self._trust = TrustEdges.of(lab.peers)
        self._ended: set[Edge] = set()
        self._books = BookReader()
        self._audit = LiveAudit()
        self._traffic = _Traffic()
        self._number = 0
        self._has_started = False

    def frame(self, phase: LabPhase) -> NetworkFrame:
        """The lab at this moment; reports `starting` until every peer has written a status."""
        lab, now = self._lab, time.time()  # by which peers date their status
        peers = lab.observe()
        before, self._trust = self._trust, TrustEdges.of(lab.peers)
        self._ended |= set(before.edges) - set(self._trust.edges)
        readings = self._readings(peers, now)
        messages, sent_bytes = self._traffic.per_second(peers)
        self._number += 1
        self._has_started = self._has_started or all(peer.state != "starting" for peer in peers)
        return NetworkFrame(
            number=self._number,
            seconds=round(lab.seconds, 3),
            phase=phase if self._has_started else "starting",
            title=self._title,
            peers=[self._peer(peer, readings.get(peer.key)) for peer in peers],
            edges=self._edges(peers),
            mass=self._audit.check(readings, self._books.problems),
            disagreement=self.models.disagreement,
            messages_per_second=messages,
            bytes_per_second=sent_bytes,
            loss_rate=lab.loss,
            num_events=len(lab.events),
            events=lab.events[-EVENTS_SHOWN:],
            privacy=lab.problem.task.privacy_in_words,
            acts=phase != "finishing",
        )

    def last(
        self, frame: NetworkFrame, result: Sequence[str], is_exact: bool | None
    ) -> NetworkFrame:
        """A frame made into the last one: the peers as they were, and what came of it all."""
        self._number += 1
        return msgspec.structs.replace(
            frame,
            number=self._number,
            phase="done",
            acts=False,
            messages_per_second=0.0,
            bytes_per_second=0.0,
            num_events=len(self._lab.events),
            events=self._lab.events[-EVENTS_SHOWN:],
            result=list(result),
            result_is_exact=is_exact,
        )

    def _readings(self, peers: Sequence[Observation], now: float) -> dict[Key, Reading]:
        """The books of every peer that has some."""
        names = {peer.key: peer.name for peer in peers}
        readings = self._books.read(self._lab.peers, peers, now)
        # Where trust has ended before, there may be an old edge besides the one of the status.
        return {
            key: replace(
                reading,
                complete=[
                    other
                    for other in reading.complete
                    if (reading.name, names.get(other, "")) not in self._ended
                ],
            )
            for key, reading in readings.items()
        }

    def _peer(self, peer: Observation, reading: Reading | None) -> PeerView:
        if peer.name not in self._positions:
            joined = len(self._positions) - len(self._lab.problem.names)
            self._positions[peer.name] = place_of_newcomer(joined)
        x, y = self._positions[peer.name]
        status = peer.status
        measures = status.measures if status else None
        return PeerView(
            name=peer.name,
            state=peer.state,
            x=x,
            y=y,
            samples=status.samples if status else 0,
            average_loss=status.average_loss if status else None,
            recent_loss=status.recent_loss if status else None,
            accuracy=status.accuracy if status else None,
            mass_units=reading.books.held if reading else 0,
            restarts=peer.restarts,
            finished=bool(status and status.finished),
            shared_loss=measures.so_far.shared_loss if measures else None,
            alone_loss=measures.so_far.alone_loss if measures else None,
            base_loss=measures.so_far.base_loss if measures else None,
            believes=measures.believes if measures else "",
        )

    def _edges(self, peers: Sequence[Observation]) -> list[EdgeView]:
        keys = {peer.name: key_text(peer.key) for peer in peers}
        statuses = {peer.name: peer.status for peer in peers if peer.status is not None}
        sent = {
            (name, edge.key): edge for name, said in statuses.items() for edge in said.receivers
        }
        heard = {(name, edge.key): edge for name, said in statuses.items() for edge in said.senders}
        found = []
        for sender, receiver in self._trust.edges:
            at_sender = sent.get((sender, keys[receiver]))
            at_receiver = heard.get((receiver, keys[sender]))
            number = at_receiver.seq if at_receiver else at_sender.acked if at_sender else 0
            found.append(
                EdgeView(
                    sender=sender,
                    receiver=receiver,
                    arrived=number,
                    waiting=at_sender.seq - at_sender.acked if at_sender else 0,
                    cut=self._trust.is_cut(sender, receiver),
                )
            )
        return found


class ModelObserver:
    """Measures how far the models of the peers are apart, one store at a time, in turn.

    Attributes:
        disagreement: After the last round through all stores; None before the first.
    """

    def __init__(self, lab: Lab) -> None:
        """Begin; no store is read yet."""
        self.disagreement: float | None = None
        self._lab = lab
        self._dim = lab.problem.task.dim
        self._learner = Learner(lab.problem.task)
        self._next_look = 0.0
        self._due: list[PeerProcess] = []
        self._held: dict[Key, tuple[Vector, float, int]] = {}
        self._points = Thinned(MOST_POINTS)

    @property
    def points(self) -> list[tuple[float, float]]:
        """Measurements: after how many samples of each peer on average, and the disagreement."""
        return self._points.points

    def look(self) -> None:
        """Read the next store, if it is time; to be called repeatedly."""
        now = time.monotonic()
        if now < self._next_look or self._dim * len(self._lab.peers) > MOST_NUMBERS:
            return
        self._next_look = now + LOOK_SECONDS
        self._due = self._due or self._lab.peers[::-1]
        self._read(self._due.pop())
        if not self._due:
            self._measure()

    def _read(self, peer: PeerProcess) -> None:
        try:
            snapshot = peer.snapshot()
        except StoreError:
            return  # damaged, which the live audit tells
        if snapshot is not None:
            numerator, mass = self._learner.numerator(snapshot), snapshot.state.mass
            self._held[peer.key] = (numerator, mass, snapshot.journal.samples)

    def _measure(self) -> None:
        if not self._held:
            return
        numerators, masses, samples = zip(*self._held.values(), strict=True)
        found = disagreement_of_holders(NetworkState(np.array(numerators), np.array(masses)))
        if found is not None:
            self.disagreement = found
            self._points.add(float(np.mean(samples)), found)


class _Traffic:
    """What all peers send per second together, by counters that begin anew with every life."""

    def __init__(self) -> None:
        self._last: dict[Key, Status] = {}
        self._rates: dict[Key, tuple[float, float]] = {}

    def per_second(self, peers: Sequence[Observation]) -> tuple[float, float]:
        """Messages and bytes, as of the last two statuses of each peer that runs."""
        for peer in peers:
            status, before = peer.status, self._last.get(peer.key)
            if status is None or peer.state in ("down", "starting"):
                self._rates.pop(peer.key, None)
                continue
            if before is not None and before.pid == status.pid and status.time > before.time:
                seconds = status.time - before.time
                self._rates[peer.key] = (
                    (status.frames_out - before.frames_out) / seconds,
                    (status.bytes_out - before.bytes_out) / seconds,
                )
            self._last[peer.key] = status
        rates = self._rates.values()
        return sum(messages for messages, _ in rates), sum(size for _, size in rates)


def circle(names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Positions on a circle, clockwise from the top; x and y from 0 to 1, y downwards."""
    return {name: _on_circle(0.44, place / len(names)) for place, name in enumerate(names)}


def place_of_newcomer(number: int) -> tuple[float, float]:
    """A place inside the circle of the founders; golden angles keep newcomers apart."""
    return _on_circle(0.22, 0.381966 * number)


def _on_circle(radius: float, turn: float) -> tuple[float, float]:
    angle = 2.0 * math.pi * turn
    return round(0.5 + radius * math.sin(angle), 4), round(0.5 - radius * math.cos(angle), 4)


def title_of(problem: Problem) -> str:
    """A lab in a few words, as "flights, logistic, random graph"."""
    graph = str(problem.graph.origin.get("graph", "trust")).replace("_", " ")
    return f"{problem.table.name}, {problem.task.model}, {graph} graph"
