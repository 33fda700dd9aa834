"""Send schedule: new words at once, unanswered ones again with backoff, the rest at heartbeats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from oneway.protocol.messages import Push
from oneway.protocol.outgoing import answer, remind, report, say
from oneway.protocol.rules import Rules
from oneway.protocol.state import EdgeId, Key, OutEdge, OutPhase, PeerState
from oneway.transport.wire import Body, Versions

FIRST_RETRY = 0.25
LONGEST_RETRY = 10.0
SLOWEST_LINK = 4e6
"""Bytes per second that a link is given time for before a large model is sent again."""
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
    """

    def __init__(self, rules: Rules, dim: int, now: float) -> None:
        self.rules = rules
        self._first_retry = FIRST_RETRY + 8 * dim / SLOWEST_LINK
        self.lagging: dict[EdgeId, tuple[int, float]] = {}
        self._said: dict[EdgeId, _Said] = {}
        self._heartbeat = now
        self._farewell = -HEARTBEAT

    def news(
        self, durable: PeerState, questions: Mapping[EdgeId, Push], now: float
    ) -> Iterator[Word]:
        """What a commit gives to say: edges that changed, and answers to questions."""
        for edge_id, edge in durable.out.items():
            said = self._said.get(edge_id)
            if said is None or said.what != _what(edge):
                yield self._say(durable, edge, now, self._first_retry)
            if edge.in_flight == 0:
                self.lagging.pop(edge_id, None)
            elif self.lagging.get(edge_id, (None,))[0] != edge.acked:
                self.lagging[edge_id] = (edge.acked, now)
        for gone in self._said.keys() - durable.out.keys():
            del self._said[gone]
            self.lagging.pop(gone, None)
        for (sender, _), question in questions.items():
            for reply in answer(durable, sender, question):
                yield sender, "reply", reply

    def overdue(self, durable: PeerState, now: float) -> Iterator[Word]:
        """What must be said again: unanswered words, each time later, and the heartbeat."""
        for edge_id, edge in durable.out.items():
            said = self._said.get(edge_id)
            if said is None:  # durable since before this life
                yield self._say(durable, edge, now, self._first_retry)
                continue
            if now - said.at >= (HEARTBEAT if edge.is_at_rest else said.wait):
                yield self._say(
                    durable, edge, now, max(said.wait, min(2 * said.wait, LONGEST_RETRY))
                )
        if durable.leaving and now - self._farewell >= 2 * self._first_retry:
            # Who sends to a peer that leaves must know before it is gone, or what is under way
            # would come back only when the peer is presumed dead.
            self._farewell = now
            for heard in durable.in_.values():
                yield heard.sender, "reply", report(durable, heard)
        if now - self._heartbeat >= HEARTBEAT:
            self._heartbeat = now
            for heard in durable.in_.values():
                yield heard.sender, "reply", report(durable, heard)
            for end in durable.settled.values():
                yield end.receiver, "push", remind(durable, end, self.rules)

    def answered(self, receiver: Key, now: float) -> None:
        """A receiver is there: what it has not heard is worth saying soon again."""
        for edge_id, said in self._said.items():
            if edge_id[0] == receiver and said.wait > self._first_retry:
                self._said[edge_id] = _Said(said.what, now, self._first_retry)

    def _say(self, durable: PeerState, edge: OutEdge, now: float, wait: float) -> Word:
        self._said[edge.receiver, edge.epoch] = _Said(_what(edge), now, wait)
        return edge.receiver, "push", say(durable, edge, self.rules)


def _what(edge: OutEdge) -> tuple[OutPhase, int, int]:
    return edge.phase, edge.session, edge.seq
