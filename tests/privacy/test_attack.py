"""Which step was taken follows from what was held and what was sent, whatever the method."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oneway as ow
from oneway.methods import State
from oneway.methods.transforms import AdaGrad, Clip, Momentum, transform_memory, transformed
from oneway.privacy.attack import TOGETHER, Observed, Push, readings_of, untransformed

DIM = 3
SEEDS = st.integers(0, 2**32)


def literal_ops(held, step):
    return {"numerator": held["numerator"] - step, "mass": held["mass"]}


def literal_pull(held, step):
    return {"model": held["model"] - step}


def literal_relay(held, step):
    parcel, count = held["parcel"] + step, held["count"] + 1
    phi = min(1.0, 0.3 * held["mass"].item() / math.sqrt(count.item()))
    return {
        "numerator": held["numerator"] - phi * parcel,
        "parcel": (1 - phi) * parcel,
        "count": (1 - phi) * count,
        "mass": held["mass"],
    }


LITERAL = {"ops": literal_ops, "pull": literal_pull, "relay": literal_relay}
METHODS = {"ops": ow.OnlinePushSum, "pull": ow.Pull, "relay": ow.Relay}


def some_held(method, rng):
    return {
        segment.name: rng.normal(size=(1, DIM))
        if segment.is_vector
        else rng.uniform(0.01, 9, (1, 1))
        for segment in method.payload
    }


@pytest.mark.parametrize("name", LITERAL)
@given(seed=SEEDS)
def test_the_step_of_a_literal_sender_is_found(name, seed):
    rng = np.random.default_rng(seed)
    method = METHODS[name](0.1)
    held, step = some_held(method, rng), rng.normal(size=(1, DIM))
    found = readings_of(method, State(held, {}), LITERAL[name](held, step))
    assert found
    for reading in found.values():
        np.testing.assert_allclose(reading, step[0], atol=1e-7)


@given(seed=SEEDS)
def test_a_tracker_tells_every_step_since_the_first(seed):
    """M' = beta m + (1 - beta) D; y' = y + m' - m; x' = x - y', with an inflow after each."""
    rng = np.random.default_rng(seed)
    x, y, m = np.zeros((3, 1, DIM))
    steps, pushes = rng.normal(size=(6, DIM)), []
    for index, step in enumerate(steps):
        held = {"model": x, "tracker": y}
        after = 0.8 * m + 0.2 * step
        y, m = y + after - m, after
        x = x - y
        pushes.append(Push(held, {"model": x, "tracker": y}, index))
        y, x = 0.4 * y + rng.normal(size=(1, DIM)), (x + rng.normal(size=(1, DIM))) / 2
    readings = Observed.of(ow.Tracking(0.1, beta=0.8), pushes).readings
    assert len(readings) == 1, "all segments say the same"
    np.testing.assert_allclose(next(iter(readings.values())), steps, atol=1e-9)


@pytest.mark.parametrize("name", [*LITERAL, "tracking"])
def test_a_push_without_a_step_tells_none(name):
    method = {**METHODS, "tracking": ow.Tracking}[name](0.1)
    before = State(
        some_held(method, np.random.default_rng(1)), method.start(np.zeros((1, DIM))).memory
    )
    sent = method.before_push(before, np.random.default_rng(0)).segments
    assert not readings_of(method, before, sent)


def test_a_parcel_of_which_nothing_is_left_leaves_the_step_to_the_numerator():
    method, rng = ow.Relay(0.1), np.random.default_rng(2)
    held = {**some_held(method, rng), "count": np.zeros((1, 1)), "mass": np.full((1, 1), 4.0)}
    step = rng.normal(size=(1, DIM))
    found = readings_of(method, State(held, {}), literal_relay(held, step))
    assert [*found] == ["numerator"]
    np.testing.assert_allclose(found["numerator"], step[0], atol=1e-12)


def test_segments_that_disagree_are_readings_of_their_own():
    method, rng = ow.Relay(0.1), np.random.default_rng(3)
    held, one, other = some_held(method, rng), *rng.normal(size=(2, 1, DIM))
    sent = literal_relay(held, one) | {"numerator": literal_relay(held, other)["numerator"]}
    found = Observed.of(method, [Push(held, sent, 0)]).readings
    np.testing.assert_allclose(found["parcel"], one, atol=1e-9)
    np.testing.assert_allclose(found["numerator"], other, atol=1e-9)
    np.testing.assert_allclose(found[TOGETHER], (one + other) / 2, atol=1e-9)


@pytest.mark.parametrize(
    "transforms", [(Momentum(0.7),), (AdaGrad(),), (Momentum(0.7), AdaGrad()), (Clip(100.0),)]
)
def test_transforms_are_undone(transforms):
    """Even the first step of AdaGrad, of which little but the signs is left."""
    rng = np.random.default_rng(5)
    gradients = rng.normal(size=(30, DIM))
    memory, updates = transform_memory(transforms, gradients[:1]), []
    for gradient in gradients:
        update, memory = transformed(transforms, memory, gradient[None], rng)
        updates.append(update[0])
    found = untransformed(transforms, np.array(updates), np.ones(30, bool))
    np.testing.assert_allclose(found, gradients, rtol=1e-5, atol=1e-5)
