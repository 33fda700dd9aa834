"""What several samples say together, against plain loops over nodes and samples."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oneway as ow
from oneway.errors import ConfigError
from oneway.methods import Batches, Gradients, State
from oneway.methods.base import BATCH_MEMORY
from oneway.methods.transforms import Momentum, Transform

RULES = ("paper", "capped", "mass", "curvature")


def taken_back(band):
    """The first coefficients of (1 - x)^(1/2), by the binomial series."""
    coefficients = [Fraction(1)]
    for k in range(1, band):
        coefficients.append(coefficients[-1] * -(Fraction(1, 2) - (k - 1)) / k)
    return [float(value) for value in coefficients]


def literal_length(rule, rate, mass, curvature=None):
    if rule == "paper":
        return rate
    if rule == "mass":
        return rate * mass
    if rule == "curvature" and curvature is not None:
        return min(rate, 0.5 * mass / curvature)
    return rate * min(1.0, mass)


@dataclass
class LiteralNode:
    """One node: a numerator that only full batches move."""

    batches: Batches
    rule: str
    numerator: list[float]
    mass: float
    total: list[float] = field(default_factory=list)
    count: int = 0
    draws: list[list[float]] = field(default_factory=list)

    def learn(self, gradient, rate, curvature, rng):
        factor = 1.0
        if self.rule == "curvature" and curvature is not None:
            factor = literal_length("curvature", rate, self.mass, curvature)
            factor /= literal_length("curvature", rate, self.mass)
        gradient = [factor * value for value in gradient]
        length = math.sqrt(math.fsum(value**2 for value in gradient))
        if length > self.batches.clip:
            gradient = [value * self.batches.clip / length for value in gradient]
        before = self.total or [0.0] * len(gradient)
        self.total = [a + b for a, b in zip(before, gradient, strict=True)]
        self.count += 1
        if self.count < self.batches.samples:
            return
        released = self.total
        if self.batches.noise:
            self.draws.insert(0, [float(rng.standard_normal()) for _ in gradient])
            for weight, draw in zip(taken_back(self.batches.band), self.draws, strict=False):
                spread = self.batches.noise * self.batches.clip * weight
                released = [a + spread * b for a, b in zip(released, draw, strict=True)]
        step = literal_length(self.rule, rate, self.mass)
        self.numerator = [a - step * b for a, b in zip(self.numerator, released, strict=True)]
        self.total, self.count = [], 0


some_batches = st.builds(
    Batches,
    samples=st.integers(1, 5),
    clip=st.sampled_from([0.3, 1.0, 5.0]),
    noise=st.sampled_from([0.0, 0.7]),
    band=st.sampled_from([1, 2, 5]),
) | st.builds(Batches, samples=st.integers(1, 5))


@given(
    batches=some_batches,
    rule=st.sampled_from(RULES),
    bent=st.booleans(),
    num_nodes=st.integers(1, 4),
    dim=st.integers(1, 4),
    holes=st.sampled_from([0.0, 0.4]),
    seed=st.integers(0, 10**6),
)
def test_learning_is_what_loops_over_nodes_and_samples_do(
    batches, rule, bent, num_nodes, dim, holes, seed
):
    """The noise too: drawn from the same generator, node by node."""
    world = np.random.default_rng(seed)
    start, masses = world.standard_normal((num_nodes, dim)), world.uniform(0.05, 3.0, num_nodes)
    method = ow.OnlinePushSum(ow.InverseSqrt(0.8), step=rule, batches=batches)
    state = State({"numerator": start, "mass": masses[:, None]}, {})
    nodes = [
        LiteralNode(batches, rule, list(z), m) for z, m in zip(start, masses.tolist(), strict=True)
    ]
    rng, same = np.random.default_rng(1), np.random.default_rng(1)
    for index in range(16):
        gradients = world.standard_normal((num_nodes, dim)) * world.choice([0.1, 1, 10])
        curvatures = world.uniform(0.01, 10, num_nodes) if bent else None
        active = world.random(num_nodes) >= holes if holes else None
        learned = Gradients(gradients, index, curvatures if rule == "curvature" else None, active)
        state = method.learn(state, learned, rng)
        for place, node in enumerate(nodes):
            if active is None or active[place]:
                bend = None if curvatures is None else curvatures[place]
                node.learn(gradients[place], method.rate(index), bend, same)
        expected = [node.numerator for node in nodes]
        np.testing.assert_allclose(state.segments["numerator"], expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(state.segments["mass"][:, 0], masses)
    assert rng.standard_normal() == same.standard_normal()


def released(batches, gradients, active=None, seed=0):
    """What is released, `{(round, node): sum}`, of `gradients[round, node, dim]`."""
    memory, rng, said = {}, np.random.default_rng(seed), {}
    for index, values in enumerate(gradients):
        here = None if active is None else active[index]
        sums, full, memory = batches.add(values, here, memory, rng)
        said |= {(index, int(node)): sums[node] for node in np.flatnonzero(full)}
    return said


@given(
    batches=some_batches.filter(lambda batches: math.isfinite(batches.clip)),
    holes=st.sampled_from([0.0, 0.4]),
    size=st.sampled_from([1e-2, 1.0, 1e3]),
    change=st.sampled_from(["zeroed", "changed", "reversed"]),
    seed=st.integers(0, 10**6),
)
def test_one_sample_moves_one_release_by_the_clip_at_most(batches, holes, size, change, seed):
    """Twice the clip if it has other contents; with the same noise nothing else moves at all."""
    world = np.random.default_rng(seed)
    gradients = world.standard_normal((23, 3, 2))
    active = world.random((23, 3)) >= holes
    where = int(world.integers(23)), int(world.integers(3))
    gradients[where] *= size
    other = gradients.copy()
    other[where] = {"zeroed": 0.0, "changed": world.standard_normal(2) * size}.get(
        change, -gradients[where]
    )
    one, two = (released(batches, values, active) for values in (gradients, other))
    assert one.keys() == two.keys()
    moved = {key: float(np.linalg.norm(one[key] - two[key])) for key in one}
    touched = [key for key in sorted(one) if key[1] == where[1] and key[0] >= where[0]][:1]
    bound = batches.clip * (1.0 if change == "zeroed" else 2.0)
    for key, distance in moved.items():
        assert distance <= (bound * (1 + 1e-9) if key in touched and active[where] else 0.0)


@given(
    batches=some_batches,
    active=st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=20),
)
def test_nothing_but_the_batch_changes_before_it_is_full(batches, active):
    method = ow.OnlinePushSum(0.5, transforms=(Momentum(0.5),), batches=batches)
    world, rng = np.random.default_rng(0), np.random.default_rng(1)
    state, counts = method.start(np.ones((3, 2))), np.zeros(3, int)
    for index, here in enumerate(active):
        learned = Gradients(world.standard_normal((3, 2)), index, active=np.array(here))
        after = method.learn(state, learned, rng)
        counts += here
        full = np.array(here) & (counts % batches.samples == 0)
        for old, new in ((state.segments, after.segments), (state.memory, after.memory)):
            for name in new.keys() - {*BATCH_MEMORY}:
                np.testing.assert_array_equal(new[name][~full], old[name][~full])
        moved = after.segments["numerator"] != state.segments["numerator"]
        np.testing.assert_array_equal(moved.any(axis=1), full)
        assert not after.memory["batch.sum"][full].any()
        assert not after.memory["batch.count"][full].any()
        np.testing.assert_array_equal(after.memory["batch.count"][:, 0], counts % batches.samples)
        state = after


@dataclass(frozen=True)
class Watching(Transform):
    """Writes down everything it is shown."""

    name = "watching"
    shown: list = field(default_factory=list)

    def update(self, gradients, memory, rng):
        self.shown.append(gradients.copy())
        return gradients, {}


@dataclass(frozen=True)
class AdaGrad(ow.OnlinePushSum):
    """A user's own method: each parameter's steps shrink with what it was shown."""

    name = "adagrad"

    def local_step(self, state, gradients, rng):
        before = state.memory.get("squares", np.zeros_like(gradients.values))
        squares = before + gradients.values**2
        if gradients.active is not None:
            squares = np.where(gradients.active[:, None], squares, before)
        values = gradients.values / np.sqrt(squares + 1e-8)
        after = super().local_step(state, replace(gradients, values=values), rng)
        return State(after.segments, {**after.memory, "squares": squares})


def some_samples():
    """Gradients `[round, node, dim]` of three nodes, and who has one."""
    world = np.random.default_rng(0)
    return world.standard_normal((30, 3, 2)), world.random((30, 3)) < 0.7


@pytest.mark.parametrize("band", [1, 5])
def test_transforms_are_shown_noised_sums_and_nothing_else(band):
    """Rows without a full batch are shown as zeros, though their result is thrown away."""
    batches = Batches(4, 0.8, 0.5, band)
    gradients, active = some_samples()
    said = released(batches, gradients, active)
    watching = Watching()
    method = ow.OnlinePushSum(0.1, transforms=(watching,), batches=batches)
    state, rng = method.start(np.zeros((3, 2))), np.random.default_rng(0)
    for index, values in enumerate(gradients):
        state = method.learn(state, Gradients(values, index, active=active[index]), rng)
    rounds = sorted({index for index, _ in said})
    assert len(watching.shown) == len(rounds)
    for index, shown in zip(rounds, watching.shown, strict=True):
        expected = [said.get((index, node), np.zeros(2)) for node in range(3)]
        np.testing.assert_array_equal(shown, expected)


@pytest.mark.parametrize("kind", ["momentum", "adagrad"])
def test_memories_are_made_of_noised_sums_only(kind):
    batches = Batches(4, 0.8, 0.5, 5)
    gradients, active = some_samples()
    said = released(batches, gradients, active)
    method = {
        "momentum": ow.OnlinePushSum(0.1, transforms=(Momentum(0.6),), batches=batches),
        "adagrad": AdaGrad(0.1, batches=batches),
    }[kind]
    name = {"momentum": "0.momentum.mean", "adagrad": "squares"}[kind]
    state, rng = method.start(np.zeros((3, 2))), np.random.default_rng(0)
    literal = np.zeros((3, 2))
    for index, values in enumerate(gradients):
        state = method.learn(state, Gradients(values, index, active=active[index]), rng)
        for node in range(3):
            if (index, node) in said:
                noised = said[index, node]
                literal[node] = (
                    0.6 * literal[node] + 0.4 * noised
                    if kind == "momentum"
                    else literal[node] + noised**2
                )
        np.testing.assert_allclose(state.memory.get(name, np.zeros((3, 2))), literal, rtol=1e-12)


def test_noise_comes_from_the_operating_system_where_a_driver_says_so():
    class Fours:
        def standard_normal(self, size):
            return np.full(size, 4.0)

    method = ow.OnlinePushSum(1.0, batches=Batches(1, 1.0, 0.5))
    learned = Gradients(np.zeros((1, 2)), 0)
    after = method.learn(method.start(np.zeros((1, 2))), learned, np.random.default_rng(0), Fours())
    np.testing.assert_array_equal(method.estimate(after), [[-2.0, -2.0]])


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ({"samples": 0}, "samples is 0"),
        ({"samples": 1.5}, "samples is 1.5"),
        ({"band": 0}, "band is 0"),
        ({"clip": 0.0}, "clip is 0"),
        ({"clip": math.nan}, "clip is nan"),
        ({"noise": -1.0}, "noise is -1"),
        ({"noise": 1.0}, "noise is 1.0 with clip inf"),
        ({"noise": math.nan, "clip": 1.0}, "noise is nan"),
    ],
)
def test_a_parameter_that_breaks_its_rule_is_named(options, culprit):
    with pytest.raises(ConfigError, match=culprit):
        Batches(**options)


# The three quiet mistakes. Two streams are neighbours if one sample of the first is all zeros in
# the second, where it has no gradient. Without noise here: what hides `CLIP` hides no more.

CLIP, SAMPLES, MASS, RATE = 1.0, 16, 0.1, 0.5


class PeeksIntoItsBatch(ow.OnlinePushSum):
    """Takes gradients at an estimate that the batch's own earlier samples moved."""

    def estimate(self, state):
        peeked = RATE * state.memory.get("batch.sum", np.zeros(1))
        return super().estimate(state) - peeked


