"""Formats of exported models: a file predicts what the model predicts, for every kind of cell."""

from __future__ import annotations

import builtins
import json
import sys
from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from taken_models import KINDS, fitted, personal

from oneway.errors import ConfigError, DataError, MissingExtraError
from oneway.export import INTERCEPT, FittedModel, PersonalModel
from oneway.export.formats import FORMATS
from oneway.export.json_format import from_json, to_json
from oneway.models import LogisticRegression, RidgeRegression, SoftmaxRegression, standardised
from oneway.tables import Array, Boolean, Category, Encoder, Number, Time
from oneway.tables.cells import (
    SPACES,
    is_missing,
    label_key,
    missing_spellings,
    truth_spellings,
    value_spellings,
)

TIME = Time("visit", missing_indicator=True)
FEATURES = (
    Number("age", 40.0, 12.5, missing_indicator=True),
    Number("weight", 70.0, 9.0),
    Boolean("smokes", missing_indicator=True),
    Category("town", values=("Ulm", "Bonn", "Köln"), missing_indicator=True),
    Category("grade", values=("1", "2.5", "none of these")),
    Array("image", (1, 3, 2), 100.0, 50.0, missing_indicator=True),
    TIME,
)
WHOLE = {"age": 30.0, "weight": 80.0, "smokes": True, "town": "Ulm", "grade": 1, "visit": None}
WHOLE["image"] = np.arange(6.0)


def models_of_all_kinds() -> list[FittedModel | PersonalModel]:
    rng = np.random.default_rng(9)
    binary = Encoder(FEATURES, "state", "binary", ("false", "true"), "logistic")
    several = Encoder(FEATURES, "state", "classes", tuple("abc"), "softmax")
    number = Encoder(FEATURES, "price", "number", (), "ridge")
    taken = [
        FittedModel(encoder, model, rng.normal(size=model.dim(encoder.width)))
        for encoder, model in (
            (binary, LogisticRegression()),
            (several, SoftmaxRegression(3)),
            (number, RidgeRegression(center=250.0, scale=8.0)),
        )
    ]
    return [*taken, *map(personal, taken)]


MODELS = models_of_all_kinds()


def run_onnx(model: FittedModel | PersonalModel, rows: list[dict[str, object]]) -> list[np.ndarray]:
    """The recipe of docs/model.md: numbers and arrays as they are, the rest as text."""
    session = session_of(model)
    feed = {}
    for it in session.get_inputs():
        cells = [row[it.name] for row in rows]
        if it.type == "tensor(string)":
            column = np.array(["" if cell is None else str(cell) for cell in cells], dtype=object)
        else:
            shape = it.shape[1:]
            blank = np.full(shape, np.nan)
            column = np.array([blank if is_missing(it) else np.reshape(it, shape) for it in cells])
        feed[it.name] = column.reshape(-1, *it.shape[1:])
    return session.run(None, feed)


@cache
def session_of(model: FittedModel | PersonalModel) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(
        FORMATS["onnx"].write(model), providers=["CPUExecutionProvider"]
    )


def check_onnx(model: FittedModel | PersonalModel, rows: list[dict[str, object]]) -> None:
    waves = [TIME.encode(row.get("visit")) for row in rows]
    fed = [
        row | dict(zip(TIME.outputs, it, strict=True)) for row, it in zip(rows, waves, strict=True)
    ]
    found, *shares = run_onnx(model, fed)
    labels = model.predict_many(rows)
    if not model.classes:
        np.testing.assert_allclose(found, labels, rtol=1e-12, atol=1e-10)
    else:
        assert found.tolist() == labels
    assert len(shares) == model.says_probabilities
    if model.says_probabilities:
        wanted = [list(model.predict_proba_one(row).values()) for row in rows]
        np.testing.assert_allclose(shares[0], wanted, rtol=0, atol=1e-12)


