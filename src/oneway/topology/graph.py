"""The trust graph: who is willing to send to whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from oneway.errors import GraphError
from oneway.records import Bools, Ints, Origin, Vector, checksum
from oneway.topology import connectivity, conversions, files, generators
from oneway.topology.conversions import Edge, Node
from oneway.topology.edge_list import EdgeList, check_compressed, compress, node_label, unknown_name
from oneway.topology.mixing import (
    Mixing,
    MixingLike,
    check_kept_share,
    metropolis,
    row_stochastic,
)

if TYPE_CHECKING:
    import networkx


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
        check_compressed(self.indptr, self.receivers, self.weights)
        if self.names is not None:
            if len(self.names) != self.num_nodes:
                raise GraphError(
                    f"there are {len(self.names)} names for {self.num_nodes} nodes; give one each"
                )
            if len(self._index) != self.num_nodes:
                twice = next(n for i, n in enumerate(self.names) if self._index[n] != i)
                raise GraphError(f"two nodes are named {twice!r}; names must differ, rename one")
        if self.kept_shares is not None:
            kept_shares = check_kept_share(self.kept_shares, self.num_nodes)
            object.__setattr__(self, "kept_shares", kept_shares)
            self._check_that_senders_send(kept_shares)
        for attribute in ("indptr", "receivers", "weights", "kept_shares"):
            array = getattr(self, attribute)
            if array is not None:
                object.__setattr__(self, attribute, _read_only(array))

    @classmethod
    def random(cls, num_nodes: int, max_receivers: int, seed: int) -> TrustGraph:
        """The paper's random graph: strongly connected, 1 to `max_receivers` receivers per node.

        The number of receivers is exactly uniform; see `generators.random_edges`.

        Raises:
            GraphError: If there are fewer than 2 nodes, or max_receivers is not in
                1..num_nodes - 1.
        """
        return cls._of(generators.random_edges(num_nodes, max_receivers, seed))

    @classmethod
    def ring(cls, num_nodes: int) -> TrustGraph:
        """Every node sends to the next one, the last to the first."""
        return cls._of(generators.ring_edges(num_nodes))

    @classmethod
    def complete(cls, num_nodes: int) -> TrustGraph:
        """Every node sends to every other."""
        return cls._of(generators.complete_edges(num_nodes))

    @classmethod
    def erdos_renyi(cls, num_nodes: int, density: float, seed: int) -> TrustGraph:
        """Every ordered pair is an edge with probability `density`; may not be connected.

        Raises:
            GraphError: If density is not in 0..1.
        """
        return cls._of(generators.erdos_renyi_edges(num_nodes, density, seed))

    @classmethod
    def scale_free(cls, num_nodes: int, seed: int) -> TrustGraph:
        """Few nodes have very many senders or receivers; seldom strongly connected.

        Raises:
            GraphError: If there are fewer than 3 nodes.
        """
        return cls._of(generators.scale_free_edges(num_nodes, seed))

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
        return cls._of(conversions.listed_edges(edges, num_nodes, names))

    @classmethod
    def from_networkx(cls, network: networkx.Graph) -> TrustGraph:
        """From networkx; see `conversions.networkx_edges` for weights, names and both ways.

        Raises:
            GraphError: If there are no nodes, labels look the same as text, or a weight is not
                finite and at least 0.
        """
        return cls._of(conversions.networkx_edges(network))

    @classmethod
    def from_mixing(cls, mixing: MixingLike) -> TrustGraph:
        """The graph whose `mixing()` is this one: shares become weights and kept shares.

        Raises:
            MixingError: If a share is negative or not finite, or a row does not sum to 1.
        """
        return cls._of(conversions.mixing_edges(mixing))

    @classmethod
    def read(cls, path: files.FilePath) -> TrustGraph:
        """From an edge list in SNAP, KONECT or CSV format, plain or gzipped; see `files`.

        Raises:
            MissingDataError: If there is no such file.
            DataError: If it cannot be read, or is a truncated .gz.
            GraphError: If it holds no edges or a line does not parse.
        """
        return cls._of(files.read_edges(path))

    @staticmethod
    def union(graphs: Iterable[TrustGraph]) -> TrustGraph:
        """All edges that occur in any of the graphs, without weights.

        A graph that changes with the round spreads everything everywhere if the union of what
        keeps coming back is strongly connected.

        Raises:
            GraphError: If there are no graphs, or they differ in nodes or names.
        """
        members = list(graphs)
        if not members:
            raise GraphError("a union of no graphs has no nodes; give at least one graph")
        first = members[0]
        for position, graph in enumerate(members):
            if graph.num_nodes != first.num_nodes or graph.names != first.names:
                raise GraphError(
                    f"graph {position} has {graph.num_nodes} nodes and graph 0 has "
                    f"{first.num_nodes}; a union needs the same nodes with the same names"
                )
        edges = [graph.edges() for graph in members]
        return TrustGraph._of(
            EdgeList(
                first.num_nodes,
                senders=np.concatenate([senders for senders, _ in edges]),
                receivers=np.concatenate([receivers for _, receivers in edges]),
                names=first.names,
                origin={"graph": "union", "num_graphs": len(members)},
            )
        )

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
            raise unknown_name(name, self.names)
        return self._index[name]

    def receivers_of(self, node: Node) -> Ints:
        """Whom a node is willing to send to, as numbers, itself excluded."""
        number = self._number(node)
        return self.receivers[self.indptr[number] : self.indptr[number + 1]]

    def senders_of(self, node: Node) -> Ints:
        """Who is willing to send to a node, as numbers, itself excluded."""
        number = self._number(node)
        indptr, senders = self._incoming
        return senders[indptr[number] : indptr[number + 1]]

    @property
    def reciprocity(self) -> float:
        """The share of edges that also exist the other way round; 0 without edges."""
        return float(self._both_ways.mean()) if self.num_edges else 0.0

    def strong_components(self) -> tuple[int, Ints]:
        """How many strong components there are, and each node's, numbered by first node."""
        return connectivity.strong_components(self.indptr, self.receivers)

    @cached_property
    def is_strongly_connected(self) -> bool:
        """Whether everybody reaches everybody; a single node does."""
        return self.strong_components()[0] == 1

    def require_strongly_connected(self) -> None:
        """Do nothing if everybody reaches everybody.

        Raises:
            GraphError: If not; it says how many strong components there are and what helps.
        """
        connectivity.require_one_component(self.indptr, self.receivers)

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
        new_numbers = np.cumsum(inside) - 1
        senders, receivers = self.edges()
        mask = inside[senders] & inside[receivers]
        return TrustGraph._of(
            EdgeList(
                len(chosen),
                senders=new_numbers[senders[mask]],
                receivers=new_numbers[receivers[mask]],
                weights=None if self.weights is None else self.weights[mask],
                kept_shares=None if self.kept_shares is None else self.kept_shares[chosen],
                names=tuple(node_label(node, self.names) for node in chosen.tolist()),
                origin={"graph": "largest_strong_component", "of": dict(self.origin)},
            )
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
        found = np.flatnonzero(self.receivers_of(start) == target)
        source, goal = node_label(start, self.names), node_label(target, self.names)
        if not found.size:
            raise GraphError(
                f"there is no edge {source} -> {goal} to remove; {source} sends to "
                f"{self._few(self.receivers_of(start))}"
            )
        mask = np.ones(self.num_edges, dtype=np.bool_)
        mask[self.indptr[start] + found[0]] = False
        return self._keep_edges(mask, {"graph": "without", "sender": source, "receiver": goal})

    def mixing(self, kept_share: ArrayLike | None = None, weighted: bool = True) -> Mixing:
        """Shares as `mixing[sender, receiver]` (the paper's W): sparse, float64, rows sum to 1.

        A node with k receivers keeps 1 / (k + 1) unless told otherwise and splits the rest in
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
        return conversions.to_networkx(
            EdgeList(self.num_nodes, *self.edges(), self.weights, self.kept_shares, self.names)
        )

    @property
    def description(self) -> dict[str, Any]:
        """How the graph was made, and a checksum of edges, weights and kept shares.

        What a run stores; `oneway.topology.rebuild` makes the graph again.
        """
        content = checksum(self.indptr, self.receivers, self.weights, self.kept_shares)
        return {**self.origin, "checksum": content}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TrustGraph):
            return NotImplemented
        return (
            np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.receivers, other.receivers)
            and _equal(self.weights, other.weights)
            and _equal(self.kept_shares, other.kept_shares)
            and self.names == other.names
        )

    def __hash__(self) -> int:
        return hash((self.num_nodes, self.receivers.tobytes(), self.names))

    def __repr__(self) -> str:
        kinds = [
            kind
            for kind, present in (("weighted", self.weights), ("named", self.names))
            if present is not None
        ]
        size = f"{self.num_nodes:,} nodes, {self.num_edges:,} edges"
        return f"<TrustGraph: {', '.join([size, *kinds])}>"

    @classmethod
    def _of(cls, edges: EdgeList) -> TrustGraph:
        indptr, receivers, weights = compress(edges)
        return cls(indptr, receivers, weights, edges.kept_shares, edges.names, edges.origin)

    def _check_that_senders_send(self, kept_shares: Vector) -> None:
        hoarders = np.flatnonzero((kept_shares == 1) & (np.diff(self.indptr) > 0))
        if hoarders.size:
            node = int(hoarders[0])
            raise GraphError(
                f"node {node_label(node, self.names)} keeps all of its mass but has edges to "
                f"{self._few(self.receivers_of(node))}; give it a kept share below 1, or no edges"
            )

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

    def _few(self, nodes: Ints) -> str:
        """The first few nodes, for a message."""
        if not len(nodes):
            return "nobody"
        shown = ", ".join(node_label(node, self.names) for node in nodes[:5].tolist())
        return shown if len(nodes) <= 5 else f"{shown} and {len(nodes) - 5:,} more"

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names or ())}

    @cached_property
    def _incoming(self) -> tuple[Ints, Ints]:
        starts, senders = connectivity.incoming(self.indptr, self.receivers)
        return starts, _read_only(senders)

    @cached_property
    def _both_ways(self) -> Bools:
        return connectivity.both_ways(self.indptr, self.receivers)


def _read_only(array: Ints) -> Ints:
    """A view that cannot be written through."""
    view = array.view()
    view.setflags(write=False)
    return view


def _equal(mine: Vector | None, theirs: Vector | None) -> bool:
    """Both absent, or both there with the same numbers."""
    if mine is None or theirs is None:
        return mine is theirs
    return np.array_equal(mine, theirs)
