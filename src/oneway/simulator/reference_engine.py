"""The reference engine: NumPy, one round at a time, any method with any model; made to be read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oneway.methods import Gradients, Method, State
from oneway.metrics import disagreement
from oneway.models import HasCurvature, Model, typical_sample
from oneway.records import Batch, Bools, Ints, Matrix, NetworkState, Vector
from oneway.simulator.exchange import Exchange, Mixing
from oneway.simulator.measurements import Measurements, Seed, divergence, without_gradients
from oneway.simulator.snapshots import (
    InOneProcess,
    Snapshot,
    copy_into,
    rng_as_array,
    set_rng,
    with_prefix,
    without_prefix,
)
from oneway.streams import Stream

_MOST_IN_A_ROW = 10
"""After so many samples skipped one after the other it is the model that is broken."""


class ReferenceEngine(InOneProcess):
    """Runs the methods' own functions, one row per node.

    Attributes:
        held: What all nodes hold; set it, with `rounds_before`, to go on where another run ended.
        rounds_before: How many rounds came before the stream's first, for the schedule.
        single: Whether models and what is sent are held in single precision; arithmetic never is.
    """

    name = "reference"

    def __init__(
        self,
        method: Method,
        model: Model,
        stream: Stream,
        measurements: Measurements,
        seed: Seed,
        *,
        single: bool = False,
    ) -> None:
        method = method.suited(*typical_sample(model, stream.dim))
        self.method, self.model, self.stream = method, model, stream
        self.measurements, self.single = measurements, single
        self.rng = np.random.default_rng(seed)
        start = model.init(stream.dim, self.rng)
        self.held = self._stored(method.start(np.tile(start, (stream.num_nodes, 1))))
        self.rounds_before = 0
        self._in_a_row = np.zeros(stream.num_nodes, np.int64)
        self._current: tuple[State, Matrix] | None = None
        self._room: Matrix | None = None
        self._exchange: tuple[Mixing | None, Exchange] | None = None

    @property
    def state(self) -> NetworkState:
        """Numerators and masses of all nodes."""
        return NetworkState(self.method.numerators(self.held), self.method.masses(self.held))

    def snapshot(self) -> Snapshot:
        """All that has to be known to go on from here."""
        return {
            **with_prefix("segment.", self.held.segments),
            **with_prefix("memory.", self.held.memory),
            "in_a_row": self._in_a_row,
            "rng": rng_as_array(self.rng),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot."""
        segments, memory = (without_prefix(kind, snapshot) for kind in ("segment.", "memory."))
        self.held = State(segments, memory)
        copy_into({"in_a_row": self._in_a_row}, snapshot)
        set_rng(self.rng, snapshot["rng"])

    def advance(self, first: int, last: int, mixing: Mixing | None) -> None:
        """Run rounds `first` to `last` (excluded), all with the same shares.

        Raises:
            DivergenceError: If a loss or an estimate is no longer finite.
        """
        if self._exchange is None or self._exchange[0] is not mixing:
            self._exchange = (mixing, Exchange(self.method, mixing))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for round_index in range(first, last):
                self._round(round_index, self._exchange[1])

    def _round(self, round_index: int, exchange: Exchange) -> None:
        nodes, losses, correct = self.learn(round_index)
        for _ in range(self.method.mixes):
            self.held = self._stored(self.exchanged(exchange, self.held, round_index))

        measured = self.measurements
        measured.loss_sums[round_index] = losses.sum()
        measured.correct_counts[round_index] = 0 if correct is None else correct.sum()
        measured.disagreement[round_index] = disagreement(self.state, self._estimates)
        if not np.isfinite(losses.sum() + measured.disagreement[round_index]):
            # Samples without a loss, where they are skipped, are not in `losses` any more.
            lost = ~np.isfinite(losses) if len(losses) == len(nodes) else np.zeros(len(nodes), bool)
            self._raise_divergence(round_index, nodes[lost])

    def learn(self, round_index: int) -> tuple[Ints, Vector, Bools | None]:
        """Let every node learn from its sample; who had one, and how it was predicted before.

        A function of its own, which lets go of models and gradients before anything is exchanged:
        of large networks, memory that is new costs more than all that is computed with it.
        """
        nodes, batch = self.stream.batch(round_index)
        estimates, self._current = self._estimates, None
        num_nodes, own = len(estimates), _rows(estimates, nodes)
        # What is learned from: the sample itself, or one whose label was late.
        learners, known, owned = nodes, batch, False
        if self.stream.late is None:
            lesson = self.model.lesson(own, batch, self.rng)
            losses, correct, found = lesson.losses, lesson.correct, lesson.gradients
            owned = lesson.owned
        else:
            losses, correct = self.model.losses(own, batch), self.model.correct(own, batch)
            learners, known = self.stream.known_batch(round_index)
            found = self.model.drawn_gradients(_rows(estimates, learners), known, self.rng)
        losses, correct = self._measured(round_index, own, batch, losses, correct)
        if self._divides:
            self._room = estimates
        del estimates, own
        learned = self._learned(round_index, learners, known, found, num_nodes)
        learned = replace(learned, spent=owned)
        self.held = self._stored(self.method.learn(self.held, learned, self.rng))
        return nodes, losses, correct

    def _stored(self, state: State) -> State:
        """The state as it is held: in single precision models and what is sent are rounded."""
        if not self.single:
            return state
        vectors = {it.name for it in self.method.payload if it.is_vector}
        return State(
            {name: _rounded(it) if name in vectors else it for name, it in state.segments.items()},
            {name: _rounded(it) if name == "model" else it for name, it in state.memory.items()},
        )

    @property
    def _estimates(self) -> Matrix:
        """The models of all nodes: measured after a round, and predicted with in the next."""
        if self._current is None or self._current[0] is not self.held:
            self._current = (self.held, self._estimated())
        return self._current[1]

    @property
    def _divides(self) -> bool:
        """Whether models are numerators over masses, in a matrix of their own."""
        return self.method.has_mass and type(self.method).estimate is Method.estimate

    def _estimated(self) -> Matrix:
        """The models of all nodes; in the memory of those before, which nobody needs any more."""
        state, room = self.state, self._room
        kind = state.numerators.dtype
        if room is None or (room.shape, room.dtype) != (state.numerators.shape, kind):
            return self.method.estimate(self.held)
        self._room = None
        return np.divide(state.numerators, state.masses[:, None].astype(kind), out=room)

    def _measured(
        self, round_index: int, own: Matrix, batch: Batch, losses: Vector, correct: Bools | None
    ) -> tuple[Vector, Bools | None]:
        """Tally predictions; losses and whether they are right without those that have no loss."""
        if self.model.skips and not np.isfinite(losses).all():
            there = np.isfinite(losses)
            self.measurements.lossless_counts[round_index] = len(losses) - there.sum()
            batch = Batch(batch.features[there], batch.labels[there])
            own, losses = own[there], losses[there]
            correct = None if correct is None else correct[there]
        if self.measurements.tallying is not None:
            answers = self.model.answers(own, batch.features)
            self.measurements.tallying.take(answers, batch.labels)
        return losses, correct

    def _learned(
        self, round_index: int, learners: Ints, known: Batch, found: Matrix, num_nodes: int
    ) -> Gradients:
        """The gradients of all nodes; those of samples to be skipped are 0, and no step."""
        skipped = self._skipped(round_index, learners, found) if self.model.skips else None
        if skipped is not None:
            found = np.where(skipped[:, None], found.dtype.type(0.0), found)
        gradients = found
        if len(learners) < num_nodes:
            gradients = np.zeros((num_nodes, found.shape[1]), found.dtype)
            gradients[learners] = found
        curvatures = None
        if self.method.rule.needs_curvature and isinstance(self.model, HasCurvature):
            bounds = self.model.curvature_bounds(known.features)
            if bounds is not None:
                curvatures = np.ones(num_nodes)
                curvatures[learners] = bounds
        active = None
        # With noise it counts as a sample without contents: who skips one would tell about it.
        stays = skipped is not None and not (self.method.batches and self.method.batches.noise)
        if len(learners) < num_nodes or stays:
            active = np.zeros(num_nodes, np.bool_)
            active[learners] = True if skipped is None or not stays else ~skipped
        return Gradients(gradients, self.rounds_before + round_index, curvatures, active)

    def _skipped(self, round_index: int, learners: Ints, found: Matrix) -> Bools | None:
        """Which samples have no finite gradient; None if all have.

        Raises:
            DivergenceError: A node has skipped too many in a row.
        """
        # 0 times a number is 0, unless that is infinite or none: the quickest way to see it.
        skipped = ~np.isfinite(found @ np.zeros(found.shape[1], found.dtype))
        self._in_a_row[learners[~skipped]] = 0
        if not skipped.any():
            return None
        self.measurements.skipped_counts[round_index] = skipped.sum()
        self._in_a_row[learners[skipped]] += 1
        lost = np.flatnonzero(self._in_a_row >= _MOST_IN_A_ROW)
        if len(lost):
            raise without_gradients(_MOST_IN_A_ROW, round_index, int(lost[0]), self.state.masses)
        return skipped

    def exchanged(self, exchange: Exchange, state: State, round_index: int) -> State:
        """The state after everybody has sent and received once; to be overridden by who differs."""
        return exchange.apply(self.method.before_push(state, self.rng))

    def _raise_divergence(self, round_index: int, suspects: np.ndarray) -> None:
        if not len(suspects):
            distances = (self.method.estimate(self.held) ** 2).sum(axis=1)
            suspects = np.flatnonzero(~np.isfinite(distances))
        node = int(suspects[0]) if len(suspects) else 0
        raise divergence(self.method, round_index, node, self.state.masses)


def _rounded(matrix: Matrix) -> Matrix:
    """The nearest numbers that float32 has."""
    return matrix.astype(np.float32).astype(matrix.dtype)


def _rows(matrix: Matrix, nodes: Ints) -> Matrix:
    """The rows of some nodes, in order; without a copy if it is all of them."""
    return matrix if len(nodes) == len(matrix) else matrix[nodes]
