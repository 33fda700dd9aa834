"""Tables from files: CSV, plain or compressed, Parquet and LIBSVM; and what is refused."""

from __future__ import annotations

import bz2
import datetime
import gzip
import lzma
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.errors import DataError, MissingDataError
from oneway.streams import Table, load
from oneway.tables.lines import line_blocks, split_first_line

SMALL = """name,age,height,member,late
ann,30,1.5,true,yes
bob,40,1.75,false,no
cem,50,2,true,no
"""
COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def raw(table: Table) -> np.ndarray:
    """The numbers of a table before they were standardised, as close as float32 has them."""
    return table.features * table.scales + table.means


@pytest.mark.parametrize("suffix", COMPRESS)
def test_numbers_are_features_and_text_is_kept_for_deal_by(tmp_path: Path, suffix: str) -> None:
    content = COMPRESS[suffix](SMALL.encode())
    table = load(write(tmp_path / f"small.csv{suffix}", content), label="late")
    assert table.feature_names == ("age", "height", "member")
    assert [feature.kind for feature in table.encoding] == ["number", "number", "boolean"]
    np.testing.assert_allclose(raw(table), [[30, 1.5, 1], [40, 1.75, 0], [50, 2, 1]], rtol=1e-6)
    assert table.labels.tolist() == [1, -1, -1]
    assert table.label_values == ("no", "yes")
    assert table.columns["name"].values.tolist() == ["ann", "bob", "cem"]
    assert table.name == f"small.csv{suffix}"
    assert table.features.flags.c_contiguous
    assert table.deal_by("name").node_names == ("ann", "bob", "cem")


def test_chosen_features_leave_the_other_numbers_as_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "id,x,y\n9007199254740993,1,0\n9007199254740992,2,1\n")
    table = load(path, label="y", features=["x"])
    assert table.feature_names == ("x",)
    # Not rounded to a float on the way.
    assert table.columns["id"].values.tolist() == ["9007199254740993", "9007199254740992"]


@pytest.mark.parametrize("block_bytes", [1, 7, 20, 1000])
def test_blocks_of_any_size_give_the_same_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr("oneway.tables.lines.BLOCK_BYTES", block_bytes)
    text = 'who,x,y\r\n"a\nb",1.5,0\r\n"say ""hi"",\n",2,1\r\nc,3,1'
    table = load(write(tmp_path / "x.csv", text), label="y", features=["x"])
    np.testing.assert_allclose(raw(table), [[1.5], [2], [3]], rtol=1e-6)
    assert table.columns["who"].values.tolist() == ["a\nb", 'say "hi",\n', "c"]
    assert table.labels.tolist() == [-1, 1, 1]


cells = st.sampled_from(["a", "1.5", '"q"', '"x\ny"', '"a ""b""\n"', ""])
records = st.lists(st.tuples(cells, cells), min_size=1, max_size=12)


@given(records=records, block_bytes=st.integers(1, 40), newline=st.sampled_from(["\n", "\r\n"]))
def test_blocks_are_whole_records_and_lose_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[tuple[str, str]],
    block_bytes: int,
    newline: str,
) -> None:
    text = newline.join(",".join(record) for record in records).encode()
    path = write(tmp_path_factory.mktemp("blocks") / "x.csv", text)
    blocks = list(line_blocks(path, quoted=True, block_bytes=block_bytes))
    assert b"".join(blocks) == text
    assert all(block.count(b'"') % 2 == 0 for block in blocks)
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    assert split_first_line(b'"a\nb",c\n1,2\n') == (b'"a\nb",c\n', b"1,2\n")


def test_spaces_a_byte_order_mark_and_a_blank_last_line_do_no_harm(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", b"\xef\xbb\xbfx, y\n 1, 0\n 2, 1\n\n")
    table = load(path, label="y")
    assert raw(table).tolist() == [[1], [2]]
    assert table.labels.tolist() == [-1, 1]


def test_task_decides_what_the_labels_become(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "x,y\n1,10\n2,30\n3,20\n")
    assert load(path, label="y", task="classes").labels.tolist() == [0, 2, 1]
    assert load(path, label="y", task="classes").label_values == (10, 20, 30)
    assert load(path, label="y", task="number").labels.tolist() == [10, 30, 20]


@pytest.mark.parametrize("cell", ["", "NA", "?", "-nan"])
def test_a_gap_in_a_number_gets_the_mean_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: str
) -> None:
    monkeypatch.setattr("oneway.tables.lines.BLOCK_BYTES", 30)
    light = np.arange(30.0) ** 2
    lines = [f"{row % 7},{cell if row == 17 else light[row]},{row % 2}" for row in range(30)]
    table = load(write(tmp_path / "x.csv", "\n".join(["a,Light,y", *lines])), label="y")
    others = np.delete(light, 17)
    np.testing.assert_allclose((table.means[1], table.scales[1]), (others.mean(), others.std()))
    assert table.features[17, 1] == 0.0
    assert table.gaps["Light"].tolist() == [17]
    table.write_csv(tmp_path / "again.csv", np.array([16, 17]))
    assert (tmp_path / "again.csv").read_text().splitlines()[1:] == ["2.0,256.0,0", "3.0,,1"]


