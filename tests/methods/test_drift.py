"""Forgetting and restarting: against plain loops, what they are worth after a drift, their cost."""

from __future__ import annotations

import math

import numpy as np
import pytest

import oneway as ow
from oneway.methods import AutoRate, Batches, Gradients
from oneway.methods.auto_rate import SQUARES
from oneway.methods.transforms import MARKS, Forget, Restart, restarts

RNG = np.random.default_rng(0)


def run(method, gradients):
    """The states of one node after every gradient."""
    state, states = method.start(np.zeros((1, gradients.shape[1]))), []
    for index, gradient in enumerate(gradients):
        state = method.learn(state, Gradients(gradient[None, :], index), RNG)
        states.append(state)
    return states


def test_what_is_forgotten_is_a_geometric_sum():
    gradients = np.random.default_rng(1).normal(size=(40, 3))
    method = ow.Isolated(AutoRate(1.5, 0.4), transforms=(Forget(0.8),))
    model = np.zeros(3)
    for place, state in enumerate(run(method, gradients)):
        squares = math.fsum(
            0.8 ** (place - k) * float(gradients[k] @ gradients[k]) for k in range(place + 1)
        )
        model = model - min(0.4, 1.5 / math.sqrt(squares)) * gradients[place]
        assert state.memory[SQUARES].item() == pytest.approx(squares, rel=1e-12)
        np.testing.assert_allclose(method.estimate(state)[0], model, rtol=1e-12, atol=1e-14)
    wrong = run(ow.Isolated(AutoRate(1.5, 0.4), transforms=(Forget(0.64),)), gradients)[-1]
    assert abs(wrong.memory[SQUARES].item() - squares) > 1e-3


def literal_restarts(gradients, sure, slack, beta):
    """At which updates Page's test fires, and the sums of squares after each."""
    mean, height, squares = [0.0] * gradients.shape[1], 0.0, 0.0
    fired, sums = [], []
    for number, gradient in enumerate(gradients.tolist(), start=1):
        length = math.hypot(*gradient) * math.hypot(*mean)
        product = sum(a * b for a, b in zip(gradient, mean, strict=True))
        cosine = product / length if length else 0.0
        height = max(0.0, height + cosine - slack)
        if height > sure:
            fired.append(number)
            height, squares, mean = 0.0, 0.0, [0.0] * len(gradient)
        else:
            mean = [beta * a + (1 - beta) * b for a, b in zip(mean, gradient, strict=True)]
        squares += sum(value**2 for value in gradient)
        sums.append(squares)
    return fired, sums


def drifting(num=160):
    """Noise, then noise around something, then noise again."""
    gradients = np.random.default_rng(2).normal(size=(num, 4))
    gradients[num // 4 : num // 2] += 1.5
    return gradients


def test_a_restart_is_pages_test_on_the_cosine_with_the_mean_before():
    gradients = drifting()
    method = ow.Isolated(AutoRate(1.5, 0.4), transforms=(Restart(2.0, 0.2, 0.9),))
    fired, sums = literal_restarts(gradients, 2.0, 0.2, 0.9)
    states = run(method, gradients)
    assert fired
    assert 40 < fired[0] < 60, "soon after the change"
    assert restarts(states[-1].memory) == fired[-MARKS:]
    np.testing.assert_allclose([it.memory[SQUARES].item() for it in states], sums, rtol=1e-12)


def test_noise_alone_restarts_nothing_and_one_direction_does():
    gradients = np.random.default_rng(3).normal(size=(2000, 10))
    method = ow.Isolated(AutoRate(1.5, 0.4), transforms=(Restart(),))
    assert restarts(run(method, gradients)[-1].memory) == restarts({}) == []
    always = np.tile([1.0, 0.0], (100, 1))
    assert len(restarts(run(method, always)[-1].memory)) == MARKS, "the last ones are remembered"


class NeverForgetsItsMean(Restart):
    """Goes on with the mean that made it fire."""

    def update(self, gradients, memory, rng):
        updates, after = super().update(gradients, memory, rng)
        mean = self.beta * memory["mean"] + (1 - self.beta) * gradients
        return updates, {**after, "mean": mean}


class ComparesWithItself(Restart):
    """The mean has the update in it already."""

    def update(self, gradients, memory, rng):
        mean = self.beta * memory["mean"] + (1 - self.beta) * gradients
        return super().update(gradients, {**memory, "mean": mean}, rng)


@pytest.mark.parametrize("wrong", [NeverForgetsItsMean(), ComparesWithItself()])
def test_the_transcription_tells_wrong_restarts_apart(wrong):
    fired, _ = literal_restarts(drifting(), 2.0, 0.2, 0.9)
    method = ow.Isolated(AutoRate(1.5, 0.4), transforms=(wrong,))
    assert restarts(run(method, drifting())[-1].memory) != fired[-MARKS:]


def test_restarts_depend_on_samples_only_through_full_batches():
    method = ow.Relay("auto", batches=Batches(4, 1.0, 1.0), transforms=(Restart(),))
    state = method.start(np.zeros((1, 3)))
    before = dict(state.memory)
    for index in range(3):
        state = method.learn(state, Gradients(np.ones((1, 3)), index), RNG)
        for name, array in before.items():
            np.testing.assert_array_equal(state.memory[name], array)
    state = method.learn(state, Gradients(np.ones((1, 3)), 3), RNG)
    assert state.memory["0.restart.updates"] == 1.0


def stream(drift, seed=1, rounds=1600, nodes=8):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rounds, nodes, 5)).astype(np.float32)
    chances = 1 / (1 + np.exp(-3.0 * features[..., 0]))
    labels = np.where(rng.random(chances.shape) < chances, 1.0, -1.0)
    if drift:
        labels[rounds // 2 :] *= -1
    return ow.Stream.from_arrays(features, labels.astype(np.float32))


@pytest.mark.parametrize(("chain", "cost"), [((Forget(0.9),), 1.02), ((Restart(),), 1.005)])
def test_they_help_after_a_drift_and_cost_little_without(chain, cost):
    graph = ow.TrustGraph.random(8, 3, seed=1)

    def loss(drift, transforms):
        method = ow.Relay("auto", "curvature", transforms, batches=Batches(8))
        found = ow.simulate(method, ow.models.LogisticRegression(), stream(drift), graph)
        return found.average_loss

    assert loss(True, chain) < 0.99 * loss(True, ())
    assert loss(False, chain) < cost * loss(False, ())
