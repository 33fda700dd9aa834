"""What must hold for any one-way graph, any data and any learning rate; engines are equal."""

from __future__ import annotations

import numpy as np
import pytest
from engine_cases import LOGISTIC as MODEL
from hypothesis import given
from hypothesis import strategies as st

import oneway as ow
from oneway.records import NetworkState
from oneway.simulator.exchange import Exchange
from oneway.testing import step_network


def gaussian_stream(num_rounds, num_nodes, num_features=3, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((num_rounds, num_nodes, num_features))
    labels = np.where(
        features.sum(axis=2) + rng.standard_normal((num_rounds, num_nodes)) > 0, 1, -1
    )
    return ow.Stream.from_arrays(features, labels.astype(float))


def doubly_stochastic_one_way_graph(num_nodes, rng):
    """A convex combination of permutations: doubly stochastic, not symmetric."""
    mixing = 0.3 * np.eye(num_nodes)
    for weight in (0.5, 0.2):
        order = rng.permutation(num_nodes)
        mixing[order, np.roll(order, 1)] += weight
    return ow.TrustGraph.from_mixing(mixing)


@given(
    num_nodes=st.integers(2, 30),
    seed=st.integers(0, 10**6),
    capped=st.booleans(),
)
def test_total_mass_never_changes(num_nodes, seed, capped):
    graph = ow.TrustGraph.random(num_nodes, max_receivers=min(5, num_nodes - 1), seed=seed)
    run = ow.simulate(
        ow.OnlinePushSum(0.1, step="capped" if capped else "paper"),
        MODEL,
        gaussian_stream(40, num_nodes, seed=seed),
        graph,
    )
    assert run.masses.sum() == pytest.approx(num_nodes, rel=1e-13)
    pushed = np.linalg.matrix_power(graph.mixing().toarray().T, 40) @ np.ones(num_nodes)
    np.testing.assert_allclose(run.masses, pushed, rtol=1e-11)


@given(seed=st.integers(0, 10**6), capped=st.booleans())
def test_the_total_numerator_changes_by_exactly_the_gradient_steps(seed, capped):
    """A lost share, or a stale estimate in a gradient, would show in ever longer runs."""
    graph = ow.TrustGraph.random(7, max_receivers=3, seed=seed)
    stream = gaussian_stream(6, 7, seed=seed)
    method = ow.OnlinePushSum(0.3, step="capped" if capped else "paper")
    steps, estimates, masses = np.zeros(4), np.zeros((7, 4)), np.ones(7)
    for t in range(6):
        nodes, batch = stream.batch(t)
        sizes = np.minimum(1, masses) if capped else np.ones(7)
        steps += 0.3 * sizes @ MODEL.gradients(estimates[nodes], batch)
        run = ow.simulate(method, MODEL, stream.head(t + 1), graph)
        np.testing.assert_allclose(run.numerators.sum(axis=0), -steps, rtol=1e-10, atol=1e-12)
        estimates, masses = run.estimates, run.masses


@pytest.mark.parametrize("seed", range(3))
def test_on_a_doubly_stochastic_mixing_ops_is_gossip_and_masses_stay_1(seed):
    graph = doubly_stochastic_one_way_graph(12, np.random.default_rng(seed))
    assert graph.reciprocity < 1
    stream = gaussian_stream(80, 12, seed=seed)
    ops = ow.simulate(ow.OnlinePushSum(0.2), MODEL, stream, graph)
    gossip = ow.simulate(ow.NaiveGossip(0.2), MODEL, stream, graph)
    np.testing.assert_allclose(ops.masses, 1.0, rtol=1e-13)
    np.testing.assert_allclose(ops.estimates, gossip.estimates, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(ops.losses, gossip.losses, rtol=1e-12)


def test_a_network_of_one_is_online_gradient_descent():
    stream = gaussian_stream(100, 1, seed=4)
    alone = ow.TrustGraph.from_edges([], num_nodes=1)
    x, losses = np.zeros(4), []
    for t in range(100):
        _, batch = stream.batch(t)
        losses.append(MODEL.loss(x, batch))
        x = x - 0.2 * MODEL.gradient(x, batch)
    for method in (ow.OnlinePushSum(0.2), ow.NaiveGossip(0.2), ow.MutualGossip(0.2)):
        run = ow.simulate(method, MODEL, stream, alone)
        np.testing.assert_allclose(run.estimates[0], x, rtol=1e-12)
        np.testing.assert_allclose(run.losses, losses, rtol=1e-12)
    for method in (ow.Centralised(0.2), ow.Isolated(0.2)):
        run = ow.simulate(method, MODEL, stream)
        np.testing.assert_allclose(run.estimates[0], x, rtol=1e-12)


@given(num_nodes=st.integers(2, 25), seed=st.integers(0, 10**6))
def test_without_gradients_every_estimate_becomes_the_average(num_nodes, seed):
    """Consensus on any strongly connected graph, whatever each node starts with."""
    rng = np.random.default_rng(seed)
    graph = ow.TrustGraph.random(num_nodes, max_receivers=min(3, num_nodes - 1), seed=seed)
    if seed % 2:
        shares = rng.uniform(0.05, 0.8, num_nodes)
        graph = ow.TrustGraph.from_mixing(graph.mixing(kept_share=shares))
    method = ow.OnlinePushSum(0.0)
    exchange = Exchange(method, method.shares(graph))
    start = rng.standard_normal((num_nodes, 3))
    state = method.start(start)
    for _ in range(6000):
        state = exchange.apply(state)
    np.testing.assert_allclose(
        method.estimate(state),
        np.broadcast_to(start.mean(axis=0), start.shape),
        rtol=1e-8,
        atol=1e-9,
    )


def test_naive_gossip_does_not_reach_the_average_on_a_one_way_graph():
    """The bias that the mass removes is real: the previous test fails without it."""
    graph = ow.TrustGraph.random(20, max_receivers=4, seed=1)
    method = ow.NaiveGossip(0.0)
    exchange = Exchange(method, method.shares(graph))
    start = 1.0 + np.random.default_rng(1).random((20, 3))
    state = method.start(start)
    for _ in range(2000):
        state = exchange.apply(state)
    assert np.abs(method.estimate(state) - start.mean(axis=0)).max() > 0.3


def test_centralised_equals_gossip_on_the_complete_graph():
    stream = gaussian_stream(60, 7, seed=2)
    central = ow.simulate(ow.Centralised(0.2), MODEL, stream)
    gossip = ow.simulate(ow.NaiveGossip(0.2), MODEL, stream, ow.TrustGraph.complete(7))
    np.testing.assert_allclose(central.estimates, gossip.estimates, rtol=1e-11)
    np.testing.assert_allclose(central.losses, gossip.losses, rtol=1e-11)
    np.testing.assert_allclose(central.disagreement, 0, atol=1e-28)


def test_disagreement_is_the_mean_squared_distance_from_the_networks_mean():
    graph = ow.TrustGraph.random(8, max_receivers=3, seed=5)
    run = ow.simulate(ow.OnlinePushSum(0.3), MODEL, gaussian_stream(25, 8), graph)
    mean = run.numerators.sum(axis=0) / run.masses.sum()
    expected = ((run.estimates - mean) ** 2).sum(axis=1).mean()
    assert run.disagreement[-1] == pytest.approx(expected, rel=1e-10)


def test_repetition_is_bit_identical():
    runs = [
        ow.simulate(
            ow.OnlinePushSum(0.3),
            MODEL,
            ow.streams.synthetic(num_samples=900, num_features=3, seed=3).table.deal(
                9, adversarial=0.5, seed=3
            ),
            ow.TrustGraph.random(9, max_receivers=4, seed=3),
        )
        for _ in range(2)
    ]
    np.testing.assert_array_equal(runs[0].numerators, runs[1].numerators)
    np.testing.assert_array_equal(runs[0].record.loss_sums, runs[1].record.loss_sums)


def test_the_shares_of_graphs_that_take_turns_are_computed_once():
    asked = []

    class Counting(ow.OnlinePushSum):
        def shares(self, graph):
            asked.append(graph)
            return super().shares(graph)

    turns = [ow.TrustGraph.random(5, max_receivers=3, seed=seed) for seed in range(3)]
    ow.simulate(Counting(0.1), MODEL, gaussian_stream(60, 5), turns)
    assert len(asked) == 3


def test_more_graphs_than_are_kept_still_give_each_round_its_own():
    graphs = [ow.TrustGraph.random(5, max_receivers=3, seed=seed) for seed in range(40)]
    stream = gaussian_stream(80, 5)
    run = ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, graphs)
    masses = np.ones(5)
    for t in range(80):
        masses = graphs[t % 40].mixing().T @ masses
    np.testing.assert_allclose(run.masses, masses, rtol=1e-12)


def test_a_graph_may_change_with_the_round():
    """Neither graph is connected by itself; taking turns, everybody is reached."""
    first = ow.TrustGraph.from_edges([(0, 1), (2, 3)], num_nodes=4)
    second = ow.TrustGraph.from_edges([(1, 2), (3, 0)], num_nodes=4)
    stream = gaussian_stream(30, 4)
    turns = ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, [first, second])
    function = ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, lambda t: (first, second)[t % 2])
    np.testing.assert_array_equal(turns.numerators, function.numerators)
    method = ow.OnlinePushSum(0.1)
    state = NetworkState(np.zeros((4, 4)), np.ones(4))
    for t in range(30):
        nodes, batch = stream.batch(t)
        gradients = MODEL.gradients(state.estimates[nodes], batch)
        state = step_network(method, state, gradients, (first, second)[t % 2].mixing(), t)
    np.testing.assert_allclose(turns.numerators, state.numerators, rtol=1e-11)
    assert turns.masses.sum() == pytest.approx(4, rel=1e-13)
