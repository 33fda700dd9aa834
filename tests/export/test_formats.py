"""Formats of exported models: what is written predicts exactly what the model predicts."""

from __future__ import annotations

import builtins
import io
import json
import pickle
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted
from taken_models import KINDS, Squared, fitted

from oneway.errors import ConfigError, DataError, MissingExtraError
from oneway.export import FittedModel
from oneway.export.formats import FORMATS
from oneway.export.json_format import from_json, to_json
from oneway.models import LogisticRegression
from oneway.tables import Encoder, Feature

ROWS = pd.DataFrame(
    np.random.default_rng(3).normal([45, -3, 0], [20, 1, 2], (200, 3)),
    columns=["age", "pressure", "plain"],
)


def said(model: FittedModel, rows: pd.DataFrame = ROWS) -> tuple[list, np.ndarray | None]:
    cells = rows.to_dict("records")
    shares = None
    if model.says_probabilities:
        shares = np.array([list(model.predict_proba_one(row).values()) for row in cells])
    return model.predict_many(cells), shares


def run_onnx(content: bytes, rows: pd.DataFrame) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    feed = {it.name: rows[[it.name]].to_numpy() for it in session.get_inputs()}
    names = [it.name for it in session.get_outputs()]
    return dict(zip(names, session.run(names, feed), strict=True))


@pytest.mark.parametrize(("model", "classes"), KINDS, ids=str)
def test_the_estimator_predicts_bit_for_bit_what_the_model_does(model, classes):
    taken = fitted(model, classes)
    estimator = pickle.loads(FORMATS["sklearn"].write(taken))
    labels, shares = said(taken)
    for rows in (ROWS, ROWS.to_numpy(), pl.from_pandas(ROWS), ROWS[ROWS.columns[::-1]]):
        assert estimator.predict(rows).tolist() == labels
        if shares is not None:
            assert np.array_equal(estimator.predict_proba(rows), shares)
    check_is_fitted(estimator)
    assert is_classifier(estimator) == bool(classes)
    assert is_regressor(estimator) != bool(classes)
    assert estimator.fit(ROWS, labels) is estimator
    assert estimator.score(ROWS, labels) == 1.0


def test_the_estimator_refuses_a_table_that_lacks_columns():
    estimator = pickle.loads(FORMATS["sklearn"].write(fitted(*KINDS[0])))
    with pytest.raises(DataError, match="no column 'age', 'plain'"):
        estimator.predict(ROWS[["pressure"]])
    with pytest.raises(DataError, match=r"\(200, 2\)"):
        estimator.predict(ROWS.to_numpy()[:, :2])


@pytest.mark.parametrize(("model", "classes"), KINDS, ids=str)
def test_onnxruntime_predicts_what_the_model_does(model, classes):
    taken = fitted(model, classes)
    found = run_onnx(FORMATS["onnx"].write(taken), ROWS)
    labels, shares = said(taken)
    if classes:
        assert found["label"].tolist() == labels
    else:
        np.testing.assert_allclose(found["label"], labels, rtol=1e-12, atol=1e-12)
    assert ("probabilities" in found) == (shares is not None)
    if shares is not None:
        np.testing.assert_allclose(found["probabilities"], shares, rtol=0, atol=1e-12)


def test_a_model_that_has_learned_nothing_says_the_same_everywhere():
    encoder = Encoder((Feature("x"),), "y", "binary", ("false", "true"))
    taken = FittedModel(encoder, LogisticRegression(), np.zeros(2))
    rows = pd.DataFrame({"x": [0.0, 1.0]})
    assert taken.predict_many(rows.to_dict("records")) == [True, True]
    assert pickle.loads(FORMATS["sklearn"].write(taken)).predict(rows).tolist() == [True, True]
    label = run_onnx(FORMATS["onnx"].write(taken), rows)["label"]
    assert label.dtype == np.bool_
    assert label.tolist() == [True, True]


