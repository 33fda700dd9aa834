"""The curvature of a sample's loss, by which the step of a peer is capped."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.metrics.comparator import RoundedHinge
from oneway.models import Hinge, LogisticRegression, RidgeRegression, SoftmaxRegression
from oneway.records import Batch

seeds = st.integers(0, 2**32 - 1)
options = st.fixed_dictionaries(
    {"l2": st.sampled_from([0.0, 1e-4, 0.7]), "intercept": st.booleans()}
)


def largest_eigenvalues(model, params, batch):
    """Of the second derivative of every single row's loss."""
    rows = zip(batch.features, batch.labels, strict=True)
    hessians = [model.hessian(params, Batch(row[None], label[None])) for row, label in rows]
    return np.linalg.eigvalsh(hessians)[:, -1]


def rows(rng, model, label_values=(-1.0, 1.0)):
    count, num_features = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    features = rng.normal(size=(count, num_features)) * rng.choice([1e-3, 1.0, 1e3])
    params = rng.normal(size=model.dim(num_features)) / rng.choice([1e-2, 1.0, 1e2])
    return params, Batch(features, rng.choice(label_values, count))


@given(seeds, options)
def test_no_second_derivative_of_a_row_exceeds_its_bound(seed, options):
    rng = np.random.default_rng(seed)
    for model in (
        LogisticRegression(**options),
        RidgeRegression(**options),
        RoundedHinge(**options, width=0.3),
        SoftmaxRegression(4, **options),
    ):
        classes = (0.0, 1.0, 2.0, 3.0) if isinstance(model, SoftmaxRegression) else (-1.0, 1.0)
        params, batch = rows(rng, model, classes)
        bounds = model.curvature_bounds(batch.features)
        assert bounds.shape == (len(batch),)
        assert (largest_eigenvalues(model, params, batch) <= bounds * (1 + 1e-9)).all()


@given(seeds, options)
def test_the_bound_is_tight(seed, options):
    """For ridge everywhere, for logistic regression at score 0, for a rounded hinge at its kink."""
    rng = np.random.default_rng(seed)
    for model in (RidgeRegression(**options), LogisticRegression(**options)):
        params, batch = rows(rng, model)
        params = params if isinstance(model, RidgeRegression) else np.zeros_like(params)
        found = largest_eigenvalues(model, params, batch)
        np.testing.assert_allclose(model.curvature_bounds(batch.features), found, rtol=1e-9)
    model = RoundedHinge(**options, width=0.3)
    _, batch = rows(rng, model)
    one = Batch(batch.features[:1], batch.labels[:1])
    inputs = np.append(one.features[0], 1.0) if model.intercept else one.features[0]
    at_kink = one.labels[0] * inputs / (inputs @ inputs)  # the score is the label
    found = largest_eigenvalues(model, at_kink, one)
    np.testing.assert_allclose(model.curvature_bounds(one.features), found, rtol=1e-6)


def test_the_bound_for_softmax_is_reached_by_two_classes_of_equal_probability():
    model, features = SoftmaxRegression(2, l2=0.1), np.array([[3.0, -4.0]])
    [bound] = model.curvature_bounds(features)
    assert bound == 0.5 * (25.0 + 1.0) + 0.1
    [reached] = largest_eigenvalues(model, np.zeros(model.dim(2)), Batch(features, np.zeros(1)))
    assert reached == pytest.approx(bound, rel=1e-12)


def test_a_kink_has_no_bound():
    assert Hinge(l2=0.1).curvature_bounds(np.ones((3, 2))) is None