class CurvatureAfterTheClip(ow.OnlinePushSum):
    """Clips, then scales by what the sample's curvature does to the step."""

    def _scaled(self, state, gradients):
        lengths = np.linalg.norm(gradients.values, axis=1, keepdims=True)
        clipped = gradients.values * (CLIP / np.maximum(lengths, CLIP))
        return super()._scaled(state, replace(gradients, values=clipped))


class CurvatureAtTheRelease(ow.OnlinePushSum):
    """Clips and sums, then takes a step as short as the last sample's curvature wants it."""

    def learn(self, state, gradients, rng, normals=None):
        after = super().learn(state, replace(gradients, curvatures=None), rng, normals)
        masses, rate = self.masses(state), self.rate(gradients.index)
        factor = self.rule.lengths(rate, masses, gradients.curvatures)
        factor /= self.rule.lengths(rate, masses, None)
        before = state.segments["numerator"]
        moved = before + factor[:, None] * (after.segments["numerator"] - before)
        return State({**after.segments, "numerator": moved}, after.memory)


class MomentumBeforeTheNoise(ow.OnlinePushSum):
    """Feeds momentum with the samples' gradients, and clips, sums and noises what comes out."""

    beta: ClassVar[float] = 0.9

    def learn(self, state, gradients, rng, normals=None):
        mean = self.beta * state.memory.get("mean", 0.0) + (1 - self.beta) * gradients.values
        after = super().learn(state, replace(gradients, values=mean), rng, normals)
        return State(after.segments, {**after.memory, "mean": mean})


