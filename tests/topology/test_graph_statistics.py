from __future__ import annotations

import pytest

import oneway as ow
from oneway.topology.views import graph_statistics


def test_a_tiny_graph_measured_by_hand():
    """Of 0 -> 1, 1 -> 2, 2 -> 0 and 1 -> 0, the pair 0, 1 goes both ways.

    Nodes 0 and 2 keep 1/2, node 1 keeps 1/3. Balanced masses obey m1 = m0/2 + m1/3 and
    m2 = m1/3 + m2/2, so m1 = 3/4 m0 and m2 = 2/3 m1 = m0/2: together 9/4 m0 = 3.
    """
    graph = ow.TrustGraph.from_edges([(0, 1), (1, 2), (2, 0), (1, 0)])
    found = graph_statistics(graph)
    assert (found.num_nodes, found.num_edges, found.weighted) == (3, 4, False)
    assert found.reciprocity == 0.5
    assert (found.strong_components, found.largest_component) == (1, 3)
    assert (found.most_receivers, found.most_senders) == (2, 2)
    assert found.smallest_stationary_mass == pytest.approx(2 / 3, rel=1e-12)
    assert found.largest_stationary_mass == pytest.approx(4 / 3, rel=1e-12)


def test_masses_are_those_of_the_largest_component():
    graph = ow.TrustGraph.from_edges([(0, 1), (1, 0), (1, 2, 2.0), (3, 1), (4, 1)])
    found = graph_statistics(graph)
    assert (found.num_nodes, found.strong_components, found.largest_component) == (5, 4, 2)
    assert found.weighted
    assert (found.most_receivers, found.most_senders) == (2, 3)
    assert found.smallest_stationary_mass == found.largest_stationary_mass == 1
    facts = found.as_facts()
    assert facts["strong components"] == "4, the largest has 2 of the nodes"
    assert facts["stationary mass"] == "1 to 1, where 1 is an equal share of the largest component"
    assert facts["edges"] == "5, weighted"
    assert (found.upstream, found.middle, found.downstream, found.apart) == (2, 2, 1, 0)
    assert facts["one-way streets"].startswith("2 nodes upstream")


def test_a_graph_without_edges_can_be_measured():
    found = graph_statistics(ow.TrustGraph.from_edges([], num_nodes=3))
    assert (found.num_edges, found.most_receivers, found.most_senders) == (0, 0, 0)
    assert (found.reciprocity, found.strong_components, found.largest_component) == (0, 3, 1)