MANY = "\n".join(["a,Light,y", *(f"{row},{row * row},{row % 2}" for row in range(30))])


@pytest.mark.parametrize(
    ("text", "options", "culprits"),
    [
        (SMALL, {}, ["name, age, height, member, late", "label"]),
        (SMALL, {"label": "lat"}, ["'lat'", "'late'"]),
        (SMALL, {"label": "name", "task": "binary"}, ["'name'", "'ann', 'bob', 'cem'"]),
        (SMALL, {"label": "late", "features": ["hight"]}, ["'hight'", "'height'"]),
        (SMALL, {"label": "late", "exclude": ["nam"]}, ["'nam'", "'name'"]),
        (SMALL, {"label": "late", "category": ["age"], "numeric": ["age"]}, ["'age'"]),
        (SMALL, {"label": "late", "exclude": ["age"], "features": ["age"]}, ["'age'"]),
        (SMALL, {"label": "age", "features": ["age"]}, ["'age'"]),
        (SMALL, {"label": "late", "features": ["age", "age"]}, ["'age'"]),
        (SMALL, {"label": "late", "features": []}, ["'late'"]),
        (SMALL, {"label": "name", "task": "number"}, ["'name'"]),
        (SMALL, {"label": "late", "task": "regression"}, ["'regression'"]),
        (MANY.replace("289", "inf"), {"label": "y"}, ["line 19", "'Light'", "inf"]),
        (MANY.replace("289", "1e999"), {"label": "y"}, ["line 19", "'Light'", "inf"]),
        (MANY.replace("289", "oops"), {"label": "y"}, ["line 19", "'Light'", "'oops'"]),
        ('\n\na,b,y\n1,"2\n3",0\n\n ,,\n2,x,1\ninf,x,0\n', {"label": "y"}, ["line 9", "'a'"]),
        ("x,y\n1,0\n2,inf\n", {"label": "y", "task": "number"}, ["line 3", "'y'", "inf"]),
        ("x,y\n1,\n2,NA\n", {"label": "y", "task": "number"}, ["x.csv", "'y'"]),
        ("x,y\na,0\nb,1\n", {"label": "y"}, ["'y'", "x: text"]),
        ("x,y\n1,0\n2,1,5\n", {"label": "y"}, ["x.csv", "2 columns"]),
        ('x,y\n1,0\n5" pipe,1,5\n', {"label": "y"}, ["x.csv: line 3", "2 columns"]),
        ("x,x,y\n1,0\n", {"label": "y"}, ["'x'"]),
        ("x,y\n", {"label": "y"}, ["x.csv"]),
        ("", {"label": "y"}, ["x.csv is empty"]),
        ('"x,y\n' + "1,0\n" * 50, {"label": "y"}, ["x.csv", "quote"]),
        (b"x,y\n\0,0\n1,1\n", {"label": "y"}, ["x.csv", "not text"]),
        ('{"x": 1}\n', {"label": "y"}, ["x.csv", "JSON"]),
    ],
)
def test_bad_files_are_refused_with_their_culprits(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str | bytes,
    options: dict[str, object],
    culprits: list[str],
) -> None:
    if text.count("\n" if isinstance(text, str) else b"\n") > 20:
        monkeypatch.setattr("oneway.tables.lines.BLOCK_BYTES", 30)
        options = {**options, "numeric": ["Light"]} if "Light" in str(text) else options
    path = write(tmp_path / "x.csv", text)
    with pytest.raises(DataError) as caught:
        load(path, **options)
    assert all(culprit in str(caught.value) for culprit in culprits), caught.value
    assert "\n" not in str(caught.value)


