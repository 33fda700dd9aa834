"""Files for peers from tables that were made of encoded columns."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from oneway.datasets import load
from oneway.errors import DataError
from oneway.tables import Encoder, Feature, Table

ENCODER = Encoder(
    (Feature("x", 1.0, 2.0), Feature("c", values=("a", "b"), gaps=True)), "y", "binary", ("0", "1")
)


def table_of(encoder: Encoder, features: np.ndarray) -> Table:
    table = Table.from_arrays(features, [0, 1] * (len(features) // 2), standardise=False)
    return Table(
        features=table.features,
        labels=table.labels,
        feature_names=encoder.outputs,
        name="made",
        columns={},
        means=encoder.scaling.means,
        scales=encoder.scaling.scales,
        label_values=("0", "1"),
        origin={"task": "binary", "label": "y"},
        encoding=encoder.features,
    )


def read_back(path: Path, encoder: Encoder) -> np.ndarray:
    with path.open() as file:
        return np.array([encoder.vector(row) for row in csv.DictReader(file)])


def test_a_category_without_its_text_is_told_from_its_columns(tmp_path):
    features = np.array([[0.5, 1, 0, 0, 0], [1, 0, 1, 0, 0], [2, 0, 0, 1, 0], [0, 0, 0, 0, 1.0]])
    table = table_of(ENCODER, features)
    table.write_csv(tmp_path / "x.csv", np.arange(4))
    np.testing.assert_array_equal(read_back(tmp_path / "x.csv", ENCODER), features)
    np.testing.assert_array_equal(table.recoded(ENCODER).features, features)


def test_times_that_were_not_kept_cannot_be_written(tmp_path):
    encoder = Encoder((Feature("t", kind="time"),), "y", "binary", ("0", "1"))
    with pytest.raises(DataError, match="'t'"):
        table_of(encoder, np.zeros((2, 6))).write_csv(tmp_path / "x.csv", np.arange(2))


@pytest.mark.parametrize("name", ["adult", "heart"])
def test_patients_and_citizens_read_back_as_they_are(name, real_data, tmp_path):
    if not (real_data / name).is_dir():
        pytest.skip(f"ONEWAY_DATA holds no {name}")
    table = load(name)
    rows = np.arange(0, len(table), max(1, len(table) // 300))
    table.write_csv(tmp_path / "x.csv", rows)
    again = read_back(tmp_path / "x.csv", table.encoder).astype(np.float32)
    np.testing.assert_array_equal(again, table.features[rows])
