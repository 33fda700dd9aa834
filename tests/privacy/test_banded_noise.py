from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.errors import ConfigError
from oneway.privacy import LARGEST_BAND, coefficients, epsilon_of, mu_for, sensitivity

LENGTH = 200
BANDS = (1, 2, 3, 8, 32, 100)


def toeplitz(column):
    """The lower triangular Toeplitz matrix with this first column."""
    lag = np.subtract.outer(np.arange(len(column)), np.arange(len(column)))
    return np.where(lag >= 0, column[np.maximum(lag, 0)], 0.0)


def mixing_of_noise(band, length=LENGTH):
    """R = C^-1: what the independent draws are multiplied with."""
    column = np.zeros(length)
    column[: min(band, length)] = coefficients(band)[:length]
    return toeplitz(column)


def literal_inverse(band, length):
    """Coefficients of 1 / sum r_k x^k by long division, in exact fractions."""
    r = [Fraction(1)]
    for k in range(1, band):
        r.append(r[-1] * (Fraction(k) - Fraction(3, 2)) / k)
    inverse = [Fraction(1)]
    for n in range(1, length):
        inverse.append(-sum(r[k] * inverse[n - k] for k in range(1, min(band, n + 1))))
    return inverse


def distance(band, rows, length=LENGTH):
    """How far gradients of norm 1 in these rows move the releases, in units of their noise."""
    moved = np.zeros(length)
    np.add.at(moved, rows, 1.0)
    noise = mixing_of_noise(band, length)
    return float(np.sqrt(moved @ np.linalg.solve(noise @ noise.T, moved)))


def test_the_coefficients_are_those_of_the_square_root():
    assert coefficients(60) == pytest.approx(
        [float(mpmath.binomial(0.5, k) * (-1) ** k) for k in range(60)], rel=1e-13
    )
    square = np.convolve(coefficients(60), coefficients(60))[:60]
    assert square == pytest.approx([1, -1] + [0] * 58, abs=1e-15)


def test_a_shorter_band_is_the_beginning_of_a_longer_one():
    for band in BANDS:
        assert np.array_equal(coefficients(band), coefficients(LARGEST_BAND)[:band])


def test_nobody_can_change_the_coefficients_of_others():
    with pytest.raises(ValueError, match="read-only"):
        coefficients(4)[0] = 0.0


def test_the_sensitivity_of_band_32_is_that_of_the_paper():
    assert sensitivity(1) == 1.0
    assert sensitivity(2) == pytest.approx(math.sqrt(4 / 3), rel=1e-12)  # 1 + 1/4 + 1/16 + ...
    assert round(sensitivity(32), 2) == 1.53


@pytest.mark.parametrize("band", [2, 3, 8, 16])
def test_the_sensitivity_is_the_norm_of_the_inverse_series_and_never_below_it(band):
    inverse = literal_inverse(band, 40 * band)
    assert all(c > 0 for c in inverse)
    squares = sum(c * c for c in inverse)
    with mpmath.workdps(40):
        norm = mpmath.sqrt(mpmath.mpf(squares.numerator) / squares.denominator)
        assert norm <= sensitivity(band) <= norm * (1 + 1e-12)


@given(st.integers(2, LARGEST_BAND))
def test_the_sensitivity_grows_with_the_band_as_the_root_of_its_logarithm(band):
    assert sensitivity(band - 1) < sensitivity(band)
    # The untruncated inverse has the coefficients of (1-x)^(-1/2), at most 1/sqrt(pi k).
    first = np.linalg.norm(1 / np.concatenate([[1.0], np.sqrt(np.pi * np.arange(1, band))]))
    assert sensitivity(band) < math.hypot(first, 1.0)


@pytest.mark.parametrize("band", BANDS)
def test_columns_of_the_dense_inverse_tend_to_the_sensitivity_from_below(band):
    inverse = np.linalg.inv(mixing_of_noise(band, LENGTH + 20 * band))
    assert inverse.min() > -1e-14
    lengths = (1, 2, 5, 20, 100, LENGTH, len(inverse))
    largest = [np.linalg.norm(inverse[:n, :n], axis=0).max() for n in lengths]
    assert largest == sorted(largest)
    assert max(largest) <= sensitivity(band)
    assert largest[-1] == pytest.approx(sensitivity(band), rel=1e-9)
    if band <= 32:
        assert largest[-2] == pytest.approx(sensitivity(band), rel=1e-5)


