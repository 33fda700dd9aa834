from __future__ import annotations

import json

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
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


def test_an_edge_said_very_often_is_one_edge() -> None:
    graph = TrustGraph.from_edges(np.repeat([[0, 1]], 512, axis=0))
    assert pairs(graph) == [(0, 1)]
    assert graph.weights is None


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


def test_given_names_fix_the_numbers_and_numbers_may_then_be_used_too() -> None:
    graph = TrustGraph.from_edges([("b", "a"), (0, 2)], names=["a", "b", "c"])
    assert pairs(graph) == [(0, 2), (1, 0)]


def test_an_integer_array_gives_the_same_graph_as_tuples() -> None:
    edges = [(0, 1), (1, 2), (2, 0), (0, 2)]
    assert TrustGraph.from_edges(np.array(edges, dtype=np.uint16)) == TrustGraph.from_edges(edges)


def test_a_single_node_without_edges_is_strongly_connected() -> None:
    graph = TrustGraph.from_edges([], num_nodes=1)
    assert graph.is_strongly_connected
    assert graph.reciprocity == 0.0
    graph.require_strongly_connected()


@pytest.mark.parametrize(
    ("edges", "options", "culprit"),
    [
        ([(0, 1, -2.0)], {}, "edge 0 -> 1 has weight -2"),
        ([(0, 1), (1, 2, float("nan"))], {}, "edge 1 -> 2 has weight nan"),
        ([("a", "b", float("inf"))], {}, "edge a -> b has weight inf"),
        ([(0, 1, 1e308), (0, 1, 1e308)], {}, "edge 0 -> 1 has weight inf"),
        ([("a", "b", 1e308), ("a", "b", 1e308)], {}, "edge a -> b has weight inf"),
        ([(0, 7)], {"num_nodes": 3}, "edge 0 -> 7 names node 7"),
        ([(-1, 0)], {}, "edge -1 -> 0 names node -1"),
        ([], {}, "empty.*num_nodes"),
        ([(0, 1)], {"num_nodes": 0}, "num_nodes is 0"),
        ([(0,)], {}, r"edge 0 is \(0,\); an edge must be"),
        ([(0, 1), 5], {}, "edge 1 is 5; an edge must be"),
        ([(0, 1, "much")], {}, "edge 0 is .*much.*an edge must be"),
        ([(0, 1, 1.0, 2.0)], {}, "edge 0 is .*2.0.*an edge must be"),
        ([(0.5, 1)], {}, "edge 0 is .*not 0.5"),
        ([("a", "b"), (0, 1)], {}, "numbers and names such as 'a'"),
        ([("alice", "bob")], {"names": ["alice", "rob"]}, "'bob'.* did you mean 'rob'"),
        ([("a", "b")], {"num_nodes": 3}, "num_nodes is 3 .*2 names"),
        ([(0, 10**20)], {}, "edge 0 is .*names"),
        ([(-(10**20), 0)], {}, "edge 0 is .*names"),
        ([(0, 1)], {"num_nodes": 10**20}, f"{10**20} nodes.*2147483647"),
        ([(0, 1, 10**400)], {}, "edge 0 is .* an edge must be"),
        (None, {}, "the edges are None"),
        (7, {}, "the edges are 7"),
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
        (([1, 1, 2], [1, 0]), "index pointer|indptr"),
        (([], []), "indptr"),
        (([0], []), "indptr"),
        (([0, 1, 3], [1, 0]), "index pointer|indptr"),
        (([0, 1, 2], [1.0, 0.0]), "receivers must be integers"),
        (([0, 2, 3, 3], [2, 1, 0]), "must ascend"),
        (([0, 1, 2], [1, 1]), "without itself"),
        (([0, 1, 2], [1, 0], [1.0]), "weight"),
        (([0, 1, 2], [1, 0], [1.0, 0.0]), "weight"),
        (([0, 1, 2], [1, 0], [1.0, np.inf]), "weight"),
        (([0, 1, 2], [1, 0], [1.0, np.nan]), "weight"),
    ],
)
def test_arrays_that_are_no_graph_are_refused(arrays: tuple, culprit: str) -> None:
    with pytest.raises(GraphError, match=f"no graph: .*({culprit})"):
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


@pytest.mark.parametrize("node", [1.5, 1.0, None, np.float64(0)])
def test_a_node_is_a_whole_number(node: object) -> None:
    with pytest.raises(GraphError, match=f"no node {node}; .* 0 to 2"):
        TrustGraph.ring(3).receivers_of(node)


def test_networkx_attributes_that_are_no_numbers_are_named() -> None:
    network = networkx.DiGraph()
    network.add_edge("a", "b", weight="much")
    with pytest.raises(GraphError, match="edge a -> b is 'much'"):
        TrustGraph.from_networkx(network)
    network = networkx.DiGraph([("a", "b")])
    networkx.set_node_attributes(network, "most", "kept_share")
    with pytest.raises(GraphError, match="kept_share of node a is 'most'"):
        TrustGraph.from_networkx(network)


