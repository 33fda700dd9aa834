"""Whole numbers that wrap, and stamps that only grow."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.protocol.fixed_point import (
    LARGEST,
    extent,
    fixed,
    mass_of,
    portion,
    zeros,
)
from oneway.protocol.layout import Layout
from oneway.protocol.stamps import RANDOM_BITS, first_stamp, later_stamp

LOWEST, HIGHEST = -(2**63), 2**63 - 1

int64s = st.integers(LOWEST, HIGHEST) | st.sampled_from([LOWEST, -1, 0, 1, HIGHEST])
amounts = st.lists(int64s, min_size=3, max_size=3).map(
    lambda units: np.array(units, dtype=np.int64)
)
stamps = st.integers(0, 2**61)


def wrapped(number: int) -> int:
    """What 64 bits make of a whole number."""
    return (number - LOWEST) % 2**64 + LOWEST


@given(st.lists(amounts, min_size=1, max_size=8))
def test_sums_are_sums_modulo_two_to_the_64(parts):
    total = zeros(2)
    for part in parts:
        total = total + part
    assert total.tolist() == [
        wrapped(sum(column)) for column in zip(*(part.tolist() for part in parts), strict=True)
    ]


@given(amounts, amounts)
def test_the_difference_of_two_totals_is_exact_however_often_they_wrapped(before, part):
    assert ((before + part) - before).tolist() == part.tolist()


@pytest.mark.parametrize(
    "number", [math.nan, math.inf, -math.inf, 1e300, -1e300, 2.0**22, -(2.0**22), 2.0**23]
)
def test_what_does_not_fit_is_refused_and_nothing_but_an_error_comes_of_it(number):
    with pytest.raises(OverflowError, match="does not fit"):
        fixed(np.array([0.0, number]))
    with pytest.raises(OverflowError, match="does not fit"):
        fixed(np.array([0.0]), number)


def test_two_numbers_that_fit_have_a_sum_that_fits():
    most = fixed(np.array([np.nextafter(2.0**22, 0.0)]))
    assert int(most[0]) < LARGEST
    assert (most + most).tolist() == [2 * int(most[0]), 0]


@given(amounts, st.floats(0.0, 0.999))
def test_a_portion_and_what_it_was_subtracted_from_are_the_whole(amount, share):
    part = portion(amount, share)
    assert ((amount - part) + part).tolist() == amount.tolist()


@given(st.lists(st.integers(-(2**53), 2**53), min_size=2, max_size=5), st.floats(0.0, 1.0))
def test_a_portion_of_a_positive_mass_is_never_more_than_the_mass(units, share):
    amount = np.array([*units, abs(units[0])])
    assert 0 <= mass_of(portion(amount, share)) <= mass_of(amount)


@given(amounts)
def test_the_largest_number_is_right_where_the_absolute_value_does_not_fit(amount):
    assert extent(amount[:-1]) == max(abs(int(units)) for units in amount[:-1])
    assert extent(np.array([LOWEST, 0])) == 2**63
    assert extent(np.array([], dtype=np.int64)) == 0


def test_the_model_that_an_amount_carries_is_its_numerator_by_its_mass():
    amount = fixed(np.array([1.5, -3.0]), 0.5)
    np.testing.assert_array_equal(Layout().model_in(amount), [3.0, -6.0])


# Stamps.


@given(stamps, stamps)
def test_a_later_stamp_is_later_and_has_the_random_bits_of_this_life(than, now):
    later = later_stamp(than, now)
    assert later > than
    assert later % 2**RANDOM_BITS == now % 2**RANDOM_BITS
    if now >> RANDOM_BITS > than >> RANDOM_BITS:
        assert later == now


@given(st.integers(0, 2**62 - 1), st.integers(0, 2**64))
def test_a_first_stamp_is_the_time_to_a_millisecond_with_the_random_bits_of_the_start(time, bits):
    stamp = first_stamp(time, bits)
    assert abs(stamp - time) < 2**RANDOM_BITS < 1.1e6
    assert stamp % 2**RANDOM_BITS == bits % 2**RANDOM_BITS


@given(stamps, st.lists(stamps, min_size=1, max_size=20), st.integers(0, 2**20 - 1))
def test_two_lives_after_the_same_backup_never_share_a_stamp(saved, clocks, bits):
    """Whatever their clocks say, as long as the random bits of the two starts differ."""
    other = bits ^ 1
    one = {later_stamp(saved, first_stamp(clock, bits)) for clock in clocks}
    two = {later_stamp(saved, first_stamp(clock, other)) for clock in clocks}
    assert not one & two
    assert min(one | two) > saved
