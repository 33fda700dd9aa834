"""Each method's step is its equation, written here with plain loops over nodes."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oneway as ow
from oneway.errors import ConfigError
from oneway.methods import METHODS
from oneway.methods.step_rules import STEP_RULES, Capped
from oneway.records import NetworkState
from oneway.testing.method_checks import step_network

seeds = st.integers(0, 10_000)


def random_network(seed: int) -> tuple[ow.TrustGraph, NetworkState, np.ndarray]:
    """A one-way graph, what its nodes hold, and their gradients; some nodes have none."""
    rng = np.random.default_rng(seed)
    num_nodes, dim = int(rng.integers(2, 9)), int(rng.integers(1, 5))
    graph = ow.TrustGraph.random(num_nodes, int(rng.integers(1, num_nodes)), seed)
    state = NetworkState(rng.standard_normal((num_nodes, dim)), rng.uniform(0.1, 3.0, num_nodes))
    gradients = rng.standard_normal((num_nodes, dim)) * (rng.random((num_nodes, 1)) < 0.8)
    return graph, state, gradients


def stepped(method, graph, state, gradients, round_index=0, curvatures=None) -> NetworkState:
    return step_network(method, state, gradients, method.shares(graph), round_index, curvatures)


def received(shares, sent):
    """What arrives at every node if node i sends `shares[i][j] * sent[i]` to node j."""
    nodes = range(len(sent))
    return [sum(shares[i][j] * sent[i] for i in nodes) for j in nodes]


@given(seeds, st.sampled_from([False, True, 0.5, 2.0, math.inf]))
def test_online_push_sum_descends_then_pushes_shares_of_numerator_and_mass(seed, cap_step):
    graph, state, gradients = random_network(seed)
    after = stepped(ow.OnlinePushSum(0.3, cap_step=cap_step), graph, state, gradients)
    shares = graph.mixing().toarray()
    z, omega = state.numerators, state.masses
    half = []
    for i in range(graph.num_nodes):
        step = 0.3 * (min(cap_step, omega[i]) if cap_step else 1.0)
        half.append(z[i] - step * gradients[i])
    np.testing.assert_allclose(after.numerators, received(shares, half), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(after.masses, received(shares, omega), rtol=1e-12)


@given(seeds, st.sampled_from(sorted(STEP_RULES)), st.booleans())
def test_every_step_rule_is_its_formula(seed, rule, with_curvature):
    graph, state, gradients = random_network(seed)
    omega = state.masses
    bends = np.random.default_rng(seed).uniform(0.01, 30.0, len(omega)) if with_curvature else None
    after = stepped(ow.OnlinePushSum(0.3, step=rule), graph, state, gradients, curvatures=bends)
    half = []
    for i in range(graph.num_nodes):
        safe = 0.3 * min(1.0, omega[i]) if bends is None else min(0.3, 0.5 * omega[i] / bends[i])
        step = {
            "paper": 0.3,
            "capped": 0.3 * min(1.0, omega[i]),
            "mass": 0.3 * omega[i],
            "curvature": safe,
        }[rule]
        half.append(state.numerators[i] - step * gradients[i])
    expected = received(graph.mixing().toarray(), half)
    np.testing.assert_allclose(after.numerators, expected, rtol=1e-12, atol=1e-12)


@given(seeds)
def test_naive_gossip_descends_then_adds_up_what_arrives(seed):
    graph, state, gradients = random_network(seed)
    after = stepped(ow.NaiveGossip(0.3), graph, state, gradients)
    half = [z - 0.3 * gradient for z, gradient in zip(state.numerators, gradients, strict=True)]
    expected = received(graph.mixing().toarray(), half)
    np.testing.assert_allclose(after.numerators, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(after.masses, state.masses)


@given(seeds)
def test_mutual_gossip_averages_with_metropolis_weights_over_edges_that_go_both_ways(seed):
    graph, state, gradients = random_network(seed)
    after = stepped(ow.MutualGossip(0.3), graph, state, gradients)
    nodes = range(graph.num_nodes)
    friends = {
        i: {int(j) for j in graph.receivers_of(i) if i in graph.receivers_of(int(j))} for i in nodes
    }
    half = [z - 0.3 * gradient for z, gradient in zip(state.numerators, gradients, strict=True)]
    for i in nodes:
        weights = {j: 1 / (1 + max(len(friends[i]), len(friends[j]))) for j in friends[i]}
        kept = 1 - sum(weights.values())
        expected = kept * half[i] + sum(weights[j] * half[j] for j in friends[i])
        np.testing.assert_allclose(after.numerators[i], expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(after.masses, state.masses)


@given(seeds)
def test_centralised_moves_everybody_to_the_mean(seed):
    graph, state, gradients = random_network(seed)
    after = stepped(ow.Centralised(0.3), graph, state, gradients)
    total = sum(z - 0.3 * gradient for z, gradient in zip(state.numerators, gradients, strict=True))
    for numerator in after.numerators:
        np.testing.assert_allclose(numerator, total / graph.num_nodes, rtol=1e-12, atol=1e-12)


@given(seeds)
def test_isolated_descends_alone(seed):
    graph, state, gradients = random_network(seed)
    after = stepped(ow.Isolated(0.3), graph, state, gradients)
    for i in range(graph.num_nodes):
        expected = [z - 0.3 * g for z, g in zip(state.numerators[i], gradients[i], strict=True)]
        np.testing.assert_allclose(after.numerators[i], expected, rtol=1e-15)
    np.testing.assert_array_equal(after.masses, state.masses)


@given(seeds, st.sampled_from(sorted(METHODS)))
def test_a_step_changes_nothing_it_was_given(seed, name):
    graph, state, gradients = random_network(seed)
    copies = state.numerators.copy(), state.masses.copy(), gradients.copy()
    stepped(METHODS[name](0.3), graph, state, gradients)
    np.testing.assert_array_equal(state.numerators, copies[0])
    np.testing.assert_array_equal(state.masses, copies[1])
    np.testing.assert_array_equal(gradients, copies[2])


@pytest.mark.parametrize("name", METHODS)
def test_everybody_starts_at_the_given_model_with_mass_one(name):
    method = METHODS[name](0.1)
    model = np.random.default_rng(2).standard_normal((4, 3))
    state = method.start(model)
    np.testing.assert_array_equal(method.numerators(state), model)
    np.testing.assert_array_equal(method.estimate(state), model)
    np.testing.assert_array_equal(method.masses(state), np.ones(4))


@pytest.mark.parametrize("name", METHODS)
def test_a_schedule_says_the_rate_of_each_round(name):
    graph, state, gradients = random_network(3)
    scheduled = stepped(METHODS[name](ow.InverseSqrt(0.6)), graph, state, gradients, round_index=8)
    fixed = stepped(METHODS[name](0.2), graph, state, gradients)
    np.testing.assert_allclose(scheduled.numerators, fixed.numerators, rtol=1e-12)


def test_inverse_sqrt_falls_from_its_scale():
    rates = [ow.OnlinePushSum(ow.InverseSqrt(0.6)).rate(t) for t in (0, 3, 8)]
    assert rates == pytest.approx([0.6, 0.3, 0.2])


@pytest.mark.parametrize("name", METHODS)
def test_only_methods_that_use_a_graph_have_shares(name):
    graph = ow.TrustGraph.random(5, 2, seed=1)
    algorithm = METHODS[name](0.1)
    assert (algorithm.shares(graph) is None) == (algorithm.exchange != "graph")
    assert algorithm.has_mass == (name in ("ops", "relay"))


@pytest.mark.parametrize("name", METHODS)
def test_a_description_names_the_method_and_its_parameters_in_json(name):
    described = METHODS[name](0.25).describe()
    assert described["algorithm"] == name
    assert described["learning_rate"] == 0.25
    assert json.loads(json.dumps(described)) == described
    scheduled = METHODS[name](ow.InverseSqrt(0.5)).describe()
    assert scheduled["learning_rate"] == "InverseSqrt(scale=0.5)"


def test_a_description_says_the_step_rule_and_its_parameters():
    assert ow.OnlinePushSum(0.1).describe()["step"] == "paper"
    assert ow.OnlinePushSum(0.1, step="mass").describe()["step"] == "mass"
    assert ow.OnlinePushSum(0.1, step=Capped(0.5)).describe()["step"] == {
        "name": "capped",
        "cap": 0.5,
    }


def test_the_former_cap_step_says_the_same_as_a_step_rule():
    for former, now in ((True, Capped()), (0.5, Capped(0.5)), (math.inf, STEP_RULES["mass"]())):
        assert ow.OnlinePushSum(0.1, cap_step=former).rule == now
    assert ow.OnlinePushSum(0.1, cap_step=False).rule == STEP_RULES["paper"]()
    with pytest.raises(ConfigError, match="cap_step is True"):
        ow.OnlinePushSum(0.1, step="mass", cap_step=True)


@pytest.mark.parametrize("cap", [-1.0, math.nan])
def test_a_cap_that_is_negative_or_no_number_is_refused(cap):
    with pytest.raises(ConfigError, match=f"cap is {cap}"):
        ow.OnlinePushSum(0.1, cap_step=cap)


@pytest.mark.parametrize("rate", [-0.1, float("nan"), float("inf")])
@pytest.mark.parametrize("name", METHODS)
def test_a_rate_that_is_negative_or_not_finite_is_refused(name, rate):
    with pytest.raises(ConfigError, match=f"learning rate of {name} is {rate} in round 0"):
        METHODS[name](rate)
    with pytest.raises(ConfigError, match="in round 5"):
        METHODS[name](lambda _: rate).rate(5)


def test_a_rate_of_zero_only_mixes():
    graph, state, gradients = random_network(5)
    with_gradients = stepped(ow.OnlinePushSum(0.0), graph, state, gradients)
    without = stepped(ow.OnlinePushSum(0.3), graph, state, np.zeros_like(gradients))
    np.testing.assert_array_equal(with_gradients.numerators, without.numerators)


def test_the_papers_methods_keep_their_short_names_beside_those_beyond_it():
    ours, papers = ["relay", "tracking", "pull"], ["dol-symm", "dol-asymm", "col", "local"]
    assert list(METHODS)[:8] == ["ops", *ours, *papers]


def test_a_subclass_is_not_described_as_the_method_it_changes():
    @dataclasses.dataclass(frozen=True)
    class Hasty(ow.OnlinePushSum):
        haste: float = 2.0

    described = Hasty(0.1, haste=3.0).describe()
    assert described["algorithm"] == "hasty"
    assert described["haste"] == 3.0
