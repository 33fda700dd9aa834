"""Local online gradient descent: every node learns alone."""

from __future__ import annotations

from dataclasses import dataclass

from oneway.methods.base import Algorithm, Mixing
from oneway.records import Matrix, NetworkState


@dataclass(frozen=True)
class Isolated(Algorithm):
    """No exchange at all.

    x' = x - gamma * gradient(x)
    """

    name = "local"
    exchange = "none"

    def step(
        self, state: NetworkState, gradients: Matrix, mixing: Mixing | None, round_index: int
    ) -> NetworkState:
        """Descend."""
        descended = state.numerators - self.rate(round_index) * gradients
        return NetworkState(numerators=descended, masses=state.masses)
