"""Who can reach whom by following edges."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from oneway.errors import GraphError
from oneway.records import Bools, Ints


def strong_components(indptr: Ints, receivers: Ints) -> tuple[int, Ints]:
    """How many strong components there are, and which one each node is in.

    Within a strong component everybody reaches everybody. Components are numbered by their first
    node.
    """
    num_nodes = len(indptr) - 1
    links = csr_array(
        (np.ones(len(receivers), dtype=np.int8), receivers, indptr), shape=(num_nodes, num_nodes)
    )
    count, labels = connected_components(links, directed=True, connection="strong")
    _, first_nodes = np.unique(labels, return_index=True)
    renumbered = np.empty(count, dtype=np.int32)
    renumbered[np.argsort(first_nodes)] = np.arange(count, dtype=np.int32)
    return int(count), renumbered[labels]


def incoming(indptr: Ints, receivers: Ints) -> tuple[Ints, Ints]:
    """The same edges by receiver: where each node's senders start, and the senders, ascending."""
    num_nodes = len(indptr) - 1
    senders = np.repeat(np.arange(num_nodes, dtype=np.int32), np.diff(indptr))
    starts = np.zeros(num_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(receivers, minlength=num_nodes), out=starts[1:])
    return starts, senders[np.argsort(receivers, kind="stable")]


def both_ways(indptr: Ints, receivers: Ints) -> Bools:
    """For each edge, whether it also exists the other way round."""
    num_nodes = len(indptr) - 1
    senders = np.repeat(np.arange(num_nodes, dtype=np.int64), np.diff(indptr))
    targets = receivers.astype(np.int64)
    forward, backward = senders * num_nodes + targets, targets * num_nodes + senders
    return np.isin(backward, forward, assume_unique=True)


def in_largest(labels: Ints) -> Bools:
    """Which nodes are in the largest component (the one with the first node, among equals)."""
    mask: Bools = labels == np.argmax(np.bincount(labels))
    return mask


def require_one_component(indptr: Ints, receivers: Ints) -> None:
    """Do nothing if everybody reaches everybody.

    Raises:
        GraphError: If not; it says how many strong components there are and what helps.
    """
    count, labels = strong_components(indptr, receivers)
    if count > 1:
        largest = int(in_largest(labels).sum())
        raise GraphError(
            f"the graph is not strongly connected: it has {count:,} strong components, the largest "
            f"with {largest:,} of {len(labels):,} nodes; graph.largest_strong_component() keeps "
            "that one"
        )
