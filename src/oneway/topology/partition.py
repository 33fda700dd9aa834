"""Streaming partitioner: nodes into parts of about equal size, with few edges between parts.

Fennel (Tsourakakis and others, 2014) with restreaming (Nishimura and Ugander, 2013): nodes come by
one after the other, and each goes to the part that has most of those it sends to or receives from,
less a penalty that grows with the size of the part. In every further pass nodes know where all
others went in the last one, and the penalty counts for more, so that communities come together
first and parts become equal in size after that. One pass takes time in proportion to the edges, and
memory for one number a node besides the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from oneway.errors import GraphError
from oneway.files.typed_values import whole_number
from oneway.records import Ints
from oneway.topology.graph import TrustGraph

PASSES = 10
"""How often nodes are streamed; more hardly changes anything."""
SLACK = 1.05
"""The largest part has at most so many times the nodes of an average one."""
_POWER = 1.5
"""Of the size of a part in its penalty."""


def partition_graph(graph: TrustGraph, num_parts: int) -> Ints:
    """The part of every node, `part_of[node]`, from 0 on; none is empty.

    Raises:
        GraphError: There are fewer nodes than parts, or less than one part.

    >>> alike = [(a, b) for a in range(8) for b in range(8) if a != b and a % 2 == b % 2]
    >>> partition_graph(TrustGraph.from_edges([*alike, (0, 1), (1, 0)]), 2).tolist()
    [1, 0, 1, 0, 1, 0, 1, 0]
    """
    return partition_edges(graph.indptr, graph.receivers, num_parts)


def partition_edges(indptr: Ints, receivers: Ints, num_parts: int) -> Ints:
    """As `partition_graph`, for the edges of a sparse matrix; those to a node itself do not count.

    Args:
        indptr: Where the receivers of each node start.
        receivers: Of all nodes, one after the other.
        num_parts: How many parts to make.
    """
    whole_number("the number of parts", num_parts, 1, GraphError)
    num_nodes = len(indptr) - 1
    if num_parts > num_nodes:
        raise GraphError(
            f"{num_parts} parts of {num_nodes} nodes leave part {num_nodes} empty; choose at most "
            f"{num_nodes} parts"
        )
    part_of = np.full(num_nodes, -1, np.int32)
    largest = max(-(-num_nodes // num_parts), int(SLACK * num_nodes / num_parts))
    ones, shape = np.ones(len(receivers), np.int8), (num_nodes, num_nodes)
    incoming = sparse.csr_array((ones, receivers, indptr), shape=shape).tocsc()
    ends = indptr, receivers, incoming.indptr.astype(np.int64), incoming.indices
    weight = np.sqrt(num_parts) * 2.0 * len(receivers) / num_nodes**_POWER
    for turn in range(PASSES):
        # From a third of Fennel's weight to about four times as much.
        _stream()(*ends, part_of, num_parts, largest, weight * 1.3 ** (turn - 4))
    return _without_empty_parts(part_of, num_parts)


def checked_partition(given: ArrayLike, num_nodes: int) -> Ints:
    """The part of every node as a user has given it.

    Raises:
        GraphError: There is not one whole number from 0 on for every node, or a part is empty.
    """
    part_of = np.asarray(given)
    if part_of.ndim != 1 or part_of.dtype.kind not in "iu" or len(part_of) != num_nodes:
        raise GraphError(
            f"the partition has the shape {part_of.shape} and the type {part_of.dtype}, and the "
            f"network has {num_nodes} nodes; give the part of every node, a whole number from 0 on"
        )
    if part_of.min() < 0:
        raise GraphError(
            f"node {int(part_of.argmin())} is in part {int(part_of.min())}; parts are numbered "
            "from 0 on"
        )
    if part_of.max() >= num_nodes:
        raise GraphError(
            f"node {int(part_of.argmax())} is in part {int(part_of.max())}, and {num_nodes} nodes "
            "cannot fill so many parts; number the parts from 0 on without a gap"
        )
    empty = np.flatnonzero(np.bincount(part_of) == 0)
    if len(empty):
        raise GraphError(
            f"part {empty[0]} has no nodes, and part {int(part_of.max())} has; number the parts "
            "from 0 on without a gap"
        )
    return part_of.astype(np.int32)


def share_cut(graph: TrustGraph, part_of: Ints) -> float:
    """The share of the edges that lead from one part to another."""
    senders, receivers = graph.edges()
    return float(np.mean(part_of[senders] != part_of[receivers])) if len(senders) else 0.0


def _without_empty_parts(part_of: Ints, num_parts: int) -> Ints:
    """Give every empty part a node of the largest one."""
    counts = np.bincount(part_of, minlength=num_parts)
    for empty in np.flatnonzero(counts == 0).tolist():
        largest = int(counts.argmax())
        part_of[np.flatnonzero(part_of == largest)[-1]] = empty
        counts[largest] -= 1
        counts[empty] += 1
    return part_of


@cache
def _stream() -> Callable[..., None]:
    """One pass over all nodes, compiled when it is needed."""
    from numba import njit

    def stream(
        indptr: Any,
        receivers: Any,
        in_indptr: Any,
        senders: Any,
        part_of: Any,
        num_parts: int,
        largest: int,
        weight: float,
    ) -> None:
        sizes = np.zeros(num_parts, np.int64)
        near = np.zeros(num_parts, np.int64)
        # In the first pass nobody is anywhere; later on sizes are those of this pass so far.
        for node in range(len(part_of)):
            near[:] = 0
            for place in range(indptr[node], indptr[node + 1]):
                other = receivers[place]
                if part_of[other] >= 0 and other != node:
                    near[part_of[other]] += 1
            for place in range(in_indptr[node], in_indptr[node + 1]):
                other = senders[place]
                if part_of[other] >= 0 and other != node:
                    near[part_of[other]] += 1
            best, best_value = -1, 0.0
            for part in range(num_parts):
                if sizes[part] >= largest:
                    continue
                value = near[part] - weight * 1.5 * np.sqrt(sizes[part])
                closer = best >= 0 and value == best_value and sizes[part] < sizes[best]
                if best < 0 or value > best_value or closer:
                    best, best_value = part, value
            part_of[node] = best
            sizes[best] += 1

    return njit(stream, cache=True, nogil=True)  # type: ignore[no-any-return]
