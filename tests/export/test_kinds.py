"""Exported models of tables with categories, booleans, times and gaps."""

from __future__ import annotations

import pickle

import numpy as np
import onnxruntime
import pandas as pd
import pytest

from oneway.errors import DataError
from oneway.export import FittedModel
from oneway.export.formats import FORMATS
from oneway.export.json_format import from_json, to_json
from oneway.models import LogisticRegression, SoftmaxRegression
from oneway.tables import Encoder, Feature

FEATURES = (
    Feature("age", 40.0, 12.5, gaps=True),
    Feature("weight", 70.0, 9.0),
    Feature("smokes", kind="boolean", gaps=True),
    Feature("town", values=("Ulm", "Bonn", "Köln"), gaps=True),
    Feature("grade", values=("1", "2.5", "none of these")),
    Feature("visit", kind="time", gaps=True),
)
MISSING = [None, "", "NA", "NaN", "?", "null"]


def encoder_of(kind, classes) -> Encoder:
    return Encoder(FEATURES, "state", kind, classes)


def rows_of(count: int) -> list[dict[str, object]]:
    rng = np.random.default_rng(5)

    def cell(values):
        return rng.choice(MISSING) if rng.random() < 0.2 else values[rng.integers(len(values))]

    return [
        {
            "age": cell([20.5, "33", 47, 80]),
            "weight": cell([55, 70.25, "101.5"]),
            "smokes": cell([True, "no", "yes", 0]),
            "town": cell(["Ulm", "Bonn", "Köln", "Essen", "ulm"]),
            "grade": cell(["1", "1.0", 1, 2.5, "2.5", "none of these", "9"]),
            "visit": cell(["2026-03-01 14:30", "7:05", "1.3.2026", "2025-12-31T23:59"]),
        }
        for _ in range(count)
    ]


def models() -> list[FittedModel]:
    two, three = LogisticRegression(), SoftmaxRegression(3)
    binary, several = encoder_of("binary", ("false", "true")), encoder_of("classes", tuple("abc"))
    rng = np.random.default_rng(9)
    return [
        FittedModel(binary, two, rng.normal(size=two.dim(binary.width))),
        FittedModel(several, three, rng.normal(size=three.dim(several.width))),
    ]


def as_inputs(taken: FittedModel, rows: list[dict[str, object]]) -> dict[str, np.ndarray]:
    """What somebody feeds a graph with: numbers, text, and encoded times."""
    vectors = np.array([taken.encoder.vector(row) for row in rows])
    feed = {}
    for feature, place in zip(FEATURES, taken.encoder.places, strict=True):
        cells = pd.Series([row[feature.name] for row in rows], dtype=object)
        if feature.kind == "category":
            text = cells.fillna("").astype(str)
            feed[feature.name] = text.to_numpy(dtype=object)[:, None]
        elif feature.kind == "time":
            columns = zip(feature.outputs, vectors[:, place].T, strict=True)
            feed |= {name: column[:, None] for name, column in columns}
        else:
            plain = cells.replace({"yes": 1, "no": 0, **dict.fromkeys(MISSING[1:], None)})
            feed[feature.name] = pd.to_numeric(plain).to_numpy(float)[:, None]
    return feed


@pytest.mark.parametrize("taken", models(), ids=repr)
def test_onnxruntime_encodes_every_kind_but_times_as_the_encoder_does(taken):
    rows = rows_of(300)
    session = onnxruntime.InferenceSession(
        FORMATS["onnx"].write(taken), providers=["CPUExecutionProvider"]
    )
    labels, shares = session.run(["label", "probabilities"], as_inputs(taken, rows))
    assert labels.tolist() == taken.predict_many(rows)
    wanted = [list(taken.predict_proba_one(row).values()) for row in rows]
    np.testing.assert_allclose(shares, wanted, rtol=0, atol=1e-12)
    said = session.get_modelmeta().description
    assert "of visit give the sines and cosines" in said


@pytest.mark.parametrize("taken", models(), ids=repr)
def test_the_estimator_takes_cells_as_they_are(taken):
    rows = rows_of(300)
    estimator = pickle.loads(FORMATS["sklearn"].write(taken))
    frame = pd.DataFrame(rows, dtype=object)
    assert estimator.predict(frame).tolist() == taken.predict_many(rows)
    wanted = [list(taken.predict_proba_one(row).values()) for row in rows]
    assert np.array_equal(estimator.predict_proba(frame.to_numpy()), wanted)


@pytest.mark.parametrize("taken", models(), ids=repr)
def test_json_keeps_every_kind_of_feature(taken):
    again = from_json(to_json(taken))
    assert again.encoder.features == FEATURES
    rows = rows_of(20)
    assert again.predict_many(rows) == taken.predict_many(rows)


def test_coefficients_are_by_encoded_column_a_boolean_is_worth_what_true_adds_to_false():
    taken = models()[0]
    found = taken.coefficients
    assert list(found)[:4] == ["(intercept)", "age", "age missing", "weight"]
    assert {"town=Ulm", "town=other", "town missing", "visit hour sin"} <= found.keys()
    row = dict(rows_of(1)[0], age=30, smokes=False, town="Ulm")

    def score(**changes):
        vector = taken.encoder.vector({**row, **changes})
        return taken.model.scores(taken.params, vector[None, :])[0]

    assert score(age=31) - score() == pytest.approx(found["age"])
    assert score(smokes=True) - score() == pytest.approx(found["smokes"])
    assert score(town="Bonn") - score() == pytest.approx(found["town=Bonn"] - found["town=Ulm"])
    assert score(age=None) - score(age=40) == pytest.approx(found["age missing"])


def test_all_missing_columns_of_a_sample_are_named_at_once():
    with pytest.raises(DataError, match=r"'weight', 'smokes', 'town'"):
        models()[0].predict_one({"age": 1, "grade": "1", "visit": "7:05"})


@pytest.mark.parametrize("gaps", [False, True])
def test_arrays_are_taken_along_by_every_format(gaps):
    features = (
        Feature("image", 100.0, 50.0, shape=(1, 3, 2), gaps=gaps),
        Feature("age", 40.0, 9.0),
    )
    encoder = Encoder(features, "state", "classes", tuple("abc"))
    model = SoftmaxRegression(3)
    rng = np.random.default_rng(2)
    taken = FittedModel(encoder, model, rng.normal(size=model.dim(encoder.width)))
    images, ages = rng.integers(0, 256, (50, 1, 3, 2)), rng.normal(40, 9, 50)
    rows = [{"image": image.tolist(), "age": age} for image, age in zip(images, ages, strict=True)]
    rows[7] = {"image": None, "age": 50.0}
    fed = images.astype(float)
    fed[7], ages[7] = np.nan, 50.0
    session = onnxruntime.InferenceSession(
        FORMATS["onnx"].write(taken), providers=["CPUExecutionProvider"]
    )
    labels, shares = session.run(None, {"image": fed, "age": ages[:, None]})
    assert labels.tolist() == taken.predict_many(rows)
    wanted = [list(taken.predict_proba_one(row).values()) for row in rows]
    np.testing.assert_allclose(shares, wanted, rtol=0, atol=1e-12)
    again = from_json(to_json(taken))
    assert again.encoder.features == features
    assert again.predict_many(rows) == taken.predict_many(rows)
    assert taken.coefficients["a"].keys() == {"(intercept)", *encoder.outputs}
    estimator = pickle.loads(FORMATS["sklearn"].write(taken))
    assert estimator.predict(pd.DataFrame(rows, dtype=object)).tolist() == labels.tolist()
