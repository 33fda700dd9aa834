"""Made-up data: the parameters that it was drawn from are found again."""

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


def test_the_seed_decides_and_features_are_left_as_drawn() -> None:
    one, again, other = (synthetic(100, 3, seed=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.table.features, again.table.features)
    np.testing.assert_array_equal(one.params, again.params)
    assert not np.array_equal(one.table.features, other.table.features)
    assert one.table.origin["params"] == one.params.tolist()
    assert [it.tolist() for it in one.table.encoder.scaling] == [[0] * 3, [1] * 3]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("num_samples", 0), ("num_samples", 10.5), ("num_features", 0), ("num_features", None)),
        *(("seed", -1), ("seed", None), ("noise", 0.0), ("noise", -1.0), ("noise", float("nan"))),
        *(("noise", None), ("task", "classes")),
    ],
)
def test_bad_arguments_are_named(name: str, value: object) -> None:
    with pytest.raises(DataError, match=f"{name} (is )?'?{value}"):
        synthetic(**{"num_samples": 10, "num_features": 2, name: value})  # type: ignore[arg-type]
