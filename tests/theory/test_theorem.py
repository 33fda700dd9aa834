from __future__ import annotations

import numpy as np
import pytest

import oneway as ow
from theorem import WatchedPushSum, evaluate, measure
from theory import Problem, graph_constants, printed_bound, tight_bound

MODEL = ow.models.LogisticRegression()
GRAPH = ow.TrustGraph.random(6, 3, 0)
STREAM = ow.streams.synthetic(20_000, 10, 0).table.deal(6).head(200)


@pytest.fixture(scope="module")
def steps():
    return measure(graph_constants(GRAPH.mixing()), MODEL, STREAM, GRAPH, learning_rate=0.5)


def test_each_step_size_is_the_best_for_its_bound():
    constants, problem = graph_constants(ow.TrustGraph.ring(5).mixing()), Problem(50, 1.0, 1.0, 1.0)
    printed, best, tight = evaluate(constants, problem)
    assert printed.printed_bound >= best.printed_bound
    assert best.printed_bound == pytest.approx(printed_bound(constants, problem).smallest)
    assert tight.tight_bound == pytest.approx(tight_bound(constants, problem).smallest)
    assert best.measured is None


def test_measured_regret_and_disagreement_are_below_their_bounds(steps):
    assert [it.name for it in steps] == ["as printed", "best, printed", "best, tight", "given"]
    for step in steps:
        assert step.measured.regret <= step.measured.certain_bound
        assert step.measured.regret <= step.tight_bound <= step.printed_bound
        assert step.measured.disagreement <= step.measured.disagreement_bound


def test_the_run_is_the_one_that_simulate_makes(steps):
    run = ow.simulate(ow.OnlinePushSum(0.5), MODEL, STREAM, GRAPH)
    assert steps[-1].measured.regret == pytest.approx(run.regret()[-1], rel=1e-9)
    assert steps[-1].problem.radius == pytest.approx(np.linalg.norm(run.comparator))


def test_expected_gradients_are_smaller_than_the_largest_met_and_noise_is_seen(steps):
    """With features of length about sqrt(11), single gradients are long and their means short."""
    for step in steps:
        assert 0.1 < step.problem.gradient_bound < 2
        assert 1 < step.problem.noise < 3.5


def test_a_watched_run_is_push_sum_with_notes():
    stream = ow.streams.synthetic(600, 3, 1).table.deal(6)
    watched = WatchedPushSum(0.3, checkpoints=frozenset({0, 99}))
    run = ow.simulate(watched, MODEL, stream, GRAPH)
    plain = ow.simulate(ow.OnlinePushSum(0.3), MODEL, stream, GRAPH, engine="reference")
    np.testing.assert_array_equal(run.estimates, plain.estimates)
    assert len(watched.notes.estimates) == 2
    np.testing.assert_array_equal(watched.notes.estimates[0], 0.0)
    assert watched.notes.squared_gradients <= 600 * watched.notes.largest_gradient**2