def first_release(method, model, features, labels):
    """What the first batch says: how far the numerator moved, over the step's length."""
    state = method.start(np.zeros((1, features.shape[1])))
    state = State({**state.segments, "mass": np.array([[MASS]])}, state.memory)
    rng = np.random.default_rng(0)
    for index in range(SAMPLES):
        sample = ow.records.Batch(features[index : index + 1], labels[index : index + 1])
        bounds = model.curvature_bounds(sample.features) if method.rule.needs_curvature else None
        values = model.gradients(method.estimate(state), sample)
        state = method.learn(state, Gradients(values, 0, bounds), rng)
    length = method.rule.lengths(RATE, np.array([MASS]), None)[0]
    return -state.segments["numerator"][0] / length


def distance(method, model, features, labels, gone):
    """How far apart two neighbouring streams lead, in clips."""
    without = features.copy()
    without[gone] = 0.0
    one, other = (first_release(method, model, some, labels) for some in (features, without))
    return float(np.linalg.norm(one - other)) / CLIP


RIDGE = ow.models.RidgeRegression(l2=0.0, intercept=False)
HINGE = ow.models.Hinge(l2=0.0, intercept=False)
LABELS = np.ones(SAMPLES)


def with_one(sample, place):
    """Equal samples but for one."""
    features = np.tile([1.0, 0.0], (SAMPLES, 1))
    features[place] = sample
    return features


