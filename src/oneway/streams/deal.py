"""Dealing the rows of a table to nodes: at random, by cluster, or to their natural owners."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from oneway.errors import DataError
from oneway.files.memory import require_memory
from oneway.files.validation import checked
from oneway.records import Floats, Ints
from oneway.streams.clusters import cluster_rows
from oneway.streams.stream import index_type

Overflow: TypeAlias = Literal["pool", "next"]
"""Where the rows of a cluster go that exceed its node's quota."""


_BYTES = 16.0
"""What dealing takes at its peak, for each sample: its row, and a shuffled copy."""


def deal_rows(
    features: Floats,
    num_nodes: int,
    adversarial: float,
    seed: int,
    resample: int | None,
    shuffle: bool,
    overflow: Overflow,
) -> tuple[Ints, float]:
    """Deal the rows of `features` as `Table.deal` says.

    Returns:
        `rows[round_index, node]`, and the share of them that came from a node's cluster.
    """
    num_rows = len(features)
    if not (isinstance(adversarial, int | float | np.number) and 0 <= adversarial <= 1):
        raise DataError(f"adversarial is {adversarial!r}; it is a share between 0 and 1")
    checked("overflow", overflow, Overflow, DataError)
    num_samples = num_rows if resample is None else resample
    if num_nodes > num_samples:
        raise DataError(
            f"{num_nodes} nodes but only {num_samples} samples: every node needs at least one",
            remedy="use fewer nodes, or resample=NUM_SAMPLES to draw rows with replacement",
            flag_remedy="use fewer nodes, or --resample NUM_SAMPLES to draw rows with replacement",
        )
    require_memory(
        _BYTES * num_samples,
        f"dealing {num_samples:,} samples to {num_nodes:,} nodes",
        DataError,
        remedy="resample fewer",
    )
    rng = np.random.default_rng(seed)
    num_rounds = num_samples // num_nodes
    count = num_rounds * num_nodes
    dtype = index_type(num_rows)
    if resample is None:
        pool: Ints = rng.permutation(np.arange(num_rows, dtype=dtype))[:count]
    else:
        # The draws are independent: leaving out the remainder is the same as not drawing it.
        pool = rng.integers(0, num_rows, size=count, dtype=dtype)
    num_clustered = round(adversarial * count)
    if num_clustered == 0:
        return pool.reshape(num_rounds, num_nodes), 0.0
    of_node, share = _deal_clusters(features, pool, num_clustered, num_nodes, rng, overflow)
    if shuffle:
        rng.permuted(of_node, axis=1, out=of_node)
    return np.ascontiguousarray(of_node.T), share


