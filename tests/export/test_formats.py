"""Formats of exported models: a file predicts what the model predicts."""

from __future__ import annotations

import builtins
import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from taken_models import FEATURES as NUMBERS
from taken_models import KINDS, fitted, personal

from oneway.errors import ConfigError, DataError, MissingExtraError
from oneway.export import FittedModel, PersonalModel
from oneway.export.formats import FORMATS
from oneway.export.json_format import from_json, to_json
from oneway.models import LogisticRegression, RidgeRegression, SoftmaxRegression, standardised
from oneway.tables import Array, Boolean, Category, Encoder, Number, Time
from oneway.tables.cells import is_gap

ROWS = pd.DataFrame(  # and one that is far from all others
    [*np.random.default_rng(3).normal([45, -3, 0], [20, 1, 2], (200, 3)), [-9e3, 7e3, 1e4]],
    columns=["age", "pressure", "plain"],
)
FEATURES = (
    Number("age", 40.0, 12.5, gaps=True),
    Number("weight", 70.0, 9.0),
    Boolean("smokes", gaps=True),
    Category("town", values=("Ulm", "Bonn", "Köln"), gaps=True),
    Category("grade", values=("1", "2.5", "none of these")),
    Time("visit", gaps=True),
)
MISSING = [None, "", "NA", " NA", "NaN", "?", "null", "nUll", "None"]


def rows_of(count: int) -> list[dict[str, object]]:
    rng = np.random.default_rng(5)

    def cell(values):
        return rng.choice(MISSING) if rng.random() < 0.2 else values[rng.integers(len(values))]

    return [
        {
            "age": cell([20.5, 33, 47, 80]),
            "weight": cell([55, 70.25, 101.5]),
            "smokes": cell([True, "no", "yes", "Y", 0, "1.0", " f", "OFF"]),
            "town": cell(["Ulm", "Bonn", " Köln", "Essen", "ulm", "none"]),
            "grade": cell(["1", "1.0", 1, "01", "+1", "1.00", True, 2.5, "none of these", "9"]),
            "visit": cell(["2026-03-01 14:30", "2025-12-31T23:59"]),
        }
        for _ in range(count)
    ]


def models_of_all_kinds() -> list[FittedModel]:
    two, three = LogisticRegression(), SoftmaxRegression(3)
    binary = Encoder(FEATURES, "state", "binary", ("false", "true"), "logistic")
    several = Encoder(FEATURES, "state", "classes", tuple("abc"), "softmax")
    rng = np.random.default_rng(9)
    return [
        FittedModel(binary, two, rng.normal(size=two.dim(binary.width))),
        FittedModel(several, three, rng.normal(size=three.dim(several.width))),
    ]


def probabilities(model: FittedModel | PersonalModel, rows: list[dict[str, object]]) -> np.ndarray:
    return np.array([list(model.predict_proba_one(row).values()) for row in rows])


