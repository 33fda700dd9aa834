"""What the theorems promise, measured: sqrt(T) for the regret, 1/T for the disagreement.

The losses are hinges on unit vectors, so gradients have norm 1 or 0 and the best model is known: it
is 1 in every coordinate, because most labels say so. In even rounds samples are random, and seven
of ten labels are +1; in odd rounds each node insists on its own coordinate, and three of four are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy import stats

import oneway as ow
from oneway.theory import Problem, graph_constants, printed_bound, tight_bound

MODEL = ow.models.Hinge(l2=0.0, intercept=False)
DIM = 2
OPTIMUM = np.ones(DIM)
SEEDS = range(8)
HORIZONS = np.array([2**11, 2**13, 2**15, 2**16])
# gamma sqrt(T). The bound's own constant here, R / (G sqrt(2 C_1)), is 0.02 to 0.06. With
# it the way to the optimum is nearly all of the regret up to these horizons and hides what a step
# that does not shrink costs later: a constant one would pass. At 2 both parts count.
SCALE = 2.0
ALONE = ow.TrustGraph.from_edges([], num_nodes=1)


@cache
def mixed_stream(num_rounds: int, num_nodes: int, seed: int) -> ow.Stream:
    """Half stochastic, half adversarial samples: rows of a table with each axis and label."""
    rng = np.random.default_rng([seed, num_rounds])
    axes = rng.integers(DIM, size=(num_rounds, num_nodes), dtype=np.int32)
    positive = rng.random((num_rounds, num_nodes)) < 0.7
    axes[1::2] = np.arange(num_nodes) % DIM
    turns = np.arange(num_rounds // 2)[:, None] + np.arange(num_nodes)
    positive[1::2] = turns % 4 > 0
    return ow.Stream(
        features=np.repeat(np.eye(DIM), 2, axis=0),
        labels=np.tile([-1.0, 1.0], DIM),
        rows=2 * axes + positive.astype(np.int32),
    )


def measure(num_rounds: int, rate: float, graph: ow.TrustGraph, seed: int) -> tuple[float, float]:
    """Regret against the known optimum, and disagreement averaged over rounds."""
    stream = mixed_stream(num_rounds, graph.num_nodes, seed)
    run = ow.simulate(ow.OnlinePushSum(rate), MODEL, stream, graph, engine="fast", progress=False)
    best = np.maximum(0, 1 - stream.labels * (stream.features @ OPTIMUM))[stream.rows].sum()
    return float(run.record.loss_sums.sum() - best), float(run.disagreement.mean())


def exponents(
    rule: Callable[[int], float],
) -> tuple[tuple[float, float], tuple[float, float]]:
    """95 % confidence intervals, over seeds and graphs, of the exponents of T."""
    slopes = []
    for seed in SEEDS:
        graph = ow.TrustGraph.random(10, max_receivers=3, seed=seed)
        values = [measure(horizon, rule(horizon), graph, seed) for horizon in HORIZONS.tolist()]
        slopes.append(np.polyfit(np.log(HORIZONS), np.log(values), 1)[0])
    low, high = stats.t.interval(0.95, len(slopes) - 1, np.mean(slopes, axis=0), stats.sem(slopes))
    return (float(low[0]), float(high[0])), (float(low[1]), float(high[1]))


def grows_no_faster_than_sqrt(regret: tuple[float, float]) -> bool:
    return regret[1] < 0.52


def falls_like_the_inverse(disagreement: tuple[float, float]) -> bool:
    return disagreement[0] > -1.05 and disagreement[1] < -0.95


def step_size(horizon: int, power: float) -> float:
    """One constant, tuned anew for each horizon; the theorem's power is -1/2."""
    first = int(HORIZONS[0])
    return SCALE / math.sqrt(first) * (horizon / first) ** power


def test_at_the_theorems_step_size_regret_grows_like_sqrt_t_and_disagreement_falls_like_1_over_t():
    regret, disagreement = exponents(lambda horizon: step_size(horizon, -0.5))
    assert grows_no_faster_than_sqrt(regret), regret
    assert regret[0] > 0.48, regret
    assert falls_like_the_inverse(disagreement), disagreement


@pytest.mark.parametrize("power", [0.0, -0.25, -0.75, -1.0])
def test_at_a_step_size_with_another_power_of_t_neither_holds(power):
    regret, disagreement = exponents(lambda horizon: step_size(horizon, power))
    assert not grows_no_faster_than_sqrt(regret), regret
    assert not falls_like_the_inverse(disagreement), disagreement


@pytest.mark.parametrize("horizon", [2**12, 2**16])
def test_at_the_bounds_own_step_size_regret_is_below_the_bound_and_within_a_factor_of_it(horizon):
    graph = ow.TrustGraph.from_edges([(0, 1), (1, 2), (2, 0), (0, 2)])
    problem = Problem(horizon, gradient_bound=1.0, noise=0.0, radius=math.sqrt(DIM))
    bound = printed_bound(graph_constants(graph.mixing()), problem)
    for seed in range(3):
        regret, _ = measure(horizon, bound.best_learning_rate, graph, seed)
        assert 0.4 * bound.smallest < regret < bound.smallest


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