def test_arrays_cannot_be_written_and_the_callers_stay_writable() -> None:
    graph = TrustGraph.from_edges([(0, 1, 2.0), (1, 0, 1.0)])
    for array in (graph.indptr, graph.receivers, graph.weights, graph.senders_of(0)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    mine = np.array([0.5, 0.5])
    TrustGraph(graph.indptr, graph.receivers, kept_shares=mine)
    mine[0] = 0.1


@settings(deadline=None)
@given(edge_sets())
def test_receivers_and_senders_agree_with_the_edges(case: tuple[int, list]) -> None:
    num_nodes, edges = case
    graph = TrustGraph.from_edges(edges, num_nodes=num_nodes)
    expected = {(a, b) for a, b in edges if a != b}
    assert pairs(graph) == sorted(expected)
    for node in range(num_nodes):
        assert graph.receivers_of(node).tolist() == sorted(b for a, b in expected if a == node)
        assert graph.senders_of(node).tolist() == sorted(a for a, b in expected if b == node)


@settings(deadline=None)
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


@settings(deadline=None)
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


def test_removing_an_edge_that_is_not_there_says_who_is() -> None:
    graph = TrustGraph.from_edges([("ann", name) for name in "bcdefghi"])
    with pytest.raises(GraphError, match=r"no edge b -> ann to remove; b sends to nobody"):
        graph.without("b", "ann")
    with pytest.raises(GraphError, match=r"ann sends to b, c, d, e, f and 3 more"):
        graph.without("ann", "ann")


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


@settings(deadline=None)
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
    largest = graph.largest_strong_component()
    assert largest.num_nodes == max(map(len, expected))
    assert largest.is_strongly_connected


def test_the_largest_strong_component_keeps_weights_names_and_kept_shares() -> None:
    mixing = np.array([[0.1, 0.9, 0, 0], [0, 0.5, 0.3, 0.2], [0, 0.4, 0.6, 0], [0, 0, 0, 1.0]])
    component = TrustGraph.from_mixing(mixing).largest_strong_component()
    assert component.names == ("1", "2")
    assert component.kept_shares.tolist() == [0.5, 0.6]
    assert component.weights.tolist() == [0.3, 0.4]
    assert component.origin["of"]["graph"] == "mixing"
    named = TrustGraph.from_edges([("a", "b"), ("b", "c"), ("c", "b")]).largest_strong_component()
    assert named.names == ("b", "c")


def test_a_graph_that_is_not_strongly_connected_is_told_what_helps() -> None:
    graph = TrustGraph.from_edges([(0, 1), (1, 0), (1, 2), (2, 3)])
    with pytest.raises(
        GraphError,
        match=r"3 strong components, .* 2 of 4 nodes; graph\.largest_strong_component\(\)",
    ):
        graph.require_strongly_connected()


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


@settings(deadline=None, max_examples=50)
@given(edge_sets(), st.booleans(), st.booleans())
def test_networkx_and_back_gives_the_same_graph(
    case: tuple[int, list], weighted: bool, named: bool
) -> None:
    edges = [(a, b, 1 + a) if weighted else (a, b) for a, b in case[1] if a != b]
    names = [f"node {node}" for node in range(case[0])] if named else None
    graph = TrustGraph.from_edges(edges, num_nodes=case[0], names=names)
    assert TrustGraph.from_networkx(graph.to_networkx()) == graph


def test_networkx_labels_weights_and_undirected_edges() -> None:
    shuffled = networkx.DiGraph([(2, 0), (0, 1)])
    assert pairs(TrustGraph.from_networkx(shuffled)) == [(0, 1), (2, 0)]
    both = TrustGraph.from_networkx(networkx.Graph([("a", "b"), ("b", "c")]))
    assert both.names == ("a", "b", "c")
    assert both.reciprocity == 1.0
    partly = networkx.DiGraph()
    partly.add_edge(0, 1, weight=2.0)
    partly.add_edge(1, 0)
    assert TrustGraph.from_networkx(partly).weights is None
    with pytest.raises(GraphError, match="two nodes are named '1'"):
        TrustGraph.from_networkx(networkx.DiGraph([(1, "1")]))
    with pytest.raises(GraphError, match="no nodes"):
        TrustGraph.from_networkx(networkx.DiGraph())


def test_kept_shares_survive_networkx() -> None:
    graph = TrustGraph.from_mixing([[0.25, 0.75], [0.5, 0.5]])
    assert TrustGraph.from_networkx(graph.to_networkx()) == graph


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


def test_repr_is_short() -> None:
    assert repr(TrustGraph.ring(1200)) == "<TrustGraph: 1,200 nodes, 1,200 edges>"
    weighted = TrustGraph.from_edges([("a", "b", 2.0)])
    assert repr(weighted) == "<TrustGraph: 2 nodes, 1 edges, weighted, named>"
