"""Formulas of the linear models and of softmax regression, and their rules."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.errors import ConfigError, DataError
from oneway.models import (
    Hinge,
    LogisticRegression,
    RidgeRegression,
    SoftmaxRegression,
)
from oneway.records import Batch

finite = st.floats(-3, 3)


def paper_loss(x: list[float], a: list[float], y: float, lam: float) -> float:
    """Transcribe f = log(1 + exp(-y A^T x)) + lambda/2 ||x||^2, letter by letter."""
    inner = sum(a_k * x_k for a_k, x_k in zip(a, x, strict=True))
    return math.log(1 + math.exp(-y * inner)) + lam / 2 * sum(x_k**2 for x_k in x)


@given(
    x=st.lists(finite, min_size=4, max_size=4),
    a=st.lists(finite, min_size=3, max_size=3),
    y=st.sampled_from([-1.0, 1.0]),
)
def test_the_default_logistic_loss_is_the_papers_with_a_constant_feature(
    x: list[float], a: list[float], y: float
) -> None:
    batch = Batch(np.array([a]), np.array([y]))
    expected = paper_loss(x, [*a, 1.0], y, lam=1e-4)
    assert LogisticRegression().loss(np.array(x), batch) == pytest.approx(expected, rel=1e-13)


def test_the_other_losses_are_their_formulas() -> None:
    batch = Batch(np.array([[2.0, -1.0]]), np.array([-1.0]))
    params = np.array([0.5, 0.25, 1.0])  # score 1 - 0.25 + 1 = 1.75
    penalty = 0.1 / 2 * (0.25 + 0.0625 + 1.0)
    assert RidgeRegression(l2=0.1).loss(params, batch) == pytest.approx(2.75**2 / 2 + penalty)
    assert Hinge(l2=0.1).loss(params, batch) == pytest.approx(2.75 + penalty)


@pytest.mark.parametrize("size", [40.0, 800.0, 1e100, 1e308])
@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_the_logistic_loss_is_stable_at_any_margin(size: float, label: float) -> None:
    model = LogisticRegression(l2=0.0, intercept=False)
    params = np.array([1.0])
    wrong = Batch(np.array([[-label * size]]), np.array([label]))
    right = Batch(np.array([[label * size]]), np.array([label]))
    with np.errstate(over="raise", invalid="raise"):
        assert model.loss(params, wrong) == size
        assert model.loss(params, right) == pytest.approx(math.exp(-size), rel=1e-12)
        assert model.gradient(params, wrong)[0] == size
        assert abs(model.slopes(np.array([label * size]), right.labels)[0]) == pytest.approx(
            math.exp(-size), rel=1e-12
        )
        assert model.curvatures(np.array([size, -size]), np.ones(2)) == pytest.approx(
            math.exp(-size), rel=1e-12
        )


def test_edges_of_what_is_predicted_and_learned() -> None:
    """A score of 0 predicts +1; a hinge has no slope from its kink upwards; numbers are no hits."""
    batch = Batch(np.zeros((2, 1)), np.array([1.0, -1.0]))
    for model in (LogisticRegression(), Hinge()):
        assert model.predict(np.zeros(2), batch.features).tolist() == [1.0, 1.0]
        assert model.correct(np.zeros((2, 2)), batch).tolist() == [True, False]
    slopes = Hinge().slopes(np.array([0.999, 1.0, -0.999, -1.0]), np.array([1.0, 1.0, -1.0, -1.0]))
    assert slopes.tolist() == [-1.0, 0.0, 1.0, 0.0]
    assert RidgeRegression().predict(np.array([3.0, 1.0]), np.array([[2.0]])).tolist() == [7.0]
    assert RidgeRegression().correct(np.zeros((2, 2)), batch) is None


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


@given(seed=st.integers(0, 2**32 - 1), rows=st.sampled_from([1, 3]), intercept=st.booleans())
def test_a_lesson_of_softmax_is_losses_correct_and_gradients(seed, rows, intercept) -> None:
    rng = np.random.default_rng(seed)
    model = SoftmaxRegression(5, l2=0.03, intercept=intercept)
    features = rng.normal(size=(rows, 4))
    stack, labels = rng.normal(size=(rows, model.dim(4))), rng.integers(5, size=rows) * 1.0
    batch = Batch(features, labels)
    told = model.learning_pass(stack, batch, rng)
    assert np.array_equal(told.losses, model.losses(stack, batch))
    assert np.array_equal(told.correct, model.correct(stack, batch))
    assert np.array_equal(told.gradients, model.gradients(stack, batch))
    scores = model.scores(stack, features)
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    slopes = chances / chances.sum(axis=1, keepdims=True) - np.eye(5)[labels.astype(int)]
    inputs = np.column_stack([features, np.ones(rows)]) if intercept else features
    for row in range(rows):
        literal = 0.03 * stack[row] + np.outer(slopes[row], inputs[row]).reshape(-1)
        assert np.array_equal(told.gradients[row], literal)


@pytest.mark.parametrize(
    ("model", "good", "wrong", "rule"),
    [
        (LogisticRegression(), 1.0, 0.0, "map the two classes"),
        (Hinge(), -1.0, float("nan"), "map the two classes"),
        (RidgeRegression(), 1e300, float("inf"), "is not finite"),
        (SoftmaxRegression(3), 2.0, 3.0, r"classes 0\.\.2"),
        (SoftmaxRegression(3), 0.0, 0.5, r"classes 0\.\.2"),
        (SoftmaxRegression(3), 0.0, -1.0, r"classes 0\.\.2"),
    ],
)
def test_labels_that_a_model_cannot_learn_from_are_named(model, good, wrong, rule) -> None:
    model.check_labels(np.array([good]))
    with pytest.raises(DataError, match=rf"label {wrong:g} of sample 1 .*{rule}"):
        model.check_labels(np.array([good, wrong, wrong]))


@pytest.mark.parametrize(
    ("make", "culprit"),
    [
        *((lambda l2=l2: Hinge(l2=l2), "Hinge got l2=") for l2 in (-1e-4, math.nan, "0.1", True)),
        (lambda: SoftmaxRegression(3, l2=math.inf), "SoftmaxRegression got l2="),
        (lambda: RidgeRegression(intercept="no"), "RidgeRegression got intercept="),
        (lambda: SoftmaxRegression(3, intercept=0), "SoftmaxRegression got intercept="),
        *((lambda n=n: SoftmaxRegression(n), "num_classes=.*>= 2") for n in (1, 2.0, "3", True)),
        (lambda: LogisticRegression(start=math.nan), "start=nan"),
        (lambda: RidgeRegression(scale=0.0), "scale=0.0"),
        (lambda: RidgeRegression(center="a"), "center='a'"),
        (lambda: SoftmaxRegression(3, start=(1.0, 2.0)), "3 numbers"),
    ],
)
def test_a_parameter_that_breaks_its_rule_is_named(make, culprit: str) -> None:
    with pytest.raises(ConfigError, match=culprit):
        make()