def test_gradients_at_an_estimate_that_depends_on_the_batch_leak():
    """All but the first have nothing to say at the start, and a lot once the first has moved it."""
    features, labels = 1000.0 * np.eye(SAMPLES), np.zeros(SAMPLES)
    features[:, 0], labels[0] = 10.0, 1e3
    batches = Batches(SAMPLES, CLIP)
    wrong, right = (
        distance(kind(RATE, batches=batches), RIDGE, features, labels, 0)
        for kind in (PeeksIntoItsBatch, ow.OnlinePushSum)
    )
    assert wrong > 3.5
    assert right == pytest.approx(1.0, rel=1e-12)


def test_a_curvature_limited_step_outside_the_clip_leaks():
    """A node of little mass takes long steps for small samples, and short ones for large samples.

    The first wrong method multiplies what is clipped already, here by 10. With the second, the last
    sample decides how far all the others count.
    """
    step, batches = "curvature", Batches(SAMPLES, CLIP)
    small, large = with_one([0.1, 0.0], 5), with_one([0.0, 100.0], 15)
    labels = LABELS.copy()
    labels[5] = 1e3
    after = CurvatureAfterTheClip(RATE, step=step, batches=Batches(SAMPLES))
    assert distance(after, RIDGE, small, labels, 5) == pytest.approx(10.0, rel=1e-9)
    late = CurvatureAtTheRelease(RATE, step=step, batches=batches)
    assert distance(late, RIDGE, large, LABELS, 15) > 14.0
    right = ow.OnlinePushSum(RATE, step=step, batches=batches)
    assert distance(right, RIDGE, small, labels, 5) == pytest.approx(1.0, rel=1e-9)
    assert 0.0 < distance(right, RIDGE, large, LABELS, 15) <= 1.0


def test_momentum_before_the_noise_leaks():
    """One huge gradient decides where all that follow point, each clipped on its own."""
    features, batches = with_one([-1e6, 0.0], 0), Batches(SAMPLES, CLIP)
    wrong = MomentumBeforeTheNoise(RATE, batches=batches)
    assert distance(wrong, HINGE, features, LABELS, 0) > 20.0
    right = ow.OnlinePushSum(RATE, transforms=(Momentum(0.9),), batches=batches)
    assert 0.0 < distance(right, HINGE, features, LABELS, 0) <= 1.0
