"""The reference engine: NumPy, one round at a time, any method with any model; made to be read."""

from __future__ import annotations

import numpy as np

from oneway.methods import Gradients, Method, State
from oneway.metrics import disagreement
from oneway.models import HasCurvature, Model, typical_curvature
from oneway.records import NetworkState
from oneway.simulator.exchange import Exchange, Mixing
from oneway.simulator.measurements import Measurements, Seed, divergence
from oneway.streams import Stream


class ReferenceEngine:
    """Runs the methods' own functions, one row per node.

    Attributes:
        held: What all nodes hold; set it, with `rounds_before`, to go on where another run ended.
        rounds_before: How many rounds came before the stream's first, for the schedule.
    """

    name = "reference"

    def __init__(
        self, method: Method, model: Model, stream: Stream, measurements: Measurements, seed: Seed
    ) -> None:
        method = method.suited(typical_curvature(model, stream.dim), stream.dim)
        self.method, self.model, self.stream = method, model, stream
        self.measurements = measurements
        self.rng = np.random.default_rng(seed)
        start = model.init(stream.dim, self.rng)
        self.held = method.start(np.tile(start, (stream.num_nodes, 1)))
        self.rounds_before = 0
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
        nodes, batch = self.stream.batch(round_index)
        estimates = self.method.estimate(self.held)
        losses = self.model.losses(estimates[nodes], batch)
        correct = self.model.correct(estimates[nodes], batch)
        if self.measurements.tallying is not None:
            answers = self.model.answers(estimates[nodes], batch.features)
            self.measurements.tallying.take(answers, batch.labels)

        # What is learned from: the sample itself, or one whose label was late.
        learners, known = (nodes, batch)
        if self.stream.late is not None:
            learners, known = self.stream.known_batch(round_index)
        gradients = np.zeros_like(estimates)
        gradients[learners] = self.model.gradients(estimates[learners], known)
        curvatures = None
        if self.method.rule.needs_curvature and isinstance(self.model, HasCurvature):
            bounds = self.model.curvature_bounds(known.features)
            if bounds is not None:
                curvatures = np.ones(len(estimates))
                curvatures[learners] = bounds
        active = None
        if len(learners) < len(estimates):
            active = np.zeros(len(estimates), np.bool_)
            active[learners] = True
        learned = Gradients(gradients, self.rounds_before + round_index, curvatures, active)
        state = self.method.learn(self.held, learned, self.rng)
        for _ in range(self.method.mixes):
            state = self.exchanged(exchange, state, round_index)
        self.held = state

        measured = self.measurements
        measured.loss_sums[round_index] = losses.sum()
        measured.correct_counts[round_index] = 0 if correct is None else correct.sum()
        measured.disagreement[round_index] = disagreement(self.state)
        if not np.isfinite(losses.sum() + measured.disagreement[round_index]):
            self._raise_divergence(round_index, nodes[~np.isfinite(losses)])

    def exchanged(self, exchange: Exchange, state: State, round_index: int) -> State:
        """The state after everybody has sent and received once; to be overridden by who differs."""
        return exchange.apply(self.method.before_push(state, self.rng))

    def _raise_divergence(self, round_index: int, suspects: np.ndarray) -> None:
        if not len(suspects):
            distances = (self.method.estimate(self.held) ** 2).sum(axis=1)
            suspects = np.flatnonzero(~np.isfinite(distances))
        node = int(suspects[0]) if len(suspects) else 0
        raise divergence(self.method, round_index, node, self.state.masses)
