"""The best fixed model, against solvers that share nothing with it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from sklearn.linear_model import LogisticRegression as SklearnLogisticRegression
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from oneway.errors import ComparatorError, DataError
from oneway.metrics import best_fixed_model, comparator_sums
from oneway.metrics.comparator import RoundedHinge
from oneway.models import (
    Hinge,
    LogisticRegression,
    Model,
    RidgeRegression,
    SoftmaxRegression,
)
from oneway.records import Batch, Floats, Matrix, Vector

seeds = st.integers(0, 2**32 - 1)


def table(seed: int, num_rows: int, num_features: int, noise: float = 1.0) -> tuple[Matrix, Vector]:
    """Return features and -1/+1 labels that a linear model can learn in part."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(num_rows, num_features))
    scores = features @ rng.normal(size=num_features) + noise * rng.normal(size=num_rows)
    return features, np.where(scores >= 0.3, 1.0, -1.0)


def solve(model: Model, features: Floats, labels: Floats) -> Vector:
    return best_fixed_model(model, features, labels, np.arange(len(labels)))


def gradient_norm(model: Model, params: Vector, features: Floats, labels: Floats) -> float:
    return float(np.linalg.norm(model.gradient(params, Batch(features, labels))))


@given(seed=seeds, intercept=st.booleans(), l2=st.sampled_from([1e-4, 1e-2, 1.0]))
def test_no_other_solver_beats_the_logistic_comparator(
    seed: int, intercept: bool, l2: float
) -> None:
    features, labels = table(seed, 60, 4)
    model, batch = LogisticRegression(l2, intercept), Batch(features, labels)
    params = solve(model, features, labels)
    assert np.linalg.norm(model.gradient(params, batch)) <= 1e-9
    other = minimize(
        lambda x: model.loss(x, batch),
        np.ones(model.dim(4)),
        jac=lambda x: model.gradient(x, batch),
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000},
    )
    assert model.loss(params, batch) <= other.fun + 1e-13
    assert model.loss(params, batch) == pytest.approx(other.fun, abs=1e-9)


def test_the_softmax_comparator_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    features = rng.normal(size=(400, 3))
    labels = (features @ rng.normal(size=(3, 4)) + rng.gumbel(size=(400, 4))).argmax(axis=1)
    model = SoftmaxRegression(4, l2=1e-2, intercept=False)
    params = solve(model, features, labels.astype(np.float64))
    assert gradient_norm(model, params, features, labels.astype(np.float64)) <= 1e-9
    other = SklearnLogisticRegression(
        C=1 / (1e-2 * 400), fit_intercept=False, solver="lbfgs", tol=1e-9, max_iter=5000
    ).fit(features, labels)
    np.testing.assert_allclose(params.reshape(4, 3), other.coef_, atol=1e-6)