@pytest.mark.parametrize("band", BANDS)
def test_prefix_sums_with_banded_noise_are_a_matrix_mechanism(band):
    """A (x + C^-1 z) = B (C x + z) with A = B C: post-processing of one Gaussian mechanism."""
    rng = np.random.default_rng(12)
    x, z = rng.normal(size=(2, LENGTH, 3))
    prefix_sum = np.tril(np.ones((LENGTH, LENGTH)))
    noise = mixing_of_noise(band)
    encoder, decoder = np.linalg.inv(noise), prefix_sum @ noise
    released = x + noise @ z
    assert np.cumsum(released, axis=0) == pytest.approx(decoder @ (encoder @ x + z), abs=1e-10)
    streamed = [
        x[t] + sum(r * z[t - k] for k, r in enumerate(coefficients(band)) if k <= t)
        for t in range(LENGTH)
    ]
    assert released == pytest.approx(np.array(streamed), abs=1e-12)


def test_banded_noise_is_worth_its_sensitivity():
    """At the same guarantee, the last of many prefix sums carries a fraction of the noise."""
    last = [np.linalg.norm(mixing_of_noise(b).sum(axis=0)) * sensitivity(b) for b in (1, 8, 32)]
    assert last[0] == pytest.approx(math.sqrt(LENGTH))
    assert last[1] < 0.5 * last[0]
    assert last[2] < 0.7 * last[1]


@pytest.mark.parametrize("band", BANDS)
def test_no_row_of_any_short_stream_moves_further_than_the_sensitivity(band):
    for length in (1, 2, 33, 60):
        rows = range(length)
        assert max(distance(band, [row], length) for row in rows) <= sensitivity(band) * (1 + 1e-9)


# Methods that are wrong, by name: the true distance breaks what each of them promises.


def true_epsilon(assumed_sensitivity, epsilon=1.0, delta=1e-5, band=32, rows=(0,), records=1):
    """The epsilon that holds if noise is scaled by an assumed sensitivity."""
    mu = mu_for(epsilon, delta) / records
    return epsilon_of(distance(band, list(rows)) / assumed_sensitivity * mu, delta)


def test_the_right_sensitivity_keeps_the_promise():
    assert 0.999 < true_epsilon(sensitivity(32)) <= 1.0 + 1e-9


def test_sensitivity_1_breaks_the_promise_of_banded_noise():
    assert true_epsilon(1.0) > 1.5


def test_the_norm_of_the_square_root_instead_of_its_inverse_breaks_the_promise():
    wrong = float(np.linalg.norm(coefficients(32)))
    assert wrong == pytest.approx(1.13, abs=0.01)
    assert true_epsilon(wrong) > 1.3


def test_the_sensitivity_of_a_narrower_band_breaks_the_promise():
    assert true_epsilon(sensitivity(8)) > 1.1


def test_groups_compose_by_k_and_not_by_its_square_root_even_across_batches():
    """Columns of the inverse overlap, so records in neighbouring batches add up nearly in line."""
    apart, together = [0, 1, 2, 3], [0, 0, 0, 0]
    assert distance(32, together) == pytest.approx(4 * distance(32, [0]), rel=1e-9)
    assert 1.2 * 2 * sensitivity(32) < distance(32, apart) <= 4 * sensitivity(32)
    assert true_epsilon(sensitivity(32), rows=together, records=4) <= 1.0 + 1e-9
    assert true_epsilon(sensitivity(32), rows=apart, records=math.sqrt(4)) > 1.2
    assert true_epsilon(sensitivity(32), rows=together, records=math.sqrt(4)) > 2


@given(st.sampled_from(BANDS), st.lists(st.integers(0, 59), min_size=1, max_size=12))
def test_no_group_moves_the_releases_further_than_k_times_the_sensitivity(band, rows):
    assert distance(band, rows, 60) <= len(rows) * sensitivity(band) * (1 + 1e-9)


@pytest.mark.parametrize("band", [0, -1, 1.0, True, "32", None, LARGEST_BAND + 1, math.nan])
def test_a_band_that_is_no_count_is_named(band):
    for call in (coefficients, sensitivity):
        with pytest.raises(ConfigError, match=r"^band is "):
            call(band)
