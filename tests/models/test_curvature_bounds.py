"""The curvature of a sample's loss, by which the step of a peer is capped."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.metrics.comparator import RoundedHinge
from oneway.models import Hinge, LogisticRegression, RidgeRegression, SoftmaxRegression
from oneway.records import Batch

EXAMPLES = settings(deadline=None, max_examples=40)
seeds = st.integers(0, 2**32 - 1)
options = st.fixed_dictionaries(
    {"l2": st.sampled_from([0.0, 1e-4, 0.7]), "intercept": st.booleans()}
)


def largest_eigenvalues(model, params, batch):
    """Of the second derivative of every single row's loss."""
    return np.array(
        [
            np.linalg.eigvalsh(model.hessian(params, Batch(features[None], labels[None])))[-1]
            for features, labels in zip(batch.features, batch.labels, strict=True)
        ]
    )


def rows(rng, model, label_values=(-1.0, 1.0)):
    count, num_features = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    features = rng.normal(size=(count, num_features)) * rng.choice([1e-3, 1.0, 1e3])
    params = rng.normal(size=model.dim(num_features)) / rng.choice([1e-2, 1.0, 1e2])
    return params, Batch(features, rng.choice(label_values, count))


@EXAMPLES
@given(seeds, options)
def test_no_second_derivative_of_a_row_exceeds_its_bound(seed, options):
    rng = np.random.default_rng(seed)
    for model in (
        LogisticRegression(**options),
        RidgeRegression(**options),
        RoundedHinge(**options, width=0.3),
        SoftmaxRegression(4, **options),
    ):
        labels = range(4) if isinstance(model, SoftmaxRegression) else (-1.0, 1.0)
        params, batch = rows(rng, model, [float(label) for label in labels])
        bounds = model.curvature_bounds(batch.features)
        assert bounds.shape == (len(batch),)
        assert (largest_eigenvalues(model, params, batch) <= bounds * (1 + 1e-9)).all()


@EXAMPLES
@given(seeds, options)
def test_the_bound_is_tight_for_ridge_everywhere(seed, options):
    model = RidgeRegression(**options)
    params, batch = rows(np.random.default_rng(seed), model)
    np.testing.assert_allclose(
        model.curvature_bounds(batch.features),
        largest_eigenvalues(model, params, batch),
        rtol=1e-9,
    )


@EXAMPLES
@given(seeds, options)
def test_the_bound_is_tight_for_logistic_regression_where_the_score_is_zero(seed, options):
    model = LogisticRegression(**options)
    params, batch = rows(np.random.default_rng(seed), model)
    np.testing.assert_allclose(
        model.curvature_bounds(batch.features),
        largest_eigenvalues(model, np.zeros_like(params), batch),
        rtol=1e-9,
    )


@EXAMPLES
@given(seeds, options)
def test_the_bound_is_tight_for_a_rounded_hinge_at_its_kink(seed, options):
    model = RoundedHinge(**options, width=0.3)
    _, batch = rows(np.random.default_rng(seed), model)
    features, label = batch.features[:1], batch.labels[:1]
    inputs = np.append(features[0], 1.0) if model.intercept else features[0]
    at_kink = label[0] * inputs / (inputs @ inputs)  # the score is the label
    np.testing.assert_allclose(
        model.curvature_bounds(features),
        largest_eigenvalues(model, at_kink, Batch(features, label)),
        rtol=1e-6,
    )


def test_the_bound_for_softmax_is_reached_by_two_classes_of_equal_probability():
    model = SoftmaxRegression(2, l2=0.1)
    features = np.array([[3.0, -4.0]])
    [bound] = model.curvature_bounds(features)
    assert bound == 0.5 * (25.0 + 1.0) + 0.1
    [reached] = largest_eigenvalues(model, np.zeros(model.dim(2)), Batch(features, np.zeros(1)))
    assert reached == pytest.approx(bound, rel=1e-12)


def test_a_kink_has_no_bound():
    assert Hinge(l2=0.1).curvature_bounds(np.ones((3, 2))) is None
