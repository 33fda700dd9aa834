"""Edge list: edges in any order, with repetitions, on their way to becoming a graph.

Generators, file readers and conversions of what users hold (tuples, networkx graphs, mixing
matrices) all end in an `EdgeList`; `compress` is the one place where edges are checked, sorted and
merged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from oneway.errors import GraphError
from oneway.files.validation import whole_number
from oneway.records import Ints, Origin, Vector
from oneway.sentences import nearest
from oneway.topology.connectivity import Links
from oneway.topology.mixing import check_kept_share

MAX_NODES = 2**31 - 1
"""Receivers are stored as int32."""

Node: TypeAlias = int | str
"""A node's number (int) or its name (str); a name made of digits is still a name."""

Edge: TypeAlias = tuple[Node, Node] | tuple[Node, Node, float]
"""Sender, receiver and, optionally, weight."""


@dataclass(frozen=True)
class EdgeList:
    """Edges as they come: unsorted, possibly repeated, possibly from a node to itself.

    Attributes:
        num_nodes: Nodes are numbered 0 to num_nodes - 1.
        senders: One node per edge.
        receivers: One node per edge.
        weights: One number per edge, or None if all edges count the same.
        kept_shares: One number per node: the share of its mass a node keeps; None if not given.
        names: One name per node, or None if nodes only have numbers.
        origin: How the edges were made.
    """

    num_nodes: int
    senders: Ints
    receivers: Ints
    weights: Vector | None = None
    kept_shares: Vector | None = None
    names: tuple[str, ...] | None = None
    origin: Origin = field(default_factory=dict)


def node_label(node: int, names: Sequence[str] | None) -> str:
    """What a message calls a node: its name if it has one, else its number."""
    return names[node] if names is not None else str(node)


def few_nodes(nodes: Ints, names: Sequence[str] | None) -> str:
    """The first few nodes, for a message."""
    shown = ", ".join(node_label(node, names) for node in nodes[:5].tolist()) or "nobody"
    return shown if len(nodes) <= 5 else f"{shown} and {len(nodes) - 5:,} more"


def unknown_name(name: str, names: Sequence[str] | None) -> GraphError:
    """The error for a name that no node has; it suggests the nearest one."""
    if names is None:
        return GraphError(f"no node is named {name!r}: the nodes have no names, use their numbers")
    near = nearest(name, names) or f"; names look like {names[0]!r}"
    return GraphError(f"no node is named {name!r}{near}")


def compress(edges: EdgeList) -> tuple[Ints, Ints, Vector | None]:
    """Sort by sender and receiver; drop self-loops and zero weights; add up repeated edges.

    Returns:
        `indptr` (int64), `receivers` (int32) and `weights` (float64 or None): the receivers of a
        node are `receivers[indptr[node]:indptr[node + 1]]`, ascending.

    Raises:
        GraphError: If a node is out of range, or a weight is negative, NaN or infinite.
    """
    _check_nodes(edges)
    weights = edges.weights
    if weights is None:
        weights = np.ones(len(edges.senders), dtype=np.bool_)
    else:
        _check_weights(weights, edges.senders, edges.receivers, edges.names)
    senders, receivers = edges.senders, edges.receivers
    proper = senders != receivers
    if not proper.all():
        senders, receivers, weights = senders[proper], receivers[proper], weights[proper]
    shape = (edges.num_nodes, edges.num_nodes)
    links = sparse.csr_array((weights, (senders, receivers)), shape=shape)
    links.sum_duplicates()
    links.eliminate_zeros()
    indptr, receivers = links.indptr.astype(np.int64), links.indices.astype(np.int32, copy=False)
    if edges.weights is None:
        return indptr, receivers, None
    _check_weights(links.data, *links.nonzero(), edges.names)  # a sum may overflow
    return indptr, receivers, links.data


