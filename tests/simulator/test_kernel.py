"""The compiled softplus against the C library, number by number."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from oneway.simulator.kernel import LANES, load, softplus, store


@njit
def softened(margins):
    results = np.empty((2, len(margins)))
    for start in range(0, len(margins), LANES):
        loss, slope = softplus(load(margins.reshape(1, -1), 0, start))
        store(loss, results, 0, start)
        store(slope, results, 1, start)
    return results


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
