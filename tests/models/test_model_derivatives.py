"""What must hold for every model: derivatives, stacks, weights, convexity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oneway.metrics.comparator import RoundedHinge
from oneway.models import (
    Hinge,
    LogisticRegression,
    Model,
    RidgeRegression,
    SoftmaxRegression,
)
from oneway.records import Batch, Vector

SMOOTH = [LogisticRegression, RidgeRegression, SoftmaxRegression, RoundedHinge]
seeds = st.integers(0, 2**32 - 1)


def make(kind: type[Model], **options: Any) -> Model:
    if kind is SoftmaxRegression:
        options["num_classes"] = 3
    return kind(**options)


def problem(model: Model, seed: int, dtype: type = np.float64) -> tuple[Vector, Batch]:
    """Return parameters and a batch of 1 to 8 rows with 1 to 5 features that suit the model."""
    rng = np.random.default_rng(seed)
    num_rows, num_features = int(rng.integers(1, 9)), int(rng.integers(1, 6))
    features = rng.normal(size=(num_rows, num_features)).astype(dtype)
    if isinstance(model, SoftmaxRegression):
        labels = rng.integers(0, model.num_classes, num_rows)
    elif isinstance(model, RidgeRegression):
        labels = rng.normal(size=num_rows)
    else:
        labels = rng.choice([-1, 1], num_rows)
    return rng.normal(size=model.dim(num_features)), Batch(features, labels.astype(dtype))


def models(kinds: list[type[Model]]) -> st.SearchStrategy[Model]:
    return st.builds(
        make,
        st.sampled_from(kinds),
        l2=st.sampled_from([0.0, 1e-4, 0.7]),
        intercept=st.booleans(),
    )


def slope_by_differences(function: Any, params: Vector, step: float = 1e-5) -> Any:
    """Return the derivative by every parameter, from central differences, as rows."""
    moves = step * np.eye(len(params))
    return np.array([(function(params + m) - function(params - m)) / (2 * step) for m in moves])


@given(model=models([*SMOOTH, Hinge]), seed=seeds)
def test_gradient_equals_central_differences_of_the_loss(model: Model, seed: int) -> None:
    params, batch = problem(model, seed)
    if isinstance(model, Hinge):
        gaps = 1 - batch.labels * model.scores(params, batch.features)
        assume(np.abs(gaps).min() > 1e-3)
    expected = slope_by_differences(lambda x: model.loss(x, batch), params)
    np.testing.assert_allclose(model.gradient(params, batch), expected, rtol=1e-8, atol=1e-8)


@given(model=models(SMOOTH), seed=seeds)
def test_hessian_equals_central_differences_of_the_gradient(model: Model, seed: int) -> None:
    params, batch = problem(model, seed)
    expected = slope_by_differences(lambda x: model.gradient(x, batch), params)
    hessian = model.hessian(params, batch)
    np.testing.assert_allclose(hessian, expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(hessian, hessian.T, rtol=0, atol=1e-14)


@given(model=models([*SMOOTH, Hinge]), seed=seeds, dtype=st.sampled_from([np.float32, np.float64]))
def test_a_stack_gives_each_row_what_it_gets_alone(model: Model, seed: int, dtype: type) -> None:
    params, batch = problem(model, seed, dtype)
    stack = params + np.random.default_rng(seed).normal(size=(len(batch), len(params)))
    alone = [Batch(batch.features[i : i + 1], batch.labels[i : i + 1]) for i in range(len(batch))]
    losses, gradients = model.losses(stack, batch), model.gradients(stack, batch)
    assert losses.dtype == gradients.dtype == np.float64
    np.testing.assert_allclose(
        losses, [model.loss(x, one) for x, one in zip(stack, alone, strict=True)], rtol=1e-12
    )
    np.testing.assert_allclose(
        gradients,
        [model.gradient(x, one) for x, one in zip(stack, alone, strict=True)],
        rtol=1e-12,
        atol=1e-14,
    )
    right = model.correct(stack, batch)
    if right is not None:
        predictions = [
            model.predict(x, one.features)[0] for x, one in zip(stack, alone, strict=True)
        ]
        np.testing.assert_array_equal(right, predictions == batch.labels)


@given(model=models([*SMOOTH, Hinge]), seed=seeds)
def test_one_vector_for_all_rows_equals_a_stack_of_copies(model: Model, seed: int) -> None:
    params, batch = problem(model, seed)
    stack = np.tile(params, (len(batch), 1))
    np.testing.assert_allclose(model.losses(params, batch), model.losses(stack, batch), rtol=1e-12)
    np.testing.assert_allclose(
        model.gradient(params, batch),
        model.gradients(stack, batch).mean(axis=0),
        rtol=1e-10,
        atol=1e-14,
    )
    assert (model.correct(params, batch) is None) == isinstance(model, RidgeRegression)


@given(model=models([*SMOOTH, Hinge]), seed=seeds)
def test_a_count_of_three_equals_three_copies_of_the_row(model: Model, seed: int) -> None:
    params, batch = problem(model, seed)
    counts = np.random.default_rng(seed).integers(0, 4, len(batch))
    counts[0] = 3
    copies = Batch(np.repeat(batch.features, counts, axis=0), np.repeat(batch.labels, counts))
    weighted = counts.astype(np.float64)
    assert model.loss(params, batch, weighted) == pytest.approx(model.loss(params, copies))
    np.testing.assert_allclose(
        model.gradient(params, batch, weighted), model.gradient(params, copies), atol=1e-12
    )
    np.testing.assert_allclose(
        model.hessian(params, batch, weighted), model.hessian(params, copies), atol=1e-12
    )


@given(model=models([*SMOOTH, Hinge]), seed=seeds, distance=st.floats(1e-3, 1e3))
def test_the_loss_lies_above_each_of_its_tangents(model: Model, seed: int, distance: float) -> None:
    here, batch = problem(model, seed)
    there = here + distance * np.random.default_rng(seed).normal(size=len(here))
    rise = model.gradient(here, batch) * (there - here)
    slack = 1e-13 * (1.0 + np.abs(rise).sum())
    assert model.loss(there, batch) >= model.loss(here, batch) + rise.sum() - slack


@given(model=models([*SMOOTH, Hinge]), seed=seeds)
def test_an_intercept_is_a_constant_feature_and_is_penalised(model: Model, seed: int) -> None:
    assume(model.describe()["intercept"])
    params, batch = problem(model, seed)
    options = {key: value for key, value in model.describe().items() if key != "model"}
    plain = type(model)(**(options | {"intercept": False}))
    widened = Batch(np.column_stack([batch.features, np.ones(len(batch))]), batch.labels)
    assert model.loss(params, batch) == pytest.approx(plain.loss(params, widened), rel=1e-12)
    np.testing.assert_allclose(
        model.gradient(params, batch), plain.gradient(params, widened), atol=1e-12
    )
    np.testing.assert_allclose(
        model.hessian(params, batch), plain.hessian(params, widened), atol=1e-12
    )
