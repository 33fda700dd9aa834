"""From a running lab to what one can see of it: a frame, a few times a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from oneway.lab.gauge import Gauge
from oneway.lab.lab import Lab
from oneway.lab.layout import place_for_newcomer, places
from oneway.lab.ledger import Ledger, Reading
from oneway.lab.meter import Meter
from oneway.lab.problem import Problem
from oneway.lab.readings import Readings
from oneway.lab.rest import Look
from oneway.lab.wiring import Edge, Wiring
from oneway.peer.identity.keys import key_text
from oneway.records.network import EdgeView, LabPhase, NetworkFrame, PeerView
from oneway.records.status import ReceiverStatus, SenderStatus, Status

EVENTS_SHOWN = 200


class Frames:
    """Makes the frames of one lab; all are to be made by the same."""

    def __init__(self, lab: Lab, gauge: Gauge, clock: Callable[[], float] = time.time) -> None:
        """Lay the peers out.

        Args:
            lab: What to see.
            gauge: Knows the disagreement; somebody else sees that it looks.
            clock: Seconds since 1970, by which peers date their status.
        """
        self._lab = lab
        self._gauge = gauge
        self._clock = clock
        self._title = title_of(lab.problem)
        self._places = places(lab.problem.graph, lab.problem.names)
        self._wiring = Wiring()
        self._readings = Readings()
        self._ledger = Ledger()
        self._meter = Meter()
        self._arrivals = _Arrivals()
        self._number = 0

    def frame(self, phase: LabPhase, *, acts: bool = True) -> NetworkFrame:
        """The lab at this moment."""
        lab, now = self._lab, self._clock()
        looks = lab.statuses()
        self._wiring.follow(lab.members)
        readings = self._readings.read(lab.members, looks, now, self._wiring.reopened)
        self._place_newcomers(looks)
        traffic = self._meter.read(looks)
        self._number += 1
        return NetworkFrame(
            number=self._number,
            seconds=round(lab.seconds, 3),
            phase=phase,
            title=self._title,
            peers=[self._peer(look, readings.get(look.key)) for look in looks],
            edges=self._edges(looks),
            mass=self._ledger.check(readings, self._readings.problems),
            disagreement=self._gauge.value,
            messages_per_second=traffic.messages,
            bytes_per_second=traffic.bytes,
            loss_rate=lab.loss,
            num_events=len(lab.events),
            events=lab.events[-EVENTS_SHOWN:],
            acts=acts,
        )

    def last(
        self, frame: NetworkFrame, result: Sequence[str], is_exact: bool | None
    ) -> NetworkFrame:
        """A frame made into the last one: the peers as they were, and what came of it all."""
        self._number += 1
        return replace(
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

    def _peer(self, look: Look, reading: Reading | None) -> PeerView:
        x, y = self._places[look.name]
        status = look.status
        return PeerView(
            name=look.name,
            state=look.state,
            x=x,
            y=y,
            samples=status.samples if status else 0,
            average_loss=status.average_loss if status else None,
            recent_loss=status.recent_loss if status else None,
            accuracy=status.accuracy if status else None,
            mass_units=reading.books.held if reading else 0,
            restarts=look.restarts,
            finished=bool(status and status.finished),
        )

    def _edges(self, looks: Sequence[Look]) -> list[EdgeView]:
        keys = {look.name: key_text(look.key) for look in looks}
        sent = {look.name: _receivers(look.status) for look in looks}
        heard = {look.name: _senders(look.status) for look in looks}
        found = []
        for sender, receiver in self._wiring.edges:
            at_sender = sent[sender].get(keys[receiver])
            at_receiver = heard[receiver].get(keys[sender])
            number = at_receiver.seq if at_receiver else at_sender.acked if at_sender else 0
            found.append(
                EdgeView(
                    sender=sender,
                    receiver=receiver,
                    arrived=self._arrivals.count((sender, receiver), number),
                    waiting=at_sender.seq - at_sender.acked if at_sender else 0,
                    cut=self._wiring.is_cut(sender, receiver),
                )
            )
        return found

    def _place_newcomers(self, looks: Sequence[Look]) -> None:
        for look in looks:
            if look.name not in self._places:
                friends = {
                    name for edge in self._wiring.edges if look.name in edge for name in edge
                }
                self._places[look.name] = place_for_newcomer(self._places, friends - {look.name})


class _Arrivals:
    """Counts on where an edge begins anew, or its receiver forgot what was not yet durable."""

    def __init__(self) -> None:
        self._seen: dict[Edge, tuple[int, int]] = {}

    def count(self, edge: Edge, number: int) -> int:
        """How many pushes have arrived, given the number of the last one; never shrinks."""
        last, before = self._seen.get(edge, (0, 0))
        if number < last:
            before += last - number
        self._seen[edge] = (number, before)
        return before + number


def title_of(problem: Problem) -> str:
    """A lab in a few words, as "flights, logistic, random graph"."""
    graph = str(problem.graph.origin.get("graph", "trust")).replace("_", " ")
    return f"{problem.table.name}, {problem.task.model}, {graph} graph"


def _receivers(status: Status | None) -> Mapping[str, ReceiverStatus]:
    return {} if status is None else {edge.key: edge for edge in status.receivers}


def _senders(status: Status | None) -> Mapping[str, SenderStatus]:
    return {} if status is None else {edge.key: edge for edge in status.senders}
