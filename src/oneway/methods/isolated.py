"""Local online gradient descent: every node learns alone."""

from __future__ import annotations

from dataclasses import dataclass

from oneway.methods.base import Method


@dataclass(frozen=True)
class Isolated(Method):
    """No exchange at all.

    x' = x - gamma * gradient(x)
    """

    name = "local"
    label = "Isolated (local)"
    meaning = "everybody learns alone"
    colour = "#7f7f7f"
    exchange = "none"
