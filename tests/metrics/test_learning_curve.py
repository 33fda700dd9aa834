"""Averages of a curve, against sums over the samples it was made of."""

from __future__ import annotations

import numpy as np
import pytest

from oneway.metrics.learning_curve import (
    RECENT_SAMPLES,
    accuracies,
    coarser,
    last_samples,
    mean_losses,
    recent_width,
    spread_correct,
    spread_losses,
)
from oneway.records.curve import Curve

CASES = [(width, count) for width in (1, 8, 512) for count in (1, 7, 8, 9, 1500)]


def samples_of(count: int, seed: int = 7) -> tuple[list[float], list[int]]:
    rng = np.random.default_rng(seed)
    return rng.exponential(size=count).tolist(), rng.integers(0, 2, size=count).tolist()


def curve_of(losses: list[float], right: list[int], width: int, before: int = 0) -> Curve:
    starts = range(0, len(losses), width)
    return Curve(
        width=width,
        samples=len(losses),
        loss_sums=tuple(sum(losses[first : first + width]) for first in starts),
        correct=tuple(sum(right[first : first + width]) for first in starts),
        times=tuple(float(min(first + width, len(losses))) for first in starts),
        before=before,
    )


@pytest.mark.parametrize(("width", "count"), CASES)
def test_averages_so_far_are_those_of_all_samples_until_then(width, count):
    losses, right = samples_of(count)
    curve = curve_of(losses, right, width)
    ends = [min(first + width, count) for first in range(0, count, width)]
    assert last_samples(curve) == ends
    assert mean_losses(curve) == pytest.approx([sum(losses[:end]) / end for end in ends], rel=1e-12)
    assert accuracies(curve) == pytest.approx([sum(right[:end]) / end for end in ends], rel=1e-12)


@pytest.mark.parametrize(("width", "count"), CASES)
def test_recent_averages_are_those_of_the_last_whole_groups(width, count):
    losses, right = samples_of(count)
    curve = curve_of(losses, right, width)
    groups = max(1, RECENT_SAMPLES // width)
    expected_losses, expected_right = [], []
    for last_group in range(len(curve.loss_sums)):
        first = max(0, last_group - groups + 1) * width
        end = min((last_group + 1) * width, count)
        expected_losses.append(sum(losses[first:end]) / (end - first))
        expected_right.append(sum(right[first:end]) / (end - first))
    assert recent_width(curve) == groups * width
    assert mean_losses(curve, recent=True) == pytest.approx(expected_losses, rel=1e-12)
    assert accuracies(curve, recent=True) == pytest.approx(expected_right, rel=1e-12)


def test_a_curve_that_began_late_counts_the_samples_before_it():
    curve = curve_of([1.0, 2.0, 3.0], [1, 0, 1], width=2, before=100)
    assert last_samples(curve) == [102, 103]
    assert mean_losses(curve) == [1.5, 2.0]


def test_an_empty_curve_has_no_averages():
    assert last_samples(Curve(before=5)) == []
    assert mean_losses(Curve()) == mean_losses(Curve(), recent=True) == accuracies(Curve()) == []


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 63, 64, 65, 1000])
@pytest.mark.parametrize("width", [1, 4])
def test_a_coarser_curve_is_the_one_that_wider_groups_would_have_made(width, count):
    losses, right = samples_of(count)
    found = coarser(curve_of(losses, right, width, before=3), 16)
    assert len(found.loss_sums) <= 16
    expected = curve_of(losses, right, found.width, before=3)
    assert found.loss_sums == pytest.approx(expected.loss_sums, rel=1e-12)
    assert (found.correct, found.times) == (expected.correct, expected.times)
    assert (found.samples, found.before) == (count, 3)


def test_groups_are_spread_evenly_and_sums_are_exact_where_they_end():
    curve = Curve(width=4, samples=10, loss_sums=(4.0, 2.0, 3.0), correct=(1, 4, 0))
    losses = spread_losses(curve)
    assert losses.tolist() == [1.0] * 4 + [0.5] * 4 + [1.5] * 2
    right = spread_correct(curve)
    assert [right[:4].sum(), right[4:8].sum(), right[8:].sum()] == [1, 4, 0]
    assert set(right.tolist()) <= {0, 1}


def test_without_samples_nothing_is_spread():
    assert spread_losses(Curve()).tolist() == spread_correct(Curve()).tolist() == []