def run_onnx(model: FittedModel | PersonalModel, frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """The recipe of docs/model.md: numbers as they are, the rest as text."""
    content = FORMATS["onnx"].write(model)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    feed = {
        it.name: frame[[it.name]].astype(float).to_numpy()
        if it.type == "tensor(double)"
        else frame[[it.name]].fillna("").astype(str).to_numpy(dtype=object)
        for it in session.get_inputs()
    }
    names = [it.name for it in session.get_outputs()]
    return dict(zip(names, session.run(names, feed), strict=True))


SHARED = [fitted(*kind) for kind in KINDS]
IN_UNITS = FittedModel(SHARED[3].encoder, RidgeRegression(center=250.0, scale=8.0), np.ones(4))
"""A model whose scores are not in the units of the label."""


@pytest.mark.parametrize("taken", [*SHARED, *map(personal, [*SHARED, IN_UNITS])], ids=repr)
def test_onnxruntime_predicts_what_the_model_does(taken):
    found, rows = run_onnx(taken, ROWS), ROWS.to_dict("records")
    labels = taken.predict_many(rows)
    if taken.classes:
        assert found["label"].tolist() == labels
    else:
        np.testing.assert_allclose(found["label"], labels, rtol=1e-12, atol=1e-12)
    assert list(found) == ["label", "probabilities"][: 1 + taken.says_probabilities]
    if taken.says_probabilities:
        np.testing.assert_allclose(
            found["probabilities"], probabilities(taken, rows), rtol=0, atol=1e-12
        )


@pytest.mark.parametrize(
    "taken", [*models_of_all_kinds(), *map(personal, models_of_all_kinds())], ids=repr
)
def test_onnxruntime_encodes_every_cell_as_the_encoder_does(taken):
    rows = rows_of(400)
    frame = pd.DataFrame(rows, dtype=object)
    for name in ("age", "weight"):  # as pandas reads a column of numbers
        frame[name] = [np.nan if is_gap(cell) else cell for cell in frame[name]]
    [time] = [it for it in FEATURES if it.kind == "time"]
    encoded = [time.encode(row["visit"]) for row in rows]
    frame = frame.join(pd.DataFrame(encoded, columns=list(time.outputs)))
    found = run_onnx(taken, frame)
    assert found["label"].tolist() == taken.predict_many(rows)
    np.testing.assert_allclose(
        found["probabilities"], probabilities(taken, rows), rtol=0, atol=1e-12
    )


def test_a_boolean_that_is_neither_true_nor_false_is_not_a_number_in_onnx():
    """A peer refuses the row; a graph cannot, and must not guess."""
    encoder = Encoder((Boolean("smokes"),), "y", "number")
    taken = FittedModel(encoder, RidgeRegression(), np.ones(2))
    found = run_onnx(taken, pd.DataFrame({"smokes": ["yes", "perhaps"]}))
    assert np.isnan(found["label"]).tolist() == [False, True]


def test_labels_of_a_standardised_model_come_back_in_their_units(huber, tmp_path):
    model = standardised(huber(), 250_000.0, 80_000.0)
    encoder = Encoder(NUMBERS, "price", "number")
    taken = FittedModel(encoder, model, np.array([0.5, -0.25, 0.1, 0.2]))
    rows = ROWS.to_dict("records")
    labels = taken.predict_many(rows)
    assert np.median(labels) > 100_000
    np.testing.assert_allclose(run_onnx(taken, ROWS)["label"], labels, rtol=1e-12)
    again = FittedModel.load(taken.save(tmp_path / "m.json"))
    assert again.predict_many(rows) == labels
    assert (again.model, again.coefficients) == (model, taken.coefficients)


def test_a_model_that_has_learned_nothing_predicts_the_same_everywhere():
    encoder = Encoder((Number("x"),), "y", "binary", ("false", "true"))
    taken = FittedModel(encoder, LogisticRegression(), np.zeros(2))
    rows = pd.DataFrame({"x": [0.0, 1.0]})
    assert taken.predict_many(rows.to_dict("records")) == [True, True]
    label = run_onnx(taken, rows)["label"]
    assert (label.dtype, label.tolist()) == (np.bool_, [True, True])


@pytest.mark.parametrize(
    "taken",
    [*(fitted(*kind) for kind in KINDS), *models_of_all_kinds()],
    ids=repr,
)
def test_json_reads_back_as_the_same_model(taken):
    taken = FittedModel(taken.encoder, taken.model, taken.params, {"samples": 7})
    again = from_json(to_json(taken))
    assert np.array_equal(again.params, taken.params)
    assert (again.encoder, again.model) == (taken.encoder, taken.model)
    assert again.origin == {"samples": 7}
    facts = json.loads(to_json(taken))
    assert facts["coefficients"] == taken.coefficients
    assert facts["columns"] == list(taken.outputs)


def test_the_rule_in_a_json_file_gives_the_scores_of_rows_with_missing_values():
    """By hand from `how`, `features` and `coefficients`, as a program in another language."""
    taken = models_of_all_kinds()[0]
    facts = json.loads(to_json(taken))
    centers = {it["name"]: it.get("center", 0.0) for it in facts["features"]}
    for word in ("center", "0.5", "'NAME missing'"):
        assert word in facts["how"]

    def score(row):
        values = dict.fromkeys(facts["columns"], 0.0)
        for name in ("age", "weight"):
            values[name] = centers[name] if row[name] is None else row[name]
        values["smokes"] = 0.5 if row["smokes"] is None else float(row["smokes"])
        if row["town"] is not None:
            values[f"town={row['town']}"] = 1.0
        values["grade=1"] = 1.0
        for name in ("age", "smokes", "town", "visit"):
            values[f"{name} missing"] = float(row[name] is None)
        factors = facts["coefficients"]
        return factors["(intercept)"] + sum(factors[name] * it for name, it in values.items())

    whole = {"age": 30.0, "weight": 80.0, "smokes": True, "town": "Ulm", "grade": 1, "visit": None}
    for missing in ("", "age", "weight", "smokes", "town"):
        row = whole | ({missing: None} if missing else {})
        wanted = taken.model.scores(taken.params, taken.encoder.vector(row)[None, :])[0]
        assert score(row) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        (lambda facts: facts.pop("label"), "label"),
        (lambda facts: facts.update(format="oneway model 9"), "oneway model 9"),
        (lambda facts: facts["parameters"]["values"].pop(), "4 parameters"),
        (lambda facts: facts["features"][0].update(scale=0), "scale"),
        (lambda facts: facts["parameters"]["options"].update(depth=3), "depth"),
    ],
)
def test_a_json_file_that_was_changed_is_refused(change, culprit):
    facts = json.loads(to_json(fitted(*KINDS[0])))
    change(facts)
    with pytest.raises(DataError, match=culprit):
        from_json(json.dumps(facts).encode())
    with pytest.raises(DataError, match="not a model"):
        from_json(b"no JSON")