@pytest.mark.parametrize(("model", "classes"), KINDS, ids=str)
def test_json_reads_back_as_the_same_model(model, classes):
    taken = fitted(model, classes)
    taken = FittedModel(taken.encoder, model, taken.params, {"samples": 7, "privacy": "none"})
    again = from_json(to_json(taken))
    assert np.array_equal(again.params, taken.params)
    assert (again.encoder, again.model, again.origin) == (taken.encoder, model, taken.origin)
    told = json.loads(to_json(taken))
    assert told["coefficients"] == taken.coefficients
    assert told["columns"] == ["age", "pressure", "plain"]
    assert told["origin"] == {"samples": 7, "privacy": "none"}


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        (lambda told: told.pop("label"), "label"),
        (lambda told: told.update(format="oneway model 9"), "oneway model 9"),
        (lambda told: told["parameters"]["values"].pop(), "4 parameters"),
        (lambda told: told["features"][0].update(scale=0), "scale"),
        (lambda told: told["parameters"]["options"].update(depth=3), "depth"),
    ],
)
def test_a_json_file_that_is_none_or_was_changed_gets_a_sentence(change, culprit):
    told = json.loads(to_json(fitted(*KINDS[0])))
    change(told)
    with pytest.raises(DataError, match=culprit):
        from_json(json.dumps(told).encode())
    with pytest.raises(DataError, match="not a model that oneway has exported"):
        from_json(b"no JSON")


@pytest.mark.parametrize(("model", "classes"), KINDS, ids=str)
def test_the_archive_has_coefficients_for_raw_columns_and_no_pickles(model, classes):
    taken = fitted(model, classes)
    with np.load(io.BytesIO(FORMATS["npz"].write(taken)), allow_pickle=False) as found:
        scores = ROWS[found["columns"]].to_numpy() @ found["coefficients"].T + found["intercepts"]
        assert found["classes"].tolist() == list(classes)
        assert np.array_equal(found["parameters"], taken.params)
        assert from_json(str(found["facts"]).encode()).encoder == taken.encoder
    labels, _ = said(taken)
    if model.labels == "classes":
        assert [classes[code] for code in scores.argmax(axis=1)] == labels
    elif model.labels == "binary":
        assert [classes[int(score >= 0)] for score in scores[:, 0]] == labels
    else:
        np.testing.assert_allclose(scores[:, 0], labels, rtol=1e-9)


def test_a_file_is_written_once_and_in_the_format_of_its_ending(tmp_path: Path):
    taken = fitted(*KINDS[0])
    path = taken.save(tmp_path / "model.json")
    assert path.read_bytes() == to_json(taken)
    with pytest.raises(ConfigError, match=r"model\.json exists.*force=True"):
        taken.save(path)
    assert taken.save(path, "npz", force=True).read_bytes().startswith(b"PK")
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


@pytest.mark.parametrize("name", ["onnx", "sklearn"])
def test_a_package_that_is_not_installed_is_named_with_its_extra(name, monkeypatch):
    real = builtins.__import__

    def without(wanted, *more, **others):
        if wanted.partition(".")[0] == name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(wanted, *more, **others)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(__import__("sys").modules, f"oneway.export.{name}_format", raising=False)
    with pytest.raises(MissingExtraError, match=rf"needs {name}.*oneway\[export\]"):
        FORMATS[name].write(fitted(*KINDS[0]))


def test_what_a_graph_cannot_do_is_refused():
    taken = fitted(*KINDS[3])
    with pytest.raises(ConfigError, match="squared model does not predict by its scores"):
        FORMATS["onnx"].write(FittedModel(taken.encoder, Squared(), taken.params))
    encoder = Encoder((Feature("label"),), "y", "number")
    with pytest.raises(ConfigError, match="two values called 'label'"):
        FORMATS["onnx"].write(FittedModel(encoder, KINDS[3][0], np.zeros(2)))
