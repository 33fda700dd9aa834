"""Graphs out of nothing but a few numbers and a seed."""

from __future__ import annotations

import numpy as np

from oneway.errors import GraphError
from oneway.records import Ints
from oneway.topology.edge_list import EdgeList, require_whole, sorted_distinct


def random_edges(num_nodes: int, max_receivers: int, seed: int) -> EdgeList:
    """The paper's random graph: 1 to `max_receivers` receivers per node, strongly connected.

    A cycle through all nodes in random order gives every node its first receiver, which makes the
    graph strongly connected; the others are uniform among the remaining nodes. So the number of
    receivers of a node is exactly uniform on 1 to `max_receivers`.

    Raises:
        GraphError: If there are fewer than 2 nodes, or max_receivers is not in 1..num_nodes - 1.
    """
    num_nodes = require_whole("num_nodes of a random graph", num_nodes, least=2)
    max_receivers = require_whole("max_receivers", max_receivers, least=1)
    if max_receivers >= num_nodes:
        raise GraphError(
            f"max_receivers is {max_receivers} for {num_nodes} nodes; a node can have at most "
            f"{num_nodes - 1} receivers, choose max_receivers from 1 to {num_nodes - 1}"
        )
    rng = np.random.default_rng(require_whole("seed", seed, least=0))
    nodes = np.arange(num_nodes)
    num_receivers = rng.integers(1, max_receivers + 1, size=num_nodes)
    cycle = rng.permutation(num_nodes)
    first = np.empty_like(cycle)
    first[cycle] = np.roll(cycle, -1)

    senders, others = _distinct_numbers(num_receivers - 1, num_nodes - 2, rng)
    # Numbers below num_nodes - 2 become nodes by stepping over the sender and its first receiver.
    others += others >= np.minimum(senders, first[senders])
    others += others >= np.maximum(senders, first[senders])
    return EdgeList(
        num_nodes,
        senders=np.concatenate([nodes, senders]),
        receivers=np.concatenate([first, others]),
        origin={
            "graph": "random",
            "num_nodes": num_nodes,
            "max_receivers": max_receivers,
            "seed": int(seed),
        },
    )


def ring_edges(num_nodes: int) -> EdgeList:
    """Every node sends to the next one, the last to the first."""
    num_nodes = require_whole("num_nodes", num_nodes, least=1)
    nodes = np.arange(num_nodes)
    origin = {"graph": "ring", "num_nodes": num_nodes}
    return EdgeList(num_nodes, nodes, np.roll(nodes, -1), origin=origin)


def complete_edges(num_nodes: int) -> EdgeList:
    """Every node sends to every other."""
    num_nodes = require_whole("num_nodes", num_nodes, least=1)
    senders, receivers = _pairs(np.arange(num_nodes * (num_nodes - 1)), num_nodes)
    origin = {"graph": "complete", "num_nodes": num_nodes}
    return EdgeList(num_nodes, senders, receivers, origin=origin)


def erdos_renyi_edges(num_nodes: int, density: float, seed: int) -> EdgeList:
    """Every ordered pair is an edge with probability `density`, independently.

    Raises:
        GraphError: If density is not in 0..1.
    """
    num_nodes = require_whole("num_nodes", num_nodes, least=1)
    if not 0 <= density <= 1:
        raise GraphError(f"density is {density!r}; it is a probability, choose it from 0 to 1")
    rng = np.random.default_rng(require_whole("seed", seed, least=0))
    num_pairs = num_nodes * (num_nodes - 1)
    num_edges = rng.binomial(num_pairs, density)
    _, picks = _distinct_numbers(np.array([num_edges]), num_pairs, rng)
    senders, receivers = _pairs(picks, num_nodes)
    origin = {
        "graph": "erdos_renyi",
        "num_nodes": num_nodes,
        "density": float(density),
        "seed": int(seed),
    }
    return EdgeList(num_nodes, senders, receivers, origin=origin)


def scale_free_edges(num_nodes: int, seed: int) -> EdgeList:
    """Directed preferential attachment (Bollobas et al., 2003) as networkx grows it."""
    import networkx  # slow to import, and only this generator needs it

    num_nodes = require_whole("num_nodes of a scale-free graph", num_nodes, least=3)
    seed = require_whole("seed", seed, least=0)
    grown = networkx.scale_free_graph(num_nodes, seed=seed)
    pairs = np.array(list(grown.edges(keys=False)), dtype=np.int64)
    origin = {"graph": "scale_free", "num_nodes": num_nodes, "seed": seed}
    return EdgeList(num_nodes, pairs[:, 0], pairs[:, 1], origin=origin)


def _pairs(numbers: Ints, num_nodes: int) -> tuple[Ints, Ints]:
    """Number the ordered pairs of different nodes 0, 1, 2, ... and return those numbered so."""
    senders, receivers = np.divmod(numbers, max(num_nodes - 1, 1))
    receivers += receivers >= senders
    return senders, receivers


def _distinct_numbers(
    counts: Ints, num_choices: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """For every node, `counts[node]` distinct numbers below `num_choices`, all sets equally likely.

    Draws what is missing until nothing is: the first distinct values of a sequence of independent
    draws are a uniform set. Nodes that want more than half of all numbers draw those they do
    without, so a draw is new with probability one half at least and the missing ones halve each
    time. Work and memory are proportional to the numbers returned.

    Returns:
        Nodes and numbers, sorted by node and number.
    """
    inverted = counts > num_choices // 2
    wanted = np.where(inverted, num_choices - counts, counts)
    keys: Ints = np.empty(0, dtype=np.int64)
    missing = wanted
    while missing.any():
        nodes = np.repeat(np.arange(len(counts)), missing)
        fresh = nodes * num_choices + rng.integers(num_choices, size=len(nodes))
        keys = sorted_distinct(np.concatenate([keys, fresh]))
        missing = wanted - np.bincount(keys // num_choices, minlength=len(counts))
    if inverted.any():
        all_numbers = np.flatnonzero(inverted)[:, None] * num_choices + np.arange(num_choices)
        keys = np.setxor1d(keys, all_numbers.ravel(), assume_unique=True)
    nodes, numbers = np.divmod(keys, max(num_choices, 1))
    return nodes, numbers