def checked_links(indptr: Ints, receivers: Ints, weights: Vector | None) -> Links:
    """A sparse array of ones, `links[sender, receiver]`, from arrays as `compress` makes them.

    Other arrays are refused with a GraphError: code that walks them trusts in that.
    """
    num_nodes = len(indptr) - 1
    try:
        if any(array.dtype.kind not in "iu" for array in (indptr, receivers)):
            raise ValueError("indptr and receivers must be integers")
        ones = np.ones(len(receivers), dtype=np.int8)
        links = sparse.csr_array((ones, receivers, indptr), shape=(num_nodes, num_nodes))
        links.check_format(full_check=True)
        if not links.has_canonical_format or links.diagonal().any():
            raise ValueError("the receivers of a node must ascend, once each, without itself")
        if weights is not None and (
            np.shape(weights) != (links.nnz,) or not np.all((weights > 0) & (weights < np.inf))
        ):
            raise ValueError("there must be one finite weight above 0 for each receiver")
    except ValueError as error:
        raise GraphError(
            f"invalid graph arrays: {error}; TrustGraph.from_edges makes valid ones"
        ) from None
    return links


def check_names(names: Sequence[str] | None, num_nodes: int) -> None:
    """Check that there is one name per node, each another, if nodes have names."""
    if names is None:
        return
    if len(names) != num_nodes:
        raise GraphError(f"there are {len(names)} names for {num_nodes} nodes; give one each")
    if len(set(names)) != num_nodes:
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise GraphError(f"two nodes are named {twice!r}; names must differ, rename one")


def checked_kept_shares(
    kept_shares: Vector, indptr: Ints, receivers: Ints, names: Sequence[str] | None
) -> Vector:
    """One kept share per node; a node with receivers keeps less than everything."""
    shares = check_kept_share(kept_shares, len(indptr) - 1)
    hoarders = np.flatnonzero((shares == 1) & (np.diff(indptr) > 0))
    if hoarders.size:
        node = int(hoarders[0])
        partners = few_nodes(receivers[indptr[node] : indptr[node + 1]], names)
        raise GraphError(
            f"node {node_label(node, names)} keeps all of its mass but has edges to {partners}; "
            "give it a kept share below 1, or no edges"
        )
    return shares


def listed_edges(
    edges: Iterable[Edge] | Ints,
    num_nodes: int | None = None,
    names: Sequence[str] | None = None,
) -> EdgeList:
    """Edges given as tuples, or as an integer array of shape [m, 2]: see `TrustGraph.from_edges`.

    If some edges have a weight, it is 1 for those that have none.
    """
    weights: Vector | None = None
    if isinstance(edges, np.ndarray) and edges.shape[1:] == (2,) and edges.dtype.kind in "iu":
        pairs: Ints = edges if edges.dtype == np.int32 else edges.astype(np.int64)
    elif isinstance(edges, Iterable):
        parts = [_parts(edge, position) for position, edge in enumerate(edges)]
        names, index = _names(dict.fromkeys(node for part in parts for node in part[:2]), names)
        ends = [index.get(node, node) for part in parts for node in part[:2]]
        pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
        if any(weight is not None for *_, weight in parts):
            weights = np.array([1.0 if weight is None else weight for *_, weight in parts])
    else:
        raise GraphError(
            f"the edges are {edges!r}; give a list of (sender, receiver) or an array [m, 2]"
        )
    least = len(names) if names is not None else int(pairs.max(initial=-1)) + 1
    if num_nodes is None and least == 0:
        raise GraphError("the list of edges is empty; say how many nodes there are: num_nodes")
    num_nodes = whole_number("num_nodes", least if num_nodes is None else num_nodes, 1, GraphError)
    if names is not None and num_nodes != least:
        raise GraphError(
            f"num_nodes is {num_nodes} but there are {least} names; give one name for every node"
        )
    return EdgeList(
        num_nodes,
        senders=pairs[:, 0],
        receivers=pairs[:, 1],
        weights=weights,
        names=None if names is None else tuple(names),
        origin={"graph": "edges", "num_nodes": num_nodes, "num_edges": len(pairs)},
    )


