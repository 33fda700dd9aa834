"""Edges in any order, with repetitions, on their way to becoming a graph.

Generators, file readers and conversions all end in an `EdgeList`; `compress` is the one place
where edges are checked, sorted and merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from numbers import Integral

import numpy as np

from oneway.errors import GraphError
from oneway.records import Ints, Origin, Vector

MAX_NODES = 2**31 - 1
"""Receivers are stored as int32."""

_INSTEAD = "TrustGraph.from_edges makes such arrays"


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


def unknown_name(name: str, names: Sequence[str] | None) -> GraphError:
    """The error for a name that no node has; it suggests the nearest one."""
    if names is None:
        return GraphError(f"no node is named {name!r}: the nodes have no names, use their numbers")
    near = get_close_matches(name, names, n=1)
    remedy = f"did you mean {near[0]!r}?" if near else f"names look like {names[0]!r}"
    return GraphError(f"no node is named {name!r}; {remedy}")


def require_whole(what: str, value: int, least: int) -> int:
    """The value as an int.

    Raises:
        GraphError: If it is not a whole number of at least `least`.
    """
    if not isinstance(value, Integral) or value < least:
        raise GraphError(f"{what} is {value!r}; it must be a whole number of at least {least}")
    return int(value)


def compress(edges: EdgeList) -> tuple[Ints, Ints, Vector | None]:
    """Sort by sender and receiver; drop self-loops and zero weights; add up repeated edges.

    Returns:
        `indptr` (int64), `receivers` (int32) and `weights` (float64 or None): the receivers of a
        node are `receivers[indptr[node]:indptr[node + 1]]`, ascending.

    Raises:
        GraphError: If a node is out of range, or a weight is negative, NaN or infinite.
    """
    _check_nodes(edges)
    _check_weights(edges)
    proper = edges.senders != edges.receivers
    keys = _pair_keys(edges)[proper]
    weights: Vector | None = None
    if edges.weights is None:
        keys = sorted_distinct(keys)
    else:
        keys, inverse = np.unique(keys, return_inverse=True)
        weights = np.bincount(inverse, edges.weights[proper], len(keys)).astype(np.float64)
        keys, weights = keys[weights > 0], weights[weights > 0]
    senders, receivers = np.divmod(keys, edges.num_nodes)
    # Again, because a sum of finite weights may overflow.
    _check_weights(replace(edges, senders=senders, receivers=receivers, weights=weights))
    indptr = np.zeros(edges.num_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(senders, minlength=edges.num_nodes), out=indptr[1:])
    return indptr, receivers.astype(np.int32), weights


def check_compressed(indptr: Ints, receivers: Ints, weights: Vector | None) -> None:
    """Check that arrays are as `compress` makes them; code that walks them trusts in that.

    Raises:
        GraphError: If not; it says what is wrong.
    """
    for what, array in (("indptr", indptr), ("receivers", receivers)):
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "iu":
            raise GraphError(f"{what} must be a 1-D array of integers; {_INSTEAD}")
    num_nodes = len(indptr) - 1
    if num_nodes < 1 or indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]):
        raise GraphError(
            f"indptr has {len(indptr)} entries; it must have one more than there are nodes, start "
            f"with 0 and never fall; {_INSTEAD}"
        )
    if indptr[-1] != len(receivers):
        raise GraphError(
            f"indptr ends with {indptr[-1]} but there are {len(receivers)} receivers; it must end "
            f"with their number; {_INSTEAD}"
        )
    senders = np.repeat(np.arange(num_nodes), np.diff(indptr))
    _check_nodes(EdgeList(num_nodes, senders, receivers))
    keys = senders * num_nodes + receivers
    if np.any(keys[1:] <= keys[:-1]) or np.any(senders == receivers):
        raise GraphError(
            "the receivers of a node must ascend, come once each and not include the node itself; "
            f"{_INSTEAD}"
        )
    if weights is None:
        return
    if np.shape(weights) != receivers.shape or not np.all(np.asarray(weights) > 0):
        raise GraphError(
            f"weights have shape {np.shape(weights)} for {len(receivers)} edges; there must be one "
            f"for each, above 0; {_INSTEAD}"
        )
    _check_weights(EdgeList(num_nodes, senders, receivers, weights))


def sorted_distinct(keys: Ints) -> Ints:
    """Each value once, ascending; np.unique's hash table takes ten times as long on such keys."""
    ordered = np.sort(keys)
    is_new = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


def keep_last(edges: EdgeList) -> EdgeList:
    """Of repeated edges keep the last: a later statement replaces an earlier one."""
    if edges.weights is None:
        return edges  # repetitions without a weight say nothing new
    _, from_the_end = np.unique(_pair_keys(edges)[::-1], return_index=True)
    last = len(edges.senders) - 1 - from_the_end
    return replace(
        edges,
        senders=edges.senders[last],
        receivers=edges.receivers[last],
        weights=edges.weights[last],
    )


def _pair_keys(edges: EdgeList) -> Ints:
    """One integer per edge that sorts by sender, then by receiver."""
    keys: Ints = edges.senders.astype(np.int64) * edges.num_nodes + edges.receivers
    return keys


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


def _check_weights(edges: EdgeList) -> None:
    if edges.weights is None:
        return
    bad = np.flatnonzero(~(np.isfinite(edges.weights) & (edges.weights >= 0)))
    if bad.size:
        sender = node_label(int(edges.senders[bad[0]]), edges.names)
        receiver = node_label(int(edges.receivers[bad[0]]), edges.names)
        raise GraphError(
            f"edge {sender} -> {receiver} has weight {edges.weights[bad[0]]:g}; a weight must be "
            "finite and at least 0, and 0 means no edge"
        )
