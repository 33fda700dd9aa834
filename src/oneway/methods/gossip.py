"""Decentralised online learning without masses (DOL), as the paper runs it for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oneway.methods.base import Graph, Method
from oneway.records import Segment


@dataclass(frozen=True)
class MutualGossip(Method):
    """DOL-Symm: one-way edges are thrown away, mutual ones have doubly stochastic shares.

        x' = W.T @ (x - gamma * gradient(x)),  rows and columns of W sum to 1

    The shares are Metropolis weights on the mutual edges; a node without one learns alone.
    """

    name = "dol-symm"
    label = "Mutual gossip (DOL-Symm)"
    meaning = "only edges that go both ways"
    colour = "#d55e00"
    payload = (Segment("model", "split"),)

    def shares(self, graph: Graph) -> Any:
        """Metropolis weights on the edges that go both ways."""
        return graph.metropolis()


@dataclass(frozen=True)
class NaiveGossip(Method):
    """DOL-Asymm: the same one-way graph and shares as OPS, but no mass to correct the bias.

        x' = W.T @ (x - gamma * gradient(x)),  rows of W sum to 1, columns need not

    What a node receives need not add up to one model, so estimates settle at the node's stationary
    mass times the average, not at the average.
    """

    name = "dol-asymm"
    label = "Naive gossip (DOL-Asymm)"
    meaning = "one-way edges, no correction"
    colour = "#cc79a7"
    payload = (Segment("model", "split"),)
