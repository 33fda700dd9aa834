"""Online learner: suffers the loss and takes the step of the task's method, one row.

A peer is a simulated network with one row: what it holds becomes a `State` of the method, the
method's own functions work on it, and what they changed goes back into the books in whole units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import is_

import numpy as np
from msgspec.structs import replace

from oneway.errors import DataError
from oneway.export import FittedModel, PersonalModel
from oneway.methods import Gradients, Method, State
from oneway.methods.base import BATCH_MEMORY, UNFINISHED
from oneway.methods.batches import Normals
from oneway.models import LearningPass
from oneway.peer.home.own_privacy import OwnPrivacy
from oneway.peer.measuring import Measured, Measuring
from oneway.peer.noise import SecretNormals
from oneway.peer.store.snapshot import Snapshot
from oneway.protocol.fixed_point import (
    LARGEST,
    ONE,
    Fixed,
    mass_of,
    numbers_of,
    pieces,
    zeros,
)
from oneway.protocol.incoming import averaged, reach
from oneway.protocol.rules import Rules
from oneway.protocol.state import PeerState
from oneway.protocol.transitions import descend
from oneway.records import Batch, Bools, Floats, Matrix, Vector
from oneway.task.task import Task

INSIDE = 1.0 - 2.0**-20
"""How much of the radius a deposit may use: the rest is for roundings."""

_SURELY = 1.0 - 2.0**-20
"""A distance below so much of a limit is within it, however the two are rounded."""

_AS_THE_TASK = OwnPrivacy()
_TERMS = "batch.terms"
"""Name of the memory of how the samples of a batch were clipped, and are to be noised."""
_NONE_YET: tuple[tuple[object, ...], tuple[Fixed, State]] = (
    (None,) * 5,
    (zeros(0), State({}, {})),
)


@dataclass(frozen=True, eq=False)
class Lesson:
    """What came of a sample.

    Attributes:
        state, memory: After it.
        released: Whether its batch is full now.
        step: If so, how far its step moves a model of mass 1.
        measured: The losses of the prediction that answers, and of those beside it.
        deposited: Which part of the parcel the step deposited, of what was in it with the step.
    """

    state: PeerState
    memory: Mapping[str, Matrix]
    released: bool
    measured: Measured
    step: float = 0.0
    deposited: float = 0.0


class ForeseenRow(dict[str, object]):
    """Cells of a sample, with what a model says about it, computed for several samples at once.

    Attributes:
        params: The model.
        told: Loss, whether it is right, and gradient: one row each.
    """

    def __init__(
        self, cells: Mapping[str, object], params: Vector, told: LearningPass, row: int
    ) -> None:
        super().__init__(cells)
        one, right = slice(row, row + 1), told.correct
        self.params = params
        self.told = LearningPass(
            told.losses[one], None if right is None else right[one], told.gradients[one]
        )


class Learner:
    """Learns by a task; holds no parameters.

    Args:
        task: What all peers learn.
        rng: For methods that draw random numbers.
        own: What this peer asks for beyond the task's privacy.
        normals: Where noise comes from; by default nobody can repeat it.
        measures: Whether it predicts personally, and predictions are measured; otherwise only the
            loss of the shared model, l2 term included, is known.

    Attributes:
        layout: Where the method's segments lie in what peers hold and hand over.
        start: The model to begin with: all peers of a task have the same.
        exchanges: Whether the method sends anything.
        mixes: How many pushes follow a step.
        samples_per_step: How many samples fill a batch, which makes a step.
        prepares: Whether the method does something right before a push.
        mass_bounds: Between which masses the peer keeps itself.
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
        measures: bool = True,
    ) -> None:
        self._task = task
        self.own = own
        self._normals = SecretNormals() if normals is None else normals
        self._rng = np.random.default_rng() if rng is None else rng
        self._model = task.build_model()
        self.as_learned = own.applied(task)
        num_features = task.encoder.width
        self._method = self.as_learned.build_method().suited_to_peers()
        self.mass_bounds = self._method.bounds or self._method.usual_bounds
        task.require_without_server()
        self.layout = task.layout
        start = self._model.init(num_features, np.random.default_rng(list(task.fingerprint)))
        # Books are in whole units, finer than any float32: what is computed from them is float64.
        self.start: Vector = start.astype(np.float64, copy=False)
        self._measuring: Measuring | None = None
        if measures:
            self._measuring = Measuring(task, self._model, num_features, self.start)
        self.exchanges = bool(self._method.payload)
        self.samples_per_step = self._method.batches.samples if self._method.batches else 1
        self.mixes = self._method.mixes
        self.prepares = type(self._method).before_push is not Method.before_push
        self._has_noise = bool(self._method.batches and self._method.batches.noise)
        self._last: tuple[tuple[object, ...], tuple[Fixed, State]] = _NONE_YET
        self._bounds: Callable[[Floats], Vector | None] | None = None
        if self._method.rule.needs_curvature:
            self._bounds = self._model.curvature_bounds

    def first_memory(self) -> Mapping[str, Matrix]:
        """The method's memory before the first sample."""
        return self._stored(self._method.start(self.start[None, :]).memory)

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

    def basis(self, state: PeerState, memory: Mapping[str, Matrix]) -> tuple[object, ...]:
        """What an estimate is made of: as long as these are the same objects, it is the same."""
        steps = state.gradient_steps if self.layout.momenta else None
        return state.holding, steps, state.in_ if self.layout.copied else None, memory

    def stored_estimate(self, snapshot: Snapshot, radius: float = math.inf) -> Vector | None:
        """The model that is stored; None without a positive mass, or outside the radius."""
        state = replace(snapshot.state, layout=self.layout)
        if not state.is_sound(radius):
            return None
        return self.estimate(state, snapshot.memory or self.first_memory(), Rules(secret=b""))

    def numerator(self, snapshot: Snapshot) -> Vector:
        """Z of what is stored: the model times the mass; zeros without a model."""
        estimate = self.stored_estimate(snapshot)
        return np.zeros_like(self.start) if estimate is None else snapshot.state.mass * estimate

    def learn(
        self,
        state: PeerState,
        before: Snapshot,
        params: Vector,
        x: Mapping[str, object] | Vector,
        y: object,
        rules: Rules,
    ) -> Lesson:
        """Learn from one sample, given the state, and all else as it was before.

        `params` is the estimate; x are the cells of the sample by column, or what they
        were encoded to; y is its label.

        Raises:
            DataError: The sample lacks a feature, has one that is no number, a label that the task
                does not know, or is so large that its step cannot be represented.
        """
        label = self._task.encoder.label_value(y)
        features = x if isinstance(x, np.ndarray) else self.encoded(x)
        batch = Batch(features[None, :], np.array([label]))
        before_it = x.params if isinstance(x, ForeseenRow) else params
        memory, samples_seen = before.memory, before.journal.samples
        held, row = self._row(state, memory, rules)
        with np.errstate(over="ignore", invalid="ignore"):  # told below, as an error
            if isinstance(x, ForeseenRow):
                told = x.told
            else:
                told = self._model.learning_pass(params[None, :], batch, self._rng)
            loss, right = float(told.losses[0]), _truth(told.correct)
            curvatures = None
            if self._bounds is not None:
                curvatures = self._bounds(batch.features)
            learned = Gradients(self._checked(told.gradients), samples_seen, curvatures)
            after, step, deposited = self._after(row, learned, rules)
            del told, learned  # they are as long as the model, and what follows is, too
        if not math.isfinite(loss):
            raise DataError(f"the loss of the sample is {loss}; its features are far too large")
        measured = Measured({}, loss, right)
        if self._measuring is not None:
            measured = self._measuring.measured(
                before.measures, before_it, batch, loss, right, samples_seen
            )
        # A batch that is not full changes nothing but the memory.
        released = after.segments is not row.segments or not self.exchanges
        has_left = state.leaving and mass_of(state.holding) <= 0
        try:
            if released and not has_left:  # otherwise this step would have to be handed over, too
                state = self._booked(state, held, row, after)
            elif not (released or self._has_noise or self._fits(after.memory, samples_seen)):
                raise OverflowError  # now, with this sample, and not with all that come later
        except OverflowError:
            if self._has_noise:
                # Its noise is drawn, once: drawn again until the step fits, it would tell more.
                spent = {name: it for name, it in after.memory.items() if name in BATCH_MEMORY}
                memory = {**memory, **spent}
                return Lesson(state, memory, False, measured)
            raise DataError(
                "the step for the sample is too large to be represented; its features are far too "
                "large"
            ) from None
        released = released and not has_left
        if not released:
            deposited = 0.0
        return Lesson(state, self._stored(after.memory), released, measured, step, deposited)

    def _after(self, row: State, learned: Gradients, rules: Rules) -> tuple[State, float, float]:
        """A row after the method has learned, ready to be pushed if that moved it.

        Also its step, and which part of the parcel it deposited.
        """
        after = self._method.learn(row, learned, self._rng, self._normals)
        step = self._step_length(row, after)
        if self.layout.carried and after.segments is not row.segments:
            after = limited(self._method, row, after, rules)
        deposited = 0.0
        if self.prepares and after.segments is not row.segments:
            after, deposited = self._prepared(after, rules)
        return after, step, deposited

    def _step_length(self, row: State, after: State) -> float:
        """How far a step moves a model of the mass that the step rule goes by."""
        squares = sum(
            _distance(after.segments[it.name][0], row.segments[it.name][0]) ** 2
            for it in self._method.payload
            if it.is_vector and after.segments[it.name] is not row.segments[it.name]
        )
        if not squares:
            return 0.0
        return math.sqrt(squares) / float(self._method.step_masses(row)[0])

    def until_released(self, memory: Mapping[str, Matrix]) -> int:
        """How many samples more fill the batch: until then the model stays as it is."""
        batches = self._method.batches
        if batches is None:
            return 1
        count = memory.get(UNFINISHED[1])
        return batches.samples - (0 if count is None else int(count[0, 0]))

    def foresee(
        self, params: Vector, samples: Sequence[tuple[Mapping[str, object], object]]
    ) -> list[ForeseenRow]:
        """Rows of samples that will be learned at this model, with all of it computed in one call.

        Raises:
            DataError: One of them cannot be used.
        """
        features = np.array([self.encoded(x) for x, _ in samples])
        labels = np.array([self._task.encoder.label_value(y) for _, y in samples])
        stack = np.broadcast_to(params, (len(samples), len(params)))
        with np.errstate(over="ignore", invalid="ignore"):  # told when their turn has come
            told = self._model.learning_pass(stack, Batch(features, labels), self._rng)
        return [ForeseenRow(x, params, told, row) for row, (x, _) in enumerate(samples)]

    def _checked(self, gradients: Matrix) -> Matrix:
        """The gradient of a sample, the one row of a network.

        Raises:
            DataError: The sample has none. With noise it counts as one without contents: who leaves
                a sample out would tell about it.
        """
        found = gradients.astype(np.float64, copy=False)
        if self._model.skips and not self._has_noise and not np.isfinite(found).all():
            raise DataError("the gradient of the sample is not a finite number at this model")
        return found

    def _fits(self, memory: Mapping[str, Matrix], samples_seen: int) -> bool:
        """Whether the step of an unfinished batch can be represented."""
        longest = np.abs(memory[UNFINISHED[0]]).max(initial=0.0)
        return bool(longest * self._method.rate(samples_seen) < LARGEST / ONE)

    def before_push(
        self, state: PeerState, memory: Mapping[str, Matrix], rules: Rules
    ) -> tuple[PeerState, Mapping[str, Matrix], float]:
        """State and memory to push with when no step came since the last push.

        What arrived is passed on: copied segments averaged over the senders, and whatever else the
        method does right before a push. Also which part of a parcel that deposits.
        """
        if not (self.prepares or self.layout.copied):
            return state, memory, 0.0
        held, row = self._row(state, memory, rules)
        try:
            after, deposited = self._prepared(row, rules)
            ready = self._booked(state, held, row, after)
        except OverflowError:
            return state, memory, 0.0
        if np.array_equal(ready.holding, state.holding):
            return state, memory, 0.0  # nothing to be made durable
        return ready, self._stored(after.memory), deposited

    def _prepared(self, row: State, rules: Rules) -> tuple[State, float]:
        """What the method makes of a row right before a push, and what it deposits of a parcel.

        It moves the estimate no further than others may at once: what it does not deposit now is in
        a parcel that anybody may have filled. Nor out of the radius, where nobody could be told of
        it: that part of a step is not taken. Without mass there is no estimate to move.
        """
        if self._method.has_mass and not row.segments["mass"][0, 0] > 0.0:
            return row, 0.0
        method = self._method
        after = inside(method, row, method.before_push(row, self._rng), rules)
        if after is not row and (part := part_within(method, row, after, rules)) < 1.0:
            segments = {
                name: array + part * (after.segments[name] - array)
                for name, array in row.segments.items()
            }
            after = State(segments, after.memory)
        return after, self._deposited(row, after)

    def _deposited(self, row: State, after: State) -> float:
        """Which part of a row's parcel is in it no longer, after what a method did to it."""
        if self.layout.parcel is None or after is row:
            return 0.0
        count, left = (float(it.segments["count"][0, 0]) for it in (row, after))
        return 1.0 - left / count if count > 0.0 else 1.0

    def _stored(self, memory: Mapping[str, Matrix]) -> Mapping[str, Matrix]:
        """The memory without what is read from the books."""
        if not self.layout.momenta:
            return memory
        return {name: it for name, it in memory.items() if name not in self.layout.momenta}

    def _row(
        self, state: PeerState, memory: Mapping[str, Matrix], rules: Rules
    ) -> tuple[Fixed, State]:
        """What is held, copies averaged: in units, and as the one row of a network."""
        asked = (*self.basis(state, memory), rules)
        if all(map(is_, asked, self._last[0])):
            return self._last[1]  # predicted with just now, and learned from next
        self._last = _NONE_YET  # before there are two of them
        held = averaged(state, rules)
        segments = {
            name: numbers_of(held[place])[None, :] for name, place in self.layout.places.items()
        }
        if self._method.has_mass:
            segments["mass"] = np.array([[held[-1] / ONE]])
        # A momentum is the sum of its changes, and each was booked in what tracks it: read from
        # there, in whole units, both are equal for ever, in every life.
        momenta = {
            name: (-state.gradient_steps[place] / ONE)[None, :]
            for name, place in self.layout.momenta.items()
        }
        self._last = (asked, (held, State(segments, {**memory, **momenta} if momenta else memory)))
        return self._last[1]

    def _booked(self, state: PeerState, held: Fixed, before: State, after: State) -> PeerState:
        """The state with what a step changed in the segments."""
        if not self.layout.places:
            return state
        return descend(state, self._step(state, held, before, after))

    def _step(self, state: PeerState, held: Fixed, before: State, after: State) -> Vector:
        step = np.empty(len(held) - 1)
        for name, place in self.layout.places.items():
            np.subtract(before.segments[name][0], after.segments[name][0], out=step[place])
        if held is not state.holding:  # copied segments were averaged first
            step = step + (state.holding[:-1] - held[:-1]) / ONE
        return step

    def encoded(self, x: Mapping[str, object]) -> Vector:
        """A sample as the model sees it.

        Raises:
            DataError: The sample lacks a feature or has one that is no number.
        """
        return self._task.encoder.vector(x)

    def fitted(self, params: Vector, **origin: object) -> FittedModel:
        """Parameters as a model that predicts raw rows, with where it comes from."""
        return FittedModel(self._task.encoder, self._model, params, {**origin, **self._said})

    def personal(
        self, params: Vector, measures: Mapping[str, Matrix], **origin: object
    ) -> PersonalModel | None:
        """The personal predictions of a peer that stores these measures; None if it has none."""
        memory = None if self._measuring is None else self._measuring.memory(measures)
        if memory is None:
            return None
        told = {**origin, "task": self._task.fingerprint.hex()}
        return PersonalModel(self._task.encoder, self._model, params, memory, told)

    def measures_resumed(self, measures: Mapping[str, Matrix]) -> tuple[Mapping[str, Matrix], str]:
        """What was measured in a former life, and what there is to know about predictions."""
        if self._measuring is None:
            return measures, ""
        measures, anew = self._measuring.resumed(measures)
        return measures, "; ".join(filter(None, [anew, self._measuring.note]))

    @cached_property
    def _said(self) -> dict[str, str]:
        """What a model that is taken out should say about its task."""
        promise = self.as_learned.privacy_sentence
        if not self.exchanges:
            promise = "none: this model was learned without noise, as nothing is sent meanwhile"
        return {"task": self._task.fingerprint.hex(), "privacy": promise}


