"""A simulated network that learns block by block.

The reference engine of the simulator, whose state persists between blocks: samples are dealt to the
nodes in turn, one sample per node and round, and nodes exchange models between two rounds.
"""

from __future__ import annotations

import numpy as np

from oneway.errors import ConfigError
from oneway.methods import Method
from oneway.models import Model, typical_sample
from oneway.records import Floats, Matrix, Vector
from oneway.simulator.measurements import Measurements
from oneway.simulator.network import Network
from oneway.simulator.reference_engine import ReferenceEngine
from oneway.streams import Stream
from oneway.task.assembly import chosen_graph
from oneway.task.settings import Settings
from oneway.topology import TrustGraph


def graph_of(graph: object, nodes: int, seed: int) -> TrustGraph:
    """Return the graph of an estimator: the given one, or one of a kind with `nodes` nodes.

    Raises:
        ConfigError: It is neither a graph nor a name.
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
    return chosen_graph(Settings(graph=graph, nodes=nodes, seed=seed), nodes)


class SimulatedNetwork:
    """Learns from blocks of encoded samples, and keeps no sample.

    Args:
        method: How nodes learn.
        model: The model.
        graph: Who sends to whom.
        num_features: Of a sample.
        seed: Of the noise and other random numbers.

    Attributes:
        samples: The number of samples so far.
    """

    def __init__(
        self, method: Method, model: Model, graph: TrustGraph, num_features: int, seed: int
    ) -> None:
        nobody = np.full((1, graph.num_nodes), -1, np.int64)
        blank = Stream(np.zeros((1, num_features)), np.zeros(1), nobody)
        network = Network(method, graph, blank)
        method = network.method.suited(*typical_sample(model, num_features))
        self.method, self.model = method, model
        self.num_nodes = graph.num_nodes
        self.samples = 0
        [(_, _, self._mixing)] = network.stretches(0, 1)
        self._engine = ReferenceEngine(method, model, blank, Measurements.blank(1), seed)

    @property
    def estimates(self) -> Matrix:
        """The models of all nodes, `[node, dim]`."""
        return self.method.estimate(self._engine.held)

    def params(self, node: int | None = None) -> Vector:
        """Return the model of a node; without one, the mean of all, weighted by mass.

        Nodes that never send have no common model: without a node, this is that of node 0.

        Raises:
            ConfigError: There is no such node.
        """
        if node is None and not self.method.payload:
            node = 0
        if node is None:
            state = self._engine.state
            mean: Vector = state.numerators.sum(axis=0) / state.masses.sum()
            return mean
        if not (isinstance(node, int | np.integer) and 0 <= node < self.num_nodes):
            raise ConfigError(
                f"node is {node!r}; it must be one of 0 to {self.num_nodes - 1}, or None for the "
                "mean of all"
            )
        own: Vector = self.estimates[node]
        return own

    def learn(self, features: Floats, labels: Floats) -> float:
        """Learn from samples in their order; return the sum of the losses before each step.

        Raises:
            DivergenceError: The numbers leave the finite range.
        """
        places = self.samples % self.num_nodes + np.arange(len(labels))
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
