"""The rates and bounds of the theorems on all methods, powers and seeds; see `rates`."""

from __future__ import annotations

import pytest
from contested import BIASED, RIGHT
from hypothesis import given, settings
from hypothesis import strategies as st
from rates import (
    APART,
    POWERS,
    WRONG,
    contested_exponent,
    exponents,
    falls_like_the_inverse,
    grows_no_faster_than_sqrt,
    part_of_the_bound,
    step_size,
)

import oneway as ow


@pytest.mark.parametrize("power", POWERS)
def test_at_a_step_size_with_another_power_of_t_neither_holds(power):
    regret, disagreement = exponents(lambda horizon: step_size(horizon, power))
    assert not grows_no_faster_than_sqrt(regret), regret
    assert not falls_like_the_inverse(disagreement), disagreement
    assert contested_exponent(ow.OnlinePushSum, power) > 0.57


@pytest.mark.parametrize("make", APART.values(), ids=APART.keys())
def test_a_method_whose_nodes_stay_apart_would_be_seen(make):
    _, disagreement = exponents(lambda horizon: step_size(horizon, -0.5), make)
    assert disagreement[0] > -0.7, disagreement


@pytest.mark.parametrize("make", RIGHT.values(), ids=RIGHT.keys())
def test_an_unbiased_methods_regret_on_all_nodes_losses_grows_like_sqrt_t(make):
    assert 0.45 < contested_exponent(make) < 0.53


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG.keys())
def test_a_method_with_a_bias_would_be_seen(make):
    assert contested_exponent(make) > 0.8


@pytest.mark.parametrize("make", RIGHT.values(), ids=RIGHT.keys())
@settings(max_examples=10)
@given(heavy=st.floats(0.5, 0.95), stray=st.floats(0.0, 0.1), seed=st.integers(0, 10**6))
def test_with_a_heavy_node_that_objects_regret_on_all_losses_is_below_the_bound(
    make, heavy, stray, seed
):
    assert 0.45 < part_of_the_bound(make, heavy, stray, seed) < 0.6


NOT_BOUNDED = BIASED | {"isolated": ow.Isolated}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("make", NOT_BOUNDED.values(), ids=NOT_BOUNDED.keys())
def test_a_method_that_follows_the_heavy_node_or_none_is_above_the_bound(make, seed):
    assert part_of_the_bound(make, 0.9, 0.02, seed) > 2
