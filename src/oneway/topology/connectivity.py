"""Connectivity: strong components of a graph, and edges that go both ways."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from oneway.errors import GraphError
from oneway.records import Bools, Ints

Links: TypeAlias = "sparse.csr_array[Any, tuple[int, int]]"
"""`links[sender, receiver]` is not 0 where there is an edge."""


def strong_components(links: Links) -> tuple[int, Ints]:
    """How many strong components there are, and which one each node is in.

    Within a strong component everybody reaches everybody. Components are numbered by their first
    node.
    """
    count, labels = connected_components(links, directed=True, connection="strong")
    _, first_nodes = np.unique(labels, return_index=True)
    renumbered = np.empty(count, dtype=np.int32)
    renumbered[np.argsort(first_nodes)] = np.arange(count, dtype=np.int32)
    return int(count), renumbered[labels]


def in_largest(labels: Ints) -> Bools:
    """Which nodes are in the largest component (the one with the first node, among equals)."""
    mask: Bools = labels == np.argmax(np.bincount(labels))
    return mask


class Sides(NamedTuple):
    """For every node, where its strong component lies.

    Attributes:
        upstream: No edge leads into the component from others, but edges lead out.
        middle: Edges lead in and out.
        downstream: Edges lead in, but none leads out.
        apart: No edge leads in or out; in a strongly connected graph this is everybody.
    """

    upstream: Bools
    middle: Bools
    downstream: Bools
    apart: Bools


def sides(links: Links) -> Sides:
    """Where each node's strong component lies between the others."""
    count, labels = strong_components(links)
    edges = links.tocoo()
    senders, receivers = labels[edges.row], labels[edges.col]
    across = senders != receivers
    sends = np.bincount(senders[across], minlength=count)[labels] > 0
    hears = np.bincount(receivers[across], minlength=count)[labels] > 0
    return Sides(sends & ~hears, sends & hears, hears & ~sends, ~sends & ~hears)


def require_one_component(links: Links) -> None:
    """Raise a GraphError, with what helps, unless everybody reaches everybody."""
    count, labels = strong_components(links)
    if count > 1:
        largest = int(in_largest(labels).sum())
        raise GraphError(
            f"the graph is not strongly connected: it has {count:,} strong components, the largest "
            f"with {largest:,} of {len(labels):,} nodes",
            remedy="graph.largest_strong_component() keeps that one",
        )


def both_ways(links: Links) -> Bools:
    """For each edge, whether it also exists the other way round."""
    places = np.arange(1, links.nnz + 1, dtype=np.int64)
    forward = sparse.csr_array((places, links.indices, links.indptr), shape=links.shape)
    mask = np.zeros(links.nnz, dtype=np.bool_)
    mask[forward.multiply(links.T.tocsr()).data - 1] = True
    return mask
