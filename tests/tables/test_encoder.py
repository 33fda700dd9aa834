"""A whole table and a single row give the same numbers, and the same refusals."""

from __future__ import annotations

import csv
import io
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oneway.datasets import load
from oneway.errors import DataError, TaskError
from oneway.tables import Encoder, Feature, Table
from oneway.tables.cells import as_number, is_gap
from oneway.tables.rows import Row, RowReader

FEATURES = (Feature("a", 20.5, 3.25), Feature("b, or ;", -1e9, 1e-3))
ENCODER = Encoder(FEATURES, "late\tness", "binary", ("no", "yes"))

numbers = st.one_of(
    st.floats(-1e9, 1e9).map(repr),
    st.integers(-(10**18), 10**18).map(str),
    st.sampled_from(["1e-300", "4.9e-324", "+5", ".5", "5.", "-0", "1E3", "true", "False", "TRUE"]),
    st.text("0123456789", min_size=1, max_size=30),
    st.sampled_from(["", "NA", "nan", "None", "n/a", "?", "-nan"]),
)
wrong = st.sampled_from(
    ("inf", "-Infinity", "1e999", "1_000", "x", "1,2,3", "1;5", "0x1")
) | st.sampled_from(
    ("--1", "1 2", "٣", "1e", "e5", ".", "+", '"', "truee", "1e40", "1.5.2", "a\nb")
)
spaces = st.text(" \t\xa0", max_size=2)


def padded(cells: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(spaces, cells, spaces).map("".join)


samples = st.lists(
    st.tuples(padded(numbers), padded(numbers), padded(st.sampled_from(["no", "yes"]))),
    min_size=2,
    max_size=12,
)


def as_csv(rows: Sequence[Sequence[str]], separator: str, quoting: int) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator="\n")
    writer.writerows([[*ENCODER.names, ENCODER.label], *rows])
    return text.getvalue().encode()


def row_by_row(text: bytes, encoder: Encoder = ENCODER) -> tuple[np.ndarray, np.ndarray]:
    """What a peer learns from: every row with a label by itself."""
    reader = RowReader("the data", [*encoder.names, encoder.label])
    rows = [*reader.feed(text), *reader.finish()]
    assert all(isinstance(row, Row) for row in rows), rows
    cells = [row.values for row in rows]
    vectors = np.array([encoder.vector(each) for each in cells])
    labelled = [not is_gap(each[encoder.label]) for each in cells]
    labels = [encoder.label_value(each[encoder.label]) for each in compress(cells, labelled)]
    return vectors[labelled], np.array(labels)


