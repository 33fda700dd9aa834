"""The membership test keeps to the promise for every method, and catches those that are wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import oneway as ow
from oneway.methods import Batches, State
from oneway.methods.transforms import AdaGrad, Momentum
from oneway.privacy import Guarantee, sensitivity
from oneway.privacy.audit import canary_test

DELTA = 1e-5
DIM = 8
GRAPH = ow.TrustGraph.random(num_nodes=4, max_receivers=2, seed=3)


def found(method, epsilon, band=1, factor=1.0, canaries=2000, **options):
    noise = factor * Guarantee(epsilon, DELTA).noise_multiplier * sensitivity(band)
    batches = Batches(DIM, clip=2.0, noise=noise, band=band)
    built = method(0.1, batches=batches, **options)
    return canary_test(built, DIM, GRAPH, 0, canaries, DELTA, seed=0)


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_what_a_method_sends_tells_no_more_than_promised(epsilon):
    bound = found(ow.OnlinePushSum, epsilon, band=32).epsilon_lower_bound
    assert 0.2 * epsilon < bound <= epsilon


def test_too_little_noise_is_caught():
    assert found(ow.OnlinePushSum, 8.0, factor=0.6).epsilon_lower_bound > 8.0


@pytest.mark.parametrize("method", [ow.Pull, ow.Relay, ow.Tracking])
def test_and_as_much_as_any_other_method(method):
    """All of them send the same noised sums: an attack on one must not be weaker."""
    sent = found(method, 8.0, band=32, canaries=800)
    assert sent == found(ow.OnlinePushSum, 8.0, band=32, canaries=800)


@pytest.mark.parametrize(
    "options",
    [
        {"mixes": 2},
        {"transforms": (Momentum(),)},
        {"transforms": (AdaGrad(),)},
    ],
    ids=str,
)
def test_variants_of_relay_hide_nothing_from_the_attack_and_tell_no_more_than_promised(options):
    assert 1.6 < found(ow.Relay, 8.0, canaries=800, **options).epsilon_lower_bound <= 8.0
    assert found(ow.Relay, 8.0, factor=0.5, canaries=800, **options).epsilon_lower_bound > 8.0


# Methods that do it nearly right, each with one mistake that its name says.


def clipped(method, gradients):
    lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
    return gradients * np.minimum(1.0, method.batches.clip / np.maximum(lengths, 1e-300))


def raw_step(method, state, gradients):
    """The step that the batch makes without noise, if it is full with these gradients."""
    earlier = state.memory.get("batch.sum", 0.0)
    return method.rate(0) * (earlier + clipped(method, gradients.values))


@dataclass(frozen=True)
class GradientsInTheParcelBeforeTheBatchIsFull(ow.Relay):
    """Each gradient travels at once; when the batch is full, its noise follows."""

    def learn(self, state, gradients, rng, normals=None):
        after = super().learn(state, gradients, rng, normals)
        early = state.memory.get("early", np.zeros_like(state.segments["parcel"]))
        now = self.rate(0) * clipped(self, gradients.values)
        if after.segments is not state.segments:
            now, kept = -early, np.zeros_like(early)
        else:
            kept = early + now
        segments = {**after.segments, "parcel": after.segments["parcel"] + now}
        return State(segments, {**after.memory, "early": kept})


@dataclass(frozen=True)
class NoiseInTheDepositOnly(ow.Relay):
    """What is kept is noised, what is passed on is not."""

    def learn(self, state, gradients, rng, normals=None):
        after = super().learn(state, gradients, rng, normals)
        if after.segments is state.segments:
            return after
        parcel = state.segments["parcel"] + raw_step(self, state, gradients)
        noise = after.segments["parcel"] - parcel
        numerator = after.segments["numerator"] - self.fractions(after) * noise
        return State({**after.segments, "parcel": parcel, "numerator": numerator}, after.memory)


@dataclass(frozen=True)
class NoiseDrawnForEachSegment(ow.Relay):
    """The deposit and the parcel have noise of their own, each as large as it should be."""

    def learn(self, state, gradients, rng, normals=None):
        after = super().learn(state, gradients, rng, normals)
        if after.segments is state.segments:
            return after
        parcel = after.segments["parcel"]
        first = parcel - state.segments["parcel"] - raw_step(self, state, gradients)
        size = self.rate(0) * self.batches.clip * self.batches.noise
        second = size * rng.standard_normal(parcel.shape)
        change = self.fractions(after) * (second - first)
        numerator = after.segments["numerator"] - change
        return State({**after.segments, "numerator": numerator}, after.memory)


@dataclass(frozen=True)
class TrackerOfGradientsWithoutNoise(ow.Tracking):
    """The model moves by noised steps, the tracker knows better."""

    def learn(self, state, gradients, rng, normals=None):
        after = super().learn(state, gradients, rng, normals)
        if after.segments is state.segments:
            return after
        raw = self.descend(state, raw_step(self, state, gradients))
        segments = {**after.segments, "tracker": raw.segments["tracker"]}
        return State(segments, {**after.memory, "momentum": raw.memory["momentum"]})


@dataclass(frozen=True)
class NoiseDrawnForModelAndTracker(ow.Tracking):
    """Model and tracker have noise of their own, each as large as it should be."""

    def learn(self, state, gradients, rng, normals=None):
        after = super().learn(state, gradients, rng, normals)
        if after.segments is state.segments:
            return after
        size = self.rate(0) * self.batches.clip * self.batches.noise
        second = size * rng.standard_normal(after.segments["model"].shape)
        other = self.descend(state, raw_step(self, state, gradients) + second)
        return State({**after.segments, "model": other.segments["model"]}, after.memory)


WRONG = (
    GradientsInTheParcelBeforeTheBatchIsFull,
    NoiseInTheDepositOnly,
    NoiseDrawnForEachSegment,
    TrackerOfGradientsWithoutNoise,
    NoiseDrawnForModelAndTracker,
)


@pytest.mark.parametrize("method", WRONG)
def test_a_method_that_is_wrong_is_caught(method):
    assert found(method, 8.0).epsilon_lower_bound > 8.0
