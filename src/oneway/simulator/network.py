"""Which graph the network has in which round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from oneway.errors import ConfigError, GraphError
from oneway.methods import Method
from oneway.records import Bools
from oneway.simulator.exchange import Mixing, letting_go
from oneway.streams import Stream
from oneway.topology import TrustGraph

Graphs: TypeAlias = TrustGraph | Sequence[TrustGraph] | Callable[[int], TrustGraph]
"""One graph for good; several that take turns, one a round; or a function of the round."""


_REMEMBERED = 32
"""Number of graphs whose shares are cached."""


class Network:
    """The shares a method uses in each round of a run.

    Attributes:
        method: The method as it suits the graphs: where these (all together, if they take turns)
            are not strongly connected, it keeps masses within bounds, and with a method that
            forwards, nodes without receivers let go of what they would hand on.
        constant: Whether the graph never changes.
        origin: A description of the graphs, for records.
    """

    def __init__(self, method: Method, graphs: Graphs | None, stream: Stream) -> None:
        self.method = method
        self._num_nodes = stream.num_nodes
        self._node_names = stream.node_names
        self._known: dict[int, tuple[TrustGraph, Mixing | None]] = {}
        self._at: Callable[[int], TrustGraph] | None = None
        self.constant = True
        self.origin: Any = None
        self._sinks: Bools | None = None
        if method.exchange != "graph":
            return
        if graphs is None:
            raise ConfigError(
                f"{method.name} sends models along a graph and none was given; "
                "pass one, for example TrustGraph.random(...), as the last argument of simulate"
            )
        if isinstance(graphs, TrustGraph):
            self._check(graphs)
            self._suit(graphs)
            self._at, self.origin = lambda _: graphs, graphs.description
        elif callable(graphs):
            self.constant = False
            self._at, self.origin = graphs, {"graph": "a function of the round"}
        else:
            self.constant = False
            turns = list(graphs) if isinstance(graphs, Sequence) else [graphs]
            if not turns:
                raise GraphError("the sequence of graphs is empty; give at least one graph")
            for graph in turns:
                self._check(graph)
            self._suit(TrustGraph.union(turns))
            self._at = lambda round_index: turns[round_index % len(turns)]
            self.origin = {
                "graph": "in turns",
                "graphs": [graph.description for graph in turns],
            }

    def _suit(self, graph: TrustGraph) -> None:
        if graph.is_strongly_connected:
            return
        self.method = self.method.suited_to_any_graph()
        if self.method.lets_go:
            self._sinks = np.diff(self.in_order(graph).indptr) == 0

    def _check(self, graph: object) -> None:
        if not isinstance(graph, TrustGraph):
            raise GraphError(
                f"a graph is a TrustGraph and not {type(graph).__name__}; make one with "
                "TrustGraph.from_networkx, from_mixing or from_edges"
            )
        if graph.num_nodes != self._num_nodes:
            raise GraphError(
                f"the graph has {graph.num_nodes} nodes and the stream has {self._num_nodes}; "
                "deal the stream for as many nodes as the graph has"
            )

    def _shares(self, graph: TrustGraph) -> Mixing | None:
        """The shares on a graph, cached for graphs that take turns."""
        if id(graph) not in self._known:
            self._check(graph)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            # The graph is held too: while it lives, nothing else has its id.
            shares = self.method.shares(self.in_order(graph))
            if self._sinks is not None and shares is not None:
                shares = letting_go(shares, self._sinks)
            self._known[id(graph)] = (graph, shares)
        return self._known[id(graph)][1]

    def in_order(self, graph: TrustGraph) -> TrustGraph:
        """The graph with its nodes in the stream's order, if both know their nodes by name."""
        wanted = self._node_names
        if wanted is None:
            return graph
        names = graph.names or tuple(map(str, range(graph.num_nodes)))
        if names == wanted:
            return graph
        if set(names) != set(wanted):
            if graph.names is None:
                return graph
            stranger = min(set(wanted) - set(names))
            raise GraphError(
                f"the stream has a node {stranger!r} and the graph has none of that name; name the "
                "graph's nodes as the stream's, or give a graph without names"
            )
        place = {name: index for index, name in enumerate(names)}
        order = np.array([place[name] for name in wanted])
        return TrustGraph.from_mixing(graph.mixing()[order][:, order])

    def stretches(self, first: int, last: int) -> Iterator[tuple[int, int, Mixing | None]]:
        """Split rounds `first` to `last` (excluded) into stretches of equal shares."""
        if self._at is None:
            yield first, last, None
            return
        if self.constant:
            yield first, last, self._shares(self._at(first))
            return
        begin, graph = first, self._at(first)
        for round_index in range(first + 1, last):
            following = self._at(round_index)
            if following is not graph:
                yield begin, round_index, self._shares(graph)
                begin, graph = round_index, following
        yield begin, last, self._shares(graph)
