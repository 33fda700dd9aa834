"""Momentum-tracking push-pull: averaged models, and everybody tracks the network's mean momentum.

Fan, Liao, Xu, Guo, Dian: Stochastic Momentum Tracking Push-Pull for Decentralized Optimization over
Directed Graphs, arXiv 2604.08219.
"""

from __future__ import annotations

from dataclasses import dataclass

from oneway.errors import ConfigError
from oneway.methods.base import Method, State
from oneway.records import Matrix, Segment


@dataclass(frozen=True)
class Tracking(Method):
    """Models are averaged by receivers, and moved by a tracker that is split among them.

    With R the receivers' equal averages, W the shares, m the momentum and y the tracker of a node:

        m' = beta * m + (1 - beta) * gamma * gradient(x)
        y' = W.T @ (y + m' - m)
        x' = R @ (x - (y + m' - m))

    Rows of W sum to 1, so the trackers' sum always is the momenta's sum. A node's tracker becomes
    its share of that sum, so models move by the steps of all nodes alike, and the graph biases
    nothing. Nodes count alike, not samples: a momentum stays in the sum while its node has none.

    Attributes:
        beta: How much of the momentum stays.
    """

    beta: float = 0.9

    name = "tracking"
    label = "Tracking"
    meaning = "averaged models, tracked momentum"
    colour = "#882255"
    payload = (Segment("model", "copied"), Segment("tracker", "split", tracks="momentum"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.beta, int | float) and 0 <= self.beta < 1):
            raise ConfigError(f"beta is {self.beta!r}; it must be from 0 up to, but not, 1")

    def descend(self, state: State, steps: Matrix) -> State:
        """Move the momentum towards the steps, the tracker with it, the model by the tracker."""
        held, before = state.segments, state.memory["momentum"]
        momentum = self.beta * before + (1.0 - self.beta) * steps
        tracker = held["tracker"] + (momentum - before)
        return State(
            {**held, "model": held["model"] - tracker, "tracker": tracker},
            {**state.memory, "momentum": momentum},
        )
