"""Checks that a model of one's own keeps the promises both drivers rely on."""

from __future__ import annotations

import numpy as np

from oneway.models import HasCurvature, HasHessian, HasProbabilities, Model
from oneway.records import Batch, Matrix


def check_model(model: Model, num_features: int = 4, seed: int = 0) -> None:
    """Check gradients against differences, rows against stacks, and the capabilities it has.

    Raises:
        AssertionError: It breaks a promise; says which.
    """
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((6, num_features))
    labels = {
        "binary": rng.choice([-1.0, 1.0], 6),
        "classes": rng.integers(0, 2, 6).astype(float),
        "number": rng.standard_normal(6),
    }[model.labels]
    batch = Batch(features, labels)
    model.check_labels(labels)
    start = model.init(num_features, rng)
    assert start.shape == (model.dim(num_features),), "init has another length than dim says"
    assert start.dtype == model.dtype, "init has other numbers than dtype says"
    stack: Matrix = start + rng.standard_normal((6, len(start))).astype(start.dtype)
    # Of a difference of losses in float32 far fewer digits are left.
    width, rtol, atol = (1e-6, 1e-4, 1e-6) if start.dtype == np.float64 else (1e-2, 1e-2, 1e-3)

    losses = model.losses(stack, batch)
    alone = [
        model.losses(row, Batch(features[i : i + 1], labels[i : i + 1]))[0]
        for i, row in enumerate(stack)
    ]
    assert np.allclose(losses, alone, rtol=0.1 * rtol), (
        "the losses of a stack are not those of its rows"
    )
    gradients = model.gradients(stack, batch)
    assert gradients.dtype == model.dtype, "gradients are other numbers than dtype says"
    for place in range(len(start)):
        nudge = np.zeros_like(start)
        nudge[place] = width
        rise = model.losses(stack + nudge, batch) - model.losses(stack - nudge, batch)
        assert np.allclose(gradients[:, place], rise / (2 * width), rtol=rtol, atol=atol), (
            f"the gradient by parameter {place} is not the slope of the loss"
        )
    right = model.correct(stack, batch)
    assert (right is None) == (model.labels == "number"), "correct is not None for numbers alone"
    if isinstance(model, HasHessian):
        hessian = model.hessian(start, batch)
        assert np.allclose(hessian, hessian.T), "the hessian is not symmetric"
    if isinstance(model, HasCurvature) and model.curvature_bounds(features) is not None:
        bounds = model.curvature_bounds(features)
        assert (np.asarray(bounds) >= 0).all(), "a curvature bound is below 0"
    if isinstance(model, HasProbabilities):
        sums = model.probabilities(start, features).sum(axis=1)
        assert np.allclose(sums, 1.0), "probabilities do not add up to 1"
