"""What is computed once for large arrays, and short cuts of arithmetic: the same to the bit."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.protocol.compact import packed_total, unpack
from oneway.protocol.fixed_point import ONE, nearest, portion
from oneway.protocol.layout import Layout
from oneway.protocol.memo import LARGE_BYTES, once_per_array
from oneway.records import Segment

LARGE = LARGE_BYTES // 8


def test_of_a_large_array_a_function_is_computed_once_as_long_as_it_lives():
    calls = []
    total = once_per_array(lambda array: calls.append(len(array)) or int(array.sum()))
    array = np.ones(LARGE, dtype=np.int64)
    assert [total(array), total(array)] == [LARGE, LARGE]
    assert calls == [LARGE]
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 7
    del array
    gc.collect()
    assert total(np.full(LARGE, 2)) == 2 * LARGE
    assert calls == [LARGE, LARGE]


def test_windows_onto_arrays_that_may_change_and_small_arrays_are_looked_at_every_time():
    total = once_per_array(lambda array: int(array.sum()))
    whole = np.ones(LARGE + 1, dtype=np.int64)
    for array in (whole[1:], np.ones(3, dtype=np.int64)):
        before = total(array)
        array[0] += 5
        assert total(array) == before + 5


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2**30, 2**50, 2**51, 2**60]))
@settings(deadline=None, max_examples=30)
def test_many_numbers_are_rounded_as_few_are(seed, most):
    rng = np.random.default_rng(seed)
    numbers = rng.uniform(-most, most, 5_000)
    numbers[:100] = np.rint(numbers[:100]) + 0.5
    by_itself = np.concatenate([nearest(one.copy()) for one in np.split(numbers, 50)])
    assert np.array_equal(nearest(numbers.copy()), by_itself)
    units = by_itself
    floors = np.concatenate([portion(one, 0.3) for one in np.split(units, 50)])
    assert np.array_equal(portion(units, 0.3), floors)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["int8", "int4"]), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=60)
def test_who_packs_a_total_knows_what_others_will_unpack(seed, code, copied, has_base):
    rng = np.random.default_rng(seed)
    kind = "copied" if copied else "split"
    segments = [Segment("model", kind), Segment("count", "forwarded", False)]
    layout = Layout.of([*segments, Segment("parcel", "forwarded")], 150)
    size = layout.width + 1
    base = has_base * rng.integers(-ONE, ONE, size)
    part = rng.integers(-ONE // 4, ONE // 4, size) >> rng.integers(0, 30)
    base[-1], part[-1] = has_base * ONE, ONE // 8
    radius = float(rng.choice([1.0, 1e6]))
    packed, total = packed_total(layout, part, 3, base, code, radius)
    assert np.array_equal(unpack(layout, base, packed), total)
