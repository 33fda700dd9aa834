"""The running base rate, literally; and when a loss is worse beyond doubt."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.metrics.baselines import base_rate_sums, half_width, is_worse, lately
from oneway.models import Hinge, LogisticRegression, RidgeRegression, SoftmaxRegression
from oneway.records.curve import Curve

MODELS = {
    "logistic": (LogisticRegression(), 2),
    "hinge": (Hinge(), 2),
    "softmax": (SoftmaxRegression(num_classes=3), 3),
    "ridge": (RidgeRegression(), 0),
}


def literal_loss(name: str, before: list[float], label: float) -> float:
    """What answering with what was seen before costs, in words of one syllable."""
    if name == "ridge":
        mean = sum(before) / len(before) if before else 0.0
        return (mean - label) ** 2 / 2
    if name == "hinge":
        balance = sum(before)
        score = 1.0 if balance > 0 else -1.0 if balance < 0 else 0.0
        return max(0.0, 1.0 - label * score)
    classes = [-1.0, 1.0] if name == "logistic" else [0.0, 1.0, 2.0]
    share = (before.count(label) + 0.5) / (len(before) + 0.5 * len(classes))
    return -math.log(share)


@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(list(MODELS)))
def test_the_base_rate_of_every_node_is_that_of_what_it_saw_before(seed, name):
    rng = np.random.default_rng(seed)
    model, num_classes = MODELS[name]
    num_rounds, num_nodes = int(rng.integers(1, 30)), int(rng.integers(1, 4))
    labels = {
        "ridge": rng.normal(5.0, 2.0, 40),
        "softmax": rng.integers(0, 3, 40).astype(float),
    }.get(name, rng.choice([-1.0, 1.0], 40, p=[0.8, 0.2]))
    rows = rng.integers(-1, 40, (num_rounds, num_nodes))
    seen: list[list[float]] = [[] for _ in range(num_nodes)]
    expected = np.zeros(num_rounds)
    for t in range(num_rounds):
        for node in range(num_nodes):
            if rows[t, node] >= 0:
                label = float(labels[rows[t, node]])
                expected[t] += literal_loss(name, seen[node], label)
                seen[node].append(label)
    # Blocks of any height give the same.
    for most in (1, 7, 2**20):
        found = base_rate_sums(model, num_classes, labels, rows, most=most)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def curve_of(losses: np.ndarray, base: np.ndarray, alone: np.ndarray | None, width: int = 1):
    def sums(values: np.ndarray) -> tuple[float, ...]:
        return tuple(float(values[at : at + width].sum()) for at in range(0, len(values), width))

    return Curve(
        width=width,
        samples=len(losses),
        loss_sums=sums(losses),
        base_sums=sums(base),
        alone_sums=() if alone is None else sums(alone),
    )


@pytest.mark.parametrize("width", [1, 8, 128])
def test_the_last_samples_are_compared_as_means_of_batches_have_it(width):
    rng = np.random.default_rng(7)
    losses, base, alone = rng.random((3, 5003)) + np.array([[0.5], [0.4], [0.0]])
    found = lately(curve_of(losses, base, alone, width))
    count = max(20, math.ceil(1000 / width))  # groups, the last of them not full
    samples = (count - 1) * width + (5003 % width or width)
    assert found.samples == samples
    assert found.loss == pytest.approx(losses[-samples:].mean(), rel=1e-12)
    assert found.base_loss == pytest.approx(base[-samples:].mean(), rel=1e-12)
    assert found.alone_loss == pytest.approx(alone[-samples:].mean(), rel=1e-12)
    plain = (losses - base)[-samples:].std() / math.sqrt(samples)
    assert 0.5 * plain < found.base_error < 2.0 * plain
    batches = np.array_split(np.arange(5003)[-samples:], 20)
    if width == 1:
        means = [(losses - base)[batch].mean() for batch in batches]
        assert found.base_error == pytest.approx(np.std(means, ddof=1) / math.sqrt(20), rel=1e-12)
    assert is_worse(found.loss, found.base_loss, found.base_error)
    assert half_width(found.base_error) < found.loss - found.base_loss


def test_few_samples_or_unknown_baselines_are_not_compared():
    some = np.ones(199)
    assert lately(curve_of(some, some, some)) is None
    assert lately(Curve()) is None
    old = Curve(samples=500, loss_sums=(1.0,) * 500)
    assert lately(old) is None
    mixed = Curve(samples=600, loss_sums=(1.0,) * 600, base_sums=(None,) * 300 + (0.5,) * 300)
    assert lately(mixed).samples == 300
    assert lately(mixed).alone_loss is None


def test_a_fair_coin_is_hardly_ever_said_to_be_worse_than_itself():
    rng = np.random.default_rng(8)
    wrong = 0
    for _ in range(300):
        noise = rng.normal(size=(2, 1000)) * 0.3 + 0.7
        # Neighbours resemble each other, as losses of a stream do.
        smooth = np.apply_along_axis(np.convolve, 1, noise, np.ones(10) / 10, "same")
        found = lately(curve_of(smooth[0], smooth[1], None))
        wrong += is_worse(found.loss, found.base_loss, found.base_error)
    assert wrong <= 3


def test_nothing_is_worse_than_an_unknown_baseline():
    for baseline, error in ((None, None), (0.5, None), (0.5, math.inf)):
        assert not is_worse(1.0, baseline, error)
