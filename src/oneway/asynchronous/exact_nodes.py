"""Nodes of the exact level: the peers' own, counted; and one that lies about its model."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from oneway.peer.node import Frame, Node
from oneway.peer.send_schedule import Word
from oneway.protocol.fixed_point import ONE
from oneway.protocol.messages import Ack, Compact, Data
from oneway.protocol.state import EdgeId, Key, OutPhase, PeerState
from oneway.protocol.transitions import descend
from oneway.records import Vector
from oneway.transport.base import Arrival


class Counts(Counter[str]):
    """What happened how often, by name; and how long round trips took, all together.

    Attributes:
        trip_seconds: From a push until its sender hears that it was taken in; `trips` of them.
    """

    trip_seconds = 0.0


class CountedNode(Node):
    """A peer whose words are counted by kind, and whose pushes are timed.

    Args:
        arguments: Of a `Node`.
        counts: Where to count: pushes, repeats, acknowledgements, presumed_dead, trips.
        options: Of a `Node`.
    """

    def __init__(self, *arguments: Any, counts: Counts, **options: Any) -> None:
        self._counts = counts
        self._data = "pushes"
        self._pushed: dict[Key, tuple[EdgeId, deque[tuple[int, float]]]] = {}
        super().__init__(*arguments, **options)

    def push_if_due(self) -> None:
        """Push, if there is something new and the last push is long enough ago."""
        before = self.snapshot.state.out
        super().push_if_due()
        if self.snapshot.state.out is before:
            return
        for edge_id, edge in self.snapshot.state.out.items():
            if edge_id in before and edge.seq > before[edge_id].seq:
                known = self._pushed.get(edge.receiver)
                if known is None or known[0] != edge_id:
                    known = self._pushed[edge.receiver] = (edge_id, deque())
                known[1].append((edge.seq, self.clock()))

    def take(self, arrival: Arrival) -> None:
        """Take in a frame from the network."""
        super().take(arrival)
        if arrival.via == "push" or arrival.peer not in self._pushed:
            return
        edge_id, pushed = self._pushed[arrival.peer]
        edge = self.snapshot.state.out.get(edge_id)
        while edge is not None and pushed and pushed[0][0] <= edge.acked:
            self._counts["trips"] += 1
            self._counts.trip_seconds += self.clock() - pushed.popleft()[1]

    def overdue(self) -> list[Frame]:
        """What must be said again."""
        self._data = "repeats"
        try:
            return super().overdue()
        finally:
            self._data = "pushes"

    def tick(self) -> None:
        """Whatever is due by now."""
        before = self.snapshot.state.out
        super().tick()
        after = self.snapshot.state.out
        if after is not before:
            self._counts["presumed_dead"] += sum(
                edge.phase is OutPhase.DEAD
                and (edge_id not in before or before[edge_id].phase is not OutPhase.DEAD)
                for edge_id, edge in after.items()
            )

    def _frames(self, words: Iterable[Word]) -> list[Frame]:
        said = list(words)
        for _, _, word in said:
            if isinstance(word, Data | Compact):
                self._counts[self._data] += 1
            elif isinstance(word, Ack):
                self._counts["acknowledgements"] += 1
        return super()._frames(said)


class LyingNode(CountedNode):
    """A peer that pushes a model of its own whatever it receives; its mass is honest.

    By its own books it took a step there, so that an audit finds nothing: push-sum cannot tell a
    lie from a sample.
    """

    def __init__(self, *arguments: Any, lie: Vector, **options: Any) -> None:
        self._lie = lie
        super().__init__(*arguments, **options)

    def lie(self) -> None:
        """Do as if a sample had been learned from."""
        self.ensure_minted()
        self._pace.stepped(self.learner.mixes, self.clock())
        self.push_if_due()

    def push_if_due(self) -> None:
        """Push the lie, where others push what they hold."""
        with self.lock:
            self._set(self._lied(self.snapshot.state))
            super().push_if_due()

    def _lied(self, state: PeerState) -> PeerState:
        place = state.layout.model
        if state.leaving or state.mass <= 0 or place == slice(0, 0):  # nothing is sent
            return state
        step = np.zeros(state.dim)
        weight = state.mass if place not in state.layout.copied else 1.0
        step[place] = state.holding[place] / ONE - weight * self._lie
        return descend(state, step) if np.rint(ONE * step).any() else state
