"""Every regression model learns labels of any size, and predicts in their units.

Prices with mean 250,000 and standard deviation 80,000, of which 91 % of the variance follow from
two features.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import call

import oneway as ow
from oneway.datasets.loader import load
from oneway.models import MODELS, RidgeRegression, standardised
from oneway.records import Batch
from oneway.tables import Number
from oneway.task.assembly import assemble
from oneway.task.derive import derive_task
from oneway.task.ranges import Range
from oneway.task.settings import Settings, read_settings
from oneway.task.task import Task
from oneway.testing import check_model

MEAN, SPREAD, ROWS = 250_000.0, 80_000.0, 1200
MODEL_NAMES = pytest.mark.parametrize("model", ["ridge", "huber"])
pytestmark = pytest.mark.usefixtures("huber")


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    size, age, noise = rng.standard_normal((3, ROWS))
    price = MEAN + SPREAD * (0.8 * size - 0.52 * age + 0.3 * noise)
    rows = [
        f"{100 + 30 * s},{40 + 20 * a},{p:.0f}" for s, a, p in zip(size, age, price, strict=True)
    ]
    path = tmp_path / "prices.csv"
    path.write_text("\n".join(["size,age,price", *rows, ""]))
    return path


def expected(size: float, age: float) -> float:
    return MEAN + SPREAD * (0.8 * (size - 100) / 30 - 0.52 * (age - 40) / 20)


@MODEL_NAMES
def test_a_peer_learns_prices_and_predicts_them(model, prices, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = ("--label", "price", "--model", model, "--privacy", "none", "--out", "task.toml")
    assert call("peer", "task", prices, *flags).code == 0
    with ow.Peer.create(tmp_path / "alice", "task.toml") as peer:
        peer.learn_many(load(prices, label="price"))
        assert peer.measures.r2 > 0.8
        assert 0.2 * SPREAD < peer.measures.rmse < 0.5 * SPREAD
        assert peer.predict_one({"size": 130, "age": 20}) == pytest.approx(
            expected(130, 20), abs=0.1 * SPREAD
        )
    said = call("peer", "predict", "size=130", "age=20", "--home", "alice", "--json").json
    assert said["prediction"] == pytest.approx(expected(130, 20), abs=0.1 * SPREAD)


@MODEL_NAMES
@pytest.mark.parametrize("learning_rate", ["auto", 0.1])
def test_a_simulation_learns_prices(model, learning_rate, prices):
    settings = Settings(
        data=str(prices), label="price", model=model, nodes=4, learning_rate=learning_rate,
        privacy=read_settings(None, {"privacy": "none"}).privacy,
    )  # fmt: skip
    parts = assemble(settings)
    run = ow.simulate(parts.method, parts.model, parts.stream, parts.graph, progress=False)
    assert run.measures.r2 > 0.8
    assert 0.2 * SPREAD < run.measures.rmse < 0.5 * SPREAD
    home = run.model_of(0)
    assert home.predict_one({"size": 130, "age": 20}) == pytest.approx(
        expected(130, 20), abs=0.1 * SPREAD
    )


@MODEL_NAMES
def test_labels_are_scaled_by_their_range_where_one_is_public(model, prices):
    ranges = {"size": Range(0, 200), "age": Range(0, 100), "price": Range(0.0, 600_000.0)}
    derived = derive_task(prices, "price", model=model, ranges=ranges)
    assert derived.task.options[model] == {"center": 300_000.0, "scale": 173_200.0}
    assert derived.exact == ()
    assert "no data was used" in derived.scales
    own = derive_task(prices, "price", model=model, ranges={"size": Range(0, 200)})
    assert own.exact == ("age", "price")
    assert own.task.options[model]["center"] == pytest.approx(MEAN, rel=0.05)


@MODEL_NAMES
def test_a_task_of_standardised_labels_survives_its_file(model, prices):
    task = Task.of(load(prices, label="price"), model=model)
    again = Task.parse(task.to_toml())
    assert again == task
    assert again.build_model().options()["scale"] == pytest.approx(SPREAD, rel=0.05)
    assert task.radius == 1000.0  # parameters are in units of the scale


def test_options_that_are_given_are_not_replaced(prices):
    """Such as for counts, which a model needs as they are."""
    given = {"huber": {"center": 0.0, "scale": 1.0}}
    assert derive_task(prices, "price", model="huber", options=given).task.options == given


def test_a_standardised_model_is_the_model_on_standardised_labels(huber):
    """The wrapper of users' models, and the options of ridge, do the same."""
    rng = np.random.default_rng(1)
    features, labels = rng.standard_normal((8, 3)), MEAN + SPREAD * rng.standard_normal(8)
    batch, targets = Batch(features, labels), Batch(features, (labels - MEAN) / SPREAD)
    params = rng.standard_normal(4)
    for inner in (RidgeRegression(), huber()):
        model = standardised(inner, MEAN, SPREAD)
        check_model(model)
        assert model.loss(params, batch) == inner.loss(params, targets)
        np.testing.assert_array_equal(
            model.gradient(params, batch), inner.gradient(params, targets)
        )
        np.testing.assert_array_equal(model.hessian(params, batch), inner.hessian(params, targets))
        np.testing.assert_array_equal(
            model.predict(params, features), MEAN + SPREAD * inner.predict(params, features)
        )
        factors, constants = model.coefficients(params)
        np.testing.assert_allclose(
            features @ factors[0] + constants[0], model.predict(params, features), rtol=1e-12
        )
    own = RidgeRegression(center=MEAN, scale=SPREAD)
    wrapped = standardised(RidgeRegression(), MEAN, SPREAD)
    stack = np.tile(params, (8, 1))
    np.testing.assert_allclose(own.losses(stack, batch), wrapped.losses(stack, batch), rtol=1e-12)
    expected_labels = np.full((8, 1), MEAN)
    np.testing.assert_allclose(
        own.base_losses(expected_labels, labels), wrapped.base_losses(expected_labels, labels)
    )


def test_every_registered_regression_model_standardises():
    """A new one does so by itself; `labels` and the base class are all it needs."""
    feature = (Number("x"),)
    for name, kind in MODELS.items():
        if kind.kind_of_labels({}) == "number":
            start = Task(name, "y", feature).build_model().start_options(np.array([MEAN]), SPREAD)
            assert start == {"center": MEAN, "scale": SPREAD}
            task = Task(name, "y", feature, options={name: start})
            prediction = task.build_model().predict(np.zeros(task.dim), np.zeros((1, 1)))
            assert prediction.tolist() == [MEAN]
