"""Every registered model keeps the promises of its interface, and mistakes are caught."""

from __future__ import annotations

import numpy as np
import pytest

from oneway.models import MODELS, LogisticRegression
from oneway.records import Batch
from oneway.testing import check_model


@pytest.mark.parametrize("name", [name for name in MODELS if name != "torch"])  # needs a module
def test_every_model_keeps_the_promises_of_its_interface(name):
    check_model(MODELS[name].for_labels({"classes": 3, "binary": 2}.get(MODELS[name].labels, 0)))


def test_a_wrong_gradient_is_caught():
    class Wrong(LogisticRegression):
        def slopes(self, scores, labels):
            return -super().slopes(scores, labels)

    with pytest.raises(AssertionError, match="slope of the loss"):
        check_model(Wrong())


def test_probabilities_that_do_not_add_up_are_caught():
    class Wrong(LogisticRegression):
        def probabilities(self, params, features):
            return 0.9 * super().probabilities(params, features)

    with pytest.raises(AssertionError, match="add up to 1"):
        check_model(Wrong())


def test_capabilities_that_a_model_lacks_are_none():
    rows, labels = np.ones((2, 3)), np.ones(2)
    having = {}
    for name in ("logistic", "softmax", "hinge", "ridge"):
        model = MODELS[name].for_labels(3)
        params = model.init(3, np.random.default_rng(0))
        found = (
            model.hessian(params, Batch(rows, labels)),
            model.curvature_bounds(rows),
            model.probabilities(params, rows),
            model.coefficients(params),
        )
        having[name] = [it is not None for it in found]
    assert having == {
        "logistic": [True, True, True, True],
        "softmax": [True, True, True, True],
        "hinge": [True, False, False, True],
        "ridge": [True, True, False, True],
    }


def test_probabilities_of_logistic_regression_are_the_logistic_function():
    model = LogisticRegression(l2=0.0, intercept=False)
    found = model.probabilities(np.array([2.0]), np.array([[0.0], [1.0], [-300.0]]))
    np.testing.assert_allclose(
        found[:, 1], [0.5, 1 / (1 + np.exp(-2.0)), 0.0], rtol=1e-12, atol=1e-15
    )
