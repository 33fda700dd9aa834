"""How findings become verdicts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from oneway.paper.verdict import below, everywhere, interval, paired, somewhere


def test_the_interval_is_students_over_seeds():
    values = np.array([1.0, 2.0, 4.0])
    mean, low, high = interval(values)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (mean, low, high) == pytest.approx((7 / 3, expected.low, expected.high), rel=1e-12)


def test_one_seed_decides_nothing():
    finding = paired("somewhere", np.array([0.3]), "difference")
    assert finding.verdict == "mixed"
    assert finding.low == -np.inf


@pytest.mark.parametrize(
    ("differences", "verdict", "num_for"),
    [
        ([0.2, 0.3, 0.25], "holds", 3),
        ([-0.2, -0.3, -0.25], "fails", 0),
        ([0.2, -0.3, 0.25], "mixed", 2),
        ([0.0, 0.0, 0.0], "fails", 0),
    ],
)
def test_a_difference_holds_only_if_its_whole_interval_does(differences, verdict, num_for):
    finding = paired("somewhere", np.array(differences), "difference")
    assert (finding.verdict, finding.num_for) == (verdict, num_for)
    assert finding.num_for + finding.num_against == 3


def test_a_limit_holds_only_if_the_whole_interval_is_below():
    assert below("x", np.array([0.01, 0.02, 0.03]), 0.1, "part").verdict == "holds"
    assert below("x", np.array([0.2, 0.21, 0.22]), 0.1, "part").verdict == "fails"
    assert below("x", np.array([0.0, 0.1, 0.2]), 0.1, "part").verdict == "mixed"


def test_a_claim_about_all_settings_and_one_about_some():
    holds, fails, mixed = (
        paired("x", np.array(differences), "difference")
        for differences in ([1.0, 1.1, 1.2], [-1.0, -1.1, -1.2], [1.0, -1.1, 1.2])
    )
    assert everywhere([holds, holds]) == "holds"
    assert everywhere([holds, fails]) == "mixed"
    assert everywhere([fails, fails]) == "fails"
    assert somewhere([holds, fails]) == "holds"
    assert somewhere([fails, fails]) == "fails"
    assert somewhere([mixed, fails]) == "mixed"


def test_a_diverged_seed_does_not_hide():
    """An infinite loss speaks against the method that diverged, and the mean says so."""
    finding = paired("x", np.array([0.1, np.inf, 0.1]), "difference")
    assert finding.effect == np.inf
    assert finding.num_for == 3
    assert finding.verdict == "mixed"
