"""The reference engine: NumPy, one round as the paper writes it."""

from __future__ import annotations

import numpy as np

from oneway.methods import Algorithm
from oneway.methods.base import Mixing
from oneway.metrics import disagreement
from oneway.models import Model
from oneway.records import NetworkState
from oneway.simulator.ledger import Ledger, divergence
from oneway.streams import Stream


class ReferenceEngine:
    """Runs any algorithm with any model; made to be read."""

    name = "reference"

    def __init__(self, algorithm: Algorithm, model: Model, stream: Stream, ledger: Ledger) -> None:
        self.algorithm, self.model, self.stream, self.ledger = algorithm, model, stream, ledger
        self.state: NetworkState = algorithm.start(stream.num_nodes, model.dim(stream.dim))

    def advance(self, first: int, last: int, mixing: Mixing | None) -> None:
        """Run rounds `first` to `last` (excluded), all with the same shares.

        Raises:
            DivergenceError: If a loss or an estimate is no longer finite.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for round_index in range(first, last):
                self._round(round_index, mixing)

    def _round(self, round_index: int, mixing: Mixing | None) -> None:
        nodes, batch = self.stream.batch(round_index)
        estimates = self.state.estimates
        losses = self.model.losses(estimates[nodes], batch)
        correct = self.model.correct(estimates[nodes], batch)
        gradients = np.zeros_like(estimates)
        gradients[nodes] = self.model.gradients(estimates[nodes], batch)
        self.state = self.algorithm.step(self.state, gradients, mixing, round_index)

        self.ledger.loss_sums[round_index] = losses.sum()
        self.ledger.correct_counts[round_index] = 0 if correct is None else correct.sum()
        self.ledger.disagreement[round_index] = disagreement(self.state)
        if not np.isfinite(losses.sum() + self.ledger.disagreement[round_index]):
            self._raise_divergence(round_index, nodes[~np.isfinite(losses)])

    def _raise_divergence(self, round_index: int, suspects: np.ndarray) -> None:
        if not len(suspects):
            distances = (self.state.estimates**2).sum(axis=1)
            suspects = np.flatnonzero(~np.isfinite(distances))
        node = int(suspects[0]) if len(suspects) else 0
        raise divergence(self.algorithm, round_index, node, self.state.masses)
