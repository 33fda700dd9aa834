"""Averages of a curve, against sums over the samples it was made of; thinning."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.metrics import Thinned, evenly_spread
from oneway.metrics.learning_curve import (
    RECENT_SAMPLES,
    accuracies,
    coarser,
    known_means,
    last_samples,
    mean_losses,
    recent_width,
    spread_correct,
    spread_known,
    spread_losses,
)
from oneway.records.curve import Curve

LIMIT = 8


def curve_of(count: int, width: int, before: int = 0) -> tuple[list[float], list[int], Curve]:
    rng = np.random.default_rng(7)
    losses, right = rng.exponential(size=count).tolist(), rng.integers(0, 2, size=count).tolist()
    starts = range(0, count, width)
    curve = Curve(
        width=width,
        samples=count,
        loss_sums=tuple(sum(losses[first : first + width]) for first in starts),
        correct=tuple(sum(right[first : first + width]) for first in starts),
        times=tuple(float(min(first + width, count)) for first in starts),
        before=before,
    )
    return losses, right, curve


@pytest.mark.parametrize("recent", [False, True])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 1500])
@pytest.mark.parametrize("width", [1, 8, 512])
def test_averages_are_those_of_all_samples_or_of_the_last_whole_groups(width, count, recent):
    losses, right, curve = curve_of(count, width, before=100)
    groups = max(1, RECENT_SAMPLES // width) if recent else count
    ends = [min(first + width, count) for first in range(0, count, width)]
    firsts = [max(0, group - groups + 1) * width for group in range(len(ends))]
    assert last_samples(curve) == [100 + end for end in ends]
    for found, values in (
        (mean_losses(curve, recent=recent), losses),
        (accuracies(curve, recent=recent), right),
    ):
        literal = [np.mean(values[first:end]) for first, end in zip(firsts, ends, strict=True)]
        assert found == pytest.approx(literal, rel=1e-12)
    assert recent_width(curve) == max(1, RECENT_SAMPLES // width) * width


@pytest.mark.parametrize("count", [1, 2, 5, 63, 64, 65, 1000])
@pytest.mark.parametrize("width", [1, 4])
def test_a_coarser_curve_is_the_one_that_wider_groups_would_have_made(width, count):
    found = coarser(curve_of(count, width, before=3)[2], 16)
    assert len(found.loss_sums) <= 16
    expected = curve_of(count, found.width, before=3)[2]
    assert found.loss_sums == pytest.approx(expected.loss_sums, rel=1e-12)
    assert (found.correct, found.times) == (expected.correct, expected.times)
    assert (found.samples, found.before) == (count, 3)


def test_groups_are_spread_evenly_and_sums_are_exact_where_they_end():
    sums = (4.0, 2.0, 3.0)
    curve = Curve(width=4, samples=10, loss_sums=sums, correct=(1, 4, 0), alone_sums=sums)
    assert spread_losses(curve).tolist() == [1.0] * 4 + [0.5] * 4 + [1.5] * 2
    assert spread_known(curve, "alone").tolist() == spread_losses(curve).tolist()
    assert spread_known(curve, "base") is None
    right = spread_correct(curve)
    assert [right[:4].sum(), right[4:8].sum(), right[8:].sum()] == [1, 4, 0]
    assert set(right.tolist()) <= {0, 1}


def test_an_empty_curve_has_no_averages():
    for function in (last_samples, mean_losses, accuracies, spread_losses, spread_correct):
        assert list(function(Curve())) == []


def test_curves_of_baselines_begin_where_they_are_known():
    base = (None, 2.0, 4.0, 3.0, 1.0)
    curve = Curve(samples=5, loss_sums=(1.0,) * 5, base_sums=base, alone_sums=(None,) * 5)
    assert known_means(curve.base_sums, curve) == [None, 2.0, 3.0, 3.0, 2.5]
    assert known_means(curve.alone_sums, curve) == known_means((), curve) == []
    assert coarser(curve, 3).base_sums == (None, 7.0, 1.0)


@pytest.mark.parametrize("num_points", [0, 1, 2, 499, 500, 501, 10_007])
def test_few_points_are_kept_in_order_with_the_first_and_the_last(num_points):
    kept = evenly_spread(num_points)
    assert len(kept) == min(num_points, 500)
    assert (np.diff(kept) > 0).all()
    if num_points:
        assert (kept[0], kept[-1]) == (0, num_points - 1)


@given(st.integers(min_value=0, max_value=2000))
def test_thinned_points_are_bounded_in_order_and_end_with_the_last_one(num_points: int):
    curve = Thinned(LIMIT)
    for x in range(num_points):
        curve.add(x, -x)
    points = curve.points
    assert len(points) <= LIMIT
    assert points == sorted(set(points))
    assert all(y == -x for x, y in points)
    assert len({right[0] - left[0] for left, right in pairwise(points[:-1])}) <= 1, "evenly spread"
    if num_points:
        assert (points[0], points[-1]) == ((0, 0), (num_points - 1, 1 - num_points))


def test_points_that_step_back_replace_the_last_one():
    # A peer that was killed may have forgotten its last samples for a moment.
    curve = Thinned(LIMIT)
    for x, y in ((10, 0.6), (20, 0.5), (15, 0.55), (30, 0.3), (30, 0.4)):
        curve.add(x, y)
    assert curve.points == [(10, 0.6), (20, 0.55), (30, 0.4)]
