"""The compiled row arithmetic against the plain thing, number by number."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from oneway.simulator.intrinsics import LANES, add_row, dot_rows, mix_row, squared_distance
from oneway.simulator.softplus import soften


@njit
def softened(margins):
    losses, slopes = np.empty_like(margins), np.empty_like(margins)
    for start in range(0, len(margins), LANES):
        soften(margins, losses, slopes, start)
    return losses, slopes


def exact(margin):
    """The loss and its slope with the C library's exp and log1p."""
    tail = math.exp(-abs(margin))
    slope = -(tail if margin > 0 else 1.0) / (1.0 + tail)
    return math.log1p(tail) + max(-margin, 0.0), slope


@given(st.lists(st.floats(-707, 707), min_size=40 * LANES, max_size=40 * LANES))
def test_softplus_is_exact_to_a_few_units_in_the_last_place(margins):
    losses, slopes = softened(np.array(margins))
    for margin, loss, slope in zip(margins, losses, slopes, strict=True):
        expected_loss, expected_slope = exact(margin)
        assert loss == pytest.approx(expected_loss, rel=2e-15, abs=0)
        assert slope == pytest.approx(expected_slope, rel=2e-15, abs=0)


def test_softplus_holds_at_any_margin():
    """Huge, infinite and undefined margins give what the loss means there, not an overflow."""
    losses, slopes = softened(
        np.array([1e308, -1e308, math.inf, -math.inf, math.nan, 0, 5e-324, 1])
    )
    assert losses[0] < 1e-300
    assert losses[1] == 1e308
    assert losses[2] < 1e-300
    assert losses[3] == math.inf
    assert math.isnan(losses[4])
    assert losses[5] == losses[6] == pytest.approx(math.log(2), rel=1e-15)
    assert slopes[1] == slopes[3] == -1
    assert slopes[5] == -0.5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [3, 4, 33])
def test_rows_are_multiplied_moved_and_measured(length, dtype):
    @njit
    def all_three(held, features, point):
        product = dot_rows(held, 2, features, 1, length)
        distance = squared_distance(held, 2, 0.5, point, length)
        add_row(held, 2, 0.9, features, 1, -0.3, length)
        return product, distance

    rng = np.random.default_rng(length)
    held = rng.standard_normal((4, length + 3))
    features = rng.standard_normal((3, length)).astype(dtype)
    point = rng.standard_normal(length)
    before = held.copy()
    product, distance = all_three(held, features, point)
    assert product == pytest.approx(before[2, :length] @ features[1].astype(float), rel=1e-13)
    assert distance == pytest.approx(((0.5 * before[2, :length] - point) ** 2).sum(), rel=1e-13)
    expected = before.copy()
    expected[2, :length] = 0.9 * before[2, :length] - 0.3 * features[1].astype(float)
    np.testing.assert_allclose(held, expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("width", [4, 36, 72])
def test_a_row_is_the_weighted_sum_of_its_senders(width):
    """Also for a receiver nobody sends to, and for rows longer than the block of registers."""

    @njit
    def mixed(out, rows, senders, shares, indptr):
        for receiver in range(len(indptr) - 1):
            mix_row(
                out, rows, senders, shares, indptr[receiver], indptr[receiver + 1], receiver, width
            )

    rng = np.random.default_rng(width)
    rows = rng.standard_normal((6, width))
    out = np.full((3, width), np.nan)
    senders = np.array([5, 0, 2, 3], np.int32)
    shares = rng.random(4)
    mixed(out, rows, senders, shares, np.array([0, 3, 3, 4]))
    # Terms of the size of 1 may cancel: their rounding is absolute.
    np.testing.assert_allclose(out[0], shares[:3] @ rows[[5, 0, 2]], rtol=1e-13, atol=1e-15)
    np.testing.assert_array_equal(out[1], 0)
    np.testing.assert_allclose(out[2], shares[3] * rows[3], rtol=1e-15)