def is_promised(text: str) -> bool:
    """Whether a graph reads a text as a peer does: one space around it, and no odd numbers."""
    stripped, key = text.strip(SPACES), label_key(text)
    spaced = text in (stripped, f" {stripped}", f"{stripped} ")
    listed = [value for value in ("1", "2.5") if label_key(value) == key]
    return bool(stripped) and spaced and all(text in value_spellings(value) for value in listed)


readable = st.text(st.characters(exclude_categories=["C"]), max_size=8)
missing = st.sampled_from([None, *missing_spellings()])
numbers = st.floats(-1e6, 1e6) | st.none()


def categories(*values: str) -> st.SearchStrategy[object]:
    listed = [text for value in values for text in value_spellings(value)]
    return st.sampled_from(listed) | missing | readable.filter(is_promised)


fuzzed_rows = st.fixed_dictionaries(
    {
        "age": numbers,
        "weight": numbers,
        "smokes": missing | st.sampled_from([*truth_spellings(True), *truth_spellings(False)]),
        "town": categories("Ulm", "Bonn", "Köln") | st.sampled_from(["ulm", "Essen", "none"]),
        "grade": categories("1", "2.5", "none of these") | st.sampled_from([1, True, 2.5, "9"]),
        "image": st.lists(st.floats(-1e4, 1e4), min_size=6, max_size=6) | st.none(),
        "visit": missing | st.sampled_from(["2026-03-01 14:30", "2025-12-31T23:59", "07:15"]),
    }
)


@pytest.mark.parametrize("model", MODELS, ids=repr)
@settings(max_examples=30)
@given(rows=st.lists(fuzzed_rows, min_size=1, max_size=40))
def test_onnxruntime_predicts_what_the_model_does_for_any_cells(model, rows):
    check_onnx(model, rows)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_linear_model_is_exported_shared_and_personal(kind):
    drawn = np.random.default_rng(3).normal([45, -3, 0], [20, 1, 2], (50, 3)).tolist()
    rows = [dict(zip(("age", "pressure", "plain"), row, strict=True)) for row in drawn]
    check_onnx(fitted(*kind), rows)
    check_onnx(personal(fitted(*kind)), rows)


def test_a_boolean_that_is_neither_true_nor_false_is_not_a_number_in_onnx():
    """A peer refuses the row; a graph cannot, and must not guess."""
    taken = FittedModel(Encoder((Boolean("smokes"),), "y", "number"), RidgeRegression(), np.ones(2))
    [found] = run_onnx(taken, [{"smokes": "yes"}, {"smokes": "perhaps"}])
    assert np.isnan(found).tolist() == [False, True]


def test_labels_of_a_standardised_model_come_back_in_their_units(huber, tmp_path):
    model = standardised(huber(), 250_000.0, 80_000.0)
    encoder = Encoder((Number("age", 40.0, 12.5),), "price", "number")
    taken = FittedModel(encoder, model, np.array([0.5, -0.25]))
    rows = [{"age": age} for age in (20.0, 45.0)]
    assert np.mean(taken.predict_many(rows)) > 100_000
    check_onnx(taken, rows)
    again = FittedModel.load(taken.save(tmp_path / "m.json"))
    assert again.predict_many(rows) == taken.predict_many(rows)
    assert (again.model, again.coefficients) == (model, taken.coefficients)


def test_of_equal_scores_onnx_predicts_the_class_that_the_model_does():
    encoder = Encoder((Number("x"),), "y", "binary", ("false", "true"))
    taken = FittedModel(encoder, LogisticRegression(), np.zeros(2))
    check_onnx(taken, [{"x": 0.0}])
    assert run_onnx(taken, [{"x": 0.0}])[0].dtype == np.bool_


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_json_reads_back_as_the_same_model(model):
    again = from_json(to_json(model), kind=type(model))
    assert np.array_equal(again.params, model.params)
    assert (again.encoder, again.model) == (model.encoder, model.model)
    assert again.predict_one(WHOLE) == model.predict_one(WHOLE)
    facts = json.loads(to_json(model))
    assert facts["columns"] == list(model.encoder.outputs)
    if isinstance(model, PersonalModel):
        assert list(facts["weights"].values()) == model.weights.tolist()
        with pytest.raises(DataError, match=r"PersonalModel\.load"):
            from_json(to_json(model))
    else:
        assert facts["coefficients"] == model.coefficients
        with pytest.raises(DataError, match=r"FittedModel\.load"):
            from_json(to_json(model), kind=PersonalModel)