def _deal_clusters(
    features: Floats,
    pool: Ints,
    num_clustered: int,
    num_nodes: int,
    rng: np.random.Generator,
    overflow: Overflow,
) -> tuple[Ints, float]:
    """Deal the first `num_clustered` rows of a shuffled pool by cluster, the others at random.

    Returns:
        `of_node[node, round_index]`, the rows of its cluster first, and the share of those.
    """
    num_rounds = len(pool) // num_nodes
    clustered, at_random = pool[:num_clustered], pool[num_clustered:]
    quotas = np.full(num_nodes, num_clustered // num_nodes)
    quotas[rng.permutation(num_nodes)[: num_clustered % num_nodes]] += 1

    clusters = cluster_rows(features, clustered, num_nodes, seed=int(rng.integers(2**31)))
    order = np.argsort(clusters, kind="stable")
    clustered, clusters = clustered[order], clusters[order]
    if overflow == "next":
        clusters = np.repeat(np.arange(num_nodes), quotas)
    sizes = np.bincount(clusters, minlength=num_nodes)
    place_in_cluster = np.arange(num_clustered) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    within_quota = place_in_cluster < quotas[clusters]

    at_random = np.concatenate([at_random, clustered[~within_quota]])
    rng.shuffle(at_random)
    taken = np.minimum(sizes, quotas)
    from_cluster = np.arange(num_rounds) < taken[:, None]
    of_node = np.empty((num_nodes, num_rounds), dtype=pool.dtype)
    of_node[from_cluster] = clustered[within_quota]
    of_node[~from_cluster] = at_random
    return of_node, float(taken.sum() / len(pool))


def deal_classes(
    codes: Ints, num_nodes: int, classes_per_node: int, seed: int, resample: int | None
) -> Ints:
    """Deal rows by class, so that every node sees exactly so many, as `Table.deal` says.

    Args:
        codes: `codes[row]`, its class, counted from 0; every class has rows.
        num_nodes: How many nodes.
        classes_per_node: How many classes each of them sees.
        seed: Of all that is random.
        resample: How many rows to draw with replacement, in all.

    Returns:
        `rows[round_index, node]`.
    """
    sizes = np.bincount(codes)
    parts = num_nodes * classes_per_node
    if not len(sizes) <= parts or classes_per_node > len(sizes):
        raise DataError(
            f"classes_per_node is {classes_per_node} with {num_nodes} nodes and {len(sizes)} "
            "classes; it is at most the number of classes, and nodes x classes_per_node at least "
            "that, so that every class is somewhere"
        )
    rng = np.random.default_rng(seed)
    of_node = _class_parts(codes, _shares(sizes, parts, num_nodes), num_nodes, rng)
    drawn = 0 if resample is None else resample // parts
    if resample is not None:
        of_node = [[rng.choice(own, drawn) if len(own) else own for own in it] for it in of_node]
    if any(len(own) == 0 for node in of_node for own in node):
        raise DataError(
            f"{num_nodes} nodes with {classes_per_node} classes each are too many for "
            f"{len(codes) if resample is None else resample:,} samples; use fewer nodes"
        )
    dealt = [rng.permutation(np.concatenate(node)) for node in of_node]
    count = min(map(len, dealt))
    rows = np.stack([own[:count] for own in dealt], axis=1)
    return np.ascontiguousarray(rows.astype(index_type(len(codes))))


def _class_parts(
    codes: Ints, shares: Ints, num_nodes: int, rng: np.random.Generator
) -> list[list[Ints]]:
    """Every class cut into so many random parts, dealt to the nodes in turn.

    No class has more parts than there are nodes, so that no node gets two parts of one class.
    """
    turns = rng.permutation(num_nodes).tolist()
    of_node: list[list[Ints]] = [[] for _ in turns]
    place = 0
    for code in rng.permutation(len(shares)).tolist():
        for own in np.array_split(rng.permutation(np.flatnonzero(codes == code)), shares[code]):
            of_node[turns[place % num_nodes]].append(own)
            place += 1
    return of_node


def _shares(sizes: Ints, parts: int, most: int) -> Ints:
    """How many parts each class is cut into: at least 1, at most `most`, else by its size."""
    shares = np.ones(len(sizes), np.intp)
    for _ in range(parts - len(sizes)):
        shares[np.argmax(np.where(shares < most, sizes / shares, -1.0))] += 1
    return shares


def deal_in_order(owners: Ints, rows: Ints, num_nodes: int) -> Ints:
    """Deal rows, each with the node that owns it, in the order given, as `Table.deal_by` says.

    Returns:
        `rows[round_index, node]`, -1 where a node has none.
    """
    count = len(owners)
    order = np.argsort(owners, kind="stable")
    again = np.flatnonzero(owners[order[1:]] == owners[order[:-1]])
    before = np.full(count, -1)  # where the owner of a row had its last one
    before[order[again + 1]] = order[again]
    # A round that starts at row s ends before the first row whose owner had one since s.
    next_start = np.searchsorted(np.maximum.accumulate(before), np.arange(count)).tolist()
    starts = [0]
    while next_start[starts[-1]] < count:
        starts.append(next_start[starts[-1]])
    rounds = np.searchsorted(starts, np.arange(count), side="right") - 1
    dealt = np.full((len(starts), num_nodes), -1, dtype=rows.dtype)
    dealt[rounds, owners] = rows
    return dealt
