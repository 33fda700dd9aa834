"""How far a step may move a peer: what is told at a glance is what is computed in full."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.methods import Relay, State
from oneway.peer.learner import INSIDE, inside, part_within
from oneway.peer.push_pace import PushPace
from oneway.protocol import fixed_point
from oneway.protocol.pace import IDLE_BYTES, IDLE_SECONDS
from oneway.protocol.rules import Rules
from oneway.protocol.state import PeerState

METHOD = Relay(0.1)
EXAMPLES = settings(deadline=None, max_examples=100)


def row(rng: np.random.Generator, size: float, mass: float) -> State:
    parts = {name: size * rng.normal(size=(1, 300)) for name in ("numerator", "parcel")}
    return State({**parts, "count": np.ones((1, 1)), "mass": np.array([[mass]])}, {})


@EXAMPLES
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-3, 1.0, 30.0]),
    st.sampled_from([1e-3, 1.0, 30.0]),
    st.sampled_from([0.0, 1e-6, 1.0]),
    st.sampled_from([1e-3, 0.5, np.inf]),
    st.sampled_from([0.1, 10.0]),
)
def test_a_step_is_limited_as_its_definition_says(seed, size, step, mass, clip, radius):
    rng, rules = np.random.default_rng(seed), Rules(b"", clip=clip, radius=radius)
    before = row(rng, size, mass)
    moved = before.segments["numerator"] + step * rng.normal(size=(1, 300))
    after = State({**before.segments, "numerator": moved}, {})
    limits = np.maximum(radius * INSIDE * mass, np.abs(before.segments["numerator"]))
    found = inside(METHOD, before, after, rules).segments["numerator"]
    assert np.array_equal(found, moved.clip(-limits, limits))
    if mass:
        own, there = before.segments["numerator"] / mass, moved / mass
        distance, reach = np.linalg.norm(there - own), clip * (1.0 + np.linalg.norm(own))
        part = 1.0 if distance <= reach else reach / distance
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fixed_point, "PIECE", 128)
            assert part_within(METHOD, before, after, rules) == pytest.approx(part, rel=1e-12)
    same = State(dict(before.segments), {})
    assert inside(METHOD, before, same, rules) is same
    assert part_within(METHOD, before, same, rules) == 1.0


@pytest.mark.parametrize(("dim", "seconds"), [(20, IDLE_SECONDS), (2_000_000, 16e6 / IDLE_BYTES)])
def test_who_has_no_samples_passes_on_a_large_model_less_often(dim, seconds):
    pace = PushPace(np.zeros(3), 100.0)
    pace.last = 100.0
    state = PeerState.new(dim, 1, 1)
    moved = np.ones(3)
    assert not pace.is_due(moved, state, 100.0 + 0.99 * seconds, 0.001)
    assert pace.is_due(moved, state, 100.0 + 1.01 * seconds, 0.001)
    pace.stepped(1, 100.0)
    assert pace.is_due(moved, state, 100.002, 0.001)


@EXAMPLES
@given(waited=st.floats(0.0, 1e6), between=st.floats(0.0, 1e6))
def test_who_waits_for_a_step_passes_on_ever_less_often_down_to_once_a_second(waited, between):
    assert PushPace(np.zeros(3), 5.0).idle_seconds(3, 5.0 + waited) == IDLE_SECONDS
    pace = PushPace(np.zeros(3), 5.0, learns=True)
    wait = max(IDLE_SECONDS, min(waited / 32, 1.0))
    assert pace.idle_seconds(3, 5.0 + waited) == pytest.approx(wait)
    pace.stepped(1, 5.0 + between)
    wait = max(wait, min(between / 32, 30.0))
    assert pace.idle_seconds(3, 5.0 + between + waited) == pytest.approx(wait)


@EXAMPLES
@given(
    between=st.floats(0.0, 1e6),
    steps=st.integers(1, 5),
    dim=st.integers(1, 3_000_000),
)
def test_what_others_sent_is_passed_on_32_times_between_two_own_steps_at_most(between, steps, dim):
    pace = PushPace(np.zeros(3), 7.0)
    for step in range(1, steps + 1):
        pace.stepped(1, 7.0 + step * between)
    wait = pace.idle_seconds(dim, pace.last_step)
    assert wait >= IDLE_SECONDS
    assert wait >= 8 * dim / IDLE_BYTES
    assert wait >= min(30.0, between / 32) * (1 - 1e-9)
    # No longer than one of the three rules asks for.
    slowest = min(30.0, between / 32)
    assert wait == pytest.approx(max(IDLE_SECONDS, slowest, 8 * dim / IDLE_BYTES))


def test_a_step_that_moved_nothing_is_not_pushed():
    pace = PushPace(np.zeros(3), 0.0)
    state = PeerState.new(3, 1, 1)
    pace.stepped(1, 1.0, moved=False)
    assert not pace.is_due(np.zeros(3), state, 9.0, 0.001)
    pace.stepped(1, 2.0)
    assert pace.is_due(np.zeros(3), state, 9.0, 0.001)


def test_an_own_step_is_pushed_at_once_however_rare_steps_are():
    pace = PushPace(np.zeros(3), 0.0)
    state, moved = PeerState.new(3, 1, 1), np.ones(3)
    pace.stepped(1, 320.0)
    assert pace.is_due(np.zeros(3), state, 320.0, 0.001)
    pace.last = 320.0
    pace.pushed(np.zeros(3))
    assert not pace.is_due(moved, state, 329.0, 0.001)
    assert pace.is_due(moved, state, 330.0, 0.001)
