"""Online learner: predicts, suffers the loss and takes the step of the task's method, one row.

A peer is a simulated network with one row: what it holds becomes a `State` of the method, the
method's own functions work on it, and what they changed goes back into the books in whole units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from oneway.errors import ConfigError, DataError
from oneway.methods import Gradients, State
from oneway.methods.base import BATCH_MEMORY, UNFINISHED
from oneway.methods.batches import Normals
from oneway.models import HasCurvature, HasProbabilities
from oneway.peer.home.own_privacy import OwnPrivacy
from oneway.peer.noise import SecretNormals
from oneway.peer.store.snapshot import Snapshot
from oneway.protocol.fixed_point import LARGEST, ONE, Fixed, zeros
from oneway.protocol.incoming import averaged
from oneway.protocol.layout import Layout
from oneway.protocol.rules import Rules
from oneway.protocol.state import PeerState
from oneway.protocol.transitions import descend
from oneway.records import Batch, Bools, Floats, Matrix, Vector
from oneway.task.task import Task

_AS_THE_TASK = OwnPrivacy()
_TERMS = "batch.terms"
"""Name of the memory of how the samples of a batch were clipped, and are to be noised."""
_NOTHING: tuple[Fixed, State] = (zeros(0), State({}, {}))


@dataclass(frozen=True, eq=False)
class Lesson:
    """What came of a sample: state and memory after it, its loss before it, whether it was right.

    `correct` is None where being right has no meaning; `released` whether its batch is full now.
    """

    state: PeerState
    memory: Mapping[str, Matrix]
    loss: float
    correct: bool | None
    released: bool


class Learner:
    """Predicts and learns by a task; holds no parameters.

    Args:
        task: What all peers learn.
        rng: For methods that draw random numbers.
        own: What this peer asks for beyond the task's privacy.
        normals: Where noise comes from; by default nobody can repeat it.

    Attributes:
        layout: Where the method's segments lie in what peers hold and hand over.
        start: The model to begin with: all peers of a task have the same.
        exchanges: Whether the method sends anything.
        own: What this peer asks for beyond the task's privacy.
        as_learned: The task with the privacy that this peer has.

    Raises:
        TaskError: The task's method needs a server.
        ConfigError: The peer asks for less privacy than all have agreed on, or requires more.
    """

    def __init__(
        self,
        task: Task,
        rng: np.random.Generator | None = None,
        own: OwnPrivacy = _AS_THE_TASK,
        normals: Normals | None = None,
    ) -> None:
        self._task = task
        self.own = own
        self._normals = SecretNormals() if normals is None else normals
        self._rng = np.random.default_rng() if rng is None else rng
        self._model = task.build_model()
        self.as_learned = own.applied(task)
        self._method = self.as_learned.build_method()
        task.require_without_server()
        self.layout = Layout.of(self._method.payload, task.dim)
        self.start: Vector = self._model.init(
            len(task.features), np.random.default_rng(list(task.fingerprint))
        )
        self.exchanges = bool(self._method.payload)
        self._has_noise = bool(self._method.batches and self._method.batches.noise)
        self._last: tuple[tuple[object, ...], tuple[Fixed, State]] = ((None,) * 3, _NOTHING)
        # Looked up once: asking a model for a capability takes longer than using it.
        self._bounds: Callable[[Floats], Vector | None] | None = None
        if self._method.rule.needs_curvature and isinstance(self._model, HasCurvature):
            self._bounds = self._model.curvature_bounds

    def first_memory(self) -> Mapping[str, Matrix]:
        """The method's memory before the first sample."""
        return self._method.start(self.start[None, :]).memory

    def resumed(self, memory: Mapping[str, Matrix]) -> Mapping[str, Matrix]:
        """The method's memory in a new life.

        A batch that was begun under another promise, since its owner changed peer.toml, is dropped:
        this life's noise would not hide its samples as it was said when they came.
        """
        memory = memory or self.first_memory()
        batches = self._method.batches
        if batches is None:
            return {name: it for name, it in memory.items() if name not in (*UNFINISHED, _TERMS)}
        terms = np.array([[batches.clip, batches.noise]])
        if not np.array_equal(memory.get(_TERMS, ()), terms):
            memory = {name: it for name, it in memory.items() if name not in UNFINISHED}
        return {**memory, _TERMS: terms}

    def estimate(self, state: PeerState, memory: Mapping[str, Matrix], rules: Rules) -> Vector:
        """The model that a peer's state stands for; its mass must be positive."""
        estimate: Vector = self._method.estimate(self._row(state, memory, rules)[1])[0]
        return estimate

    def stored_estimate(self, snapshot: Snapshot, radius: float = math.inf) -> Vector | None:
        """The model that is stored; None without a positive mass, or outside the radius."""
        state = replace(snapshot.state, layout=self.layout)
        if not state.is_sound(radius, 0.0):
            return None
        return self.estimate(state, snapshot.memory or self.first_memory(), Rules(secret=b""))

    def numerator(self, snapshot: Snapshot) -> Vector:
        """Z of what is stored: the model times the mass; zeros without a model."""
        estimate = self.stored_estimate(snapshot)
        return np.zeros_like(self.start) if estimate is None else snapshot.state.mass * estimate

    def learn(
        self,
        state: PeerState,
        memory: Mapping[str, Matrix],
        params: Vector,
        x: Mapping[str, object],
        y: object,
        samples_seen: int,
        rules: Rules,
    ) -> Lesson:
        """Learn from one sample, given everything as it was before; `params` is the estimate.

        Raises:
            DataError: The sample lacks a feature, has one that is no number, a label that the task
                does not know, or is so large that its step cannot be represented.
        """
        features, label = self._task.encoder.vector(x), self._task.encoder.label_value(y)
        batch = Batch(features[None, :], np.array([label]))
        held, row = self._row(state, memory, rules)
        with np.errstate(over="ignore", invalid="ignore"):  # told below, as an error
            loss = float(self._model.losses(params, batch)[0])
            right = self._model.correct(params, batch)
            curvatures = None
            if self._bounds is not None:
                curvatures = self._bounds(batch.features)
            gradients = self._model.gradients(params[None, :], batch)
            learned = Gradients(gradients, samples_seen, curvatures)
            after = self._method.learn(row, learned, self._rng, self._normals)
        if not math.isfinite(loss):
            raise DataError(f"the loss of the sample is {loss}; its features are far too large")
        # A batch that is not full changes nothing but the memory.
        released = after.segments is not row.segments or not self.exchanges
        try:
            if released:
                state = self._booked(state, held, row, after)
            elif not self._has_noise and not self._fits(after.memory, samples_seen):
                raise OverflowError  # now, with this sample, and not with all that come later
        except OverflowError:
            if self._has_noise:
                # Its noise is drawn, once: drawn again until the step fits, it would tell more.
                spent = {name: it for name, it in after.memory.items() if name in BATCH_MEMORY}
                return Lesson(state, {**memory, **spent}, loss, _truth(right), released=False)
            raise DataError(
                "the step for the sample is too large to be represented; its features are far too "
                "large"
            ) from None
        return Lesson(state, after.memory, loss, _truth(right), released)

    def _fits(self, memory: Mapping[str, Matrix], samples_seen: int) -> bool:
        """Whether the step of an unfinished batch can be represented."""
        longest = np.abs(memory[UNFINISHED[0]]).max(initial=0.0)
        return bool(longest * self._method.rate(samples_seen) < LARGEST / ONE)

    def adopt_average(self, state: PeerState, rules: Rules) -> PeerState:
        """Take the average over the senders for one's own value, to pass it on without a sample."""
        held, row = self._row(state, {}, rules)
        return self._booked(state, held, row, row)

    def _row(
        self, state: PeerState, memory: Mapping[str, Matrix], rules: Rules
    ) -> tuple[Fixed, State]:
        """What is held, copies averaged: in units, and as the one row of a network."""
        asked = (state, memory, rules)
        if all(one is other for one, other in zip(asked, self._last[0], strict=True)):
            return self._last[1]  # predicted with just now, and learned from next
        held = averaged(state, rules)
        segments = {
            name: (held[place] / ONE)[None, :] for name, place in self.layout.places.items()
        }
        if self._method.has_mass:
            segments["mass"] = np.array([[held[-1] / ONE]])
        self._last = (asked, (held, State(segments, memory)))
        return self._last[1]

    def _booked(self, state: PeerState, held: Fixed, before: State, after: State) -> PeerState:
        """The state with what a step changed in the segments."""
        parts = [before.segments[name][0] - after.segments[name][0] for name in self.layout.places]
        if not parts:
            return state
        step = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if held is not state.holding:  # copied segments were averaged first
            step = step + (state.holding[:-1] - held[:-1]) / ONE
        return descend(state, step)

    def predict(self, params: Vector, x: Mapping[str, object]) -> str | float:
        """The label expected for a sample: one of the task's classes, or a number.

        Raises:
            DataError: The sample lacks a feature or has one that is no number.
        """
        value = float(self._model.predict(params, self._task.encoder.vector(x)[None, :])[0])
        return self._task.encoder.label_name(value) if self._task.classifies else value

    def probabilities(self, params: Vector, x: Mapping[str, object]) -> dict[str, float]:
        """How probable each class is.

        Raises:
            DataError: As `predict`.
            ConfigError: The task's model does not say how probable a class is.
        """
        features = self._task.encoder.vector(x)[None, :]
        if not isinstance(self._model, HasProbabilities):
            raise ConfigError(
                f"a {self._task.model} model does not say how probable a class is; ask it for the "
                "label, or use a logistic or softmax model"
            )
        shares = self._model.probabilities(params, features)[0].tolist()
        return dict(zip(self._task.classes, shares, strict=True))


def _truth(right: Bools | None) -> bool | None:
    return None if right is None else bool(right[0])
