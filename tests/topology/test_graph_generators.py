from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.errors import GraphError
from oneway.registry import Registry
from oneway.topology import GRAPHS, Generator, TrustGraph
from oneway.topology.generators import random_pairs


@given(st.integers(2, 40), st.data(), st.integers(0, 2**32))
def test_random_is_strongly_connected_with_one_to_max_receivers(
    num_nodes: int, data: st.DataObject, seed: int
) -> None:
    max_receivers = data.draw(st.integers(1, num_nodes - 1))
    graph = TrustGraph.random(num_nodes, max_receivers, seed)
    assert len(random_pairs(num_nodes, max_receivers, seed)[0]) == graph.num_edges, "all distinct"
    num_receivers = np.diff(graph.indptr)
    assert graph.is_strongly_connected
    assert num_receivers.min() >= 1
    assert num_receivers.max() <= max_receivers


def test_random_has_exactly_uniform_numbers_of_receivers() -> None:
    graph = TrustGraph.random(num_nodes=100_000, max_receivers=8, seed=3)
    counts = np.bincount(np.diff(graph.indptr), minlength=9)
    assert counts[0] == 0
    chi_squared = np.sum((counts[1:] - 12_500) ** 2 / 12_500)
    assert chi_squared < 24.3  # 99.9 % quantile with 7 degrees of freedom


@pytest.mark.parametrize("max_receivers", [2, 5])
def test_random_chooses_every_receiver_equally_often(max_receivers: int) -> None:
    num_graphs = 1000
    counts = np.zeros((6, 6))
    for seed in range(num_graphs):
        counts[TrustGraph.random(6, max_receivers, seed).edges()] += 1
    off_diagonal = counts[~np.eye(6, dtype=bool)] / num_graphs
    expected = (1 + max_receivers) / 2 / 5
    deviation = np.sqrt(expected * (1 - expected) / num_graphs)
    np.testing.assert_allclose(off_diagonal, expected, rtol=0, atol=4.5 * deviation)


def test_random_is_a_function_of_its_arguments() -> None:
    assert TrustGraph.random(50, 9, seed=1) == TrustGraph.random(50, 9, seed=1)
    assert TrustGraph.random(50, 9, seed=1) != TrustGraph.random(50, 9, seed=2)


@pytest.mark.parametrize(
    ("num_nodes", "max_receivers", "seed", "culprit"),
    [
        (1, 1, 0, "num_nodes .* is 1; .*at least 2"),
        (20, 20, 0, "max_receivers is 20 .*1 to 19"),
        (20, 0, 0, "max_receivers is 0"),
        (20, 2.5, 0, "max_receivers is 2.5"),
        (20, 3, -1, "seed .* is -1"),
    ],
)
def test_random_says_what_is_required(
    num_nodes: int, max_receivers: int, seed: int, culprit: str
) -> None:
    with pytest.raises(GraphError, match=culprit):
        TrustGraph.random(num_nodes, max_receivers, seed)


def test_ring_sends_to_the_next_and_complete_to_everybody() -> None:
    ring = TrustGraph.ring(5)
    assert [ring.receivers_of(node).tolist() for node in range(5)] == [[1], [2], [3], [4], [0]]
    complete = TrustGraph.complete(5)
    assert complete.receivers_of(2).tolist() == [0, 1, 3, 4]
    assert complete.num_edges == 20
    assert TrustGraph.ring(1).num_edges == TrustGraph.complete(1).num_edges == 0


@given(st.integers(1, 30), st.floats(0, 1), st.integers(0, 2**32))
def test_erdos_renyi_loses_no_drawn_edge(num_nodes: int, density: float, seed: int) -> None:
    graph = TrustGraph.erdos_renyi(num_nodes, density, seed)
    rng = np.random.default_rng(seed)
    assert graph.num_edges == rng.binomial(num_nodes * (num_nodes - 1), density)


def test_scale_free_has_hubs() -> None:
    graph = TrustGraph.scale_free(2000, seed=5)
    assert graph.num_nodes == 2000
    num_senders = np.bincount(graph.receivers, minlength=2000)
    assert num_senders.max() > 100 * max(np.median(num_senders), 1)
    assert graph == TrustGraph.scale_free(2000, seed=5)
    with pytest.raises(GraphError, match="at least 3"):
        TrustGraph.scale_free(2, seed=5)


@pytest.mark.parametrize("name", list(GRAPHS))
def test_every_registered_graph_is_made_by_name_and_says_how(name: str) -> None:
    choices = {"num_nodes": 12, "max_receivers": 3, "density": 0.3, "seed": 4}
    parameters = {key: choices[key] for key in GRAPHS[name].parameters}
    graph = TrustGraph.generate(name, **parameters)
    assert graph.origin == {"graph": name.replace("-", "_"), **parameters}
    assert graph == getattr(TrustGraph, name.replace("-", "_"))(**parameters)


def test_a_graph_of_ones_own_is_one_registration() -> None:
    registry: Registry[Generator] = Registry("graph")

    def star(num_nodes: int, center: int = 0) -> tuple[np.ndarray, np.ndarray]:
        return np.full(num_nodes - 1, center), np.arange(1, num_nodes)

    registry.register(Generator("star", star, least_nodes=2))
    edges = registry["star"].edges(num_nodes=np.int64(4))
    assert edges.origin == {"graph": "star", "num_nodes": 4, "center": 0}
    assert edges.receivers.tolist() == [1, 2, 3]
    with pytest.raises(GraphError, match="num_nodes of a star graph is 1"):
        registry["star"].edges(num_nodes=1)
