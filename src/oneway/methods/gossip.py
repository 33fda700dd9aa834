"""Decentralised online learning without masses (DOL), as the paper runs it for comparison."""

from __future__ import annotations

from dataclasses import dataclass

from oneway.methods.base import Algorithm, Mixing, Shares
from oneway.records import Matrix, NetworkState


@dataclass(frozen=True)
class NaiveGossip(Algorithm):
    """DOL-Asymm: the same one-way graph and shares as OPS, but no mass to correct the bias.

        x' = W.T @ (x - gamma * gradient(x)),  rows of W sum to 1, columns need not

    What a node receives need not add up to one model, so estimates settle at the node's stationary
    mass times the average, not at the average.
    """

    name = "dol-asymm"

    def step(
        self, state: NetworkState, gradients: Matrix, mixing: Mixing | None, round_index: int
    ) -> NetworkState:
        """Descend, send, sum; masses stay 1."""
        assert mixing is not None
        descended = state.numerators - self.rate(round_index) * gradients
        return NetworkState(numerators=mixing.T @ descended, masses=state.masses)


@dataclass(frozen=True)
class MutualGossip(NaiveGossip):
    """DOL-Symm: the same update with one-way edges removed and doubly stochastic shares.

    The shares are Metropolis weights on the mutual edges; a node without one learns alone.
    """

    name = "dol-symm"

    def shares(self, graph: Shares) -> Mixing | None:
        """Metropolis weights on the edges that go both ways."""
        return graph.metropolis()
