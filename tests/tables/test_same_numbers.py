"""A whole table and the rows that a peer reads give the same numbers, and the same refusals."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oneway.datasets import load
from oneway.errors import DataError, TaskError
from oneway.tables import Boolean, Category, Encoder, Number, Table
from oneway.tables.reading import read_frame
from oneway.tables.rows import MAX_LINE_BYTES, BadRow, RowReader

FEATURES = (
    Category("x", values=("a", "1", "ü")),
    Number("x", 1.5, 0.25, missing_indicator=True),
    Boolean("x"),
    Category("y", values=("b", "1.5")),
    Number("y", -1e9, 1e-3),
)
cells = st.one_of(
    st.text("ab1ü ,;\t\".'eE+-_\xa0", max_size=6),
    st.floats(-1e9, 1e9).map(repr),
    st.integers(-(10**18), 10**18).map(str),
    st.sampled_from(["NA", "nan", "None", "none", "?", "true", "FALSE", "yes", "inf", "1e999"]),
    st.sampled_from(
        ['"a"', '"a""b"', 'a"', '5" pipe', '""a""', '"1"', '"', "1_0", "1,5", "1.234,5"]
    ),
    st.sampled_from(["", " ", "٣", "\r", "\x1c", "1e40", "0x1", ".5", "5.", "+1", "01", "1.0"]),
)
lines = st.lists(st.lists(cells, max_size=4), max_size=6)


def rows_of(data: bytes) -> list:
    reader = RowReader("the data")
    return [*reader.feed(data), *reader.finish()]


def encoded(feature, rows) -> object:
    """What a feature makes of rows of cells; only that it refuses them, not of which."""
    try:
        return np.array([feature.encode(row[feature.name]) for row in rows], np.float32).tolist()
    except DataError:
        return "refused"


def encoded_column(feature, frame: pl.DataFrame) -> object:
    try:
        return feature.encode_column(frame[feature.name]).tolist()
    except DataError:
        return "refused"


def check(data: bytes) -> None:
    rows = rows_of(data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples.csv"
        path.write_bytes(data)
        try:
            frame = read_frame(path)
        except DataError:
            assert not rows or any(isinstance(row, BadRow) for row in rows)
            return
    bad = [row for row in rows if isinstance(row, BadRow)]
    if bad:  # only text with line breaks, which a table holds and a stream of lines does not
        assert any("not closed on its line" in row.reason for row in bad)
        return
    values = [row.values for row in rows]
    assert len(frame) == len(values)
    for feature in FEATURES:
        assert encoded_column(feature, frame) == encoded(feature, values)


@given(
    lines=lines,
    separator=st.sampled_from(",;\t"),
    end=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "cp1252"]),
)
@example([["1", "2"], ["3", ""]], ",", "\n", False, "utf-8")
@example([["1", "2", ""]], ";", "\n", False, "utf-8")
@example([['5" pipe', "1"], ['"nut"', "2"]], ",", "\n", True, "utf-8")
@example([["1"], [], [" ", " "], ["NA", "NA"]], ",", "\n", True, "utf-8")
@example([["1"] * 2] * 3 + [["a", "b"]], "\t", "\r\n", True, "cp1252")
def test_any_file_is_the_same_frame_and_the_same_rows(lines, separator, end, last, encoding):
    text = end.join([separator.join("xy"), *map(separator.join, lines)]) + end * last
    check(text.encode(encoding, errors="replace"))


@pytest.mark.parametrize(
    "row",
    [
        "1," + "a" * 131_073,
        "a" * 1000 + "," + "b" * (MAX_LINE_BYTES - 1000),
        ",".join(["1" * 100_000] * 2),
        '1,"' + "a" * 70_000 + '""' + "b" * 70_000 + '"',
    ],
)
def test_huge_lines_and_cells_are_the_same_to_both(row):
    check(f"x,y\n1,2\n{row}\n3,4\n".encode())


@pytest.mark.parametrize("length", [9, 10, 11, 30])
@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_a_long_line_is_found_wherever_blocks_end(length, size, monkeypatch):
    monkeypatch.setattr("oneway.tables.rows.MAX_LINE_BYTES", 10)
    monkeypatch.setattr("oneway.tables.reading.MAX_LINE_BYTES", 10)
    monkeypatch.setattr("oneway.tables.reading.BLOCK_BYTES", size)
    for row in (b"1," + b"2" * (length - 3) + b"\n3,4\n", b"3,4\n1," + b"2" * (length - 2)):
        check(b"x,y\n" + row)


@pytest.mark.parametrize("data", [b"x,y\n1,2\n\0,4\n", b'x,y\n1,"a\nb"\n', b"x,y\n\n \n", b"x,y"])
def test_odd_files_are_the_same_to_both(data):
    check(data)


@given(cuts=st.lists(st.integers(0, 60), max_size=8))
def test_rows_do_not_depend_on_where_pieces_end(cuts):
    data = b'\xef\xbb\xbfx,y\r\n1,\xfc\n\n2,"b"\n,\n3,c"\n4,5,6\n7'
    ends = [0, *sorted(cuts), len(data)]
    reader = RowReader("the data")
    pieces = [data[first:last] for first, last in pairwise(ends)]
    assert [*(row for it in pieces for row in reader.feed(it)), *reader.finish()] == rows_of(data)


def test_json_lines_are_the_same_frame_and_the_same_rows(tmp_path):
    data = '{"x": 1, "y": "b"}\n\n{"y": 1.5}\n{"x": true, "y": null}\n{"x": "ü", "y": [1]}\n'
    (tmp_path / "x.jsonl").write_text(data, encoding="utf-8")
    frame, values = read_frame(tmp_path / "x.jsonl"), [row.values for row in rows_of(data.encode())]
    category, number = FEATURES[0], Number("x", missing_indicator=True)
    for feature, last in ((category, 4), (number, 3)):
        rows = [{"x": row.get("x")} for row in values[:last]]
        assert encoded_column(feature, frame[:last]) == encoded(feature, rows)


def test_a_file_whose_first_rows_suggest_other_types_is_read_as_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("oneway.tables.reading.TOP_BYTES", 50)
    rows = [f"{n},{n / 3}" for n in range(40)]
    for odd in ("1,x", " 7 ,NA", "9007199254740993,1", "true,yes"):
        (tmp_path / "x.csv").write_text("\n".join(["x,y", *rows, odd]))
        frame = read_frame(tmp_path / "x.csv")
        for feature, column in ((Number("x"), "x"), (Category("x", ("true",)), "x")):
            last = encoded(feature, [{column: odd.split(",")[0]}])
            assert encoded_column(feature, frame[-1:]) == last
    assert frame["x"][0] == "0"


ENCODER = Encoder((Number("a", 20.5, 3.25), Number("b", -1e9, 1e-3)), "y", "binary", ("no", "yes"))


@given(st.lists(st.floats(-1e9, 1e9) | st.integers(-(10**9), 10**9), min_size=2, max_size=2))
def test_plain_numbers_are_encoded_all_at_once_as_every_one_is(raw):
    row = dict(zip(("a", "b"), raw, strict=True))
    one_by_one = [feature.encode(row[feature.name])[0] for feature in ENCODER.features]
    assert ENCODER.vector(row).tolist() == one_by_one


def test_written_rows_are_read_back_as_exactly_the_same_numbers(tmp_path):
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "a": [*rng.normal(1e5, 1e-3, 48), None, 1 / 3],
            "b": [*(['a, "b"'] * 25), *(["c; d"] * 24), None],
            "when": ["2026-01-01 12:30"] * 49 + [None],
            "y": ["no", "yes"] * 25,
        }
    )
    table = Table.from_frame(frame, label="y")
    table.write_csv(tmp_path / "again.csv", np.arange(49, -1, -1))
    again = load(tmp_path / "again.csv", encoder=table.encoder)
    np.testing.assert_array_equal(again.features, table.features[::-1])
    np.testing.assert_array_equal(again.labels, table.labels[::-1])
    rows = rows_of((tmp_path / "again.csv").read_bytes())
    vectors = np.array([table.encoder.vector(row.values) for row in rows], np.float32)
    np.testing.assert_array_equal(vectors, again.features)
    assert rows[1].values["b"] == "c; d"


def test_real_tables_write_files_that_read_back_as_they_are(real_data, tmp_path):
    for name in ("occupancy", "adult", "heart", "flights"):
        if name != "flights" and not (real_data / name).is_dir():
            continue
        table = load(name)
        rows = np.random.default_rng(0).choice(len(table), 300, replace=False)
        table.write_csv(tmp_path / f"{name}.csv", rows)
        again = load(tmp_path / f"{name}.csv", encoder=table.encoder)
        np.testing.assert_array_equal(again.features, table.features[rows])
        np.testing.assert_array_equal(again.labels, table.labels[rows])


@pytest.mark.parametrize("missing", ["", "NA", "?", "None"])
@pytest.mark.parametrize("labels", [["no", "yes"] * 10, list(range(20))])
def test_rows_without_a_label_are_skipped_and_counted(missing, labels, tmp_path):
    text = "".join(f"{n},{label}\n" for n, label in enumerate([*labels[:9], missing, *labels[9:]]))
    (tmp_path / "x.csv").write_text(f"x,y\n{text}")
    table = load(tmp_path / "x.csv", label="y", numeric=["x"])
    assert (len(table), table.origin["rows_without_label"]) == (20, 1)
    assert table.frame["x"].to_list() == [*range(9), *range(10, 21)]
    assert "1 row without a label is skipped" in table.notes[0].remark


def test_labels_that_mean_the_same_are_one_class_in_a_table_as_for_a_peer():
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": ["1", "1.0", " true", "no"]})
    table = Table.from_frame(frame, label="y")
    assert table.encoder.classes == ("1", "no")
    assert table.labels.tolist() == [table.encoder.label_value(it) for it in frame["y"]]


@pytest.mark.parametrize(
    ("kind", "classes", "codes"),
    [("binary", ("b", "a"), [-1, 1]), ("classes", ("10", "9", "x"), [0, 1, 2])],
)
def test_classes_keep_their_order_and_come_back(kind, classes, codes):
    encoder = Encoder((Number("x"),), "y", kind, classes)
    assert [encoder.label_value(name) for name in classes] == codes
    assert tuple(map(encoder.label_name, codes)) == classes
    with pytest.raises(DataError, match="'other'"):
        encoder.label_value("other")
    with pytest.raises(DataError, match=r"row 1.*'other'"):
        encoder.labels(pl.DataFrame({"y": [classes[0], "other"]}))


@pytest.mark.parametrize(
    ("kind", "classes"),
    [
        ("number", ("a",)),
        ("binary", ("a",)),
        ("binary", ("a", "b", "c")),
        ("classes", ("a",)),
        ("binary", ("1", "1.0")),
        ("binary", ("", "a")),
        ("binary", (" a", "b")),
    ],
)
def test_classes_that_do_not_suit_the_kind_of_label_are_refused(kind, classes):
    with pytest.raises(TaskError, match="class"):
        Encoder((Number("x"),), "y", kind, classes)


def test_a_sample_without_some_features_names_them():
    with pytest.raises(DataError, match="'aa', 'c'"):
        Encoder((Number("aa"), Number("b"), Number("c")), "y", "number").vector({"b": 1})
    with pytest.raises(DataError, match="did you mean 'a_'"):
        ENCODER.vector({"a_": 1, "b": 2})
