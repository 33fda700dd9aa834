from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.metrics import SlowRange, Smoothed, Thinned, evenly_spread

LIMIT = 8
NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50)


@settings(deadline=None)
@given(NUMBERS, st.integers(1, 20))
def test_the_first_numbers_count_alike_and_later_ones_are_followed(numbers, memory):
    slow = Smoothed(memory)
    found = [slow.add(number) for number in numbers]
    first = numbers[:memory]
    assert found[len(first) - 1] == pytest.approx(sum(first) / len(first), abs=1e-6)
    value = found[len(first) - 1]
    for number, smoothed in zip(numbers[memory:], found[memory:], strict=True):
        value = (1 - 1 / memory) * value + number / memory
        assert smoothed == pytest.approx(value, abs=1e-5)


@settings(deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=20), st.integers(1, 20))
def test_a_range_always_holds_the_latest_numbers_and_never_more_than_all(groups, memory):
    scale = SlowRange(memory)
    seen: list[float] = []
    for group in groups:
        seen += group
        low, high = scale.add(group)
        assert min(seen) - 1e-6 <= low <= min(group) + 1e-6
        assert max(group) - 1e-6 <= high <= max(seen) + 1e-6


def test_a_range_without_new_numbers_stays_as_it_is():
    scale = SlowRange(4)
    assert scale.add([]) is None
    assert scale.add([1.0, 2.0]) == scale.add([]) == (1.0, 2.0)


@pytest.mark.parametrize("num_points", [0, 1, 2, 499, 500, 501, 10_007])
def test_few_points_are_kept_in_order_with_the_first_and_the_last(num_points):
    kept = evenly_spread(num_points)
    assert len(kept) == min(num_points, 500)
    assert (np.diff(kept) > 0).all()
    if num_points:
        assert (kept[0], kept[-1]) == (0, num_points - 1)


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=2000))
def test_a_curve_is_bounded_in_order_and_ends_with_its_last_point(num_points: int):
    curve = Thinned(LIMIT)
    for x in range(num_points):
        curve.add(x, -x)
    points = curve.points
    assert len(points) <= LIMIT
    assert points == sorted(set(points))
    assert all(y == -x for x, y in points)
    if num_points:
        assert points[0] == (0, 0)
        assert points[-1] == (num_points - 1, 1 - num_points)


@settings(deadline=None)
@given(st.integers(min_value=LIMIT, max_value=2000))
def test_what_is_left_is_spread_evenly(num_points: int):
    curve = Thinned(LIMIT)
    for x in range(num_points):
        curve.add(x, 0.0)
    xs = [x for x, _ in curve.points]
    gaps = {right - left for left, right in pairwise(xs[:-1])}
    # All but the last gap are one power of two, and no wider than the limit demands.
    assert len(gaps) == 1
    [gap] = gaps
    assert gap & (gap - 1) == 0
    assert gap <= 4 * num_points / LIMIT


def test_a_point_at_the_same_place_replaces_the_last():
    curve = Thinned(LIMIT)
    curve.add(1, 0.5)
    curve.add(1, 0.4)
    assert curve.points == [(1, 0.4)]


def test_a_curve_that_steps_back_stays_where_it_was():
    # A peer that was killed may have forgotten its last samples for a moment.
    curve = Thinned(LIMIT)
    for x, y in ((10, 0.6), (20, 0.5), (15, 0.55), (30, 0.4)):
        curve.add(x, y)
    assert curve.points == [(10, 0.6), (20, 0.55), (30, 0.4)]
