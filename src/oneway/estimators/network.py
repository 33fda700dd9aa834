"""A simulated network that goes on learning, one block of samples after the other.

The reference engine of the simulator with its state kept between blocks: samples are dealt to the
nodes in turn, each round one sample a node, and between two rounds models travel along the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oneway.errors import ConfigError
from oneway.methods import Method, State
from oneway.models import Model, typical_sample
from oneway.records import Floats, Matrix, Vector
from oneway.simulator.measurements import Measurements
from oneway.simulator.reference_engine import ReferenceEngine
from oneway.streams import Stream
from oneway.task.assembly import chosen_graph
from oneway.task.learning import Learning
from oneway.task.privacy import NO_PRIVACY, Privacy
from oneway.task.settings import Settings
from oneway.topology import TrustGraph


def learning_of(model: str, *, epsilon: float | None, **told: Any) -> Learning:
    """The keys of a task that an estimator is told; without noise unless there is an epsilon.

    Raises:
        ConfigError: A value breaks its rule.
    """
    given = {name: value for name, value in told.items() if value is not None}
    privacy = NO_PRIVACY if epsilon is None else Privacy(epsilon=epsilon)
    return Learning(model=model, privacy=privacy, **given)


def graph_of(graph: object, nodes: int, seed: int) -> TrustGraph:
    """A graph as an estimator is told: itself, or a name and a number of nodes.

    Raises:
        ConfigError: It is neither, or the number is not one.
        GraphError: There is no such graph.
    """
    if isinstance(graph, TrustGraph):
        return graph
    if not isinstance(graph, str):
        raise ConfigError(
            f"graph is {graph!r}; it must be a TrustGraph or the name of a kind, for example "
            "'random' or 'ring'"
        )
    if nodes == 1:
        return TrustGraph.from_edges([], 1)
    settings = Settings(graph=graph, nodes=nodes, seed=seed)
    return chosen_graph(settings, nodes)


class SimulatedNetwork:
    """Learns from blocks of encoded samples; nothing of a block is kept.

    Args:
        method: How nodes learn.
        model: What is learned.
        graph: Who sends to whom.
        num_features: Of a sample.
        seed: Of all that is random.

    Attributes:
        samples: How many were learned from.

    Raises:
        GraphError: The graph is not strongly connected, and the method needs it to be.
    """

    def __init__(
        self, method: Method, model: Model, graph: TrustGraph, num_features: int, seed: int
    ) -> None:
        if method.exchange == "graph":
            graph.require_strongly_connected()
        method = method.suited(*typical_sample(model, num_features))
        self.method, self.model = method, model
        self.num_nodes = graph.num_nodes
        self.samples = 0
        self._mixing = method.shares(graph)
        blank = _no_samples(num_features, graph.num_nodes)
        self._engine = ReferenceEngine(method, model, blank, Measurements.blank(1), seed)

    @property
    def turn(self) -> int:
        """The node that the next sample goes to."""
        return self.samples % self.num_nodes

    @property
    def estimates(self) -> Matrix:
        """The models of all nodes, `[node, dim]`."""
        return self.method.estimate(self._engine.held)

    def params(self, node: int | None = None) -> Vector:
        """The model of a node; without one, the network's mean, each node by its mass.

        Raises:
            ConfigError: There is no such node.
        """
        if node is None:
            state = self._engine.state
            mean: Vector = state.numerators.sum(axis=0) / state.masses.sum()
            return mean
        if not (isinstance(node, int | np.integer) and 0 <= node < self.num_nodes):
            raise ConfigError(
                f"node is {node!r}; it must be one of 0 to {self.num_nodes - 1}, or None for the "
                "average of all"
            )
        own: Vector = self.estimates[node]
        return own

    def go_on_from(self, other: SimulatedNetwork, changed: Callable[[State], State]) -> None:
        """Go on where another network stands, with what its nodes hold changed to fit this one."""
        engine, former = self._engine, other._engine
        engine.held, engine.rounds_before = changed(former.held), former.rounds_before
        engine.rng, self.samples = former.rng, other.samples

    def learn(self, features: Floats, labels: Floats) -> float:
        """Learn from samples in their order; return the sum of the losses suffered before.

        Raises:
            DivergenceError: The numbers leave the finite range.
        """
        places = self.turn + np.arange(len(labels))
        rounds, nodes = np.divmod(places, self.num_nodes)
        rows = np.full((int(rounds[-1]) + 1, self.num_nodes), -1, np.int64)
        rows[rounds, nodes] = np.arange(len(labels))
        engine, blank = self._engine, self._engine.stream
        stream = Stream(features, labels, rows)
        engine.stream, engine.measurements = stream, Measurements.blank(len(rows))
        try:
            engine.advance(0, len(rows), self._mixing)
            return float(engine.measurements.loss_sums.sum())
        finally:
            engine.rounds_before += len(rows)
            engine.stream, engine.measurements = blank, Measurements.blank(1)
            self.samples += len(labels)


def _no_samples(num_features: int, num_nodes: int) -> Stream:
    nobody = np.full((1, num_nodes), -1, np.int64)
    return Stream(np.zeros((1, num_features)), np.zeros(1), nobody)
