"""The reference engine: NumPy, one round at a time, any method with any model; made to be read."""

from __future__ import annotations

import numpy as np

from oneway.methods import Gradients, Method, State
from oneway.metrics import disagreement
from oneway.models import Model, typical_sample
from oneway.personal.personal import scores_of
from oneway.records import Batch, Bools, Ints, Matrix, NetworkState, Vector
from oneway.simulator.exchange import Exchange, Mixing
from oneway.simulator.measurements import Measurements, Seed, divergence, without_gradients
from oneway.streams import Stream

_MOST_IN_A_ROW = 10
"""After this many skipped samples in a row the model is considered broken."""


class ReferenceEngine:
    """Runs the methods' own functions, one row per node.

    Attributes:
        held: The state of all nodes; set it, with `rounds_before`, to continue another run.
        rounds_before: Number of rounds before the stream's first, for the schedule.
    """

    name = "reference"

    def __init__(
        self,
        method: Method,
        model: Model,
        stream: Stream,
        measurements: Measurements,
        seed: Seed,
    ) -> None:
        method = method.suited(*typical_sample(model, stream.dim))
        self.method, self.model, self.stream = method, model, stream
        self.measurements = measurements
        self.rng = np.random.default_rng(seed)
        start = model.init(stream.dim, self.rng)
        self.held = method.start(np.tile(start, (stream.num_nodes, 1)))
        self.rounds_before = 0
        self._in_a_row = np.zeros(stream.num_nodes, np.int64)
        self._exchange: tuple[Mixing | None, Exchange] | None = None

    @property
    def state(self) -> NetworkState:
        """Numerators and masses of all nodes."""
        return NetworkState(self.method.numerators(self.held), self.method.masses(self.held))

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
            self.held = self.exchanged(exchange, self.held, round_index)
        self.held = self.method.bounded(self.held)
        self._measure(round_index, nodes, losses, correct)

    def _measure(
        self, round_index: int, nodes: Ints, losses: Vector, correct: Bools | None
    ) -> None:
        """Write down a round.

        Raises:
            DivergenceError: If its numbers are not finite.
        """
        measured = self.measurements
        measured.loss_sums[round_index] = losses.sum()
        measured.correct_counts[round_index] = 0 if correct is None else correct.sum()
        measured.disagreement[round_index] = self._disagreement()
        if not np.isfinite(losses.sum() + measured.disagreement[round_index]):
            # Samples without a loss, where they are skipped, are not in `losses` any more.
            lost = ~np.isfinite(losses) if len(losses) == len(nodes) else np.zeros(len(nodes), bool)
            self._raise_divergence(round_index, nodes[lost])

    def _disagreement(self) -> float:
        return disagreement(self.state, self.method.estimate(self.held))

    def learn(self, round_index: int) -> tuple[Ints, Vector, Bools | None]:
        """Let every node learn from its sample.

        Returns:
            The nodes with a sample, their losses before the step, and whether they predicted right.
        """
        nodes, batch = self.stream.batch(round_index)
        estimates = self.method.estimate(self.held)
        own = _rows(estimates, nodes)
        # What is learned from: the sample itself, or one whose label was late.
        learners, known = nodes, batch
        if self.stream.late is None:
            lesson = self.model.learning_pass(own, batch, self.rng)
            losses, correct, found = lesson.losses, lesson.correct, lesson.gradients
        else:
            losses, correct = self.model.losses(own, batch), self.model.correct(own, batch)
            learners, known = self.stream.known_batch(round_index)
            found = self.model.drawn_gradients(_rows(estimates, learners), known, self.rng)
        if self.measurements.personal is not None:
            self._predict_personally(round_index, nodes, scores_of(self.model, own, batch.features))
        losses, correct = self._measured(round_index, own, batch, losses, correct)
        learned = self._learned(round_index, learners, known, found, len(estimates))
        self.held = self.method.learn(self.held, learned, self.rng)
        return nodes, losses, correct

    def _predict_personally(self, round_index: int, nodes: Ints, found: Matrix) -> None:
        """Hand out the scores of the nodes with a sample."""
        assert self.measurements.personal is not None
        scores = np.zeros((1, self.stream.num_nodes, found.shape[1]))
        scores[0, nodes] = found
        self.measurements.personal.take(round_index, scores)

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
            answers = self.model.predictions(own, batch.features)
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
        if self.method.rule.needs_curvature:
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
            raise without_gradients(
                self.method, _MOST_IN_A_ROW, round_index, int(lost[0]), self.state.masses
            )
        return skipped

    def exchanged(self, exchange: Exchange, state: State, round_index: int) -> State:
        """The state after everybody has sent and received once; subclasses override this."""
        return exchange.apply(self.method.before_push(state, self.rng))

    def _raise_divergence(self, round_index: int, suspects: np.ndarray) -> None:
        if not len(suspects):
            distances = (self.method.estimate(self.held) ** 2).sum(axis=1)
            suspects = np.flatnonzero(~np.isfinite(distances))
        node = int(suspects[0]) if len(suspects) else 0
        raise divergence(self.method, round_index, node, self.state.masses)


def _rows(matrix: Matrix, nodes: Ints) -> Matrix:
    """The rows of some nodes, in order; without a copy if it is all of them."""
    return matrix if len(nodes) == len(matrix) else matrix[nodes]
