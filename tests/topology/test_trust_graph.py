from __future__ import annotations

import json

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.errors import GraphError
from oneway.topology import TrustGraph


@st.composite
def edge_sets(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    num_nodes = draw(st.integers(1, 12))
    node = st.integers(0, num_nodes - 1)
    return num_nodes, draw(st.lists(st.tuples(node, node), max_size=60))


def pairs(graph: TrustGraph) -> list[tuple[int, int]]:
    senders, receivers = graph.edges()
    return list(zip(senders.tolist(), receivers.tolist(), strict=True))


def test_edges_come_out_sorted_without_self_loops_or_repetitions() -> None:
    graph = TrustGraph.from_edges([(2, 0), (0, 2), (1, 1), (0, 1), (2, 0)])
    assert pairs(graph) == [(0, 1), (0, 2), (2, 0)]
    assert graph.num_nodes == 3
    assert graph.num_edges == 3
    assert (graph.indptr.dtype, graph.receivers.dtype) == (np.int64, np.int32)
    again = np.array(pairs(graph) * 300, dtype=np.uint16)
    assert TrustGraph.from_edges(again) == graph


def test_weights_of_repeated_edges_add_up_and_weight_zero_is_no_edge() -> None:
    graph = TrustGraph.from_edges([(0, 1, 2.0), (1, 2, 0.0), (0, 1, 0.5), (2, 0)], num_nodes=3)
    assert pairs(graph) == [(0, 1), (2, 0)]
    assert graph.weights is not None
    assert graph.weights.tolist() == [2.5, 1.0]


def test_named_nodes_are_numbered_in_order_of_first_appearance() -> None:
    graph = TrustGraph.from_edges([("zoe", "ann"), ("bob", "zoe")])
    assert graph.names == ("zoe", "ann", "bob")
    assert graph.receivers_of("bob").tolist() == [0]
    assert graph.senders_of("zoe").tolist() == [2]


@pytest.mark.parametrize(
    ("edges", "options", "culprit"),
    [
        ([(0, 1, -2.0)], {}, "edge 0 -> 1 has weight -2"),
        ([("a", "b", float("inf"))], {}, "edge a -> b has weight inf"),
        ([(0, 1, 1e308), (0, 1, 1e308)], {}, "edge 0 -> 1 has weight inf"),
        ([(0, 7)], {"num_nodes": 3}, "edge 0 -> 7 names node 7"),
        ([(-1, 0)], {}, "edge -1 -> 0 names node -1"),
        ([], {}, "empty.*num_nodes"),
        ([(0, 1)], {"num_nodes": 0}, "num_nodes is 0"),
        ([(0,)], {}, r"edge 0 is \(0,\); an edge must be"),
        ([(0, 1), 5], {}, "edge 1 is 5; an edge must be"),
        ([(0, 1, "much")], {}, "edge 0 is .*much.*an edge must be"),
        ([(0.5, 1)], {}, "edge 0 is .*not 0.5"),
        ([("a", "b"), (0, 1)], {}, "numbers and names such as 'a'"),
        ([("alice", "bob")], {"names": ["alice", "rob"]}, "'bob'.* did you mean 'rob'"),
        ([("a", "b")], {"num_nodes": 3}, "num_nodes is 3 .*2 names"),
        ([(0, 10**20)], {}, "edge 0 is .*names"),
        ([(0, 1)], {"num_nodes": 10**20}, f"{10**20} nodes.*2147483647"),
        (None, {}, "the edges are None"),
        ([(0, 1)], {"names": ["a", "a"]}, "two nodes are named 'a'"),
    ],
)
def test_a_bad_edge_is_named(edges: list, options: dict, culprit: str) -> None:
    with pytest.raises(GraphError, match=culprit):
        TrustGraph.from_edges(edges, **options)


@pytest.mark.parametrize(
    ("arrays", "culprit"),
    [
        (([0, 1, 2], [1, 7]), "ind.* < 2"),
        (([0, 1, 2], [-1, 0]), "ind.* 0"),
        (([0, 2, 1], [1]), "index pointer|indptr"),
        (([], []), "indptr"),
        (([0, 1, 2], [1.0, 0.0]), "receivers must be integers"),
        (([0, 2, 3, 3], [2, 1, 0]), "must ascend"),
        (([0, 1, 2], [1, 1]), "without itself"),
        (([0, 1, 2], [1, 0], [1.0, 0.0]), "weight"),
        (([0, 1, 2], [1, 0], [1.0, np.nan]), "weight"),
    ],
)
def test_arrays_that_are_no_graph_are_refused(arrays: tuple, culprit: str) -> None:
    with pytest.raises(GraphError, match=f"invalid graph arrays: .*({culprit})"):
        TrustGraph(*map(np.array, arrays))


def test_a_node_that_keeps_everything_has_no_receivers() -> None:
    network = networkx.DiGraph([(0, 1), (1, 0)])
    networkx.set_node_attributes(network, {0: 1.0, 1: 0.5}, "kept_share")
    with pytest.raises(GraphError, match=r"node 0 keeps all .* edges to 1"):
        TrustGraph.from_networkx(network)
    graph = TrustGraph.from_mixing([[1.0, 0.0], [0.5, 0.5]])
    assert graph.receivers_of(0).size == 0
    assert not graph.is_strongly_connected
    assert graph.strong_components()[0] == 2
    assert graph.largest_strong_component().num_nodes == 1


@given(edge_sets())
def test_receivers_and_senders_agree_with_the_edges(case: tuple[int, list]) -> None:
    num_nodes, edges = case
    graph = TrustGraph.from_edges(edges, num_nodes=num_nodes)
    expected = {(a, b) for a, b in edges if a != b}
    assert pairs(graph) == sorted(expected)
    for node in range(num_nodes):
        assert graph.receivers_of(node).tolist() == sorted(b for a, b in expected if a == node)
        assert graph.senders_of(node).tolist() == sorted(a for a, b in expected if b == node)


@given(edge_sets())
def test_mutual_keeps_exactly_the_edges_that_go_both_ways(case: tuple[int, list]) -> None:
    num_nodes, edges = case
    graph = TrustGraph.from_edges([(a, b, 1 + a + b) for a, b in edges], num_nodes=num_nodes)
    expected = [(a, b) for a, b in pairs(graph) if (b, a) in set(pairs(graph))]
    mutual = graph.mutual()
    assert pairs(mutual) == expected
    assert mutual.reciprocity == (1.0 if expected else 0.0)
    assert graph.reciprocity == (len(expected) / graph.num_edges if graph.num_edges else 0.0)
    if mutual.weights is not None:
        weight_of = dict(zip(pairs(graph), graph.weights, strict=True))
        assert mutual.weights.tolist() == [weight_of[edge] for edge in expected]


@given(edge_sets(), st.data())
def test_without_removes_exactly_one_edge(case: tuple[int, list], data: st.DataObject) -> None:
    graph = TrustGraph.from_edges([(a, b, 1 + a) for a, b in case[1]], num_nodes=case[0])
    if graph.num_edges == 0:
        return
    edge = data.draw(st.sampled_from(pairs(graph)))
    smaller = graph.without(*edge)
    assert pairs(smaller) == [pair for pair in pairs(graph) if pair != edge]
    assert smaller.num_nodes == graph.num_nodes
    weight_of = dict(zip(pairs(graph), graph.weights, strict=True))
    assert smaller.weights.tolist() == [weight_of[pair] for pair in pairs(smaller)]


def test_an_unknown_node_is_named_with_the_nearest_name() -> None:
    graph = TrustGraph.from_edges([("alice", "bob")])
    with pytest.raises(GraphError, match=r"'alcie'.* did you mean 'alice'"):
        graph.index_of("alcie")
    with pytest.raises(GraphError, match=r"'\?\?'.* 'alice'"):
        graph.receivers_of("??")
    with pytest.raises(GraphError, match=r"no node 2; .* 0 to 1"):
        graph.senders_of(2)
    with pytest.raises(GraphError, match=r"'0'.* no names"):
        TrustGraph.ring(3).index_of("0")


@given(edge_sets())
def test_strong_components_agree_with_networkx(case: tuple[int, list]) -> None:
    graph = TrustGraph.from_edges(case[1], num_nodes=case[0])
    expected = list(networkx.strongly_connected_components(graph.to_networkx()))
    count, labels = graph.strong_components()
    assert count == len(expected)
    assert graph.is_strongly_connected == (count == 1)
    for component in expected:
        assert len({int(labels[node]) for node in component}) == 1
    first_nodes = [labels.tolist().index(label) for label in range(count)]
    assert first_nodes == sorted(first_nodes)
    between = [
        (
            any(a not in it and b in it for a, b in case[1]),
            any(a in it and b not in it for a, b in case[1]),
        )
        for it in expected
    ]
    sides = graph.sides()
    for component, (hears, sends) in zip(expected, between, strict=True):
        for node in component:
            found = [bool(side[node]) for side in sides]
            assert found == [sends > hears, sends and hears, hears > sends, not (sends or hears)]
    largest = graph.largest_strong_component()
    assert largest.num_nodes == max(map(len, expected))
    assert largest.is_strongly_connected


def test_what_one_way_streets_mean_is_said_once() -> None:
    assert TrustGraph.ring(3).one_way_note == ""
    note = TrustGraph.from_edges([(0, 1), (1, 0), (1, 2), (3, 1)], 5).one_way_note
    assert "2 of 5 nodes receive nothing" in note  # 3 and 4
    assert "2 send nothing" in note  # 2 and 4


def test_a_union_joins_edges_and_can_be_connected_when_no_member_is() -> None:
    forth = TrustGraph.from_edges([(0, 1), (1, 2)])
    back = TrustGraph.from_edges([(2, 0), (0, 1)])
    union = TrustGraph.union(iter([forth, back]))
    assert pairs(union) == [(0, 1), (1, 2), (2, 0)]
    assert union.is_strongly_connected
    with pytest.raises(GraphError, match="graph 1 has 4 nodes and graph 0 has 3"):
        TrustGraph.union([forth, TrustGraph.ring(4)])
    with pytest.raises(GraphError, match="at least one graph"):
        TrustGraph.union([])


@given(edge_sets(), st.booleans(), st.booleans())
def test_networkx_and_back_gives_the_same_graph(
    case: tuple[int, list], weighted: bool, named: bool
) -> None:
    edges = [(a, b, 1 + a) if weighted else (a, b) for a, b in case[1] if a != b]
    names = [f"node {node}" for node in range(case[0])] if named else None
    graph = TrustGraph.from_edges(edges, num_nodes=case[0], names=names)
    kept = TrustGraph.from_mixing([[0.25, 0.75], [0.5, 0.5]])
    for it in (graph, kept):
        assert TrustGraph.from_networkx(it.to_networkx()) == it


def test_graphs_are_equal_by_content_whatever_their_origin() -> None:
    ring = TrustGraph.ring(3)
    same = TrustGraph.from_edges([(0, 1), (1, 2), (2, 0)])
    assert ring == same
    assert hash(ring) == hash(same)
    assert ring.origin != same.origin
    assert ring != TrustGraph.ring(4)
    assert ring != TrustGraph.from_edges([(0, 1, 2.0), (1, 2, 1.0), (2, 0, 1.0)])
    assert ring != "a ring"


def test_the_origin_says_how_a_graph_was_made_in_json() -> None:
    graph = TrustGraph.random(num_nodes=20, max_receivers=10, seed=7)
    made = {"graph": "random", "num_nodes": 20, "max_receivers": 10, "seed": 7}
    assert graph.origin == made
    receiver = int(graph.receivers_of(0)[0])
    smaller = graph.without(np.int64(0), receiver).mutual()
    removal = {"graph": "without", "sender": "0", "receiver": str(receiver), "of": made}
    assert json.loads(json.dumps(smaller.origin)) == {"graph": "mutual", "of": removal}
