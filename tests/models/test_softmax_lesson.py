"""What softmax regression says of a sample in one pass is what it says in several, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.models import SoftmaxRegression, softmax
from oneway.records import Batch


@pytest.mark.parametrize("cached", [1, 7, 1 << 16])
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), rows=st.sampled_from([1, 3]), intercept=st.booleans())
def test_a_lesson_is_losses_correct_and_gradients(cached, seed, rows, intercept) -> None:
    rng = np.random.default_rng(seed)
    model = SoftmaxRegression(5, l2=0.03, intercept=intercept)
    features = rng.normal(size=(rows, 4))
    stack, labels = rng.normal(size=(rows, model.dim(4))), rng.integers(5, size=rows) * 1.0
    batch = Batch(features, labels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(softmax, "_CACHED", cached)
        told = model.lesson(stack, batch, rng)
        gradients = model.gradients(stack, batch)
    assert np.array_equal(told.losses, model.losses(stack, batch))
    assert np.array_equal(told.correct, model.correct(stack, batch))
    assert np.array_equal(told.gradients, gradients)
    scores = model.scores(stack, features)
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    slopes = chances / chances.sum(axis=1, keepdims=True) - np.eye(5)[labels.astype(int)]
    inputs = np.column_stack([features, np.ones(rows)]) if intercept else features
    for row in range(rows):
        literal = 0.03 * stack[row] + np.outer(slopes[row], inputs[row]).reshape(-1)
        assert np.array_equal(told.gradients[row], literal)
