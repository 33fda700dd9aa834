"""The moving mean and range of what the lab page shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.dashboard.lab.watcher import SlowRange, Smoothed

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50)


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


@given(st.lists(NUMBERS, min_size=1, max_size=20), st.integers(1, 20))
def test_a_range_always_holds_the_latest_numbers_and_never_more_than_all(groups, memory):
    scale = SlowRange(memory)
    assert scale.add([]) is None
    seen: list[float] = []
    for group in groups:
        seen += group
        low, high = scale.add(group)
        assert min(seen) - 1e-6 <= low <= min(group) + 1e-6
        assert max(group) - 1e-6 <= high <= max(seen) + 1e-6
        assert scale.add([]) == (low, high), "without new numbers it stays"
