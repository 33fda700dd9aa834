from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.errors import DataError
from oneway.models import Hinge, LinearModel, LogisticRegression, RidgeRegression
from oneway.records import Batch

finite = st.floats(-3, 3)


def paper_loss(x: list[float], a: list[float], y: float, lam: float) -> float:
    """Transcribe f = log(1 + exp(-y A^T x)) + lambda/2 ||x||^2, letter by letter."""
    inner = sum(a_k * x_k for a_k, x_k in zip(a, x, strict=True))
    return math.log(1 + math.exp(-y * inner)) + lam / 2 * sum(x_k**2 for x_k in x)


@settings(deadline=None)
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


@pytest.mark.parametrize("model", [LogisticRegression(), Hinge()])
def test_a_score_of_zero_predicts_plus_one(model: LinearModel) -> None:
    batch = Batch(np.zeros((2, 1)), np.array([1.0, -1.0]))
    assert model.predict(np.zeros(2), batch.features).tolist() == [1.0, 1.0]
    assert model.correct(np.zeros((2, 2)), batch).tolist() == [True, False]


def test_the_hinge_has_no_slope_from_its_kink_upwards() -> None:
    slopes = Hinge().slopes(np.array([0.999, 1.0, -0.999, -1.0]), np.array([1.0, 1.0, -1.0, -1.0]))
    assert slopes.tolist() == [-1.0, 0.0, 1.0, 0.0]


def test_ridge_predicts_its_scores_and_counts_nothing_as_correct() -> None:
    batch = Batch(np.array([[2.0]]), np.array([5.0]))
    model = RidgeRegression()
    assert model.predict(np.array([3.0, 1.0]), batch.features).tolist() == [7.0]
    assert model.correct(np.array([[3.0, 1.0]]), batch) is None


@pytest.mark.parametrize("model", [LogisticRegression(), Hinge()])
@pytest.mark.parametrize("wrong", [0.0, 2.0, float("nan")])
def test_labels_other_than_minus_and_plus_one_are_named(model: LinearModel, wrong: float) -> None:
    model.check_labels(np.array([-1, 1], np.float32))
    with pytest.raises(DataError, match=rf"label {wrong:g} of sample 2 .*map the two classes"):
        model.check_labels(np.array([-1.0, 1.0, wrong, wrong]))


def test_ridge_labels_that_are_not_finite_are_named() -> None:
    RidgeRegression().check_labels(np.array([1e300, -3.5]))
    with pytest.raises(DataError, match=r"label inf of sample 1 is not finite"):
        RidgeRegression().check_labels(np.array([0.0, np.inf]))
