"""The methods but Relay: Online Push-Sum, what the paper compares it with, Pull and Tracking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oneway.errors import ConfigError
from oneway.methods.base import Graph, Method, State
from oneway.records import Matrix, Segment


@dataclass(frozen=True)
class OnlinePushSum(Method):
    """Every node pushes shares of its numerator and of its mass to those it trusts.

    With W = `mixing[sender, receiver]`, z the numerators, omega the masses, x = z / omega:

        z'     = W.T @ (z - gamma * gradient(x))
        omega' = W.T @ omega

    Rows of W sum to 1, so the total mass never changes, and dividing by the mass removes the bias
    that a directed graph puts on the numerators. With another step rule than the paper's, gamma
    depends on the mass, and nodes of little mass count for less.
    """

    name = "ops"
    label = "Online Push-Sum"
    meaning = "one-way edges, corrected by mass"
    colour = "#0072b2"
    payload = (Segment("numerator", "split"), Segment("mass", "split", is_vector=False))


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


@dataclass(frozen=True)
class Pull(Method):
    """Every node averages its own model with those that arrive, all with equal weight.

        x_i' = mean over j in {i} and the senders of i of (x_j - gamma * gradient_j(x_j))

    Weights of a row sum to 1, so a common model stays common whatever the graph, and no mass is
    needed; but samples count by how far their node is heard, which is a bias where nodes differ.
    """

    name = "pull"
    label = "Pull"
    meaning = "receivers average models, no mass"
    colour = "#999933"
    payload = (Segment("model", "copied"),)


@dataclass(frozen=True)
class Tracking(Method):
    """Models are averaged by receivers, and moved by a tracker that is split among them.

    Fan, Liao, Xu, Guo, Dian: Stochastic Momentum Tracking Push-Pull for Decentralized Optimization
    over Directed Graphs, arXiv 2604.08219.

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
            raise ConfigError(f"beta is {self.beta!r}; it must be in [0, 1)")

    def descend(self, state: State, steps: Matrix) -> State:
        """Move the momentum towards the steps, the tracker with it, the model by the tracker."""
        held, before = state.segments, state.memory["momentum"]
        momentum = self.beta * before + (1.0 - self.beta) * steps
        tracker = held["tracker"] + (momentum - before)
        return State(
            {**held, "model": held["model"] - tracker, "tracker": tracker},
            {**state.memory, "momentum": momentum},
        )
