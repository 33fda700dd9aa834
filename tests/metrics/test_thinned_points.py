from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from oneway.metrics import Thinned

LIMIT = 8


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
