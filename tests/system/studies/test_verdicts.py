"""How findings become verdicts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lib import Claim, below, everywhere, interval, paired, somewhere, standing


def test_the_interval_is_students_over_seeds():
    values = np.array([1.0, 2.0, 4.0])
    mean, low, high = interval(values)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (mean, low, high) == pytest.approx((7 / 3, expected.low, expected.high), rel=1e-12)


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


def _signed_rank_p(differences):
    """Two-sided, from all ways to give the ranks signs: what chance alone would do."""
    ranks = stats.rankdata(np.abs(differences))
    found = abs((np.sign(differences) * ranks).sum())
    signs = itertools.product((-1, 1), repeat=len(differences))
    return np.mean([abs(np.dot(sign, ranks)) >= found for sign in signs])


@given(st.lists(st.integers(-9999, 9999), min_size=2, max_size=9, unique_by=abs))
def test_both_tests_are_beside_the_interval(values):
    differences = np.array([value or 10_000 for value in values], dtype=float)
    finding = paired("x", differences)
    assert finding.p_wilcoxon == pytest.approx(_signed_rank_p(differences), rel=1e-9)
    assert finding.p_student == pytest.approx(stats.ttest_1samp(differences, 0).pvalue, rel=1e-9)
    assert finding.skewness == pytest.approx(stats.skew(differences), abs=1e-9)
    if finding.verdict != "mixed":
        assert finding.p_value < 0.05
        assert (finding.effect > 0) == (finding.verdict == "holds")


SKEWED_AGREE = [0.1, 0.11, 0.12, 0.13, 0.14, 0.15, 0.16, 0.6]
ONLY_RANKS = [0.01, 0.011, 0.012, 0.013, 0.014, 0.015, 0.016, 2.0]
ONLY_STUDENT = [1.0, 1.1, 1.2, 1.3, -2.6, 1.4, 1.5, 1.6, 1.7, 1.8]


@pytest.mark.parametrize(
    ("differences", "by_student", "by_ranks", "verdict"),
    [
        (SKEWED_AGREE, True, True, "holds"),
        (ONLY_RANKS, False, True, "mixed"),
        (ONLY_STUDENT, True, False, "mixed"),
        ([0.3, 0.31, 0.32, 0.33, 0.6], True, False, "mixed"),  # five seeds are too few for ranks
    ],
)
def test_where_differences_are_skewed_both_tests_must_agree(
    differences, by_student, by_ranks, verdict
):
    for sign, expected in ((1, verdict), (-1, "fails" if verdict == "holds" else verdict)):
        finding = paired("x", sign * np.array(differences))
        assert finding.skewed
        assert (finding.p_student < 0.05, finding.p_wilcoxon < 0.05) == (by_student, by_ranks)
        assert finding.verdict == expected
        assert below("x", 3 - sign * np.array(differences), 3, "value").verdict == expected


def test_a_claim_about_some_setting_is_corrected_for_how_many_were_looked_at():
    """Of forty settings without any effect one or two look as if they had one."""
    rng = np.random.default_rng(0)
    chance = [paired(f"{i}", rng.normal(size=10)) for i in range(40)]
    assert any(finding.verdict == "holds" for finding in chance)
    assert somewhere(chance) == "mixed"
    assert standing(chance) == []
    real = paired("real", rng.normal(3.0, size=10))
    assert standing([*chance, real]) == [real]
    assert somewhere([*chance, real]) == "holds"
    held = sum(finding.verdict == "holds" for finding in chance)
    tally = Claim("x", "here", (*chance, real), "mixed").tally
    assert tally.startswith(f"Of 41 settings {held + 1} hold and ")
    assert tally.endswith("with the level divided by 41 tests, 1 and 0.")


def test_a_diverged_seed_does_not_hide():
    """An infinite loss speaks against the method that diverged, and the mean says so."""
    finding = paired("x", np.array([0.1, np.inf, 0.1]), "difference")
    assert finding.effect == np.inf
    assert finding.num_for == 3
    assert finding.verdict == "mixed"
