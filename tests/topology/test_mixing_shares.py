from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from oneway.errors import MixingError
from oneway.topology import TrustGraph, check_mixing


@st.composite
def graphs(draw: st.DrawFn) -> TrustGraph:
    num_nodes = draw(st.integers(1, 12))
    node = st.integers(0, num_nodes - 1)
    weight = st.floats(0, 1e308) if draw(st.booleans()) else st.just(1.0)
    edges = draw(st.lists(st.tuples(node, node, weight), max_size=40, unique_by=lambda e: e[:2]))
    if draw(st.booleans()):
        edges = [edge[:2] for edge in edges]
    return TrustGraph.from_edges(edges, num_nodes=num_nodes)


kept_share_choices = st.one_of(st.none(), st.floats(0, 1))


def test_mixing_is_even_over_self_and_receivers_by_default() -> None:
    graph = TrustGraph.from_edges([(0, 1), (0, 2), (1, 0)], num_nodes=3)
    expected = [[1 / 3, 1 / 3, 1 / 3], [1 / 2, 1 / 2, 0], [0, 0, 1]]
    mixing = graph.mixing()
    assert isinstance(mixing, sparse.csr_array)
    assert mixing.dtype == np.float64
    assert mixing.indices.dtype == mixing.indptr.dtype == graph.receivers.dtype == np.int32
    np.testing.assert_array_equal(mixing.toarray(), expected)


def test_mixing_is_by_sender_and_not_its_transpose() -> None:
    graph = TrustGraph.from_edges([(0, 1), (0, 2), (1, 2), (2, 0)])
    mixing = graph.mixing().toarray()
    assert mixing[0, 1] == 1 / 3
    assert mixing[1, 0] == 0
    np.testing.assert_allclose(mixing.sum(axis=1), 1, rtol=0, atol=1e-15)
    assert np.abs(mixing.sum(axis=0) - 1).max() > 0.1


def test_weights_split_what_is_not_kept() -> None:
    graph = TrustGraph.from_edges([(0, 1, 3.0), (0, 2, 1.0), (1, 0, 9.0)], num_nodes=3)
    third = 1 / 3
    np.testing.assert_allclose(
        graph.mixing().toarray(),
        [[third, 2 * third * 0.75, 2 * third * 0.25], [0.5, 0.5, 0], [0, 0, 1]],
        rtol=1e-15,
    )
    np.testing.assert_allclose(
        graph.mixing(kept_share=[0.2, 0.0, 0.3]).toarray(),
        [[0.2, 0.6, 0.2], [1, 0, 0], [0, 0, 1]],
        rtol=1e-15,
    )
    np.testing.assert_array_equal(
        graph.mixing(weighted=False).toarray(),
        TrustGraph(graph.indptr, graph.receivers).mixing().toarray(),
    )


@given(graphs(), kept_share_choices, st.booleans())
def test_rows_of_a_mixing_sum_to_one(
    graph: TrustGraph, kept_share: float | None, weighted: bool
) -> None:
    mixing = graph.mixing(kept_share, weighted)
    assert mixing.data.min() > 0
    assert mixing.has_canonical_format
    np.testing.assert_allclose(mixing.sum(axis=1), 1, rtol=0, atol=1e-14)
    check_mixing(mixing)


@given(graphs())
def test_metropolis_is_symmetric_and_doubly_stochastic(graph: TrustGraph) -> None:
    mixing = graph.metropolis().toarray()
    np.testing.assert_array_equal(mixing, mixing.T)
    np.testing.assert_allclose(mixing.sum(axis=0), 1, rtol=0, atol=1e-14)
    assert mixing.min() >= 0
    senders, receivers = graph.mutual().edges()
    off_diagonal = mixing * (1 - np.eye(graph.num_nodes))
    assert set(zip(*np.nonzero(off_diagonal), strict=True)) == set(
        zip(senders, receivers, strict=True)
    )


def test_metropolis_depends_on_the_busier_partner() -> None:
    star = TrustGraph.from_edges([(0, 1), (1, 0), (0, 2), (2, 0), (1, 2)])
    third = 1 / 3
    np.testing.assert_allclose(
        star.metropolis().toarray(),
        [[third, third, third], [third, 2 * third, 0], [third, 0, 2 * third]],
        rtol=1e-15,
    )


@given(graphs(), kept_share_choices)
def test_a_mixing_comes_back_from_the_graph_made_of_it(
    graph: TrustGraph, kept_share: float | None
) -> None:
    mixing = graph.mixing(kept_share)
    again = TrustGraph.from_mixing(mixing).mixing()
    np.testing.assert_allclose(again.toarray(), mixing.toarray(), rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("mixing", "message"),
    [
        (
            [[1.0, 0.0], [0.5, 0.4]],
            r"node 1 hands out 0\.9 .*divide .*0\.9",
        ),
        ([[0.0, 0.0], [0.5, 0.5]], "node 0 hands out 0 .*let it keep"),
        ([[1.0, 0.0], [1.5, -0.5]], "node 1 hands -0.5 .*to node 1"),
        ([[1.0, 0.0], [float("nan"), 0.5]], "node 1 hands nan .*to node 0"),
        ([[0.5, 0.5]], r"shape \(1, 2\)"),
        ([1.0], r"shape \(1,\)"),
        ([["a", "b"], ["c", "d"]], "the mixing .*matrix of numbers"),
        ([[1.0], [0.5, 0.5]], "the mixing .*matrix of numbers"),
    ],
)
def test_a_mixing_that_is_none_is_refused(mixing: list, message: str) -> None:
    with pytest.raises(MixingError, match=message):
        TrustGraph.from_mixing(mixing)


@pytest.mark.parametrize(
    ("kept_share", "message"),
    [
        (1.2, "node 0 is to keep 1.2"),
        ([0.1, -0.1, 0.5], "node 1 is to keep -0.1"),
        ([0.1, 0.2, float("nan")], "node 2 is to keep nan"),
        ("a", "kept_share is 'a'"),
        ([0.1, 0.2], r"kept_share has shape \(2,\).* 3 nodes"),
    ],
)
def test_a_kept_share_outside_0_to_1_is_refused(kept_share: object, message: str) -> None:
    with pytest.raises(MixingError, match=message):
        TrustGraph.ring(3).mixing(kept_share)
