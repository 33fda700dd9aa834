"""Nodes of the exact level: the peers' own, counted; and one that lies about its model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from oneway.peer.node import Node
from oneway.peer.outbox import Frame
from oneway.peer.send_schedule import Word
from oneway.protocol.fixed_point import ONE
from oneway.protocol.messages import Ack, Compact, Data
from oneway.protocol.state import OutPhase, PeerState
from oneway.protocol.transitions import descend
from oneway.records import Vector


class CountedNode(Node):
    """A peer whose words are counted by kind.

    Args:
        arguments: Of a `Node`.
        counts: Where to count: pushes, repeats, acknowledgements, presumed_dead.
        options: Of a `Node`.
    """

    def __init__(self, *arguments: Any, counts: Counter[str], **options: Any) -> None:
        self._counts = counts
        self._data = "pushes"
        super().__init__(*arguments, **options)

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
        self._pace.stepped(self.learner.mixes)
        self.push_if_due()

    def push_if_due(self) -> None:
        """Push the lie, where others push what they hold."""
        with self.lock:
            self._set(self._lied(self.snapshot.state))
            super().push_if_due()

    def _lied(self, state: PeerState) -> PeerState:
        if state.leaving or state.mass <= 0:
            return state
        place, step = state.layout.model, np.zeros(state.dim)
        weight = state.mass if place not in state.layout.copied else 1.0
        step[place] = state.holding[place] / ONE - weight * self._lie
        return descend(state, step) if np.rint(ONE * step).any() else state
