"""Centralised online learning (COL): what a server that everybody trusts would do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oneway.methods.base import Algorithm, Mixing
from oneway.records import Matrix, NetworkState


@dataclass(frozen=True)
class Centralised(Algorithm):
    """All nodes share one model, moved by the average gradient.

        x' = mean over nodes of (x - gamma * gradient(x))

    This is gossip on the complete graph with equal shares, without writing that matrix down. A node
    without a sample in a round counts with gradient 0, as it does in the other methods.
    """

    name = "col"
    exchange = "average"

    def step(
        self, state: NetworkState, gradients: Matrix, mixing: Mixing | None, round_index: int
    ) -> NetworkState:
        """Descend and average over all nodes."""
        descended = state.numerators - self.rate(round_index) * gradients
        average = np.broadcast_to(descended.mean(axis=0), descended.shape)
        return NetworkState(numerators=average, masses=state.masses)
