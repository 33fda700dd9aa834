"""The reference engine: NumPy, one round at a time, any method with any model; made to be read."""

from __future__ import annotations

import numpy as np

from oneway.methods import Gradients, Method, State
from oneway.metrics import disagreement
from oneway.models import HasCurvature, Model
from oneway.records import NetworkState
from oneway.simulator.exchange import Exchange, Mixing
from oneway.simulator.measurements import Measurements, Seed, divergence
from oneway.streams import Stream


class ReferenceEngine:
    """Runs the methods' own functions, one row per node."""

    name = "reference"

    def __init__(
        self, method: Method, model: Model, stream: Stream, measurements: Measurements, seed: Seed
    ) -> None:
        self.method, self.model, self.stream = method, model, stream
        self.measurements = measurements
        self.rng = np.random.default_rng(seed)
        start = model.init(stream.dim, self.rng)
        self._held = method.start(np.tile(start, (stream.num_nodes, 1)))
        self._exchange: tuple[Mixing | None, Exchange] | None = None

    @property
    def state(self) -> NetworkState:
        """Numerators and masses of all nodes."""
        return NetworkState(self.method.numerators(self._held), self.method.masses(self._held))

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
        estimates = self.method.estimate(self._held)
        losses = self.model.losses(estimates[nodes], batch)
        correct = self.model.correct(estimates[nodes], batch)

        gradients = np.zeros_like(estimates)
        gradients[nodes] = self.model.gradients(estimates[nodes], batch)
        curvatures = None
        if self.method.rule.needs_curvature and isinstance(self.model, HasCurvature):
            bounds = self.model.curvature_bounds(batch.features)
            if bounds is not None:
                curvatures = np.ones(len(estimates))
                curvatures[nodes] = bounds
        active = None
        if len(nodes) < len(estimates):
            active = np.zeros(len(estimates), np.bool_)
            active[nodes] = True
        learned = Gradients(gradients, round_index, curvatures, active)
        self._held = self.exchanged(exchange, self.method.learn(self._held, learned, self.rng))

        measured = self.measurements
        measured.loss_sums[round_index] = losses.sum()
        measured.correct_counts[round_index] = 0 if correct is None else correct.sum()
        measured.disagreement[round_index] = disagreement(self.state)
        if not np.isfinite(losses.sum() + measured.disagreement[round_index]):
            self._raise_divergence(round_index, nodes[~np.isfinite(losses)])

    def exchanged(self, exchange: Exchange, state: State) -> State:
        """The state after everybody has sent and received; to be overridden by who listens in."""
        return exchange.apply(state)

    def _raise_divergence(self, round_index: int, suspects: np.ndarray) -> None:
        if not len(suspects):
            distances = (self.method.estimate(self._held) ** 2).sum(axis=1)
            suspects = np.flatnonzero(~np.isfinite(distances))
        node = int(suspects[0]) if len(suspects) else 0
        raise divergence(self.method, round_index, node, self.state.masses)
