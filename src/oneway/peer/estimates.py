"""Estimates of a peer: the momentary one of its state, and the settled average of the last ones."""

from __future__ import annotations

import dataclasses
from operator import is_

from msgspec.structs import replace

from oneway.peer.learner import Learner
from oneway.peer.store.average import ModelAverage, with_estimate
from oneway.peer.store.snapshot import Snapshot
from oneway.protocol.rules import Rules
from oneway.records import Vector


class Estimates:
    """Computes the estimate of a snapshot, once for each state and memory."""

    def __init__(self, learner: Learner) -> None:
        """Begin with the learner's first model."""
        self._learner = learner
        self._last = learner.start
        self._of: tuple[object, ...] = (None,) * 4

    def momentary(self, snapshot: Snapshot, rules: Rules) -> Vector:
        """The model that a snapshot stands for; if it stands for none, the last that one did."""
        state, memory = snapshot.state, snapshot.memory
        basis = self._learner.basis(state, memory)
        is_new = not all(map(is_, basis, self._of))
        if is_new and state.is_sound(rules.radius, 0.0):
            self._last = self._learner.estimate(state, memory, rules)
            self._of = basis
        return self._last

    def settled(self, snapshot: Snapshot, rules: Rules) -> Vector:
        """The average of the last estimates; the momentary one before the first."""
        if snapshot.average is None:
            return self.momentary(snapshot, rules)
        return snapshot.average.params

    def stored(self, snapshot: Snapshot, rules: Rules, momentary: bool) -> Vector:
        """The settled or the momentary model of this snapshot alone, or else the first one."""
        average, state = snapshot.average, snapshot.state
        if state.is_sound(rules.radius, 0.0) and (momentary or average is None):
            return self._learner.estimate(state, snapshot.memory, rules)
        return self._learner.start if average is None else average.params

    def averaged(self, snapshot: Snapshot, rules: Rules, since: Snapshot | None = None) -> Snapshot:
        """The snapshot with its estimate in the average; as it is if it stands for none.

        With `since`, only if something that changes a model has come in since that snapshot.
        """
        state = snapshot.state
        is_same = since is not None and state.in_ is since.state.in_
        if is_same or not state.is_sound(rules.radius, 0.0):
            return snapshot
        estimate = self.momentary(snapshot, rules)
        return replace(snapshot, average=with_estimate(snapshot.average, estimate, state.boot))


def in_life(average: ModelAverage | None, boot: int) -> ModelAverage | None:
    """An average that goes on in another life of the peer."""
    return None if average is None else dataclasses.replace(average, boot=boot)