def _truth(right: Bools | None) -> bool | None:
    return None if right is None else bool(right[0])


def inside(method: Method, row: State, after: State, rules: Rules) -> State:
    """A row after a step, projected onto the radius, or to where it was if that is outside."""
    if after is row:
        return after
    first = method.payload[0].name
    before, moved = row.segments[first], after.segments[first]
    if moved is before:
        return after
    most = rules.radius * INSIDE * method.masses(row)[:, None]
    if moved.max() <= most[0, 0] and moved.min() >= -most[0, 0]:
        return after
    limits = np.maximum(most, np.abs(before))
    return State({**after.segments, first: moved.clip(-limits, limits)}, after.memory)


def limited(method: Method, row: State, after: State, rules: Rules) -> State:
    """A row after a step that others may have had a part in: its model moves only so far."""
    after = inside(method, row, after, rules)
    part, first = part_within(method, row, after, rules), method.payload[0].name
    if part == 1.0:
        return after
    before = row.segments[first]
    moved = before + part * (after.segments[first] - before)
    return State({**after.segments, first: moved}, after.memory)


def part_within(method: Method, row: State, after: State, rules: Rules) -> float:
    """How much of a step moves the estimate as far as others may at once."""
    first = method.payload[0].name
    before, there = row.segments[first], after.segments[first]
    if math.isinf(rules.clip) or there is before:
        return 1.0
    mass = row.segments.get("mass")
    if mass is not None and mass is after.segments["mass"]:
        # The limit is no less than this, whatever the model is; nearly all steps are shorter.
        surely = _SURELY * rules.clip * float(mass[0, 0])
        if _distance(there[0], before[0]) < surely:
            return 1.0
    own = method.estimate(row)[0]
    moved = float(np.linalg.norm(method.estimate(after)[0] - own))
    limit = reach(own, rules)
    return limit / moved if moved > limit else 1.0


def _distance(one: Vector, other: Vector) -> float:
    squares = 0.0
    for piece in pieces(len(one)):
        between = one[piece] - other[piece]
        squares += float(between @ between)
    return math.sqrt(squares)
