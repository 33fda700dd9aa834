"""Send schedule: new words at once, unanswered ones again with backoff, the rest at heartbeats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from oneway.protocol.bookkeeping import RETIRED
from oneway.protocol.messages import Push
from oneway.protocol.outgoing import answer, receipts, remind, report, say
from oneway.protocol.pace import LONGEST_RETRY, first_wait, patience
from oneway.protocol.rules import Rules
from oneway.protocol.state import EdgeId, Key, OutEdge, OutPhase, PeerState
from oneway.transport.wire import Body, Versions

RECEIPTS_SECONDS = 3.0
"""New receipts are passed on together, this often at most."""
HEARTBEAT = 30.0
"""Seconds after which even what is settled is said again, for peers restored from a backup."""

Word: TypeAlias = tuple[Key, Literal["push", "reply"], Body | Versions]
"""To whom, over whose connection, what."""


@dataclass(frozen=True, slots=True)
class _Said:
    """What was last said about an edge, when, and how long to wait before saying it again."""

    what: tuple[OutPhase, int, int]
    at: float
    wait: float


class SendSchedule:
    """Decides what a peer says, always from a durable state; time is an argument.

    Attributes:
        lagging: Edges with something in flight: up to where it is acknowledged, and since when.
        round_trips: Seconds until receivers acknowledge, their commits included; running means.
    """

    def __init__(self, key: Key, rules: Rules, dim: int, now: float) -> None:
        self.rules = rules
        self._key = key
        self._dim = dim
        self.lagging: dict[EdgeId, tuple[int, float]] = {}
        self._said: dict[EdgeId, _Said] = {}
        self.round_trips: dict[Key, float] = {}
        self._told_receipts: object = None
        self._receipts_at = -HEARTBEAT
        self._heartbeat = now
        self._farewell = -HEARTBEAT

    def news(
        self, durable: PeerState, questions: Mapping[EdgeId, Push], now: float
    ) -> Iterator[Word]:
        """What a commit gives to say: edges that changed, and answers to questions."""
        for edge_id, edge in durable.out.items():
            said = self._said.get(edge_id)
            if said is None or said.what != _what(edge):
                yield self._say(durable, edge, now, self._wait(edge.receiver))
            if edge.phase is OutPhase.DEAD:  # nothing of it is expected any more
                self.lagging.pop(edge_id, None)
            elif edge.in_flight == 0:
                self._note_trip(edge_id, now)
                self.lagging.pop(edge_id, None)
            elif self.lagging.get(edge_id, (None,))[0] != edge.acked:
                self._note_trip(edge_id, now)
                self.lagging[edge_id] = (edge.acked, now)
        for gone in self._said.keys() - durable.out.keys():
            del self._said[gone]
            self.lagging.pop(gone, None)
        for (sender, _), question in questions.items():
            for reply in answer(durable, sender, question, self.rules):
                yield sender, "reply", reply

    def endings(self, durable: PeerState, ends: Iterable[EdgeId]) -> Iterator[Word]:
        """Confirm to receivers how their edges ended."""
        for end_id in ends:
            end = durable.settled.get(end_id)
            if end is not None:
                yield end.receiver, "push", remind(durable, end, self.rules)

    def is_overdue(self, receiver: Key, now: float) -> bool:
        """Whether a receiver should have acknowledged something long ago."""
        since = [moment for (key, _), (_, moment) in self.lagging.items() if key == receiver]
        return bool(since) and now - min(since) > patience(self._wait(receiver))

    def given_up(
        self,
        state: PeerState,
        answered: Mapping[Key, float],
        started: float,
        now: float,
        silence: float,
    ) -> Iterator[EdgeId]:
        """Edges whose receiver was silent for so long that it is presumed dead."""
        for edge_id, edge in state.out.items():
            # Not since it last said anything: who answers and acknowledges nothing keeps mass.
            # And what is not durable was not said yet, so that it cannot be overdue.
            closing = edge.phase is OutPhase.CLOSING
            since = self.lagging.get(edge_id, (0, started if closing else now))[1]
            if closing:
                since = max(since, answered.get(edge.receiver, started))
            waits = edge.in_flight or closing
            if waits and edge.phase is not OutPhase.DEAD and now - since > silence:
                yield edge_id

    def overdue(self, durable: PeerState, now: float) -> Iterator[Word]:
        """What must be said again: unanswered words, each time later, and the heartbeat."""
        for edge_id, edge in durable.out.items():
            said = self._said.get(edge_id)
            if said is None:  # durable since before this life
                yield self._say(durable, edge, now, self._wait(edge.receiver))
                continue
            if now - said.at >= (HEARTBEAT if edge.is_at_rest else said.wait):
                yield self._say(
                    durable, edge, now, max(said.wait, min(2 * said.wait, LONGEST_RETRY))
                )
        if durable.leaving and now - self._farewell >= 2 * first_wait(self._dim, None):
            # Who sends to a peer that leaves must know before it is gone, or what is under way
            # would come back only when the peer is presumed dead.
            self._farewell = now
            yield from self._reports(durable)
            yield from self._receipts(durable)
        is_due = now - self._heartbeat >= HEARTBEAT
        is_new = durable.receipts is not self._told_receipts
        if is_due or (is_new and now - self._receipts_at >= RECEIPTS_SECONDS):
            self._told_receipts, self._receipts_at = durable.receipts, now
            yield from self._receipts(durable)
        if is_due:
            self._heartbeat = now
            yield from self._reports(durable)
            for end in durable.settled.values():
                if end.epoch != RETIRED:
                    yield end.receiver, "push", remind(durable, end, self.rules)

    def _reports(self, durable: PeerState) -> Iterator[Word]:
        for heard in durable.in_.values():
            if heard.epoch != RETIRED:
                yield heard.sender, "reply", report(durable, heard, self.rules)

    def _receipts(self, durable: PeerState) -> Iterator[Word]:
        for receipt in receipts(durable, self._key, self.rules):
            for receiver in {edge.receiver for edge in durable.out.values()}:
                yield receiver, "push", receipt
            for sender in {edge.sender for edge in durable.in_.values()}:
                yield sender, "reply", receipt

    def answered(self, receiver: Key, now: float) -> None:
        """A receiver is there: what it has not heard is worth saying soon again."""
        first = self._wait(receiver)
        for edge_id, said in self._said.items():
            if edge_id[0] == receiver and said.wait > first:
                self._said[edge_id] = _Said(said.what, now, first)

    def _wait(self, receiver: Key) -> float:
        """How long to wait for an answer before a word is said again, the first time."""
        return first_wait(self._dim, self.round_trips.get(receiver))

    def _note_trip(self, edge_id: EdgeId, now: float) -> None:
        """Something was acknowledged: take the time since it began to lag for a round trip."""
        lag = self.lagging.get(edge_id)
        if lag is not None:
            trip, known = now - lag[1], self.round_trips.get(edge_id[0])
            self.round_trips[edge_id[0]] = trip if known is None else known + (trip - known) / 8

    def _say(self, durable: PeerState, edge: OutEdge, now: float, wait: float) -> Word:
        edge_id = edge.receiver, edge.epoch
        self._said[edge_id] = _Said(_what(edge), now, wait)
        if edge.in_flight and edge.phase is not OutPhase.DEAD:
            self.lagging.setdefault(edge_id, (edge.acked, now))
        return edge.receiver, "push", say(durable, edge, self.rules)


def _what(edge: OutEdge) -> tuple[OutPhase, int, int]:
    return edge.phase, edge.session, edge.seq
