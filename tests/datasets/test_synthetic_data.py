from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from oneway.datasets import synthetic
from oneway.errors import DataError


def test_logistic_regression_finds_the_known_parameters() -> None:
    made = synthetic(100_000, 4, seed=3, noise=0.5)
    features, labels = made.table.features.astype(float), made.table.labels.astype(float)

    def loss(params: np.ndarray) -> float:
        return float(np.logaddexp(0.0, -labels * (features @ params)).mean())

    found = minimize(loss, np.zeros(4), method="BFGS").x
    np.testing.assert_allclose(found, made.params, atol=0.05)
    assert np.linalg.norm(made.params) == pytest.approx(2.0)


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_least_squares_finds_the_known_parameters(noise: float) -> None:
    made = synthetic(50_000, 4, seed=3, noise=noise, task="number")
    features, labels = made.table.features.astype(float), made.table.labels.astype(float)
    found, *_ = np.linalg.lstsq(features, labels)
    np.testing.assert_allclose(found, made.params, atol=0.02 * noise + 1e-6)
    assert (labels - features @ made.params).std() == pytest.approx(noise, abs=0.01)


def test_the_features_are_left_as_drawn() -> None:
    table = synthetic(1000, 3, seed=1).table
    assert table.means.tolist() == [0, 0, 0]
    assert table.scales.tolist() == [1, 1, 1]
    assert table.features.dtype == np.float32


def test_the_seed_decides() -> None:
    one, again, other = (synthetic(100, 3, seed=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.table.features, again.table.features)
    np.testing.assert_array_equal(one.params, again.params)
    assert not np.array_equal(one.table.features, other.table.features)
    assert one.table.origin["params"] == one.params.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_samples": 0}, "num_samples is 0"),
        ({"num_features": 0}, "num_features is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"noise": 0.0}, "noise is 0.0.*above 0 for task='binary'"),
        ({"noise": -1.0, "task": "number"}, "noise is -1.0"),
        ({"noise": float("nan")}, "noise is nan"),
        ({"task": "classes"}, "task 'classes' has no synthetic data"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        synthetic(**{"num_samples": 10, "num_features": 2, **arguments})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_samples": 10.5}, "num_samples is 10.5; it must be a whole number"),
        ({"num_features": None}, "num_features is None; it must be a whole number"),
        ({"seed": None}, "seed is None; it must be a whole number"),
        ({"noise": None}, "noise is None; it must be a finite number"),
    ],
)
def test_what_is_no_number_makes_no_data(options: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        synthetic(**{"num_samples": 10, "num_features": 3, **options})  # type: ignore[arg-type]
