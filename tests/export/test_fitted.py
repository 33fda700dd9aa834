"""A model to take home: predictions of raw rows, coefficients in the units of the data."""

from __future__ import annotations

import numpy as np
import pytest
from taken_models import KINDS, fitted

from oneway.errors import ConfigError, DataError
from oneway.export import INTERCEPT, FittedModel
from oneway.models import LogisticRegression, RidgeRegression
from oneway.tables import Encoder, Number


def test_probabilities_are_those_of_the_model_by_class():
    taken = fitted(*KINDS[0])
    row = {"age": 50, "pressure": "-2.75", "plain": True}
    score = taken.model.scores(taken.params, taken.encoder.vector(row)[None, :])[0]
    assert taken.predict_proba_one(row)["well"] == pytest.approx(1 / (1 + np.exp(-score)))
    assert sum(taken.predict_proba_one(row).values()) == 1.0
    with pytest.raises(ConfigError, match="hinge"):
        fitted(*KINDS[2]).predict_proba_one(row)
    with pytest.raises(DataError, match="'plain'"):
        taken.predict_one({"age": 1, "pressure": 2})


@pytest.mark.parametrize(
    ("classes", "names"),
    [
        (("false", "true"), (False, True)),
        (("True", "False"), (True, False)),
        (("0", "1"), ("0", "1")),
        (("true", "unknown"), ("true", "unknown")),
    ],
)
def test_booleans_are_booleans_and_all_else_is_as_the_data_has_it(classes, names):
    taken = fitted(LogisticRegression(), classes)
    rows = [{"age": age, "pressure": 0.0, "plain": 0.0} for age in (-900.0, 900.0)]
    said = taken.predict_many(rows)
    assert sorted(said, key=str) == sorted(names, key=str)
    assert all(type(one) is type(other) for one in said for other in names if one == other)
    assert list(taken.predict_proba_one(rows[0])) == list(names)


def test_parameters_that_do_not_fit_and_a_feature_called_intercept_are_refused():
    model, classes = KINDS[0]
    with pytest.raises(ConfigError, match=r"3 columns has 4 parameters, and \(5,\) are given"):
        FittedModel(fitted(model, classes).encoder, model, np.zeros(5))
    encoder = Encoder((Number(INTERCEPT),), "state", "number")
    with pytest.raises(ConfigError, match=r"\(intercept\)"):
        _ = FittedModel(encoder, RidgeRegression(), np.zeros(2)).coefficients
