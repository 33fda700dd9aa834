"""What every algorithm is: a start, a rule for one round, and where its shares come from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from oneway.errors import ConfigError
from oneway.records import Matrix, NetworkState, Vector

Schedule: TypeAlias = Callable[[int], float]
"""A learning rate that depends on the round: `schedule(round_index)`."""

Mixing: TypeAlias = csr_array
"""`mixing[sender, receiver]`, rows sum to 1."""


class Shares(Protocol):
    """What an algorithm asks of a trust graph."""

    def mixing(self) -> Mixing:
        """Row-stochastic shares over all one-way edges."""

    def metropolis(self) -> Mixing:
        """Doubly stochastic shares over the mutual edges only."""


@dataclass(frozen=True)
class InverseSqrt:
    """The schedule `scale / sqrt(round_index + 1)`.

    >>> InverseSqrt(0.5)(3)
    0.25
    """

    scale: float

    def __call__(self, round_index: int) -> float:
        """The learning rate of this round."""
        return self.scale / math.sqrt(round_index + 1)


@dataclass(frozen=True)
class Algorithm(ABC):
    """A method that learns from every sample at once and exchanges models once a round.

    Attributes:
        learning_rate: gamma, a number or a schedule of the round.
    """

    learning_rate: float | Schedule

    name: ClassVar[str]
    """Short name, as on the command line."""
    exchange: ClassVar[Literal["graph", "average", "none"]] = "graph"
    """With whom models are exchanged: along the graph, with everybody, with nobody."""
    moves_mass: ClassVar[bool] = False
    """Whether masses travel with the models; otherwise they stay 1."""

    def __post_init__(self) -> None:
        if not callable(self.learning_rate):
            self.rate(0)

    def rate(self, round_index: int) -> float:
        """The learning rate of one round.

        Raises:
            ConfigError: If it is negative or not finite.
        """
        rate = self.learning_rate
        value = float(rate(round_index) if callable(rate) else rate)
        if not (math.isfinite(value) and value >= 0):
            raise ConfigError(
                f"the learning rate of {self.name} is {value} in round {round_index}; "
                "it must be a finite number, 0 or more"
            )
        return value

    def rates(self, first: int, last: int) -> Vector:
        """The learning rates of rounds `first` to `last` (excluded).

        Raises:
            ConfigError: If one is negative or not finite.
        """
        if callable(self.learning_rate):
            return np.array([self.rate(round_index) for round_index in range(first, last)])
        return np.full(last - first, self.rate(first))

    def start(self, num_nodes: int, dim: int) -> NetworkState:
        """Before the first round: z = x = 0 and omega = 1 at every node."""
        return NetworkState(np.zeros((num_nodes, dim)), np.ones(num_nodes))

    def shares(self, graph: Shares) -> Mixing | None:
        """The mixing this method uses on a graph; None if it uses no graph."""
        return graph.mixing() if self.exchange == "graph" else None

    @abstractmethod
    def step(
        self, state: NetworkState, gradients: Matrix, mixing: Mixing | None, round_index: int
    ) -> NetworkState:
        """One round of all nodes.

        Args:
            state: What the nodes hold.
            gradients: `[node, dim]`, at the estimates; zero for a node without a sample.
            mixing: What `shares` returned for this round's graph.
            round_index: t, counted from 0.
        """

    def describe(self) -> dict[str, Any]:
        """Name and parameters, in terms JSON can hold."""
        rate = self.learning_rate
        return {"algorithm": self.name, "learning_rate": repr(rate) if callable(rate) else rate}
