from __future__ import annotations

import pytest

import oneway as ow
from bias import DISTANCE, biases

GRAPH = ow.TrustGraph.random(40, max_receivers=6, seed=2)


def test_the_bias_of_a_step_rule_is_what_the_fixed_point_predicts():
    found = biases(GRAPH, seed=2, rounds=4000, rates=(0.01,))
    assert found["ops"].predicted < 1e-12
    assert found["ops"].measured < 0.05
    for method in ("ops-capped", "ops-mass"):
        assert found[method].predicted > 0.1
        assert found[method].measured == pytest.approx(found[method].predicted, abs=0.04)
    assert found["ops-capped"].predicted < found["ops-mass"].predicted


def test_a_method_that_does_not_move_is_as_far_off_as_the_start():
    for bias in biases(GRAPH, seed=2, rounds=10, rates=(0.0,)).values():
        assert bias.measured == pytest.approx(DISTANCE, rel=1e-9)


def test_a_bias_does_not_hide_that_a_method_has_not_arrived():
    """The way from the start is at a right angle to where a bias leads."""
    for name, halfway in biases(GRAPH, seed=2, rounds=200, rates=(0.003,)).items():
        assert halfway.measured > 1, name


def test_of_a_method_without_a_step_rule_the_bias_is_measured_and_not_predicted():
    alone = biases(GRAPH, seed=2, rates=(0.003,), methods=["local"])["local"]
    assert alone.predicted is None
    assert alone.measured < 0.05
    assert alone.typical == pytest.approx(1, abs=0.05)


def test_the_rate_counts_at_which_single_nodes_come_nearest():
    rates = (2.0, 0.01, 0.0001)
    best = biases(GRAPH, seed=2, rounds=1000, rates=rates, methods=["ops"])["ops"]
    single = biases(GRAPH, seed=2, rounds=1000, rates=(0.01,), methods=["ops"])["ops"]
    assert best == single
    assert best.rate == 0.01
