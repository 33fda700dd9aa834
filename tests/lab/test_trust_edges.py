"""Where mass gathers, by who sends to whom and who runs."""

from __future__ import annotations

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.lab.trust_edges import CONNECTED, FEW, dead_ends, flow_sentence

PEERS = "abcdef"
EDGES = st.sets(st.tuples(st.sampled_from(PEERS), st.sampled_from(PEERS)))


def test_a_ring_has_no_dead_end_until_one_of_it_is_down():
    ring = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    assert dead_ends("abcd", ring) == []
    # Without b, what a has goes nowhere, and all others send to a in the end.
    assert dead_ends("acd", ring) == [("a",)]


def test_two_that_send_only_to_each_other_are_a_dead_end_together():
    assert dead_ends("abc", [("a", "b"), ("b", "c"), ("c", "b")]) == [("b", "c")]


@settings(deadline=None)
@given(EDGES, st.sets(st.sampled_from(PEERS), min_size=1))
def test_from_every_peer_a_dead_end_can_be_reached_and_none_can_be_left(edges, running):
    ends = dead_ends(running, edges)
    graph = nx.DiGraph([edge for edge in edges if set(edge) <= running])
    graph.add_nodes_from(running)
    if not ends:
        assert nx.is_strongly_connected(graph)
        return
    inside = {name for end in ends for name in end}
    for peer in running:
        assert (nx.descendants(graph, peer) | {peer}) & inside
    for end in ends:
        assert all(nx.descendants(graph, peer) | {peer} == set(end) for peer in end)


def test_it_is_said_where_mass_gathers():
    assert flow_sentence([]) == CONNECTED
    assert flow_sentence([], num_running=1) == FEW
    assert flow_sentence([("a",)]).startswith("mass now gathers at a, which sends")
    assert flow_sentence([("a", "b")]).startswith("mass now gathers at a, b, which send to")
    assert flow_sentence([("a",), ("b", "c")]).endswith("nothing to each other: a; b, c")