def whole_table(text: bytes, **options: object) -> Table:
    """What a simulation learns from."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples.csv"
        path.write_bytes(text)
        return load(path, **options)


layouts = {
    "separator": st.sampled_from([",", ";", "\t"]),
    "quoting": st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
}


def finds_both_labels_and_a_number(rows: Sequence[Sequence[str]]) -> bool:
    return len({row[2].strip() for row in rows}) == 2 and not all(is_gap(row[0]) for row in rows)


@given(rows=samples, **layouts)
def test_a_whole_table_and_a_single_row_give_the_same_numbers(rows, separator, quoting):
    text = as_csv(rows, separator, quoting)
    vectors, labels = row_by_row(text)
    table = whole_table(text, encoder=ENCODER)
    np.testing.assert_array_equal(table.features, vectors.astype(np.float32))
    np.testing.assert_array_equal(table.labels, labels)
    raw = np.array([[np.nan if is_gap(c) else as_number(c) for c in row[:2]] for row in rows])
    np.testing.assert_array_equal(ENCODER.matrix(raw), table.features)


@given(rows=samples, row=st.integers(0, 11), column=st.integers(0, 1), cell=wrong, **layouts)
@example([("1", "1", "no")] * 2, 0, 0, "٣", ",", csv.QUOTE_MINIMAL)
def test_a_wrong_cell_is_refused_by_both_and_its_column_is_named(
    rows, row, column, cell, separator, quoting
):
    cells = [list(each) for each in rows]
    cells[row % len(cells)][column] = cell
    text = as_csv(cells, separator, quoting)
    name = ENCODER.names[column]
    with pytest.raises(DataError, match=f"{name}"):
        row_by_row(text)
    with pytest.raises(DataError, match=f"{name}"):
        whole_table(text, encoder=ENCODER)


@given(rows=samples.filter(finds_both_labels_and_a_number), **layouts)
@example([("0", "0", "no"), ("true", "0", "no"), ("-nan", "0", "yes")], ",", csv.QUOTE_MINIMAL)
def test_a_table_that_finds_its_own_scaling_encodes_a_row_as_itself(rows, separator, quoting):
    text = as_csv(rows, separator, quoting)
    table = whole_table(text, label=ENCODER.label)
    vectors, labels = row_by_row(text, table.encoder)
    np.testing.assert_array_equal(table.features, vectors.astype(np.float32))
    np.testing.assert_array_equal(table.labels, labels)


plain_cells = (
    st.floats()
    | st.integers()
    | st.floats().map(np.float64)
    | st.sampled_from([10**400, 3e38, 4e38, True, None, "1.5", "x"])
)


@given(st.lists(plain_cells, min_size=3, max_size=3), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_plain_numbers_are_encoded_all_at_once_as_every_one_is(cells, center, scale):
    features = tuple(Feature(name, center=center, scale=scale) for name in "abc")
    encoder = Encoder(features, "y", "number")
    row = dict(zip("abc", cells, strict=True))
    try:
        parts = [feature.encode(row[feature.name]) for feature in features]
    except DataError as error:
        with pytest.raises(DataError, match=re.escape(str(error))):
            encoder.vector(row)
        return
    assert encoder.vector(row).tolist() == [number for part in parts for number in part]


@pytest.mark.parametrize("line", ["", " ", "\r"])
@pytest.mark.parametrize("one", ["1", "true"])
def test_blank_lines_are_no_rows_for_either(line, one):
    text = f"a,y\n{line}\n{one},0\n{line}\n{line}\n3,1\n{line}\n".encode()
    table = whole_table(text, label="y")
    assert table.features.tolist() == [[-1.0], [1.0]]
    assert row_by_row(text, table.encoder)[0].tolist() == [[-1.0], [1.0]]


lines = st.lists(
    st.lists(st.sampled_from(["", " ", '""', '" "', "1", "2.5", "NA", "true", "x"]), max_size=4),
    min_size=1,
    max_size=8,
)


@given(lines=lines, separator=layouts["separator"], last=st.sampled_from(["", "\n", "\n\n"]))
@example([["1", "2"], ["1"], ["", "", ""], ["1", "true", "x"]], ",", "")
@example([["", ""], ["1", "2", "1"], [], [" "]], "\t", "\n")
def test_short_rows_and_rows_without_a_word_are_the_same_to_both(lines, separator, last):
    rows = [["a", "b", "rest"], *lines, ["7", "8", "9"]]
    text = ("\n".join(separator.join(row) for row in rows) + last).encode()
    encoder = Encoder((Feature("b"),), "a", "number")
    try:
        expected, labels = row_by_row(text, encoder)
    except (DataError, AssertionError):  # a row that no sample can be made of
        with pytest.raises(DataError):
            whole_table(text, encoder=encoder)
        return
    table = whole_table(text, encoder=encoder)
    np.testing.assert_array_equal(table.features, expected)
    np.testing.assert_array_equal(table.labels, labels)


PARTS = Encoder((Feature("part", values=("nut", "a", 'a"')), Feature("size")), "y", "number")
cells_with_quotes = st.text('a1 ",', max_size=6) | st.sampled_from(
    ('""nut""', '5" pipe', '"nut"', ' "nut"', '"a""b"', '"nut" ', '"', '"1', 'a"', "nut")
)


def outcome(read: Callable[[], tuple[np.ndarray, np.ndarray]]) -> object:
    """The numbers and labels of a file; None if a row of it is refused."""
    try:
        return [part.tolist() for part in read()]
    except (DataError, AssertionError):
        return None


@given(
    lines=st.lists(st.lists(cells_with_quotes, max_size=3).map(",".join), min_size=1, max_size=5),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    block_bytes=st.sampled_from([5, 40, 2**20]),
)
@example(['""nut"",3,1'], "\n", 2**20)
@example(['5" pipe,3,1', "nut,4,0"], "\n", 5)
@example(['"nut,3,1'], "\n", 40)
@example(["nut,3,1", "a\rb,3,1"], "\r\n", 2**20)
def test_irregular_quotes_mean_the_same_to_both(lines, end, block_bytes):
    text = end.join(["part,size,y", *lines, "nut,7,1", ""]).encode()

    def by_table() -> tuple[np.ndarray, np.ndarray]:
        table = whole_table(text, encoder=PARTS)
        return table.features, table.labels

    def by_rows() -> tuple[np.ndarray, np.ndarray]:
        vectors, labels = row_by_row(text, PARTS)
        return vectors.astype(np.float32), labels.astype(np.float32)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("oneway.tables.lines.BLOCK_BYTES", block_bytes)
        patch.setattr("oneway.tables.lines.LONGEST_RECORD_BYTES", 10 * block_bytes)
        assert outcome(by_table) == outcome(by_rows)


def test_one_irregular_quote_does_not_make_a_file_unreadable():
    text = b"part,y\n" + b"nut,0\n" * 60 + b'5" pipe,1\n' + b"nut,0\n" * 60
    table = whole_table(text, label="y")
    assert (len(table), table.encoding[0].values) == (121, ('5" pipe', "nut"))
    np.testing.assert_array_equal(row_by_row(text, table.encoder)[0], table.features)
    with pytest.raises(DataError, match="line 3"):
        whole_table(b'part,y\nnut,0\n"a" b" ,1,2\n', label="y")


def test_a_large_file_has_the_very_numbers_of_its_rows(monkeypatch):
    """Blocks were scaled one by one in float32 before the moments of all rows were known."""
    monkeypatch.setattr("oneway.tables.lines.BLOCK_BYTES", 200)
    rng = np.random.default_rng(0)
    raw = np.column_stack([1.7e9 + 10 * rng.normal(size=300), 1e-30 * rng.normal(size=300)])
    raw[150:] *= 7.0
    text = "a,b,y\n" + "".join(f"{a!r},{b!r},{i % 2}\n" for i, (a, b) in enumerate(raw.tolist()))
    table = whole_table(text.encode(), label="y")
    np.testing.assert_allclose(table.means, raw.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(table.scales, raw.std(axis=0), rtol=1e-12)
    vectors, _ = row_by_row(text.encode(), table.encoder)
    np.testing.assert_array_equal(table.features, vectors.astype(np.float32))


def test_a_task_encodes_a_table_as_it_encodes_the_rows_of_its_file(tmp_path):
    raw = 1e6 + np.random.default_rng(0).normal(size=(400, 1)).round(3)
    table = Table.from_arrays(raw, [0, 1] * 200, feature_names=["a"])
    task = Encoder((Feature("a", 1e6 - 3.3, 0.37),), "label", "binary", ("0", "1"))
    table.write_csv(tmp_path / "x.csv", np.arange(400))
    vectors, labels = row_by_row((tmp_path / "x.csv").read_bytes(), task)
    recoded = table.recoded(task)
    np.testing.assert_array_equal(recoded.features, vectors.astype(np.float32))
    np.testing.assert_array_equal(recoded.labels, labels)


@pytest.mark.parametrize("missing", ["", "NA", " ", "None"])
@pytest.mark.parametrize("labels", [("no", "yes"), ("0", "1"), ("0.5", "7")])
def test_rows_without_a_label_are_skipped_and_counted(missing, labels, tmp_path):
    first, second = labels
    cells = [first, missing, second, first, missing]
    text = "a,y,who\n" + "".join(f"{i},{y},p{i}\n" for i, y in enumerate(cells))
    table = whole_table(text.encode(), label="y", owner="who")
    frame = pl.read_csv(text.encode(), schema={"a": pl.Int64, "y": pl.String, "who": pl.String})
    frame.write_parquet(tmp_path / "x.parquet")
    others = (
        load(tmp_path / "x.parquet", label="y", owner="who"),
        Table.from_frame(frame, label="y", owner="who"),
    )
    for found in (table, *others):
        assert found.label_kind == "binary"
        assert found.labels.tolist() == [-1, 1, -1]
        assert found.deal_by().node_names == ("p0", "p2", "p3")
        assert found.notes[0].warns
        assert "2 rows without a label" in found.notes[0].remark
        assert found.origin["rows_without_label"] == 2
    with pytest.raises(DataError, match="label"):
        whole_table(f"a,y\n1,{missing}\n2,{missing}\n".encode(), label="y", task="number")


def test_row_names_as_r_writes_them_are_no_column_for_either():
    text = b'"a","y"\n"1",5,0\n"2",7,1\n'
    table = whole_table(text, label="y")
    assert (table.means.tolist(), table.features.tolist()) == ([6.0], [[-1.0], [1.0]])
    assert row_by_row(text, table.encoder)[0].tolist() == [[-1.0], [1.0]]


def test_an_index_without_a_name_is_no_feature_unless_asked_for():
    text = b",a,y\n0,5,0\n1,7,1\n"
    assert whole_table(text, label="y").feature_names == ("a",)
    assert whole_table(text, label="y", features=["column 1"]).feature_names == ("column 1",)


def test_labels_that_mean_the_same_are_one_class_in_a_table_as_for_a_peer():
    table = whole_table(b"a,y\n1,1\n2,x \n3,1.0\n4, x\n", label="y")
    assert table.label_values == ("1", "x")
    assert table.labels.tolist() == [-1.0, 1.0, -1.0, 1.0]
    assert [table.encoder.label_value(raw) for raw in ("1.0", True, "x")] == [-1.0, -1.0, 1.0]


@pytest.mark.parametrize(
    ("kind", "classes", "codes"),
    [("binary", ("no", "yes"), [-1, 1]), ("classes", ("c", "a", "7"), [0, 1, 2])],
)
def test_classes_keep_their_order_and_come_back(kind, classes, codes):
    encoder = Encoder(FEATURES, "y", kind, classes)
    assert [encoder.label_value(name) for name in classes] == codes
    assert [encoder.label_name(code) for code in codes] == list(classes)
    table = whole_table(
        b"a,b,y\n1,2,%s\n3,4,%s\n" % (classes[1].encode(), classes[0].encode()),
        encoder=replace(encoder, features=(Feature("b"), Feature("a"))),
    )
    assert table.labels.tolist() == [codes[1], codes[0]]
    assert table.features.tolist() == [[2, 1], [4, 3]]
    assert table.label_values == classes


def test_a_label_that_is_none_of_the_classes_is_refused_by_both():
    text = b"a,y\n1,no\n2,maybe\n"
    encoder = replace(ENCODER, features=(Feature("a"),), label="y")
    with pytest.raises(DataError, match="maybe"):
        row_by_row(text, encoder)
    with pytest.raises(DataError, match="maybe"):
        whole_table(text, encoder=encoder)


def test_an_encoder_leaves_no_choice_of_label_and_features():
    for options in ({"label": "y"}, {"features": ["a"]}):
        with pytest.raises(DataError, match="encoder"):
            whole_table(b"a,y\n1,no\n", encoder=ENCODER, **options)


@pytest.mark.parametrize(
    ("kind", "classes"), [("number", ("1",)), ("binary", ("1",)), ("classes", ("1",))]
)
def test_classes_that_do_not_suit_the_kind_of_label_are_refused(kind, classes):
    with pytest.raises(TaskError, match=r"but 1 (are|classes are) given"):
        Encoder(FEATURES, "y", kind, classes)


# --- rows of a table as a file for a peer ---


def read_back(table: Table, rows: np.ndarray, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    path = folder / "samples.csv"
    table.write_csv(path, rows)
    return row_by_row(path.read_bytes(), table.encoder)


@given(
    seed=st.integers(0, 2**32 - 1),
    center=st.sampled_from([0.0, 1.0, -273.15, 1.7e9, 1e15]),
    scale=st.sampled_from([1e-150, 1e-30, 1e-3, 1.0, 7.0, 1e6, 1e30]),
    standardise=st.booleans(),
    task=st.sampled_from(["binary", "classes", "number"]),
)
def test_written_rows_are_read_back_as_exactly_the_same_numbers(
    tmp_path_factory, seed, center, scale, standardise, task
):
    rng = np.random.default_rng(seed)
    raw = center + scale * rng.standard_normal((30, 2))
    raw[:, 1] = raw[:, 1].round(3)
    labels = rng.standard_normal(30) if task == "number" else [0, 1, *rng.integers(0, 2, 28)]
    table = Table.from_arrays(raw, labels, task=task, standardise=standardise)
    rows = rng.permutation(30)[:20]
    vectors, answers = read_back(table, rows, tmp_path_factory.mktemp("rows"))
    np.testing.assert_array_equal(vectors.astype(np.float32), table.features[rows])
    np.testing.assert_array_equal(answers.astype(np.float32), table.labels[rows])


def test_written_rows_look_as_they_did(tmp_path):
    raw = [[20.1, 1200], [21.25, 1300], [23.0, 1250]]
    table = Table.from_arrays(raw, ["no", "yes", "no"], feature_names=["Temperature", "CO2"])
    table.write_csv(tmp_path / "x.csv", np.array([1, 0]))
    assert (tmp_path / "x.csv").read_text().splitlines() == [
        "Temperature,CO2,label",
        "21.25,1300.0,yes",
        "20.1,1200.0,no",
    ]
