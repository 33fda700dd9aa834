"""Long vectors are worked on piece by piece, and short cuts are taken: no number changes by it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pytest
from builders import replace
from hypothesis import given
from hypothesis import strategies as st

from oneway.protocol import compact, fixed_point, incoming
from oneway.protocol.compact import flaw, packed_total, unpack
from oneway.protocol.fixed_point import (
    ONE,
    Fixed,
    fixed,
    freeze,
    length_of,
    numbers_of,
    portion,
    zeros,
)
from oneway.protocol.layout import Layout
from oneway.protocol.memo import LARGE_BYTES, extent_of_all, once_per_array
from oneway.protocol.messages import Data, Life, Progress
from oneway.protocol.rules import Rules
from oneway.protocol.state import InEdge, PeerState
from oneway.protocol.tags import NO_TAG, digest_of
from oneway.records import Segment

SHORT = 128
LAYOUTS = {
    "ops": [Segment("numerator", "split")],
    "relay": [
        Segment("numerator", "split"),
        Segment("parcel", "forwarded"),
        Segment("count", "forwarded", is_vector=False),
    ],
    "tracking": [
        Segment("model", "copied"),
        Segment("tracker", "split", tracks="momentum"),
        Segment("weight", "copied", is_vector=False),
    ],
}
layouts = st.sampled_from(sorted(LAYOUTS))
seeds = st.integers(0, 2**32 - 1)
dims = st.sampled_from([1, 2, 63, 64, 127, 128, 129, 192, 256, 300, 511])
Result = TypeVar("Result")


def in_short_pieces(work: Callable[[], Result]) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fixed_point, "PIECE", SHORT)
        patch.setattr(compact, "PIECE", SHORT)
        patch.setattr(fixed_point, "_MANY", SHORT // 4)
        return work()


def amount(layout: Layout, rng: np.random.Generator, mass: float) -> Fixed:
    units = zeros(layout.width)
    reach = rng.choice([1e-9, 1e-3, 1.0, 900.0])
    units[:-1] = rng.uniform(-reach, reach, layout.width) * ONE
    units[:-1][rng.random(layout.width) < rng.choice([0.0, 0.5, 1.0])] = 0
    units[-1] = int(mass * ONE)
    if not layout.copies_model:
        units[layout.model] = units[layout.model] * mass
    return units


@given(seeds, dims, st.sampled_from([1e-6, 1.0, 2.0**12, 2.0**21]))
def test_numbers_become_units_and_units_numbers_as_they_do_all_at_once(seed, dim, most):
    rng = np.random.default_rng(seed)
    numbers = rng.uniform(-most, most, dim) * (rng.random(dim) < rng.choice([0.3, 1.0]))
    numbers[rng.random(dim) < 0.1] = 0.5 / ONE
    units = in_short_pieces(lambda: fixed(numbers, 0.75))
    assert np.array_equal(units, np.rint(np.append(numbers, 0.75) * ONE).astype(np.int64))
    assert np.array_equal(in_short_pieces(lambda: numbers_of(units)), units / ONE)
    length = in_short_pieces(lambda: length_of(units))
    assert length == pytest.approx(np.linalg.norm(units / ONE), rel=1e-13)


@given(seeds, dims, st.sampled_from([np.nan, np.inf, -np.inf, 2.0**22, -1e300]))
def test_what_does_not_fit_is_found_in_whichever_piece_it_is(seed, dim, number):
    rng = np.random.default_rng(seed)
    numbers = rng.choice([0.0, 1.0]) * rng.normal(size=dim)
    numbers[rng.integers(dim)] = number
    with pytest.raises(OverflowError, match="does not fit"):
        in_short_pieces(lambda: fixed(numbers))


@given(seeds, layouts, dims, st.floats(0.0, 1.0), st.floats(0.01, 1.0))
def test_a_portion_is_the_floor_of_every_number_by_itself(seed, name, dim, share, of_all):
    layout = Layout.of(LAYOUTS[name], dim)
    held = amount(layout, np.random.default_rng(seed), 0.7)
    share *= of_all
    found = in_short_pieces(lambda: layout.portion(held, share, of_all))
    wanted = np.floor(held * share).astype(np.int64)
    for place in layout.forwarded:
        wanted[place] = np.floor(held[place] * (share / of_all)).astype(np.int64)
    for place in layout.copied:
        wanted[place] = 0
    assert np.array_equal(found, wanted)
    assert np.array_equal(in_short_pieces(lambda: portion(held, share)), np.floor(held * share))


@given(seeds, layouts, dims, st.sampled_from([1e3, 1.0, 1e-3]))
def test_a_total_is_packed_and_unpacked_as_it_is_all_at_once(seed, name, dim, radius):
    layout, rng = Layout.of(LAYOUTS[name], dim), np.random.default_rng(seed)
    base = amount(layout, rng, rng.choice([0.0, 0.5, 30.0]))
    part = amount(layout, rng, rng.choice([0.0, 1e-9, 0.3]))
    if rng.random() < 0.5 and not layout.copies_model and base[-1] > 0:  # near the base's model
        part[layout.model] = base[layout.model] * (part[-1] / base[-1]) + rng.integers(9, size=dim)
    at_once, total = packed_total(layout, part, 7, base, radius)
    saved = base.copy(), part.copy()
    packed, again = in_short_pieces(lambda: packed_total(layout, part, 7, base, radius))
    assert np.array_equal(total, again)
    assert np.array_equal(packed.exact, at_once.exact)
    assert (packed.follows, packed.exponents, packed.codes) == (
        at_once.follows,
        at_once.exponents,
        at_once.codes,
    )
    assert not flaw(layout, base, packed)
    assert np.array_equal(in_short_pieces(lambda: unpack(layout, base, packed)), total)
    assert np.array_equal(unpack(layout, base, packed), total)
    assert np.array_equal(base, saved[0])
    assert np.array_equal(part, saved[1])


@given(seeds, layouts, dims, st.sampled_from([1e-3, 0.1, 10.0]), st.booleans(), st.booleans())
def test_what_is_seen_to_be_near_is_what_nothing_is_cut_off_of(
    seed, name, dim, clip, has_mass, has_minted
):
    """The short cut of `absorb` for what lies within the limits, against the way without it."""
    layout, rng = Layout.of(LAYOUTS[name], dim), np.random.default_rng(seed)
    rules = Rules(b"", radius=float(rng.choice([0.5, 1e3])), clip=clip, mass_limit=100.0)
    state = PeerState.new(layout.width, 1, 1 << 20, layout)
    if has_minted:
        held = amount(layout, rng, 1.0)
        state = replace(state, holding=held, minted=held)
    heard = amount(layout, rng, 2.0)
    delta = amount(layout, rng, 0.3 if has_mass else 0.0)
    edge = InEdge(b"a" * 32, 1 << 21, heard, seq=4)
    life = Life(1 << 20, 0, False, NO_TAG)
    total = layout.with_copies(heard + layout.booked(delta), delta)
    told = Data(edge.epoch, life, 1, 0, 0, 5, total, NO_TAG, Progress(0, b""))
    fast = in_short_pieces(lambda: incoming.absorb(state, edge, told, rules))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(incoming, "_is_near", lambda *_: False)
        slow = incoming.absorb(state, edge, told, rules)
    assert (fast.strike is None) == (slow.strike is None)
    assert (fast.clipped, fast.waits) == (slow.clipped, slow.waits)
    for field in ("holding", "minted", "clipped", "owed"):
        assert np.array_equal(getattr(fast.state, field), getattr(slow.state, field)), field


# Results that are computed once.

LARGE = LARGE_BYTES // 8


def test_of_a_large_array_a_function_is_computed_once_as_long_as_it_lives():
    calls = []
    total = once_per_array(lambda array: calls.append(len(array)) or int(array.sum()))
    array = np.ones(LARGE, dtype=np.int64)
    freeze(array)
    assert [total(array), total(array)] == [LARGE, LARGE]
    assert calls == [LARGE]
    del array
    gc.collect()
    other = np.full(LARGE, 2)
    freeze(other)
    assert total(other) == 2 * LARGE
    assert calls == [LARGE, LARGE]


@pytest.mark.parametrize("function", [extent_of_all, digest_of])
@pytest.mark.parametrize("size", [3, LARGE])
def test_a_read_leaves_its_argument_writable_and_sees_later_changes(function, size):
    array = np.ones(size, dtype=np.int64)
    before = function(array)
    array[0] = 7
    assert function(array) != before
