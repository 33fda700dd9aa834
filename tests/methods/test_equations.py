"""Methods, step rules and transforms are their equations, written here with plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oneway as ow
from oneway.errors import ConfigError
from oneway.methods import METHODS, AutoRate, Gradients
from oneway.methods.step_rules import STEP_RULES, Capped, Curvature, StepRule
from oneway.methods.transforms import AdaGrad, Clip, Forget, Momentum, Restart
from oneway.models import LogisticRegression, RidgeRegression, SoftmaxRegression
from oneway.records import Batch, NetworkState
from oneway.testing import step_network

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


@given(seeds, st.sampled_from(sorted(STEP_RULES)), st.booleans())
def test_push_sum_descends_by_its_step_rule_then_pushes_shares_of_numerator_and_mass(
    seed, rule, with_curvature
):
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
    shares = graph.mixing().toarray()
    np.testing.assert_allclose(after.numerators, received(shares, half), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(after.masses, received(shares, omega), rtol=1e-12)


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


@given(seeds, st.sampled_from(sorted(METHODS)))
def test_a_step_changes_nothing_it_was_given(seed, name):
    graph, state, gradients = random_network(seed)
    copies = state.numerators.copy(), state.masses.copy(), gradients.copy()
    stepped(METHODS[name](0.3), graph, state, gradients)
    np.testing.assert_array_equal(state.numerators, copies[0])
    np.testing.assert_array_equal(state.masses, copies[1])
    np.testing.assert_array_equal(gradients, copies[2])


@pytest.mark.parametrize("name", METHODS)
def test_a_schedule_says_the_rate_of_each_round(name):
    graph, state, gradients = random_network(3)
    scheduled = stepped(METHODS[name](ow.InverseSqrt(0.6)), graph, state, gradients, round_index=8)
    fixed = stepped(METHODS[name](0.2), graph, state, gradients)
    np.testing.assert_allclose(scheduled.numerators, fixed.numerators, rtol=1e-12)


@pytest.mark.parametrize("rate", [-0.1, float("nan"), float("inf")])
def test_a_rate_that_is_negative_or_not_finite_is_refused(rate):
    with pytest.raises(ConfigError, match=f"learning rate of ops is {rate} in round 0"):
        ow.OnlinePushSum(rate)
    with pytest.raises(ConfigError, match="in round 5"):
        ow.OnlinePushSum(lambda _: rate).rate(5)


# Step rules: how far a node moves for one sample, whatever its mass.

rates = st.floats(1e-6, 1e3)
masses = st.floats(1e-12, 1e3)
curvatures = st.floats(1e-9, 1e9)


def length(rule: StepRule, rate: float, mass: float, curvature: float | None) -> float:
    bends = None if curvature is None else np.array([curvature])
    return float(rule.lengths(rate, np.array([mass]), bends)[0])


@given(rates, masses, curvatures)
def test_the_curvature_limited_step_is_the_protocols(learning_rate, mass, curvature):
    literal = learning_rate * min(1.0, 0.5 * mass / (learning_rate * curvature))
    assert length(Curvature(), learning_rate, mass, curvature) == pytest.approx(literal, rel=1e-12)


@given(rates, masses)
def test_without_a_known_curvature_the_cap_is_by_mass_alone(learning_rate, mass):
    literal = learning_rate * min(1.0, mass)
    assert length(Curvature(), learning_rate, mass, None) == literal
    assert length(Curvature(), learning_rate, mass, 0.0) == literal
    assert length(Capped(), learning_rate, mass, 0.25) == literal


@given(rates, masses, curvatures)
def test_the_estimate_never_moves_farther_than_half_of_what_the_sample_bears(
    learning_rate, mass, curvature
):
    moved_per_gradient = length(Curvature(), learning_rate, mass, curvature) / mass
    assert moved_per_gradient <= 0.5 / curvature * (1 + 1e-12)


@pytest.mark.parametrize("name", STEP_RULES)
@pytest.mark.parametrize("mass", [0.0, -0.0, -1e-12, -5.0])
def test_without_a_positive_mass_no_step_is_taken(name, mass):
    assert length(STEP_RULES[name](), 0.3, mass, 0.25) == 0.0
    assert length(STEP_RULES[name](), 0.3, mass, None) == 0.0


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([LogisticRegression(0.01), RidgeRegression(0.01), SoftmaxRegression(3, 0.01)]),
    st.floats(1e-6, 1e3),
    st.floats(1e-3, 1e3),
    st.floats(1e-9, 10.0),
)
def test_with_the_curvature_limited_step_the_loss_of_the_sample_itself_never_rises(
    seed, model, size, learning_rate, mass
):
    """However large its features, however small the mass."""
    rng = np.random.default_rng(seed)
    batch = Batch(size * rng.normal(size=(1, 4)), np.ones(1))
    params = rng.normal(size=model.dim(4))
    [curvature] = model.curvature_bounds(batch.features)
    step = length(Curvature(), learning_rate, mass, float(curvature))
    before = model.loss(params, batch)
    after = model.loss(params - step / mass * model.gradient(params, batch), batch)
    assert after <= before * (1 + 1e-9)


# Transforms.

RNG = np.random.default_rng(0)


def test_clipping_shortens_only_what_is_too_long():
    gradients = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    clipped, memory = Clip(norm=1.0).update(gradients, {}, RNG)
    np.testing.assert_allclose(clipped, [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]], rtol=1e-15)
    assert memory == {}


def test_momentum_is_an_exponential_mean_of_the_gradients():
    momentum, gradients = Momentum(beta=0.8), np.random.default_rng(1).normal(size=(6, 3, 2))
    memory = momentum.init(np.zeros((3, 2)))
    literal = np.zeros((3, 2))
    for gradient in gradients:
        update, memory = momentum.update(gradient, memory, RNG)
        literal = 0.8 * literal + 0.2 * gradient
        np.testing.assert_allclose(update, literal, rtol=1e-14, atol=1e-15)


def test_transforms_apply_in_order():
    """Clip, then momentum: the other order would give another number."""
    method = ow.Isolated(1.0, transforms=(Clip(1.0), Momentum(0.5)))
    state = method.start(np.zeros((1, 1)))
    after = method.local_step(state, Gradients(np.array([[10.0]]), 0), RNG)
    assert method.estimate(after) == -0.5
    swapped = ow.Isolated(1.0, transforms=(Momentum(0.5), Clip(1.0)))
    after = swapped.local_step(
        swapped.start(np.zeros((1, 1))), Gradients(np.array([[10.0]]), 0), RNG
    )
    assert swapped.estimate(after) == -1.0


def test_a_node_without_a_sample_keeps_its_model_and_its_memory():
    method = ow.OnlinePushSum(0.5, transforms=(Momentum(0.5),))
    state = method.start(np.ones((2, 3)))
    learned = Gradients(np.ones((2, 3)), 0, active=np.array([True, False]))
    after = method.local_step(state, learned, RNG)
    np.testing.assert_array_equal(method.estimate(after), [[0.75] * 3, [1.0] * 3])
    np.testing.assert_array_equal(after.memory["0.momentum.mean"], [[0.5] * 3, [0.0] * 3])


@pytest.mark.parametrize(
    ("make", "culprit"),
    [
        (lambda: ow.Relay(0.1, amount=0), "amount is 0"),
        (lambda: ow.Relay(0.1, amount=math.nan), "amount is nan"),
        (lambda: ow.Relay(0.1, amount="much"), "amount is 'much'"),
        (lambda: ow.Tracking(0.1, beta=1.0), "beta is 1.0"),
        (lambda: ow.Tracking(0.1, beta="some"), "beta is 'some'"),
        (lambda: ow.Pull(0.1, mixes=0), "mixes is 0"),
        (lambda: ow.Pull(0.1, mixes=True), "mixes is True"),
        (lambda: AdaGrad(epsilon=0), "epsilon is 0"),
        (lambda: Forget(1.0), "factor is 1.0"),
        (lambda: Restart(sure=0.0), "sure is 0.0"),
        (lambda: Restart(slack=1.0), "slack is 1.0"),
        (lambda: ow.Relay("fast"), "'fast'"),
        (lambda: AutoRate(reach=0), "reach is 0"),
        (lambda: AutoRate(ceiling=math.inf), "ceiling is inf"),
        (lambda: Clip(norm=0), "norm is 0"),
        (lambda: Clip(norm=math.inf), "norm is inf"),
        (lambda: Momentum(beta=1.0), "beta is 1.0"),
        (lambda: Momentum(beta=-0.1), "beta is -0.1"),
        (lambda: Capped(cap=0.0), "cap is 0"),
        (lambda: Capped(cap=math.inf), "cap is inf"),
        (lambda: Curvature(stable=0), "stable is 0"),
        (lambda: Curvature(stable=2.1), "stable is 2.1"),
    ],
)
def test_a_parameter_that_breaks_its_rule_is_named(make, culprit):
    with pytest.raises(ConfigError, match=culprit):
        make()
