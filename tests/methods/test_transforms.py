"""What happens to gradients before the step, against plain loops; memory is a node's own."""

from __future__ import annotations

import numpy as np
import pytest

import oneway as ow
from oneway.errors import ConfigError
from oneway.methods import TRANSFORMS, Gradients
from oneway.methods.transforms import Clip, Momentum
from oneway.testing.method_checks import check_method

RNG = np.random.default_rng(0)


def test_clipping_shortens_only_what_is_too_long():
    gradients = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    clipped, memory = Clip(norm=1.0).update(gradients, {}, RNG)
    np.testing.assert_allclose(clipped, [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]], rtol=1e-15)
    assert memory == {}


def test_momentum_is_an_exponential_mean_of_the_gradients():
    momentum, gradients = Momentum(beta=0.8), np.random.default_rng(1).normal(size=(6, 3, 2))
    memory = momentum.init(np.zeros((3, 2)))
    literal = np.zeros((3, 2))
    for gradient in gradients:
        update, memory = momentum.update(gradient, memory, RNG)
        literal = 0.8 * literal + 0.2 * gradient
        np.testing.assert_allclose(update, literal, rtol=1e-14, atol=1e-15)


def test_transforms_apply_in_order():
    """Clip, then momentum: the other order would give another number."""
    method = ow.Isolated(1.0, transforms=(Clip(1.0), Momentum(0.5)))
    state = method.start(np.zeros((1, 1)))
    after = method.local_step(state, Gradients(np.array([[10.0]]), 0), RNG)
    assert method.estimate(after) == -0.5
    swapped = ow.Isolated(1.0, transforms=(Momentum(0.5), Clip(1.0)))
    after = swapped.local_step(
        swapped.start(np.zeros((1, 1))), Gradients(np.array([[10.0]]), 0), RNG
    )
    assert swapped.estimate(after) == -1.0


def test_a_node_without_a_sample_keeps_its_model_and_its_memory():
    method = ow.OnlinePushSum(0.5, transforms=(Momentum(0.5),))
    state = method.start(np.ones((2, 3)))
    learned = Gradients(np.ones((2, 3)), 0, active=np.array([True, False]))
    after = method.local_step(state, learned, RNG)
    np.testing.assert_array_equal(method.estimate(after), [[0.75] * 3, [1.0] * 3])
    np.testing.assert_array_equal(after.memory["0.momentum.mean"], [[0.5] * 3, [0.0] * 3])


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("method", [ow.OnlinePushSum, ow.NaiveGossip, ow.Isolated])
def test_every_transform_suits_every_method(name, method):
    check_method(method(0.1, transforms=(TRANSFORMS[name](),)))


@pytest.mark.parametrize(
    ("make", "culprit"),
    [
        (lambda: Clip(norm=0), "norm is 0"),
        (lambda: Clip(norm=float("inf")), "norm is inf"),
        (lambda: Momentum(beta=1.0), "beta is 1.0"),
        (lambda: Momentum(beta=-0.1), "beta is -0.1"),
    ],
)
def test_a_parameter_that_breaks_its_rule_is_named(make, culprit):
    with pytest.raises(ConfigError, match=culprit):
        make()
