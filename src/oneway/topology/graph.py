"""Trust graph: who is willing to send to whom, as sparse arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from oneway.errors import GraphError
from oneway.records import Bools, Ints, Origin, Vector, checksum
from oneway.topology import connectivity
from oneway.topology import edges as edge_lists
from oneway.topology.edge_files import FilePath, read_edges
from oneway.topology.edges import Edge, EdgeList, Node, node_label
from oneway.topology.generators import GRAPHS
from oneway.topology.mixing import (
    Mixing,
    MixingLike,
    check_kept_share,
    check_mixing,
    metropolis,
    row_stochastic,
)

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ARRAYS = ("indptr", "receivers", "weights", "kept_shares")


@dataclass(frozen=True, eq=False, repr=False)
class TrustGraph:
    """Who is willing to send to whom: an edge A -> B means that A is willing to send to B.

    A frozen value over sparse arrays, to be made by one of the class methods. A node is its number
    0 to n - 1 (an int) or, if nodes have names, its name (a str). No node has an edge to itself:
    what it keeps is its kept share. Graphs are equal if everything but their origin is.

    >>> graph = TrustGraph.from_edges([("ann", "bob"), ("bob", "cem"), ("cem", "ann")])
    >>> graph.without("cem", "ann").is_strongly_connected
    False

    Attributes:
        indptr: Where the receivers of each node start, `[n + 1]`, int64.
        receivers: The receivers of node i are `receivers[indptr[i]:indptr[i + 1]]`, int32.
        weights: One positive number per edge, or None if a node's receivers count the same.
        kept_shares: The share of its mass each node keeps, or None for the default of `mixing`.
        names: One name per node, or None.
        origin: How the graph was made.

    Raises:
        GraphError: If arrays or names do not fit together, or a node with receivers is to keep
            everything: an edge is something that is sent along.
    """

    indptr: Ints
    receivers: Ints
    weights: Vector | None = None
    kept_shares: Vector | None = None
    names: tuple[str, ...] | None = None
    origin: Origin = field(default_factory=dict)

    def __post_init__(self) -> None:
        _ = self._links  # checks the arrays
        edge_lists.check_names(self.names, self.num_nodes)
        if self.kept_shares is not None:
            ends = self.indptr, self.receivers, self.names
            kept_shares = edge_lists.checked_kept_shares(self.kept_shares, *ends)
            object.__setattr__(self, "kept_shares", kept_shares)
        for attribute in _ARRAYS:
            if getattr(self, attribute) is not None:
                view = getattr(self, attribute).view()
                view.setflags(write=False)
                object.__setattr__(self, attribute, view)

    @classmethod
    def generate(cls, kind: str, **parameters: Any) -> TrustGraph:
        """A graph of a registered kind: `GRAPHS` has their names and parameters.

        >>> TrustGraph.generate("ring", num_nodes=3) == TrustGraph.ring(3)
        True

        Raises:
            ConfigError: If there is no such kind.
            GraphError: If a parameter breaks a rule.
        """
        return cls._of(GRAPHS[kind].edges(**parameters))

    @classmethod
    def random(cls, num_nodes: int, max_receivers: int, seed: int) -> TrustGraph:
        """The paper's random graph: strongly connected, each node with 1 to `max_receivers`.

        Raises:
            GraphError: If there are fewer than 2 nodes, or max_receivers is not in
                1..num_nodes - 1.
        """
        return cls.generate("random", num_nodes=num_nodes, max_receivers=max_receivers, seed=seed)

    @classmethod
    def ring(cls, num_nodes: int) -> TrustGraph:
        """Every node sends to the next one, the last to the first."""
        return cls.generate("ring", num_nodes=num_nodes)

    @classmethod
    def complete(cls, num_nodes: int) -> TrustGraph:
        """Every node sends to every other."""
        return cls.generate("complete", num_nodes=num_nodes)

    @classmethod
    def erdos_renyi(cls, num_nodes: int, density: float, seed: int) -> TrustGraph:
        """Every ordered pair is an edge with probability `density`; may not be connected.

        Raises:
            GraphError: If density is not in 0..1.
        """
        return cls.generate("erdos-renyi", num_nodes=num_nodes, density=density, seed=seed)

    @classmethod
    def scale_free(cls, num_nodes: int, seed: int) -> TrustGraph:
        """Few nodes have very many senders or receivers; seldom strongly connected.

        Raises:
            GraphError: If there are fewer than 3 nodes.
        """
        return cls.generate("scale-free", num_nodes=num_nodes, seed=seed)

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[Edge] | Ints,
        num_nodes: int | None = None,
        names: Sequence[str] | None = None,
    ) -> TrustGraph:
        """From (sender, receiver) or (sender, receiver, weight), or an integer array `[m, 2]`.

        Nodes are numbers, or names that are numbered in order of first appearance (or as in
        `names`). Repeated edges become one with the sum of their weights; weight 0 is no edge.

        Raises:
            GraphError: If an edge, a node or a weight breaks a rule; it says which.
        """
        return cls._of(edge_lists.listed_edges(edges, num_nodes, names))

    @classmethod
    def from_networkx(cls, network: networkx.Graph) -> TrustGraph:
        """From networkx; see `edges.networkx_edges` for weights, names and both ways.

        Raises:
            GraphError: If there are no nodes, labels look the same as text, or a weight is not
                finite and at least 0.
        """
        return cls._of(edge_lists.networkx_edges(network))

    @classmethod
    def from_mixing(cls, mixing: MixingLike) -> TrustGraph:
        """The graph whose `mixing()` is this one: shares become weights and kept shares.

        Raises:
            MixingError: If a share is negative or not finite, or a row does not sum to 1.
        """
        shares = check_mixing(mixing)
        shares.data /= np.repeat(np.asarray(shares.sum(axis=1)), np.diff(shares.indptr))
        entries = shares.tocoo()
        handed_out = entries.row != entries.col
        num_nodes, num_edges = shares.shape[0], int(handed_out.sum())
        edges = EdgeList(
            num_nodes,
            senders=entries.row[handed_out],
            receivers=entries.col[handed_out],
            weights=entries.data[handed_out],
            kept_shares=np.minimum(shares.diagonal(), 1.0),
            origin={"graph": "mixing", "num_nodes": num_nodes, "num_edges": num_edges},
        )
        return cls._of(edges)

    @classmethod
    def read(cls, path: FilePath, most_bytes: float = np.inf) -> TrustGraph:
        """From an edge list in SNAP, KONECT or CSV format, plain or gzipped; see `edge_files`.

        Raises:
            MissingDataError: If there is no such file.
            DataError: If it cannot be read, or is a truncated .gz.
            GraphError: If it holds no edges, a line does not parse, or there are more bytes, once
                decompressed.
        """
        return cls._of(read_edges(path, most_bytes))

    @staticmethod
    def union(graphs: Iterable[TrustGraph]) -> TrustGraph:
        """All edges of any graph, without weights; connected, graphs in turns reach everybody.

        Raises:
            GraphError: If there are no graphs, or they differ in nodes or names.
        """
        members = list(graphs)
        if not members:
            raise GraphError("a union of no graphs has no nodes; give at least one graph")
        num_nodes, names = members[0].num_nodes, members[0].names
        for position, graph in enumerate(members):
            if (graph.num_nodes, graph.names) != (num_nodes, names):
                raise GraphError(
                    f"graph {position} has {graph.num_nodes} nodes and graph 0 has {num_nodes}; a "
                    "union needs the same nodes with the same names"
                )
        ends = zip(*(graph.edges() for graph in members), strict=True)
        senders, receivers = (np.concatenate(nodes) for nodes in ends)
        origin: Origin = {"graph": "union", "num_graphs": len(members)}
        return TrustGraph._of(EdgeList(num_nodes, senders, receivers, names=names, origin=origin))

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        """How many edges there are; an edge each way counts as two."""
        return len(self.receivers)

    def edges(self) -> tuple[Ints, Ints]:
        """Senders and receivers of all edges, sorted by sender, then by receiver."""
        nodes = np.arange(self.num_nodes, dtype=np.int32)
        return np.repeat(nodes, np.diff(self.indptr)), self.receivers

    def index_of(self, name: str) -> int:
        """The number of the node with this name.

        Raises:
            GraphError: If there is none; it suggests the nearest name.
        """
        if name not in self._index:
            raise edge_lists.unknown_name(name, self.names)
        return self._index[name]

    def receivers_of(self, node: Node) -> Ints:
        """Whom a node is willing to send to, as numbers, itself excluded."""
        number = self._number(node)
        return self.receivers[self.indptr[number] : self.indptr[number + 1]]

    def senders_of(self, node: Node) -> Ints:
        """Who is willing to send to a node, as numbers, itself excluded."""
        number, incoming = self._number(node), self._incoming
        return incoming.indices[incoming.indptr[number] : incoming.indptr[number + 1]]

    @property
    def reciprocity(self) -> float:
        """The share of edges that also exist the other way round; 0 without edges."""
        return float(self._both_ways.mean()) if self.num_edges else 0.0

    def strong_components(self) -> tuple[int, Ints]:
        """How many strong components there are, and each node's, numbered by first node."""
        return connectivity.strong_components(self._links)

    @cached_property
    def is_strongly_connected(self) -> bool:
        """Whether everybody reaches everybody; a single node does."""
        return self.strong_components()[0] == 1

    def sides(self) -> connectivity.Sides:
        """Which nodes are upstream, downstream, between the two, or apart from all others."""
        return connectivity.sides(self._links)

    @cached_property
    def one_way_note(self) -> str:
        """What it means for nodes that not everybody reaches everybody; empty if everybody does."""
        if self.is_strongly_connected:
            return ""
        sides = self.sides()
        unheard, unsent = sides.upstream | sides.apart, sides.downstream | sides.apart
        return (
            "The graph is not strongly connected, so a node learns only from the nodes that reach "
            f"it: {unheard.sum():,} of {self.num_nodes:,} nodes receive nothing from outside their "
            f"own strong component, and {unsent.sum():,} send nothing out of theirs."
        )

    def largest_strong_component(self) -> TrustGraph:
        """The largest part in which everybody reaches everybody, with weights and kept shares.

        Nodes are renumbered; if they had no names, their old numbers become their names. A
        strongly connected graph is returned as it is.
        """
        count, labels = self.strong_components()
        if count == 1:
            return self
        inside = connectivity.in_largest(labels)
        chosen = np.flatnonzero(inside)
        mask = inside[self.edges()[0]] & inside[self.receivers]
        part = self._keep_edges(mask, {"graph": "largest_strong_component"})
        return replace(
            part,
            indptr=part.indptr[np.append(chosen, self.num_nodes)],
            receivers=(np.cumsum(inside) - 1)[part.receivers].astype(np.int32),
            kept_shares=None if self.kept_shares is None else self.kept_shares[chosen],
            names=tuple(node_label(node, self.names) for node in chosen.tolist()),
        )

    def mutual(self) -> TrustGraph:
        """Only the edges that go both ways."""
        return self._keep_edges(self._both_ways, {"graph": "mutual"})

    def without(self, sender: Node, receiver: Node) -> TrustGraph:
        """The graph after `sender` has stopped sending to `receiver`.

        Raises:
            GraphError: If it never did.
        """
        start, target = self._number(sender), self._number(receiver)
        source, goal = node_label(start, self.names), node_label(target, self.names)
        others = (self.edges()[0] != start) | (self.receivers != target)
        if others.all():
            raise GraphError(
                f"there is no edge {source} -> {goal} to remove; {source} sends to "
                f"{edge_lists.few_nodes(self.receivers_of(start), self.names)}"
            )
        return self._keep_edges(others, {"graph": "without", "sender": source, "receiver": goal})

    def mixing(self, kept_share: ArrayLike | None = None, weighted: bool = True) -> Mixing:
        """Shares as `mixing[sender, receiver]` (the paper's W): sparse, float64, rows sum to 1.

        A node with k receivers keeps 1 / (k + 1) by default and splits the rest in
        proportion to the weights, evenly without weights. Without receivers it keeps everything.

        Args:
            kept_share: What nodes keep, one number for all or one each, instead of the graph's own
                kept shares.
            weighted: False ignores the graph's own weights and kept shares.

        Raises:
            MixingError: If a kept share is not a number in 0..1.
        """
        kept = self.kept_shares if weighted else None
        if kept_share is not None:
            kept = check_kept_share(kept_share, self.num_nodes)
        return row_stochastic(self.indptr, self.receivers, self.weights if weighted else None, kept)

    def metropolis(self) -> Mixing:
        """Metropolis weights on the mutual graph: symmetric, rows and columns sum to 1.

        Weights and kept shares of the graph play no part.
        """
        partners = self.mutual()
        return metropolis(partners.indptr, partners.receivers)

    def to_networkx(self) -> networkx.DiGraph:
        """A networkx graph with the names, or else the numbers, as labels."""
        import networkx  # slow to import, and needed only here

        labels = range(self.num_nodes) if self.names is None else self.names
        ends = [[labels[i] for i in nodes.tolist()] for nodes in self.edges()]
        network = networkx.DiGraph()
        network.add_nodes_from(labels)
        if self.weights is None:
            network.add_edges_from(zip(*ends, strict=True))
        else:
            network.add_weighted_edges_from(zip(*ends, self.weights.tolist(), strict=True))
        if self.kept_shares is not None:
            kept_shares = dict(zip(labels, self.kept_shares.tolist(), strict=True))
            networkx.set_node_attributes(network, kept_shares, "kept_share")
        return network

    def plot(self, ax: Axes | None = None) -> Figure:
        """A chart, in new axes if none are given: arrows, or the degrees of a large graph."""
        from oneway.topology.views import plot_graph

        return plot_graph(self, ax)

    def _repr_html_(self) -> str:
        from oneway.topology.views import graph_html

        return graph_html(self)

    @property
    def description(self) -> dict[str, Any]:
        """How the graph was made, and a checksum of edges, weights and kept shares."""
        return {**self.origin, "checksum": checksum(*(getattr(self, name) for name in _ARRAYS))}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TrustGraph):
            return NotImplemented
        return self.names == other.names and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in _ARRAYS
        )

    def __hash__(self) -> int:
        return hash((self.num_nodes, self.receivers.tobytes(), self.names))

    def __repr__(self) -> str:
        kind = (", weighted" if self.weights is not None else "") + (
            ", named" if self.names else ""
        )
        return f"<TrustGraph: {self.num_nodes:,} nodes, {self.num_edges:,} edges{kind}>"

    @classmethod
    def _of(cls, edges: EdgeList) -> TrustGraph:
        return cls(*edge_lists.compress(edges), edges.kept_shares, edges.names, edges.origin)

    def _keep_edges(self, mask: Bools, origin: Origin) -> TrustGraph:
        """The same nodes with fewer edges."""
        kept_before = np.concatenate([[0], np.cumsum(mask)])
        return replace(
            self,
            indptr=kept_before[self.indptr],
            receivers=self.receivers[mask],
            weights=None if self.weights is None else self.weights[mask],
            origin={**origin, "of": dict(self.origin)},
        )

    def _number(self, node: Node) -> int:
        """A node's number, from its number or name."""
        if isinstance(node, str):
            return self.index_of(node)
        if not isinstance(node, Integral) or not 0 <= node < self.num_nodes:
            raise GraphError(f"there is no node {node}; nodes are 0 to {self.num_nodes - 1}")
        return int(node)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names or ())}

    @cached_property
    def _links(self) -> connectivity.Links:
        """1 where there is an edge, as `links[sender, receiver]`."""
        return edge_lists.checked_links(self.indptr, self.receivers, self.weights)

    @cached_property
    def _incoming(self) -> sparse.csc_array[Any]:
        incoming = self._links.tocsc()
        incoming.indices.setflags(write=False)
        return incoming

    @cached_property
    def _both_ways(self) -> Bools:
        return connectivity.both_ways(self._links)