def networkx_edges(network: Any) -> EdgeList:
    """Edges of a networkx graph; an undirected edge becomes one edge each way.

    Edges are weighted if every edge has an attribute "weight", and nodes keep what their attribute
    "kept_share" is if every node has one. Labels become names unless they are 0 to n - 1.
    """
    labels = list(network.nodes)
    if not labels:
        raise GraphError("the networkx graph has no nodes; add at least one")
    numbered = set(labels) == set(range(len(labels)))
    if numbered:
        labels.sort()
    index = {label: node for node, label in enumerate(labels)}
    # As text, labels such as 1 and "1" collide; TrustGraph then says that names must differ.
    links = list(network.to_directed(as_view=True).edges(data="weight"))
    pairs = np.array([(index[a], index[b]) for a, b, _ in links], dtype=np.int64).reshape(-1, 2)
    return EdgeList(
        len(labels),
        senders=pairs[:, 0],
        receivers=pairs[:, 1],
        weights=_numbers((f"the weight of edge {a} -> {b}", weight) for a, b, weight in links),
        kept_shares=_numbers(
            (f"the kept_share of node {label}", network.nodes[label].get("kept_share"))
            for label in labels
        ),
        names=None if numbered else tuple(str(label) for label in labels),
        origin={"graph": "networkx", "num_nodes": len(labels), "num_edges": len(pairs)},
    )


def _check_nodes(edges: EdgeList) -> None:
    if edges.num_nodes > MAX_NODES:
        raise GraphError(
            f"there are {edges.num_nodes} nodes; a graph can have at most {MAX_NODES}, number them "
            "without gaps"
        )
    for nodes in (edges.senders, edges.receivers):
        bad = np.flatnonzero((nodes < 0) | (nodes >= edges.num_nodes))
        if bad.size:
            edge = f"{edges.senders[bad[0]]} -> {edges.receivers[bad[0]]}"
            raise GraphError(
                f"edge {edge} names node {nodes[bad[0]]}; nodes are 0 to {edges.num_nodes - 1}, "
                "raise num_nodes or renumber"
            )


def _check_weights(
    weights: Vector, senders: Ints, receivers: Ints, names: Sequence[str] | None
) -> None:
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        sender, receiver = (node_label(int(ends[bad[0]]), names) for ends in (senders, receivers))
        raise GraphError(
            f"edge {sender} -> {receiver} has weight {weights[bad[0]]:g}; a weight must be finite "
            "and at least 0, and 0 means no edge"
        )


def _parts(edge: Any, position: int) -> tuple[Any, Any, float | None]:
    """Sender, receiver, and weight or None."""
    try:
        sender, receiver, *rest = edge
        (weight,) = (float(value) for value in rest) if rest else (None,)
    except (TypeError, ValueError, OverflowError):
        raise GraphError(
            f"edge {position} is {edge!r}; an edge must be (sender, receiver) or "
            "(sender, receiver, weight)"
        ) from None
    for node in (sender, receiver):
        if not isinstance(node, (str, Integral)):
            raise GraphError(
                f"edge {position} is {edge!r}; a node must be a whole number or a name, "
                f"not {node!r}"
            )
        if isinstance(node, Integral) and abs(int(node)) >= MAX_NODES:
            raise GraphError(
                f"edge {position} is {edge!r}; nodes are numbered 0, 1, 2, ... up to "
                f"{MAX_NODES - 1} at most, give other ids as names (str)"
            )
    return sender, receiver, weight


def _names(
    nodes: Iterable[Node], names: Sequence[str] | None
) -> tuple[Sequence[str] | None, dict[Node, int]]:
    """The names of all nodes, or None, and the number of each; from the nodes that have edges."""
    used = list(nodes)
    named = [node for node in used if isinstance(node, str)]
    if names is None and named:
        if len(named) < len(used):
            raise GraphError(
                f"the edges use numbers and names such as {named[0]!r}; use one kind, or give "
                "names= so that a number is an index into them"
            )
        names = named
    index: dict[Node, int] = {name: node for node, name in enumerate(names or ())}
    for name in named:
        if name not in index:
            raise unknown_name(name, names)
    return names, index


def _numbers(attributes: Iterable[tuple[str, Any]]) -> Vector | None:
    """One number for each attribute, given with what it is; None if one is missing."""
    found = []
    for what, value in attributes:
        try:
            found.append(None if value is None else float(value))
        except (TypeError, ValueError, OverflowError):
            raise GraphError(f"{what} is {value!r}; it must be a number, correct it") from None
    return None if None in found or not found else np.array(found, dtype=np.float64)