@given(seed=seeds, l2=st.sampled_from([1e-6, 1e-4, 1.0]))
def test_the_ridge_comparator_is_the_closed_form(seed: int, l2: float) -> None:
    rng = np.random.default_rng(seed)
    features, labels = rng.normal(size=(30, 4)), 5 * rng.normal(size=30)
    widened = np.column_stack([features, np.ones(30)])
    expected = np.linalg.solve(widened.T @ widened / 30 + l2 * np.eye(5), widened.T @ labels / 30)
    np.testing.assert_allclose(
        solve(RidgeRegression(l2), features, labels), expected, rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize("model", [RidgeRegression(l2=0), LogisticRegression(l2=0)])
def test_collinear_features_without_l2_still_reach_a_vanishing_gradient(model: Model) -> None:
    features, labels = table(5, 80, 3, noise=2.0)
    doubled = np.column_stack([features, features, np.ones(80)])
    params = solve(model, doubled, labels)
    assert gradient_norm(model, params, doubled, labels) <= 1e-9
    alone = solve(model, features, labels)
    assert model.loss(params, Batch(doubled, labels)) == pytest.approx(
        model.loss(alone, Batch(features, labels)), abs=1e-12
    )


TOUCHING = np.array([[-1.0], [0.0], [0.0], [1.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
ONE_CLASS = np.array([[-1.0], [0.5]]), np.array([1.0, 1.0])


@pytest.mark.parametrize("samples", [TOUCHING, ONE_CLASS])
def test_separable_samples_without_l2_have_no_comparator(samples: tuple[Matrix, Vector]) -> None:
    features, labels = samples
    for model in (LogisticRegression(l2=0.0), SoftmaxRegression(2, l2=0.0)):
        classes = labels if model.labels == "binary" else (labels + 1) / 2
        with pytest.raises(ComparatorError, match=type(model).__name__):
            solve(model, features, classes)
    model = LogisticRegression(l2=1e-4)
    assert gradient_norm(model, solve(model, features, labels), features, labels) <= 1e-9


@given(seed=seeds, noise=st.sampled_from([0.0, 0.5, 2.0]), ties=st.booleans())
def test_without_l2_there_is_a_comparator_exactly_when_no_direction_separates(
    seed: int, noise: float, ties: bool
) -> None:
    features, labels = table(seed, 15, 2, noise)
    features = np.round(features) if ties else features
    # Some direction is on the wrong side of no sample and on the right side of at least one.
    signed = labels[:, None] * np.column_stack([features, np.ones(15)])
    search = linprog(-signed.sum(axis=0), A_ub=-signed, b_ub=np.zeros(15), bounds=[(-1, 1)] * 3)
    if -search.fun > 1e-9:
        with pytest.raises(ComparatorError, match="LogisticRegression"):
            solve(LogisticRegression(l2=0.0), features, labels)
    else:
        params = solve(LogisticRegression(l2=0.0), features, labels)
        assert gradient_norm(LogisticRegression(l2=0.0), params, features, labels) <= 1e-9


@given(seed=seeds, noise=st.sampled_from([0.0, 0.3, 2.0]))
def test_the_hinge_comparator_without_l2_solves_the_linear_program(seed: int, noise: float) -> None:
    features, labels = table(seed, 50, 3, noise)
    params = solve(Hinge(l2=0.0), features, labels)
    # Minimise the mean of the slacks: slack >= 0 and slack >= 1 - y (a, 1) . x.
    signed = labels[:, None] * np.column_stack([features, np.ones(50)])
    program = linprog(
        np.concatenate([np.zeros(4), np.full(50, 1 / 50)]),
        A_ub=np.column_stack([-signed, -np.eye(50)]),
        b_ub=-np.ones(50),
        bounds=[(None, None)] * 4 + [(0, None)] * 50,
    )
    ours = Hinge(l2=0.0).loss(params, Batch(features, labels))
    assert program.fun - 1e-9 <= ours <= program.fun + 1e-6


@given(seed=seeds, l2=st.sampled_from([1e-2, 0.3]), intercept=st.booleans())
def test_the_hinge_comparator_is_as_good_as_a_support_vector_machine(
    seed: int, l2: float, intercept: bool
) -> None:
    features, labels = table(seed, 50, 3)
    model, batch = Hinge(l2, intercept), Batch(features, labels)
    machine = LinearSVC(
        loss="hinge", C=1 / (l2 * 50), fit_intercept=intercept, tol=1e-7, max_iter=10**6
    ).fit(features, labels)
    # Its intercept is a constant feature, penalised like the others, as ours is.
    other = np.append(machine.coef_[0], machine.intercept_) if intercept else machine.coef_[0]
    ours = model.loss(solve(model, features, labels), batch)
    assert ours == pytest.approx(model.loss(other, batch), abs=1e-6)


@given(seed=seeds, width=st.floats(1e-6, 1.0))
def test_a_rounded_hinge_exceeds_the_hinge_by_at_most_its_width(seed: int, width: float) -> None:
    scores = np.random.default_rng(seed).normal(scale=3.0, size=50)
    labels = np.where(scores > 1, 1.0, -1.0)
    rounded = RoundedHinge(width=width).sample_losses(scores, labels)
    excess = rounded - Hinge().sample_losses(scores, labels)
    assert excess.min() >= -1e-14
    assert excess.max() <= width
    at_kink = RoundedHinge(width=width).sample_losses(np.ones(1), np.ones(1))
    assert at_kink == pytest.approx(width)


@pytest.mark.parametrize("kind", [LogisticRegression, RidgeRegression, Hinge])
def test_rows_count_as_often_as_they_come_and_minus_one_not_at_all(kind: type[Model]) -> None:
    features, labels = table(8, 40, 3)
    rows = np.random.default_rng(8).integers(-1, 30, size=(25, 7), dtype=np.int32)
    taken = rows[rows >= 0]
    np.testing.assert_allclose(
        best_fixed_model(kind(), features, labels, rows),
        solve(kind(), features[taken], labels[taken]),
        rtol=1e-6,
    )


def test_comparator_sums_add_the_losses_of_the_nodes_with_a_sample() -> None:
    features, labels = table(9, 20, 3)
    rows = np.random.default_rng(9).integers(-1, 20, size=(12, 5))
    rows[4] = -1
    model, params = LogisticRegression(), np.array([0.5, -1.0, 2.0, 0.1])
    expected = [
        sum(model.loss(params, Batch(features[[r]], labels[[r]])) for r in row if r >= 0)
        for row in rows
    ]
    sums = comparator_sums(model, params, features, labels, rows)
    np.testing.assert_allclose(sums, expected, rtol=1e-13)
    assert sums[4] == 0.0


def test_a_float32_table_is_never_copied_to_float64_as_a_whole() -> None:
    rng = np.random.default_rng(10)
    features = rng.standard_normal((300_000, 18), dtype=np.float32)
    labels = features[:, 0] + rng.standard_normal(300_000, dtype=np.float32)
    rows = np.arange(300_000, dtype=np.int32).reshape(-1, 100)
    model = RidgeRegression()
    tracemalloc.start()
    params = best_fixed_model(model, features, labels, rows)
    sums = comparator_sums(model, params, features, labels, rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * features.nbytes
    batch = Batch(features.astype(np.float64), labels.astype(np.float64))
    assert np.linalg.norm(model.gradient(params, batch)) <= 1e-9
    assert sums.sum() / 300_000 == pytest.approx(model.loss(params, batch), rel=1e-12)


def test_a_stream_without_samples_is_refused() -> None:
    with pytest.raises(DataError, match="0 samples"):
        best_fixed_model(LogisticRegression(), *table(11, 5, 2), np.full((3, 2), -1))


def test_features_too_large_for_the_required_norm_are_reported() -> None:
    features = np.array([[1e12], [2e12], [-3e12]])
    with pytest.raises(ComparatorError, match="gradient norm"):
        solve(RidgeRegression(), features, np.array([1e6, -2e6, 1e6]))


@pytest.mark.parametrize("model", [LogisticRegression(), Hinge(l2=1e-2)])
def test_the_comparator_does_not_depend_on_the_number_of_threads(model: Model) -> None:
    features, labels = table(5, 40_000, 33)
    rows = np.arange(len(labels)).reshape(-1, 4)
    found = []
    for num_threads in (1, 2):
        with threadpool_limits(num_threads, user_api="blas"):
            params = best_fixed_model(model, features, labels, rows)
            sums = comparator_sums(model, params, features, labels, rows)
        found.append((params.tobytes(), sums.tobytes()))
    assert found[0] == found[1]
