"""The learning rate that nodes choose: against plain loops, its bounds, its regret, its privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oneway as ow
from oneway.methods import AutoRate, Batches, Gradients
from oneway.methods.auto_rate import SQUARES
from oneway.methods.transforms import Momentum
from oneway.models import typical_curvature

RNG = np.random.default_rng(0)


@dataclass
class LiteralNode:
    """One node of mass 1 that learns alone, number by number."""

    reach: float
    ceiling: float
    batches: Batches
    model: list[float]
    squares: float = 0.0
    batch: list[list[float]] = field(default_factory=list)

    def rate(self):
        root = math.sqrt(self.squares)
        return min(self.ceiling, self.reach / root) if root else self.ceiling

    def learn(self, gradient, curvature, rng):
        factor = min(self.rate(), 0.5 / curvature) / self.rate()
        gradient = [factor * value for value in gradient]
        length = math.sqrt(math.fsum(value**2 for value in gradient))
        if length > self.batches.clip:
            gradient = [value * self.batches.clip / length for value in gradient]
        self.batch.append(gradient)
        if len(self.batch) < self.batches.samples:
            return
        spread = self.batches.noise * self.batches.clip if self.batches.noise else 0.0
        drawn = rng.standard_normal((1, len(gradient)))[0] if spread else np.zeros(len(gradient))
        said = [
            math.fsum(values) + spread * normal
            for values, normal in zip(zip(*self.batch, strict=True), drawn, strict=True)
        ]
        self.squares += math.fsum(value**2 for value in said)
        self.model = [a - self.rate() * b for a, b in zip(self.model, said, strict=True)]
        self.batch = []


SOME_BATCHES = (Batches(1), Batches(3), Batches(4, 0.6, 0.5), Batches(1, 0.6, 0.5))


def steps_of(node, method, num_steps=40, seed=1):
    """The models of a literal node and of the method, after every step."""
    rng, draws, same = (np.random.default_rng(seed + extra) for extra in (0, 100, 100))
    gradients = rng.normal(size=(num_steps, 3)) * rng.choice([0.1, 1.0, 30.0], (num_steps, 1))
    curvatures = rng.uniform(0.1, 40.0, num_steps)
    state = method.start(np.zeros((1, 3)))
    for index in range(num_steps):
        node.learn(gradients[index].tolist(), curvatures[index], draws)
        learned = Gradients(gradients[index : index + 1], index, curvatures[index : index + 1])
        state = method.learn(state, learned, same)
        yield node.model, method.estimate(state)[0], state


@pytest.mark.parametrize("batches", SOME_BATCHES)
def test_a_node_alone_takes_the_steps_of_a_literal_transcription(batches):
    rate = AutoRate(reach=1.5, ceiling=0.8)
    method = ow.Isolated(rate, "curvature", batches=batches)
    for literal, model, _ in steps_of(LiteralNode(1.5, 0.8, batches, [0.0] * 3), method):
        np.testing.assert_allclose(model, literal, rtol=1e-12, atol=1e-14)


class SquaresOfRawGradients(ow.Isolated):
    """Not private: the rate says how long the gradients were before clip and noise."""

    def learn(self, state, gradients, rng, normals=None):
        after = super().learn(state, gradients, rng, normals)
        raw = state.memory[SQUARES] + (gradients.values**2).sum(axis=1, keepdims=True)
        return type(after)(after.segments, {**after.memory, SQUARES: raw})


class RateOfTheBatchBefore(ow.Isolated):
    def local_step(self, state, gradients, rng):
        memory = {**state.memory, SQUARES: state.memory[SQUARES] - (gradients.values**2).sum()}
        after = super().local_step(type(state)(state.segments, memory), gradients, rng)
        squares = after.memory[SQUARES] + (gradients.values**2).sum()
        return type(after)(after.segments, {**after.memory, SQUARES: np.abs(squares)})


class NoCurvature(ow.Isolated):
    def _scaled(self, state, gradients):
        return gradients.values


@pytest.mark.parametrize("wrong", [SquaresOfRawGradients, RateOfTheBatchBefore, NoCurvature])
def test_the_transcription_tells_wrong_methods_apart(wrong):
    batches = Batches(4, 0.6, 0.5)
    method = wrong(AutoRate(reach=1.5, ceiling=0.8), "curvature", batches=batches)
    with np.errstate(invalid="ignore"):
        pairs = [
            (literal, model)
            for literal, model, _ in steps_of(LiteralNode(1.5, 0.8, batches, [0.0] * 3), method)
        ]
    assert not all(np.allclose(model, literal, rtol=1e-9, atol=0) for literal, model in pairs)


@given(seed=st.integers(0, 2**32 - 1), samples=st.integers(2, 6))
def test_a_rate_depends_on_samples_only_through_full_noised_batches(seed, samples):
    """Two neighbouring data sets and noise that makes up for the difference: all is the same."""
    rng = np.random.default_rng(seed)
    method = ow.Relay(AutoRate(ceiling=0.3), "curvature", batches=Batches(samples, 1.0, 1.0))
    gradients = rng.normal(size=(samples, 2, 1, 3))  # of two worlds, short enough for no clip
    gradients *= 0.9 / np.linalg.norm(gradients, axis=-1, keepdims=True)
    normal = rng.normal(size=(1, 3))
    difference = gradients[:, 0].sum(axis=0) - gradients[:, 1].sum(axis=0)
    memories = []
    for world, noise in enumerate((normal, normal + difference)):
        state = method.start(np.zeros((1, 3)))
        for index in range(samples):
            assert state.memory[SQUARES] == 0.0  # an unfinished batch moves nothing
            learned = Gradients(gradients[index, world], index, np.array([0.25]))
            state = method.learn(state, learned, rng, _Fixed(noise))
        memories.append((state.memory[SQUARES], state.segments["parcel"]))
    np.testing.assert_allclose(memories[0][0], memories[1][0], rtol=1e-12)
    np.testing.assert_allclose(memories[0][1], memories[1][1], rtol=1e-12, atol=1e-14)


@dataclass
class _Fixed:
    noise: np.ndarray

    def standard_normal(self, size):
        return self.noise.reshape(size)


@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.sampled_from([1e-6, 1.0, 1e6]),
    reach=st.floats(0.1, 10.0),
)
def test_no_step_is_longer_than_the_reach_and_their_squares_grow_as_a_logarithm(seed, size, reach):
    """Whatever the gradients: this is why noise cannot carry a model far."""
    gradients = size * np.random.default_rng(seed).normal(size=(50, 1, 4))
    method = ow.Isolated(AutoRate(reach=reach, ceiling=1e12))
    state, lengths = method.start(np.zeros((1, 4))), []
    for index, gradient in enumerate(gradients):
        after = method.learn(state, Gradients(gradient, index), RNG)
        lengths.append(np.linalg.norm(method.estimate(after) - method.estimate(state)))
        state = after
    assert max(lengths) <= reach * (1 + 1e-9)
    growth = math.log(state.memory[SQUARES].item() / (gradients[0] ** 2).sum())
    assert sum(length**2 for length in lengths) <= reach**2 * (1 + growth) * (1 + 1e-9)


def steps_into_parcels(method, seed, num_samples=40):
    """How long the steps are that a node of Relay takes, of gradients of any size."""
    rng = np.random.default_rng(seed)
    gradients = rng.normal(size=(num_samples, 1, 3)) * 10.0 ** rng.uniform(-3, 3)
    state = method.start(np.zeros((1, 3)))
    for index, gradient in enumerate(gradients):
        before = state.segments
        state = method.learn(state, Gradients(gradient, index), rng)
        if state.segments["count"] > before["count"]:
            yield float(np.linalg.norm(state.segments["parcel"] - before["parcel"]))


@pytest.mark.parametrize(
    "method",
    [
        ow.Relay("auto"),
        ow.Relay("auto", batches=Batches(4, 0.5, 3.0)),
        ow.Relay("auto", transforms=(Momentum(0.9),), batches=Batches(2)),
        ow.Relay(0.3, batches=Batches(4, 0.5)),
    ],
    ids=["auto", "noised", "momentum", "a number"],
)
def test_no_node_takes_a_step_longer_than_its_method_says_and_one_takes_one_nearly_as_long(method):
    """Receivers strike who hands over longer ones."""
    longest = max(length for seed in range(200) for length in steps_into_parcels(method, seed, 8))
    assert 0.9 * method.longest_step < longest <= method.longest_step * (1 + 1e-9)


@pytest.mark.parametrize(
    "method",
    [
        ow.Relay(0.3),
        ow.Relay(0.3, batches=Batches(4)),
        ow.Relay(0.3, batches=Batches(4, 0.5, 1.0)),
        ow.Relay(0.3, transforms=(Momentum(0.9),), batches=Batches(4, 0.5)),
        ow.Relay(lambda _: 0.3, batches=Batches(4, 0.5)),
    ],
    ids=["no clip", "an infinite clip", "noise", "momentum", "a schedule"],
)
def test_where_nothing_limits_a_step_its_length_is_not_limited(method):
    assert method.longest_step == math.inf


def regret(method, num_steps, seed):
    """Against the best fixed number, of predicting normal numbers, in absolute loss."""
    labels = np.random.default_rng(seed).normal(size=num_steps)
    state, loss = method.start(np.zeros((1, 1))), 0.0
    for index, label in enumerate(labels):
        model = method.estimate(state).item()
        loss += abs(model - label)
        learned = Gradients(np.array([[np.sign(model - label)]]), index)
        state = method.learn(state, learned, RNG)
    return loss - np.abs(np.median(labels) - labels).sum()


def exponent(make, lengths=(200, 800, 3200)):
    """By which power of the number of steps regret grows, fitted over the lengths."""
    means = [np.mean([regret(make(), length, seed) for seed in range(12)]) for length in lengths]
    return np.polyfit(np.log(lengths), np.log(means), 1)[0]


class NeverFalls(ow.Isolated):
    def local_step(self, state, gradients, rng):
        after = super().local_step(state, gradients, rng)
        return type(after)(after.segments, {**after.memory, SQUARES: np.full((1, 1), 1.0)})


def test_regret_grows_as_the_root_of_the_number_of_steps():
    assert exponent(lambda: ow.Isolated(AutoRate(reach=1.0, ceiling=10.0))) == pytest.approx(
        0.5, abs=0.12
    )
    assert exponent(lambda: NeverFalls(AutoRate(reach=1.0, ceiling=10.0))) > 0.85


def test_a_model_suits_the_rate_to_its_curvature():
    for model, reach in (
        (ow.models.LogisticRegression(l2=0.0), 2.0),
        (ow.models.SoftmaxRegression(3, l2=0.0), 1.0),
        (ow.models.RidgeRegression(l2=0.0), 0.5),
    ):
        rate = ow.Relay("auto").suited(typical_curvature(model, 9), 9).auto
        assert rate == AutoRate(reach=reach, ceiling=reach / 10)
    assert typical_curvature(ow.models.Hinge(), 9) is None
    assert ow.Relay("auto").suited(None, 9).auto == AutoRate(2.0, 0.2)
    assert AutoRate().most(10) == 0.2
    own = AutoRate(3.0, 0.7)
    assert ow.OnlinePushSum(own, step="capped").suited(0.25, 9).learning_rate == own
