"""Where models start, and numbers in units of their spread."""

from __future__ import annotations

import numpy as np
import pytest

import oneway as ow
from oneway.models import MODELS
from oneway.records import Batch
from oneway.task.learning import Learning, start_options
from oneway.testing import check_model

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("model", ["logistic", "hinge", "softmax"])
def test_a_model_starts_with_the_loss_of_the_best_constant_answer(model):
    kind = MODELS[model].labels
    labels = np.repeat([-1.0, 1.0] if kind == "binary" else [0.0, 1.0], [200, 100])
    shares = np.array([201.0, 101.0]) / 302
    options = start_options(Learning(model=model, l2=0.0), 2, labels)
    built = Learning(model=model, l2=0.0, options=options).model_for(2)
    start = built.init(3, RNG)
    features = np.random.default_rng(1).normal(size=(300, 3))
    expected = built.base_losses(np.tile(shares, (300, 1)), labels).mean()
    assert built.loss(start, Batch(features, labels)) == pytest.approx(expected, abs=1e-6)
    assert built.loss(np.zeros_like(start), Batch(features, labels)) > expected + 1e-3


def test_numbers_are_learned_in_units_of_their_spread_and_predicted_in_their_own():
    labels = 150.0 + 77.0 * np.random.default_rng(2).normal(size=500)
    options = start_options(Learning(model="ridge", l2=0.0), 0, labels)
    model = Learning(model="ridge", l2=0.0, options=options).model_for(0)
    assert isinstance(model, ow.models.RidgeRegression)
    assert model.center == pytest.approx(labels.mean(), abs=0.01)
    assert model.scale == pytest.approx(labels.std(), rel=1e-3)
    features, params = np.random.default_rng(3).normal(size=(500, 2)), np.array([0.3, -0.2, 0.1])
    predicted = model.center + model.scale * (features @ params[:2] + params[2])
    batch = Batch(features, labels)
    literal = ((predicted - labels) / model.scale) ** 2 / 2
    np.testing.assert_allclose(model.losses(params, batch), literal, rtol=1e-12)
    np.testing.assert_allclose(model.predict(params, features), predicted, rtol=1e-12)
    np.testing.assert_allclose(model.predictions(params, features).predicted, predicted, rtol=1e-12)
    mean = np.full((500, 1), labels.mean())
    literal = ((labels.mean() - labels) / model.scale) ** 2 / 2
    np.testing.assert_allclose(model.base_losses(mean, labels), literal, rtol=1e-9)
    factors, constants = model.coefficients(params)
    np.testing.assert_allclose((features @ factors.T + constants)[:, 0], predicted, rtol=1e-12)
    check_model(model)


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_both_engines_learn_numbers_in_their_units(engine):
    """The run with a center and a scale is the run of the scaled numbers."""
    rng = np.random.default_rng(4)
    features, raw = rng.normal(size=(40, 6, 3)), 1000.0 + 50.0 * rng.normal(size=(40, 6))
    graph = ow.TrustGraph.random(6, 3, seed=1)
    runs = [
        ow.simulate(
            ow.Relay("auto", "curvature"),
            ow.models.RidgeRegression(**told),
            ow.Stream.from_arrays(features, labels),
            graph,
            engine=engine,
        )
        for told, labels in (
            ({"center": 1000.0, "scale": 50.0}, raw),
            ({}, (raw.astype(np.float64) - 1000.0) / 50.0),
        )
    ]
    np.testing.assert_allclose(runs[0].losses, runs[1].losses, rtol=1e-6)
    np.testing.assert_allclose(runs[0].estimates, runs[1].estimates, rtol=1e-6, atol=1e-9)


def test_a_number_for_the_rate_leaves_the_start_as_it_was():
    labels = np.repeat([-1.0, 1.0], [200, 100])
    assert start_options(Learning(learning_rate=0.1), 2, labels) == {}
    assert start_options(Learning(intercept=False), 2, labels) == {}
    assert ow.models.LogisticRegression().init(3, RNG).tolist() == [0.0] * 4
    assert ow.models.SoftmaxRegression(3).init(2, RNG).tolist() == [0.0] * 9
    assert "start" not in ow.models.LogisticRegression().describe()
    assert "scale" not in ow.models.RidgeRegression().describe()
    assert ow.models.RidgeRegression(scale=2.0).describe()["scale"] == 2.0