@pytest.mark.parametrize("taken", MODELS[:3], ids=repr)
@pytest.mark.parametrize("blank", ["", "age", "weight", "smokes", "town", "image"])
def test_the_rule_in_a_json_file_gives_the_scores_of_a_row(taken, blank):
    """By hand from `how`, `features` and `coefficients`, as a program in another language."""
    facts, row = json.loads(to_json(taken)), WHOLE | ({blank: None} if blank else {})
    centers = {it["name"]: it.get("center", 0.0) for it in facts["features"]}
    for word in ("center", "0.5", "'NAME missing'"):
        assert word in facts["how"]
    values = dict.fromkeys(facts["columns"], 0.0)
    for name in ("age", "weight"):
        values[name] = centers[name] if row[name] is None else row[name]
    for place, name in enumerate(name for name in values if name.startswith("image[")):
        values[name] = centers["image"] if row["image"] is None else row["image"][place]
    values["smokes"] = 0.5 if row["smokes"] is None else float(row["smokes"])
    if row["town"] is not None:
        values[f"town={row['town']}"] = 1.0
    values["grade=1"] = 1.0
    for name in ("age", "smokes", "town", "visit", "image"):
        values[f"{name} missing"] = float(row[name] is None)
    found = facts["coefficients"]
    by_score = [found[name] for name in facts["classes"]] if "a" in found else [found]
    scores = [
        one[INTERCEPT] + sum(one[name] * it for name, it in values.items()) for one in by_score
    ]
    inputs = taken.encoder.vector(row)[None, :]
    if taken.classes:
        wanted = np.atleast_1d(taken.model.scores(taken.params, inputs)[0])
    else:
        wanted = taken.model.predict(taken.params, inputs)
    np.testing.assert_allclose(scores, wanted, rtol=1e-9)


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        (lambda facts: facts.pop("label"), "label"),
        (lambda facts: facts.update(format="oneway model 9"), "oneway model 9"),
        (lambda facts: facts["parameters"].pop(), "4 parameters"),
        (lambda facts: facts["features"][0].update(scale=0), "scale"),
        (lambda facts: facts["options"].update(depth=3), "depth"),
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
    assert taken.save(path, "json", force=True) == path
    for name, chosen, culprit in (
        ("model.json", "", r"model\.json exists"),
        ("model.xyz", "", r"model\.xyz"),
        (".", "json", "is a folder"),
        ("no/model.json", "", "cannot write"),
        ("other", "onx", r"format is 'onx'.*'onnx'"),
    ):
        with pytest.raises(ConfigError, match=culprit):
            taken.save(tmp_path / name, chosen)
    assert [it.name for it in tmp_path.iterdir()] == ["model.json"]
    with pytest.raises(DataError, match=r"none\.json"):
        FittedModel.load(tmp_path / "none.json")


def test_what_onnx_cannot_write_is_refused(monkeypatch):
    clash = FittedModel(Encoder((Number("label"),), "y", "number"), KINDS[3][0], np.zeros(2))
    with pytest.raises(ConfigError, match="'label'"):
        FORMATS["onnx"].write(clash)
    real = builtins.__import__

    def without(wanted, *more, **others):
        if wanted.partition(".")[0] == "onnx":
            raise ModuleNotFoundError("No module named 'onnx'", name="onnx")
        return real(wanted, *more, **others)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(sys.modules, "oneway.export.onnx_format", raising=False)
    with pytest.raises(MissingExtraError, match=r"needs onnx.*\.\[export\]"):
        FORMATS["onnx"].write(fitted(*KINDS[0]))