def test_a_file_is_written_once_and_in_the_format_of_its_ending(tmp_path: Path):
    taken = fitted(*KINDS[0])
    path = taken.save(tmp_path / "model.json")
    assert path.read_bytes() == to_json(taken)
    with pytest.raises(ConfigError, match=r"model\.json exists"):
        taken.save(path)
    assert taken.save(path, "json", force=True) == path
    for wrong, culprit in (
        ("model.xyz", r"model\.xyz"),
        (".", "is a folder"),
        ("no/model.json", "cannot write"),
    ):
        with pytest.raises(ConfigError, match=culprit):
            taken.save(tmp_path / wrong, "json" if wrong == "." else "")
    with pytest.raises(ConfigError, match=r"format is 'onx'.*'onnx'"):
        taken.save(tmp_path / "other", "onx")
    assert [it.name for it in tmp_path.iterdir()] == ["model.json"]
    with pytest.raises(DataError, match=r"none\.json"):
        FittedModel.load(tmp_path / "none.json")


def test_a_package_that_is_not_installed_is_named_with_its_extra(monkeypatch):
    real = builtins.__import__

    def without(wanted, *more, **others):
        if wanted.partition(".")[0] == "onnx":
            raise ModuleNotFoundError("No module named 'onnx'", name="onnx")
        return real(wanted, *more, **others)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(sys.modules, "oneway.export.onnx_format", raising=False)
    with pytest.raises(MissingExtraError, match=r"needs onnx.*\.\[export\]"):
        FORMATS["onnx"].write(fitted(*KINDS[0]))


def test_a_column_with_the_name_of_an_output_is_refused_by_onnx():
    encoder = Encoder((Number("label"),), "y", "number")
    with pytest.raises(ConfigError, match="'label'"):
        FORMATS["onnx"].write(FittedModel(encoder, KINDS[3][0], np.zeros(2)))


def test_coefficients_are_by_encoded_column_and_a_boolean_is_worth_what_true_adds_to_false():
    taken = models_of_all_kinds()[0]
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


@pytest.mark.parametrize("gaps", [False, True])
def test_arrays_are_exported_by_every_format(gaps):
    features = (
        Array("image", (1, 3, 2), 100.0, 50.0, gaps=gaps),
        Number("age", 40.0, 9.0),
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
    np.testing.assert_allclose(shares, probabilities(taken, rows), rtol=0, atol=1e-12)
    assert from_json(to_json(taken)).predict_many(rows) == taken.predict_many(rows)
