"""Files of every kind become tables, and what is wrong with one is said."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from oneway.datasets import load
from oneway.errors import DataError, MissingDataError
from oneway.tables import Table

TEXT = "a,b,y\n1,u,0\n2,v,1\n3,u,1\n4,v,0\n"


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("compress", [None, gzip.compress, bz2.compress, lzma.compress])
def test_text_may_be_compressed(tmp_path, compress):
    suffix = {gzip.compress: ".gz", bz2.compress: ".bz2", lzma.compress: ".xz"}.get(compress, "")
    path = write(tmp_path / f"x.csv{suffix}", (compress or bytes)(TEXT.encode()))
    table = load(path, label="y")
    assert (table.frame.columns, table.frame["a"].to_list()) == (["a", "b", "y"], [1, 2, 3, 4])
    if suffix:
        content = path.read_bytes()
        for damaged in (content[: len(content) // 2], b"no archive"):
            with pytest.raises(DataError, match=r"x\.csv\."):
                load(write(path, damaged), label="y")


def test_every_format_gives_the_same_table(tmp_path):
    frame = pl.DataFrame(
        {
            "a": [1.5, None, 3.0, 4.0] * 5,
            "b": ["u", "v", None, "u"] * 5,
            "day": [f"2026-01-{n:02}" for n in range(1, 21)],
            "id": [10**17 + n for n in range(20)],
            "y": ["no", "yes"] * 10,
        }
    )
    frame.write_csv(tmp_path / "x.csv")
    write(tmp_path / "x.txt", (tmp_path / "x.csv").read_text().replace(",", ";"))
    frame.with_columns(pl.col("day").str.to_date()).write_parquet(tmp_path / "x.parquet")
    frame.write_ndjson(tmp_path / "x.jsonl")
    tables = [load(tmp_path / f"x.{end}", label="y") for end in ("csv", "txt", "parquet", "jsonl")]
    tables += [
        Table.from_frame(it, label="y")
        for it in (frame, frame.lazy(), pd.DataFrame(frame.to_dict(as_series=False)))
    ]
    for table in tables:
        assert table.encoder == tables[0].encoder
        np.testing.assert_array_equal(table.features, tables[0].features)
        assert table.owners("id").names[:2] == (str(10**17), str(10**17 + 1))
    assert len(table.frame.columns) == 5


def test_absent_libsvm_entries_are_zero(tmp_path):
    path = write(tmp_path / "x.svm", "1 1:2 3:4\n0 2:1 # a comment\n")
    table = load(path)
    np.testing.assert_array_equal(table.frame.drop("label").to_numpy(), [[2, 0, 4], [0, 1, 0]])
    assert (table.encoder.label, table.encoder.classes) == ("label", ("0", "1"))
    assert load(path, encoder=table.encoder).labels.tolist() == [1, -1]
    for text in ("", "x 1:2\n", "1 2:1 1:1\n"):
        with pytest.raises(DataError, match=r"x\.svm"):
            load(write(path, text))


def test_only_a_number_with_a_decimal_comma_changes(tmp_path):
    text = 'a;b;y\n1,5;"x, y";0\n1.234,5;u,1;1\n2;w;0\n'
    frame = load(write(tmp_path / "x.csv", text), label="y", numeric=["a"]).frame
    assert frame["a"].to_list() == [1.5, 1234.5, 2.0]
    assert frame["b"].to_list() == ["x, y", "u,1", "w"]


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("", "is empty"),
        ("a,y\n", "no rows"),
        ("a,a,y\n1,1,1\n", "two columns named 'a'"),
        ('[{"a": 1}]', "one JSON array; write its objects on one line each"),
        ("a,y\n1,0\n1,2,3\n", "line 3: it has 3 cells"),
        ('a,y\n1,0\n"1,0\n', "line 3: a quote"),
        ("a,y\n1,0\n\0,1\n", "line 3: it holds bytes"),
        ("\0\0\0\0", "no text"),
        ("a,y\n1,0\n\nx,1\n" + "1,0\n" * 30, "line 4: feature 'a' is 'x'"),
        ("a,y\n1,\n2,NA\n", "no row with a label"),
        ('{"a": 1, "y": 2}\n{"a": \n', "line 2: it is not a JSON object"),
    ],
)
def test_bad_files_are_refused_with_their_culprits(tmp_path, text, culprit):
    with pytest.raises(DataError, match=rf"x\.csv.*{culprit}"):
        load(write(tmp_path / "x.csv", text), label="y", numeric=["a"])


@pytest.mark.parametrize(
    ("name", "error", "culprit"),
    [
        ("none.csv", MissingDataError, "none.csv"),
        ("none.parquet", MissingDataError, "none.parquet"),
        ("x.docx", MissingDataError, "x.docx"),
        ("ocupancy", DataError, "did you mean 'occupancy'"),
        (None, DataError, "from_frame"),
        ("", DataError, "path"),
    ],
)
def test_what_does_not_exist_is_refused(name, error, culprit):
    with pytest.raises(error, match=culprit):
        load(name, label="y")


def test_unknown_kinds_of_files_are_refused(tmp_path):
    for name in ("x.docx", "x", "x.parquet.gz"):
        with pytest.raises(DataError, match=r"a table is a \.csv"):
            load(write(tmp_path / name, TEXT), label="y")
    with pytest.raises(DataError, match=r"x\.parquet cannot be read"):
        load(write(tmp_path / "x.parquet", "no"), label="y")


def test_labels_are_asked_for_and_options_are_for_what_they_are(tmp_path):
    path = write(tmp_path / "x.csv", TEXT)
    with pytest.raises(DataError, match="needs a label") as raised:
        load(path)
    assert "--label COLUMN" in raised.value.for_shell
    with pytest.raises(DataError, match="samples"):
        load(path, label="y", samples=3)
    with pytest.raises(DataError, match="leave label"):
        load(path, label="y", encoder=load(path, label="y").encoder)
    assert load(path, label="y", task="number").labels.tolist() == [0, 1, 1, 0]
    with pytest.raises(DataError, match="'b' holds 'u'"):
        load(path, label="b", task="number")


def test_an_index_without_a_name_is_no_feature_unless_asked_for(tmp_path):
    pd.DataFrame({"x": [5, 6, 8], "y": [0, 1, 0]}).to_csv(tmp_path / "x.csv")
    table = load(tmp_path / "x.csv", label="y")
    assert table.encoder.names == ("x",)
    assert [note.remark for note in table.notes if not note.used] == ["it has no name"]
    asked = load(tmp_path / "x.csv", label="y", features=["unnamed column 1"])
    assert asked.encoder.names == ("unnamed column 1",)


@pytest.mark.parametrize("frame", [[[1, 2]], np.eye(2), {"a": [1]}, "patients.csv"])
def test_what_is_no_frame_is_refused(frame):
    with pytest.raises(DataError, match="from_arrays"):
        Table.from_frame(frame, label="y")


def test_names_of_a_frame_are_text_and_there_once():
    with pytest.raises(DataError, match="named 0"):
        Table.from_frame(pd.DataFrame([[1, 2]]), label="y")
    with pytest.raises(DataError, match="two columns named 'a'"):
        Table.from_frame(pd.DataFrame([[1, 2]], columns=["a", "a"]), label="a")


def test_types_of_pandas_with_missing_values_of_their_own():
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3] * 10, dtype="Int64"),
            "truth": pd.array([True, None, False] * 10, dtype="boolean"),
            "kind": pd.Categorical(["a", None, "b"] * 10),
            "text": pd.array(["u", pd.NA, "v"] * 10, dtype="string"),
            "when": pd.to_datetime(["2026-01-01 06:00", None, "2026-01-02 07:00"] * 10),
            "y": [0, 1] * 15,
        }
    )
    table = Table.from_frame(frame, label="y")
    kinds = [feature.kind for feature in table.encoder.features]
    assert kinds == ["number", "boolean", "category", "category", "time"]
    flags = [place.stop - 1 for place in table.encoder.places]
    assert np.flatnonzero(table.features[1]).tolist() == flags
    assert [note.missing for note in table.notes] == [0, 10, 10, 10, 10, 10]
