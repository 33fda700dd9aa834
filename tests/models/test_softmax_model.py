from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.errors import ConfigError, DataError
from oneway.models import LogisticRegression, SoftmaxRegression
from oneway.records import Batch


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1), intercept=st.booleans())
def test_two_opposite_classes_are_logistic_regression(seed: int, intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    softmax = SoftmaxRegression(2, l2=0.0, intercept=intercept)
    logistic = LogisticRegression(l2=0.0, intercept=intercept)
    features, signs = rng.normal(size=(6, 3)), rng.choice([-1.0, 1.0], 6)
    params = rng.normal(size=logistic.dim(3))
    both = np.concatenate([-params / 2, params / 2])
    classes = Batch(features, (signs + 1) / 2)
    binary = Batch(features, signs)
    np.testing.assert_allclose(
        softmax.losses(both, classes), logistic.losses(params, binary), rtol=1e-12, atol=1e-15
    )
    halves = softmax.gradient(both, classes).reshape(2, -1)
    np.testing.assert_allclose(halves[1], logistic.gradient(params, binary), atol=1e-14)
    np.testing.assert_allclose(halves[0], -halves[1], atol=1e-14)


def test_parameters_are_class_major_with_the_intercept_last() -> None:
    model = SoftmaxRegression(3)
    params = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    assert model.dim(2) == 9
    np.testing.assert_allclose(model.scores(params, np.array([[10.0, 100.0]])), [[213, 546, 879]])


@pytest.mark.parametrize("size", [800.0, 1e308])
def test_the_cross_entropy_is_stable_at_any_score(size: float) -> None:
    model = SoftmaxRegression(2, l2=0.0, intercept=False)
    params = np.array([0.0, 1.0])
    batch = Batch(np.array([[size], [size]]), np.array([0.0, 1.0]))
    with np.errstate(over="raise", invalid="raise"):
        assert model.losses(params, batch).tolist() == [size, 0.0]
        np.testing.assert_array_equal(
            model.gradients(np.tile(params, (2, 1)), batch), [[-size, size], [0.0, 0.0]]
        )


def test_the_highest_score_is_predicted_and_the_lowest_class_wins_ties() -> None:
    model = SoftmaxRegression(3, intercept=False)
    features = np.array([[1.0], [-1.0], [0.0]])
    params = np.array([0.0, 1.0, -1.0])
    assert model.predict(params, features).tolist() == [1.0, 2.0, 0.0]
    batch = Batch(features, np.array([1.0, 0.0, 0.0]))
    assert model.correct(np.tile(params, (3, 1)), batch).tolist() == [True, False, True]


@pytest.mark.parametrize("wrong", [-1.0, 3.0, 0.5, float("nan")])
def test_labels_that_are_not_classes_are_named(wrong: float) -> None:
    SoftmaxRegression(3).check_labels(np.array([0, 1, 2], np.float32))
    with pytest.raises(DataError, match=rf"label {wrong:g} of sample 1 .*classes 0\.\.2"):
        SoftmaxRegression(3).check_labels(np.array([0.0, wrong]))


@pytest.mark.parametrize("classes", [1, -2, 2.0, "3", True])
def test_a_number_of_classes_below_two_is_named(classes: Any) -> None:
    with pytest.raises(ConfigError, match=r"SoftmaxRegression got num_classes=.*>= 2"):
        SoftmaxRegression(classes)