def test_very_many_values_are_no_classes_and_no_owners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oneway.tables.assemble.MAX_CLASSES", 5)
    monkeypatch.setattr("oneway.tables.assemble.MAX_DISTINCT_NAMES", 5)
    lines = [f"{i},{i % 2},a,m{i}" for i in range(20)]
    path = write(tmp_path / "x.csv", "\n".join(["x,y,few,many", *lines]))
    with pytest.raises(DataError, match="'x'"):
        load(path, label="x", task="classes")
    table = load(path, label="y")
    assert list(table.columns) == ["few"]
    assert table.origin["columns_left_out"] == ["many"]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_a_compressed_file_that_is_cut_off_or_damaged_says_so(tmp_path: Path, suffix: str) -> None:
    rows = "".join(f"{i},{i * 7919 % 1000003},{i % 2}\n" for i in range(5000))
    whole = COMPRESS[suffix](f"a,b,y\n{rows}".encode())
    for content in (whole[: len(whole) // 2], b"this is not compressed"):
        with pytest.raises(DataError, match=r"x\.csv.*download it again"):
            load(write(tmp_path / f"x.csv{suffix}", content), label="y")


@pytest.mark.parametrize(
    ("name", "error"),
    [
        *(("ocupancy", DataError), ("nothing", DataError), ("missing.csv", MissingDataError)),
        *(
            ("some/where", MissingDataError),
            ("x" * 300, DataError),
            ("x" * 300 + ".csv", DataError),
        ),
        *(("a\0b", DataError), ("~nobody_/x", DataError), ("", DataError), (7, DataError)),
        (pl.DataFrame({"x": [1, 2]}), DataError),
    ],
)
def test_what_does_not_exist_is_refused(name: object, error: type[DataError]) -> None:
    with pytest.raises(error):
        load(name, label="y")
    if isinstance(name, str) and name:
        with pytest.raises(DataError):
            load(Path(name), label="y")


def test_unknown_kinds_of_files_are_refused(tmp_path: Path) -> None:
    for name in ("x.docx", "x", "x.parquet.gz"):
        with pytest.raises(DataError, match=f"{name} ends in"):
            load(write(tmp_path / name, b"x"), label="y")
    with pytest.raises(DataError, match="'flights'"):
        load("flights", label="late")


# Parquet.


def test_parquet_columns_find_their_places(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame(
        {
            "x": [1.0, None, 3.0],
            "flag": [True, False, True],
            "who": ["a", None, "b"],
            "when": [datetime.date(2013, 1, day) for day in (1, 2, 3)],
            "list": [[1], [2], [3]],
            "y": [0, 1, 1],
        }
    ).write_parquet(path)
    table = load(path, label="y")
    assert table.encoder.names == ("x", "flag", "when")
    assert table.features[:, :2].tolist() == [[-1, 1], [0, -1], [1, 1]]
    assert table.labels.tolist() == [-1, 1, 1]
    assert table.columns["who"].codes.tolist() == [0, -1, 1]
    assert table.columns["when"].names == ("2013-01-01", "2013-01-02", "2013-01-03")
    assert set(table.columns) == {"who", "when"}
    assert load(path, label="flag").label_values == ("false", "true")


def test_parquet_is_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oneway.tables.parquet_source.BLOCK_ROWS", 7)
    numbers = np.random.default_rng(0).normal(3.0, 2.0, size=100)
    pl.DataFrame({"x": numbers, "y": np.arange(100) % 2}).write_parquet(tmp_path / "x.parquet")
    table = load(tmp_path / "x.parquet", label="y")
    rows = [table.encoder.vector({"x": number}) for number in numbers]
    np.testing.assert_array_equal(table.features, np.array(rows, np.float32))


def test_a_parquet_file_that_breaks_a_rule_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"x": [1.0, float("inf")], "y": [0, 1]}).write_parquet(path)
    with pytest.raises(DataError, match=r"x.parquet: row 1, column 'x'"):
        load(path, label="y")
    pl.DataFrame({"x": [1.0], "y": [1.0]}).clear().write_parquet(path)
    with pytest.raises(DataError, match=r"x\.parquet"):
        load(path, label="y")
    with pytest.raises(DataError, match=r"x\.parquet"):
        load(write(path, b"PAR1 and then nothing"), label="y")


# LIBSVM.


@pytest.mark.parametrize("block_bytes", [1, 10_000])
def test_absent_libsvm_entries_are_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr("oneway.tables.lines.BLOCK_BYTES", block_bytes)
    monkeypatch.setattr("oneway.tables.libsvm_source.DENSE_NUMBERS_AT_A_TIME", 6)
    text = b"+1 1:0.5 3:2 # a comment\n-1 2:-1\n+1\n-1 1:1 2:1 3:1e2\n"
    path = write(tmp_path / "x.libsvm.bz2", bz2.compress(text))
    table = load(path)
    expected = [[0.5, 0, 2], [0, -1, 0], [0, 0, 0], [1, 1, 100]]
    np.testing.assert_allclose(raw(table), expected, atol=1e-5)
    assert (table.labels.tolist(), table.label_values) == ([1, -1, 1, -1], (-1, 1))
    assert table.feature_names == ("feature 1", "feature 2", "feature 3")
    assert load(path, features=["feature 2"]).feature_names == ("feature 2",)


@pytest.mark.parametrize(
    "text",
    ["1 a:b\n", "1 0:1\n", "hello\n", "1 1:x\n0 1:1\n", "1 2:1 1:1\n", "", "1 1:inf\n0 1:1\n"],
)
def test_what_is_not_libsvm_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match=r"x\.svm"):
        load(write(tmp_path / "x.svm", text))
    with pytest.raises(DataError, match="label='y'"):
        load(write(tmp_path / "x.svm", "1 1:1\n"), label="y")
