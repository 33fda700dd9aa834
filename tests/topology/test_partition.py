"""The streaming partitioner: every node somewhere, parts of equal size, few edges between them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.errors import GraphError
from oneway.topology import TrustGraph
from oneway.topology.partition import SLACK, checked_partition, partition_graph, share_cut


def planted(num_nodes: int, num_communities: int, leaving: float, seed: int):
    """Nodes numbered at random, six receivers each, of which a share is anywhere."""
    rng = np.random.default_rng(seed)
    community = rng.permutation(np.arange(num_nodes) % num_communities)
    order = np.argsort(community, kind="stable").reshape(num_communities, -1)
    senders = np.repeat(np.arange(num_nodes), 6)
    into = community[senders]
    leaves = rng.random(len(senders)) < leaving
    into[leaves] = rng.integers(0, num_communities, leaves.sum())
    receivers = order[into, rng.integers(0, order.shape[1], len(senders))]
    apart = senders != receivers
    pairs = np.stack([senders[apart], receivers[apart]], axis=1)
    return TrustGraph.from_edges(pairs, num_nodes), community


@pytest.mark.parametrize(("num_communities", "num_parts"), [(2, 2), (4, 4), (64, 4), (64, 8)])
def test_communities_are_found_whatever_the_order_of_nodes(num_communities, num_parts):
    """Not many more edges are cut than between the communities that were planted."""
    graph, community = planted(6400, num_communities, 0.1, seed=3)
    part_of = partition_graph(graph, num_parts)
    apart = share_cut(graph, community % num_parts)
    assert apart > 0.03
    assert share_cut(graph, part_of) <= (1.02 if num_communities == num_parts else 1.45) * apart


@settings(max_examples=60, deadline=None)
@given(
    num_nodes=st.integers(1, 60),
    num_parts=st.integers(1, 60),
    density=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    seed=st.integers(0, 10**6),
)
def test_no_part_is_empty_and_none_is_too_large(num_nodes, num_parts, density, seed):
    num_parts = min(num_parts, num_nodes)
    graph = TrustGraph.erdos_renyi(num_nodes, density, seed)
    part_of = partition_graph(graph, num_parts)
    sizes = np.bincount(part_of, minlength=num_parts)
    assert len(part_of) == num_nodes
    assert len(sizes) == num_parts
    assert sizes.min() >= 1
    assert sizes.max() <= max(-(-num_nodes // num_parts), SLACK * num_nodes / num_parts)
    assert np.array_equal(part_of, partition_graph(graph, num_parts))


def test_a_ring_is_cut_into_arcs():
    ring = TrustGraph.ring(10_000)
    assert share_cut(ring, partition_graph(ring, 4)) < 0.01


@pytest.mark.parametrize(
    ("num_parts", "said"), [(0, "parts is 0"), (-1, "parts is -1"), (6, "part 5 empty")]
)
def test_numbers_of_parts_that_cannot_be_are_refused(num_parts, said):
    with pytest.raises(GraphError, match=said):
        partition_graph(TrustGraph.ring(5), num_parts)


@settings(max_examples=50, deadline=None)
@given(parts=st.lists(st.integers(-1, 5), min_size=1, max_size=8))
def test_a_partition_that_is_given_has_no_gaps(parts):
    complete = set(parts) == set(range(max(parts) + 1))
    if complete:
        assert checked_partition(parts, len(parts)).tolist() == parts
        return
    with pytest.raises(GraphError) as error:
        checked_partition(parts, len(parts))
    empty = next(part for part in range(9) if part not in parts)
    said = str(error.value)
    assert f"part {empty} " in said or "in part -1" in said or "cannot fill" in said
