from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.errors import GraphError, MixingError
from oneway.topology import TrustGraph, stationary, stationary_masses


def eliminated_masses(mixing: np.ndarray) -> np.ndarray:
    """Grassmann, Taksar and Heyman's elimination: no subtraction, so every digit is good."""
    work = mixing.copy()
    last = len(work) - 1
    for node in range(last, 0, -1):
        work[:node, node] /= work[node, :node].sum()
        work[:node, :node] += np.outer(work[:node, node], work[node, :node])
    masses = np.ones(len(work))
    for node in range(1, len(work)):
        masses[node] = masses[:node] @ work[:node, node]
    return masses * len(masses) / masses.sum()


@st.composite
def mixings(draw: st.DrawFn) -> np.ndarray:
    num_nodes = draw(st.integers(2, 15))
    seed = draw(st.integers(0, 2**32))
    graph = TrustGraph.random(num_nodes, draw(st.integers(1, num_nodes - 1)), seed)
    weights = np.random.default_rng(seed).uniform(1e-3, 1, graph.num_edges)
    weighted = TrustGraph(graph.indptr, graph.receivers, weights)
    return weighted.mixing(kept_share=draw(st.sampled_from([None, 0.0, 0.01, 0.9]))).toarray()


@given(mixings())
def test_stationary_masses_are_what_mixing_leaves_unchanged(mixing: np.ndarray) -> None:
    masses = stationary_masses(mixing)
    np.testing.assert_allclose(mixing.T @ masses, masses, rtol=1e-12)
    assert masses.sum() == pytest.approx(len(masses), rel=1e-14)


@given(mixings())
def test_every_mass_is_accurate_relative_to_itself(mixing: np.ndarray) -> None:
    np.testing.assert_allclose(stationary_masses(mixing), eliminated_masses(mixing), rtol=1e-10)


def test_a_transposed_mixing_has_other_masses() -> None:
    graph = TrustGraph.from_edges([(0, 1), (0, 2), (1, 2), (2, 0)])
    np.testing.assert_allclose(
        stationary_masses(graph.mixing()), np.array([9, 6, 12]) / 9, rtol=1e-13
    )


def test_a_periodic_graph_has_stationary_masses() -> None:
    swap = TrustGraph.from_edges([(0, 1), (1, 0), (1, 2), (2, 1)]).mixing(kept_share=0.0)
    np.testing.assert_allclose(stationary_masses(swap), [0.75, 1.5, 0.75], rtol=1e-14)
    np.testing.assert_allclose(
        stationary_masses(TrustGraph.ring(1000).mixing(kept_share=0.0)), 1, rtol=1e-13
    )


@pytest.mark.parametrize(("num_nodes", "ratio"), [(30, 10.0), (2000, 1.01), (900, 2.0)])
def test_masses_over_many_orders_of_magnitude_on_a_line_are_accurate(
    num_nodes: int, ratio: float
) -> None:
    """On a line with shares ratio : 1 to the left and right, masses fall by that ratio."""
    left = [(node + 1, node, ratio) for node in range(num_nodes - 1)]
    right = [(node, node + 1, 1.0) for node in range(num_nodes - 1)]
    line = TrustGraph.from_edges(left + right)
    kept = np.full(num_nodes, 0.5)
    kept[0] = 1 - 0.5 / (1 + ratio)  # the ends have one partner only
    kept[-1] = 1 - 0.5 * ratio / (1 + ratio)
    masses = stationary_masses(line.mixing(kept_share=kept))
    np.testing.assert_allclose(masses[:-1] / masses[1:], ratio, rtol=1e-9)


def test_two_groups_that_hardly_talk_balance_slowly_but_are_solved() -> None:
    rng = np.random.default_rng(8)
    dense = rng.uniform(size=(60, 60))
    dense[:30, 30:] *= 1e-9
    dense[30:, :30] *= 3e-9
    dense /= dense.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(stationary_masses(dense), eliminated_masses(dense), rtol=1e-6)


def test_doubly_stochastic_mixing_leaves_every_mass_at_one() -> None:
    graph = TrustGraph.erdos_renyi(300, density=0.5, seed=2)
    np.testing.assert_allclose(stationary_masses(graph.metropolis()), 1, rtol=1e-12)


def test_stationary_masses_need_a_strongly_connected_graph_and_a_mixing() -> None:
    with pytest.raises(GraphError, match="2 strong components"):
        stationary_masses([[0.5, 0.5], [0.0, 1.0]])
    with pytest.raises(MixingError, match=r"node 0 hands out 0\.5"):
        stationary_masses([[0.5, 0.0], [0.5, 0.5]])
    with pytest.raises(MixingError, match="tolerance is 0"):
        stationary_masses(TrustGraph.random(50, 7, seed=1).mixing(), tolerance=0)


def test_settled_masses_of_a_large_graph_are_those_of_the_solver(monkeypatch) -> None:
    mixing = TrustGraph.random(500, 10, seed=2).mixing()
    solved = stationary_masses(mixing)
    monkeypatch.setattr(stationary, "LARGE", 1)
    monkeypatch.setattr(stationary, "_solve_iteratively", None)
    settled = stationary_masses(mixing)
    np.testing.assert_allclose(settled, solved, rtol=1e-10)
    assert settled.sum() == pytest.approx(500, rel=1e-14)
