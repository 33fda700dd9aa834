"""Centralised online learning (COL): what a server that everybody trusts would do."""

from __future__ import annotations

from dataclasses import dataclass

from oneway.methods.base import Method
from oneway.records import Segment


@dataclass(frozen=True)
class Centralised(Method):
    """All nodes share one model, moved by the average gradient.

        x' = mean over nodes of (x - gamma * gradient(x))

    This is gossip on the complete graph with equal shares, without writing that matrix down. A node
    without a sample in a round counts with gradient 0, as it does in the other methods.
    """

    name = "col"
    label = "Centralised (COL)"
    meaning = "a server everybody trusts"
    colour = "#009e73"
    exchange = "average"
    payload = (Segment("model", "split"),)
