from __future__ import annotations

import bz2
import datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from oneway.errors import DataError, MissingDataError
from oneway.streams import load
from oneway.tables import libsvm_source, parquet_source
from oneway.tables.source import Wish


def test_parquet_columns_find_their_places(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame(
        {
            "x": [1, 2, 3],
            "flag": [True, False, True],
            "who": ["a", None, "b"],
            "when": [datetime.date(2013, 1, day) for day in (1, 2, 3)],
            "list": [[1], [2], [3]],
            "y": [0, 1, 1],
        }
    ).write_parquet(path)
    table = load(path, label="y", standardise=False)
    assert table.encoder.names == ("x", "flag", "when")
    assert table.features[:, :2].tolist() == [[1, 1], [2, 0], [3, 1]]
    assert table.labels.tolist() == [-1, 1, 1]
    assert table.columns["who"].codes.tolist() == [0, -1, 1]
    assert table.columns["when"].names == ("2013-01-01", "2013-01-02", "2013-01-03")
    assert set(table.columns) == {"who", "when"}
    assert load(path, label="flag").label_values == ("false", "true")


def test_parquet_is_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oneway.tables.parquet_source.BLOCK_ROWS", 7)
    path = tmp_path / "x.parquet"
    numbers = np.random.default_rng(0).normal(3.0, 2.0, size=100)
    pl.DataFrame({"x": numbers, "y": np.arange(100) % 2}).write_parquet(path)
    table = load(path, label="y")
    expected = (numbers - numbers.mean()) / numbers.std()
    np.testing.assert_allclose(table.features[:, 0], expected, atol=1e-6)


def test_an_empty_cell_of_a_parquet_feature_is_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"x": [1.0, None, 3.0], "y": [0, 1, 0]}).write_parquet(path)
    assert load(path, label="y").features.tolist() == [[-1.0], [0.0], [1.0]]


def test_a_number_of_a_parquet_file_that_is_not_finite_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"x": [1.0, float("inf")], "y": [0, 1]}).write_parquet(path)
    with pytest.raises(DataError, match=r"x.parquet: row 1, column 'x' is inf"):
        load(path, label="y")


def test_what_is_not_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(DataError, match="not a readable Parquet file"):
        load(path, label="y")
    path.rename(tmp_path / "x.parquet.gz")
    with pytest.raises(DataError, match=r"a table is a .csv"):
        load(tmp_path / "x.parquet.gz", label="y")
    with pytest.raises(MissingDataError, match="does not exist"):
        parquet_source.open_file(tmp_path / "missing.parquet", Wish("y"))


def test_an_empty_parquet_has_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"x": [1.0], "y": [1.0]}).clear().write_parquet(path)
    with pytest.raises(DataError, match="has no rows"):
        load(path, label="y")


LIBSVM = "1 1:0.5 3:2 # a comment\n0 2:-1\n1\n0 1:1 2:1 3:1e2\n"
DENSE = [[0.5, 0, 2], [0, -1, 0], [0, 0, 0], [1, 1, 100]]


@pytest.mark.parametrize("block_bytes", [1, 20, 10_000])
def test_absent_libsvm_entries_are_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr("oneway.tables.lines.BLOCK_BYTES", block_bytes)
    monkeypatch.setattr("oneway.tables.libsvm_source.DENSE_NUMBERS_AT_A_TIME", 6)
    path = tmp_path / "x.svm"
    path.write_text(LIBSVM)
    table = load(path, standardise=False)
    assert table.features.tolist() == DENSE
    assert table.labels.tolist() == [1, -1, 1, -1]
    assert table.label_values == (0, 1)
    assert table.feature_names == ("feature 1", "feature 2", "feature 3")


def test_libsvm_may_be_compressed_and_have_labels_of_either_sign(tmp_path: Path) -> None:
    path = tmp_path / "x.libsvm.bz2"
    path.write_bytes(bz2.compress(b"+1 1:1\n-1 2:1\n"))
    table = load(path, features=["feature 2"], standardise=False)
    assert table.labels.tolist() == [1, -1]
    assert table.features.tolist() == [[0], [1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 a:b\n", "not in LIBSVM format"),
        ("1 0:1\n", "not in LIBSVM format"),
        ("hello\n", "not in LIBSVM format"),
        ("1 1:x\n0 1:1\n", "not in LIBSVM format"),
        ("1 2:1 1:1\n", "not in LIBSVM format"),
        ("", "not in LIBSVM format"),
        ("1 1:inf\n0 1:1\n", "row 0, column 'feature 1' is inf"),
    ],
)
def test_what_is_not_libsvm_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.svm"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        load(path)


def test_an_index_above_the_named_features_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.svm"
    path.write_text("1 3:1\n0 1:1\n")
    with pytest.raises(DataError, match="not in LIBSVM format"):
        list(libsvm_source.open_file(path, Wish(), names=["a", "b"]).blocks())


def test_libsvm_has_no_label_column(tmp_path: Path) -> None:
    path = tmp_path / "x.svm"
    path.write_text(LIBSVM)
    with pytest.raises(DataError, match=r"label='y' does not apply to x.svm"):
        load(path, label="y")
