"""The rates of the theorems, measured on right and wrong methods; see `rates`.

`make test` takes a few of them, `make test-all` all methods and all wrong powers.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from contested import RIGHT
from rates import (
    APART,
    CONTEST,
    MODEL,
    POWERS,
    SCALE,
    WRONG,
    contested_exponent,
    exponents,
    falls_like_the_inverse,
    grows_no_faster_than_sqrt,
    mixed_stream,
    step_size,
)
from tiers import IS_THOROUGH, some

import oneway as ow
from oneway.simulator.exchange import equal_averages
from oneway.topology import stationary_masses
from theory import Problem, graph_constants, tight_bound

ALONE = ow.TrustGraph.from_edges([], num_nodes=1)


def test_at_the_theorems_step_size_regret_grows_like_sqrt_t_and_disagreement_falls_like_1_over_t():
    regret, disagreement = exponents(lambda horizon: step_size(horizon, -0.5))
    assert grows_no_faster_than_sqrt(regret), regret
    assert regret[0] > 0.48, regret
    assert falls_like_the_inverse(disagreement), disagreement


@pytest.mark.parametrize("power", POWERS if IS_THOROUGH else [0.0, -1.0])
def test_at_a_step_size_with_another_power_of_t_neither_holds(power):
    regret, disagreement = exponents(lambda horizon: step_size(horizon, power))
    assert not grows_no_faster_than_sqrt(regret), regret
    assert not falls_like_the_inverse(disagreement), disagreement


def test_in_the_contest_few_nodes_hold_the_mass_and_few_others_are_copied():
    """So that most nodes want 1 on both axes, and most of either weight wants -1 on its axis."""
    graph = ow.TrustGraph.from_mixing(CONTEST.mixing)
    masses = stationary_masses(graph.mixing())
    copied = np.linalg.matrix_power(equal_averages(graph.mixing()).toarray(), 1000)[0]
    assert CONTEST.objects.sum(axis=1).tolist() == [3, 3]
    for weights, objects in (
        (masses, CONTEST.objects[0]),
        (np.minimum(1, masses), CONTEST.objects[0]),
        (copied, CONTEST.objects[1]),
    ):
        assert weights[objects].sum() > 0.6 * weights.sum()


@pytest.mark.parametrize("name", some(APART, "isolated"))
def test_a_method_whose_nodes_stay_apart_would_be_seen(name):
    _, disagreement = exponents(lambda horizon: step_size(horizon, -0.5), APART[name])
    assert disagreement[0] > -0.7, disagreement


@pytest.mark.parametrize("name", some(RIGHT, "ops", "relay"))
def test_an_unbiased_methods_regret_on_all_nodes_losses_grows_like_sqrt_t(name):
    """That of ops is 0.517, and varies by 0.002 over other seeds."""
    assert 0.45 < contested_exponent(RIGHT[name]) < 0.53


@pytest.mark.parametrize("name", some(WRONG, "mass forwarded", "mass step"))
def test_a_method_with_a_bias_would_be_seen(name):
    """Exponents are 0.83 with the mass forwarded, and 0.99 or more with the others."""
    assert contested_exponent(WRONG[name]) > 0.8


@pytest.mark.parametrize("power", POWERS if IS_THOROUGH else [-0.25, -0.75])
def test_on_all_nodes_losses_too_a_step_size_with_another_power_of_t_would_be_seen(power):
    assert contested_exponent(ow.OnlinePushSum, power) > 0.57


@pytest.mark.parametrize("make", [ow.Isolated, ow.OnlinePushSum])
def test_the_papers_regret_does_not_see_that_nodes_learn_alone(make):
    """Every node at its own optimum is better off, on its own losses, than with the best model."""
    method = make(SCALE / math.sqrt(2**12))
    own = CONTEST.regret(method, 2**12, own_losses=True)
    assert (own < -1000) == (make is ow.Isolated)
    assert (CONTEST.regret(method, 2**12) > 4000) == (make is ow.Isolated)


def dyadic_one_way_graph() -> ow.TrustGraph:
    """Everybody sends a quarter each to three others, one way: columns sum to 1 exactly."""
    edges = [(node, (node + gap) % 12) for node in range(12) for gap in (1, 2, 5)]
    return ow.TrustGraph.from_edges(edges)


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_on_a_doubly_stochastic_mixing_push_sum_is_the_classical_method_bit_for_bit(engine):
    graph = dyadic_one_way_graph()
    assert graph.reciprocity < 1
    stream = mixed_stream(400, 12, seed=3)
    ops = ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, graph, engine=engine)
    classical = ow.simulate(ow.NaiveGossip(0.1), MODEL, stream, graph, engine=engine)
    np.testing.assert_array_equal(ops.masses, 1.0)
    np.testing.assert_array_equal(ops.estimates, classical.estimates)
    np.testing.assert_array_equal(ops.losses, classical.losses)


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_on_metropolis_shares_push_sum_is_mutual_gossip(engine):
    graph = ow.TrustGraph.erdos_renyi(12, density=0.6, seed=2)
    symmetric = ow.TrustGraph.from_mixing(graph.metropolis())
    stream = mixed_stream(400, 12, seed=3)
    ops = ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, symmetric, engine=engine)
    mutual = ow.simulate(ow.MutualGossip(0.1), MODEL, stream, graph, engine=engine)
    np.testing.assert_allclose(ops.estimates, mutual.estimates, rtol=1e-12, atol=1e-14)
    one_way = ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, graph, engine=engine)
    assert np.abs(one_way.estimates - mutual.estimates).max() > 1e-3


def hardest_sequence(num_rounds: int) -> ow.Stream:
    """One node, f = max(0, 1 - y x): pull it to 1, then push it away every second round."""
    steps = math.isqrt(num_rounds)
    labels = np.ones(num_rounds)
    labels[steps::2] = -1.0
    return ow.Stream.from_arrays(np.ones((num_rounds, 1, 1)), labels[:, None])


@pytest.mark.parametrize("num_rounds", [2**8, 2**12, 2**16])
def test_one_node_attains_the_classical_bound_on_the_hardest_sequence(num_rounds):
    stream = hardest_sequence(num_rounds)
    problem = Problem(num_rounds, gradient_bound=1.0, noise=0.0, radius=1.0)
    bound = tight_bound(graph_constants(ALONE.mixing()), problem)
    assert bound.smallest == pytest.approx(math.sqrt(num_rounds), rel=1e-12)  # G R sqrt(T)
    assert bound.best_learning_rate == pytest.approx(1 / math.sqrt(num_rounds), rel=1e-12)
    rate = 1 / math.sqrt(num_rounds)
    run = ow.simulate(ow.OnlinePushSum(rate), MODEL, stream, ALONE, engine="fast", progress=False)
    best = np.maximum(0, 1 - stream.labels).sum()  # at x* = 1
    regret = float(run.record.loss_sums.sum() - best)
    assert regret == pytest.approx(bound.smallest, rel=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_one_node_stays_below_the_classical_bound_on_coin_flips(seed):
    """The best of -1 and 1 is known after the fact; no method can do much better than this."""
    num_rounds = 2**12
    labels = np.random.default_rng(seed).choice([-1.0, 1.0], num_rounds)
    stream = ow.Stream.from_arrays(np.ones((num_rounds, 1, 1)), labels[:, None])
    rate = 1 / math.sqrt(num_rounds)
    run = ow.simulate(ow.OnlinePushSum(rate), MODEL, stream, ALONE, engine="fast", progress=False)
    best = num_rounds - abs(labels.sum())
    regret = float(run.record.loss_sums.sum() - best)
    assert 0 < regret <= math.sqrt(num_rounds)
