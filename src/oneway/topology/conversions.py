"""Graphs that users already hold, as an `EdgeList`: tuples, networkx graphs, mixing matrices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from oneway.errors import GraphError
from oneway.records import Ints, Vector
from oneway.topology.edge_list import MAX_NODES, EdgeList, require_whole, unknown_name
from oneway.topology.mixing import MixingLike, check_mixing

if TYPE_CHECKING:
    import networkx

Node: TypeAlias = int | str
"""A node's number (int) or its name (str); a name made of digits is still a name."""

Edge: TypeAlias = tuple[Node, Node] | tuple[Node, Node, float]
"""Sender, receiver and, optionally, weight."""


def listed_edges(
    edges: Iterable[Edge] | Ints,
    num_nodes: int | None = None,
    names: Sequence[str] | None = None,
) -> EdgeList:
    """Edges given as tuples, or as an integer array of shape [m, 2].

    Nodes without a given name are named in order of first appearance. If some edges have a weight,
    it is 1 for those that have none.

    Raises:
        GraphError: If this is no list of edges, an edge is not such a tuple, numbers and names are
            mixed, a name is unknown, or the number of nodes is not determined or contradictory.
    """
    if isinstance(edges, np.ndarray) and edges.shape[1:] == (2,) and edges.dtype.kind in "iu":
        pairs: Ints = edges.astype(np.int64)
        weights: Vector | None = None
    else:
        pairs, weights, names = _numbered(edges, names)
    least = len(names) if names is not None else int(pairs.max(initial=-1)) + 1
    if num_nodes is None:
        if least == 0:
            raise GraphError("the list of edges is empty; say how many nodes there are: num_nodes")
        num_nodes = least
    num_nodes = require_whole("num_nodes", num_nodes, least=1)
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
    """A networkx graph; an undirected edge becomes one edge each way.

    Edges are weighted if every edge has an attribute "weight", and nodes keep what their attribute
    "kept_share" says if every node has one. Labels become names unless they are 0 to n - 1.

    Raises:
        GraphError: If there are no nodes, two labels look the same as text, or a weight or kept
            share is not a number.
    """
    labels = list(network.nodes)
    if not labels:
        raise GraphError("the networkx graph has no nodes; add at least one")
    numbered = set(labels) == set(range(len(labels)))
    if numbered:
        labels.sort()
    index = {label: node for node, label in enumerate(labels)}
    # As text, labels such as 1 and "1" collide; TrustGraph then says that names must differ.
    links = [
        (index[a], index[b], _number(f"the weight of edge {a} -> {b}", data.get("weight")))
        for a, b, data in network.edges(data=True)
    ]
    if not network.is_directed():
        links += [(b, a, weight) for a, b, weight in links]
    pairs = np.array([link[:2] for link in links], dtype=np.int64).reshape(-1, 2)
    weighted = bool(links) and all(weight is not None for *_, weight in links)
    kept = [
        _number(f"the kept_share of node {label}", network.nodes[label].get("kept_share"))
        for label in labels
    ]
    return EdgeList(
        len(labels),
        senders=pairs[:, 0],
        receivers=pairs[:, 1],
        weights=np.array([w for *_, w in links], dtype=np.float64) if weighted else None,
        kept_shares=None if None in kept else np.array(kept, dtype=np.float64),
        names=None if numbered else tuple(str(label) for label in labels),
        origin={"graph": "networkx", "num_nodes": len(labels), "num_edges": len(pairs)},
    )


def mixing_edges(mixing: MixingLike) -> EdgeList:
    """A mixing matrix: its diagonal becomes kept shares, the rest weighted edges.

    Raises:
        MixingError: If it is not a valid mixing; see `check_mixing`.
    """
    shares = check_mixing(mixing)
    shares.data /= np.repeat(np.asarray(shares.sum(axis=1)), np.diff(shares.indptr))
    entries = shares.tocoo()
    handed_out = entries.row != entries.col
    num_nodes = shares.shape[0]
    return EdgeList(
        num_nodes,
        senders=entries.row[handed_out],
        receivers=entries.col[handed_out],
        weights=entries.data[handed_out],
        kept_shares=np.minimum(shares.diagonal(), 1.0),
        origin={
            "graph": "mixing",
            "num_nodes": num_nodes,
            "num_edges": int(handed_out.sum()),
        },
    )


def to_networkx(edges: EdgeList) -> networkx.DiGraph:
    """A networkx graph with the names, or else the numbers, as labels."""
    import networkx  # slow to import, and needed only here

    labels = range(edges.num_nodes) if edges.names is None else edges.names
    network = networkx.DiGraph()
    network.add_nodes_from(labels)
    pairs = zip(edges.senders.tolist(), edges.receivers.tolist(), strict=True)
    links = [(labels[sender], labels[receiver]) for sender, receiver in pairs]
    network.add_edges_from(links)
    if edges.weights is not None:
        weights = dict(zip(links, edges.weights.tolist(), strict=True))
        networkx.set_edge_attributes(network, weights, "weight")
    if edges.kept_shares is not None:
        kept_shares = dict(zip(labels, edges.kept_shares.tolist(), strict=True))
        networkx.set_node_attributes(network, kept_shares, "kept_share")
    return network


def _numbered(
    edges: Iterable[Edge] | Ints, names: Sequence[str] | None
) -> tuple[Ints, Vector | None, Sequence[str] | None]:
    """Pairs of node numbers, weights or None, and names or None."""
    index = {} if names is None else {name: node for node, name in enumerate(names)}
    pairs: list[tuple[int, int]] = []
    weights: list[float | None] = []
    by_number = False
    if not isinstance(edges, Iterable):
        raise GraphError(
            f"the edges are {edges!r}; give a list of (sender, receiver) or an array [m, 2]"
        )
    for position, edge in enumerate(edges):
        sender, receiver, weight = _parts(edge, position)
        for node in (sender, receiver):
            if isinstance(node, str):
                if names is not None and node not in index:
                    raise unknown_name(node, names)
                index.setdefault(node, len(index))
            else:
                by_number = True
        pairs.append((index.get(sender, sender), index.get(receiver, receiver)))
        weights.append(weight)
    if names is None and index:
        if by_number:
            raise GraphError(
                f"the edges use numbers and names such as {next(iter(index))!r}; use one kind, or "
                "give names= so that a number is an index into them"
            )
        names = list(index)
    given = [weight for weight in weights if weight is not None]
    filled = [1.0 if weight is None else weight for weight in weights] if given else None
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return array, None if filled is None else np.array(filled), names


def _number(what: str, value: Any) -> float | None:
    """An attribute as a float, or None if there is none."""
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        raise GraphError(f"{what} is {value!r}; it must be a number, correct it") from None


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
