"""The membership test: never above the truth for what is done right, above it for what is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.methods import Batches
from oneway.privacy import Guarantee, coefficients, sensitivity
from oneway.privacy.canaries import (
    Canaries,
    column,
    gaussian_bound,
    membership,
    one_run_bound,
    p_value,
    upper_limit,
    whitened,
)

DELTA = 1e-5
DIM = 8


def released(canaries, num_batches, batches, rng, times=1):
    """What the mechanism itself makes of the canaries, in units of the clip."""
    total = np.zeros((num_batches, DIM))
    rows = np.where(canaries.present[:, None], canaries.directions, 0.0)
    for _ in range(times):
        memory = {}
        for place in range(num_batches):
            for row in rows[canaries.batches == place]:
                sums, full, memory = batches.add(5 * row[None, :], None, memory, rng)
            assert full.all()
            total[place] += sums[0] / batches.clip / times
    return total


def evidence(epsilon, band=32, factor=1.0, seed=0, times=1, num_batches=500):
    rng = np.random.default_rng(seed)
    canaries = Canaries.drawn(num_batches, DIM, DIM, rng)
    noise = factor * Guarantee(epsilon, DELTA).noise_multiplier * sensitivity(band)
    batches = Batches(DIM, clip=2.0, noise=noise, band=band)
    return membership(canaries, released(canaries, num_batches, batches, rng, times), band, DELTA)


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
@pytest.mark.parametrize("band", [1, 32])
def test_what_keeps_its_promise_is_never_accused(epsilon, band):
    found = evidence(epsilon, band)
    assert 0.2 * epsilon < found.epsilon_lower_bound <= epsilon
    assert found.one_run_bound <= epsilon


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_forgotten_noise_is_caught(epsilon):
    assert evidence(epsilon, factor=0.0).epsilon_lower_bound > 3 * epsilon


@pytest.mark.parametrize("epsilon", [2.0, 8.0])
def test_banded_noise_with_the_sensitivity_of_independent_noise_is_caught(epsilon):
    assert evidence(epsilon, factor=1 / sensitivity(32)).epsilon_lower_bound > epsilon


def test_noise_that_is_drawn_again_for_the_same_batch_is_caught():
    """As after a crash that forgot it: two sums of one batch, with noise of their own each."""
    assert evidence(8.0, times=2).epsilon_lower_bound > 8.0


def test_the_bound_is_above_the_truth_no_more_often_than_its_confidence_says():
    wrong = sum(
        evidence(8.0, 1, seed=seed, num_batches=40).epsilon_lower_bound > 8 for seed in range(40)
    )
    assert wrong <= 5


@given(band=st.integers(1, 40), length=st.integers(1, 60), seed=st.integers(0, 99))
def test_whitening_is_the_inverse_of_what_makes_banded_noise(band, length, seed):
    drawn = np.random.default_rng(seed).normal(size=(length, 2))
    matrix = np.zeros((length, length))
    for row in range(length):
        for lag in range(min(band, row + 1)):
            matrix[row, row - lag] = coefficients(band)[lag]
    np.testing.assert_allclose(whitened(matrix @ drawn, band), drawn, atol=1e-9)
    np.testing.assert_allclose(column(band, length), np.linalg.inv(matrix)[:, 0], atol=1e-9)


def test_no_canary_shows_more_than_the_sensitivity():
    assert math.isclose(np.linalg.norm(column(32, 2000)), sensitivity(32), rel_tol=1e-6)


def test_canaries_of_a_batch_are_orthogonal_and_half_of_them_are_in():
    canaries = Canaries.drawn(300, 5, 7, np.random.default_rng(1))
    first = canaries.directions[canaries.batches == 0]
    np.testing.assert_allclose(first @ first.T, np.eye(5), atol=1e-12)
    assert 0.45 < canaries.present.mean() < 0.55


@given(
    guesses=st.integers(1, 40),
    data=st.data(),
    epsilon=st.floats(0, 4),
    delta=st.floats(0, 1e-3),
)
def test_the_p_value_is_the_theorem_written_out(guesses, data, epsilon, delta):
    correct = data.draw(st.integers(0, guesses))
    chance = 1 / (1 + math.exp(-epsilon))

    def probability(count):
        return math.comb(guesses, count) * chance**count * (1 - chance) ** (guesses - count)

    tail = sum(probability(count) for count in range(correct, guesses + 1))
    worst = max(
        (
            sum(probability(correct - back) for back in range(1, i + 1)) / i
            for i in range(1, correct + 1)
        ),
        default=0.0,
    )
    assert math.isclose(
        p_value(50, guesses, correct, epsilon, delta),
        min(1.0, tail + 2 * 50 * delta * worst),
        rel_tol=1e-9,
        abs_tol=1e-12,
    )


def test_pure_guessing_bounds_nothing():
    assert one_run_bound(1000, 200, 100, DELTA, 0.95) == 0.0
    assert gaussian_bound(250, 500, 250, 500, DELTA, 0.95) == 0.0
    assert gaussian_bound(0, 0, 0, 10, DELTA, 0.95) == 0.0


@given(trials=st.integers(1, 60), data=st.data())
def test_the_upper_limit_leaves_just_the_doubt_that_is_allowed(trials, data):
    events = data.draw(st.integers(0, trials - 1))
    limit = upper_limit(events, trials, 0.95)
    below = sum(
        math.comb(trials, k) * limit**k * (1 - limit) ** (trials - k) for k in range(events + 1)
    )
    assert math.isclose(below, 0.05, rel_tol=1e-6)
    assert upper_limit(trials, trials, 0.95) == 1.0
