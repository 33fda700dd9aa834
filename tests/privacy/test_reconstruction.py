"""The reconstruction attack against steps that are written out by hand, one sample each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.models import Hinge, LogisticRegression, RidgeRegression, SoftmaxRegression
from oneway.privacy.reconstruction import (
    Candidates,
    LinearAttack,
    Steps,
    nearest,
    read_exactly,
    score,
    with_substance,
)
from oneway.records import Batch

MODELS = {"logistic": LogisticRegression, "hinge": Hinge, "ridge": RidgeRegression}


def steps_of(model, features, labels, estimates, rate=0.1):
    gradients = model.gradients(estimates, Batch(features, labels))
    return Steps(rate * gradients, estimates)


def rate_of(_features):
    return np.full(len(_features), 0.1)


def test_a_step_of_two_features_is_read_as_it_was_made():
    """Slope -0.5, length 0.1: (a, 1) = (2, -3, 1) becomes (-0.1, 0.15, -0.05)."""
    steps = Steps(np.array([[-0.1, 0.15, -0.05]]), np.zeros((1, 3)))
    found = LinearAttack("logistic", l2=0.0, intercept=True).candidates(steps, rate_of)
    np.testing.assert_allclose(found.features, [[2.0, -3.0]])
    assert found.labels.tolist() == [1.0]


@pytest.mark.parametrize("name", MODELS)
@given(seed=st.integers(0, 2**32))
def test_one_sample_with_an_intercept_is_read_with_its_label(name, seed):
    rng = np.random.default_rng(seed)
    model = MODELS[name](l2=1e-4)
    features, estimates = rng.normal(size=(20, 5)), rng.normal(0, 0.3, (20, 6))
    labels = rng.choice([-1.0, 1.0], 20) if name != "ridge" else rng.normal(0, 4, 20)
    slopes = model.slopes(model.scores(estimates, features), labels)
    told = np.abs(slopes) > 1e-3  # a hinge that is not hurt says nothing
    steps = steps_of(model, features, labels, estimates)
    found = LinearAttack(name, 1e-4, intercept=True).candidates(steps, rate_of)
    assert read_exactly(found, features[told], labels[told]).all()


def test_a_class_of_several_is_read_with_the_sample():
    rng = np.random.default_rng(3)
    model = SoftmaxRegression(num_classes=4, l2=1e-4)
    features, estimates = rng.normal(size=(30, 5)), rng.normal(0, 0.3, (30, 24))
    labels = rng.integers(0, 4, 30).astype(float)
    steps = steps_of(model, features, labels, estimates)
    attack = LinearAttack("softmax", 1e-4, intercept=True, num_classes=4)
    assert read_exactly(attack.candidates(steps, rate_of), features, labels).all()


@pytest.mark.parametrize("name", ["logistic", "hinge"])
def test_without_an_intercept_the_loss_gives_the_scale_away(name):
    rng = np.random.default_rng(4)
    model = MODELS[name](l2=0.0, intercept=False)
    features, estimates = rng.normal(size=(50, 5)), rng.normal(0, 0.3, (50, 5))
    labels = rng.choice([-1.0, 1.0], 50)
    told = np.abs(model.slopes(model.scores(estimates, features), labels)) > 1e-3
    steps = steps_of(model, features, labels, estimates)
    found = LinearAttack(name, 0.0, intercept=False).candidates(steps, rate_of)
    assert read_exactly(found, features[told], labels[told]).mean() > 0.9


def test_least_squares_without_an_intercept_gives_the_direction_only():
    rng = np.random.default_rng(5)
    model = RidgeRegression(l2=0.0, intercept=False)
    features, labels = rng.normal(size=(50, 5)), rng.normal(0, 4, 50)
    steps = steps_of(model, features, labels, rng.normal(0, 0.3, (50, 5)))
    found = LinearAttack("ridge", 0.0, intercept=False).candidates(steps, rate_of)
    result = score(found, features, labels, features)
    assert result.rows_read_exactly == 0
    assert result.cosine > 1 - 1e-9


def test_a_row_counts_as_read_only_with_its_label_and_to_a_millionth():
    rows, labels = np.array([[3.0, 4.0], [1.0, 0.0]]), np.array([1.0, -1.0])
    near = rows + np.array([[4e-6, 0.0], [2e-6, 0.0]])
    assert read_exactly(Candidates(near, labels), rows, labels).tolist() == [True, False]
    assert not read_exactly(Candidates(rows, -labels), rows, labels).any()
    assert not read_exactly(Candidates(np.zeros((0, 2)), np.zeros(0)), rows, labels).any()


def test_the_nearest_candidate_is_that_of_the_largest_cosine_up_to_its_sign():
    places, cosines = nearest(np.array([[1.0, 1.0], [-2.0, 0.0]]), np.array([[5.0, 0.0]]))
    assert (places.tolist(), cosines.tolist()) == ([1], [1.0])


def test_rounding_is_no_step():
    steps = Steps(np.array([[1e-13, 0.0], [1e-3, 0.0]]), np.ones((2, 2)))
    assert with_substance(steps).tolist() == [False, True]
