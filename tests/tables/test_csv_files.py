from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.errors import DataError, MissingDataError
from oneway.streams import load
from oneway.tables.lines import line_blocks, split_first_line

SMALL = """name,age,height,member,late
ann,30,1.5,true,yes
bob,40,1.75,false,no
cem,50,2,true,no
"""


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_numeric_columns_are_features_and_text_is_kept_for_deal_by(tmp_path: Path) -> None:
    table = load(write(tmp_path / "small.csv", SMALL), label="late", standardise=False)
    assert table.feature_names == ("age", "height", "member")
    assert table.features.tolist() == [[30, 1.5, 1], [40, 1.75, 0], [50, 2, 1]]
    assert table.labels.tolist() == [1, -1, -1]
    assert table.label_values == ("no", "yes")
    assert table.columns["name"].values.tolist() == ["ann", "bob", "cem"]
    assert table.name == "small.csv"
    assert table.features.flags.c_contiguous
    assert table.deal_by("name").node_names == ("ann", "bob", "cem")


def test_features_are_standardised_with_the_moments_of_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oneway.tables.lines.BLOCK_BYTES", 200)
    monkeypatch.setattr("oneway.tables.scaling.ROWS_AT_A_TIME", 16)
    rng = np.random.default_rng(0)
    raw = np.column_stack(
        [
            1.7e9 + rng.normal(size=300),
            np.arange(300.0),
            np.full(300, 0.1),
            1e-30 * rng.normal(size=300),
        ]
    )
    lines = [",".join(repr(float(x)) for x in row) + f",{i % 2}" for i, row in enumerate(raw)]
    path = write(tmp_path / "x.csv", "a,b,c,d,y\n" + "\n".join(lines))
    table = load(path, label="y")
    np.testing.assert_allclose(table.means, raw.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(table.scales, [*raw[:, :2].std(axis=0), 1, raw[:, 3].std()])
    expected = (raw - raw.mean(axis=0)) / table.scales
    np.testing.assert_allclose(table.features, expected, atol=2e-6)


def test_chosen_features_leave_the_other_numbers_as_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "id,x,y\n9007199254740993,1,0\n9007199254740992,2,1\n")
    table = load(path, label="y", features=["x"])
    assert table.feature_names == ("x",)
    # Not rounded to a float on the way.
    assert table.columns["id"].values.tolist() == ["9007199254740993", "9007199254740992"]


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)],
)
def test_text_may_be_compressed(
    tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    table = load(write(tmp_path / f"x.csv{suffix}", compress(SMALL.encode())), label="late")
    assert len(table) == 3


@pytest.mark.parametrize("block_bytes", [1, 7, 20, 1000])
def test_blocks_of_any_size_give_the_same_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr("oneway.tables.lines.BLOCK_BYTES", block_bytes)
    text = 'who,x,y\r\n"a\nb",1.5,0\r\n"say ""hi"",\n",2,1\r\nc,3,1'
    table = load(write(tmp_path / "x.csv", text), label="y", features=["x"], standardise=False)
    assert table.features.tolist() == [[1.5], [2], [3]]
    assert table.columns["who"].values.tolist() == ["a\nb", 'say "hi",\n', "c"]
    assert table.labels.tolist() == [-1, 1, 1]


cells = st.sampled_from(["a", "1.5", '"q"', '"x\ny"', '"a ""b""\n"', ""])
records = st.lists(st.tuples(cells, cells), min_size=1, max_size=12)


@given(records=records, block_bytes=st.integers(1, 40), newline=st.sampled_from(["\n", "\r\n"]))
@settings(deadline=None, max_examples=150)
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


def test_the_first_line_may_hold_quoted_line_ends() -> None:
    assert split_first_line(b'"a\nb",c\n1,2\n') == (b'"a\nb",c\n', b"1,2\n")
    assert split_first_line(b"a,b") == (b"a,b", b"")


def test_spaces_a_byte_order_mark_and_a_blank_last_line_do_no_harm(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", b"\xef\xbb\xbfx, y\n 1, 0\n 2, 1\n\n")
    table = load(path, label="y", standardise=False)
    assert table.features.tolist() == [[1], [2]]
    assert table.labels.tolist() == [-1, 1]


def test_task_decides_what_the_labels_become(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "x,y\n1,10\n2,30\n3,20\n")
    assert load(path, label="y", task="classes").labels.tolist() == [0, 2, 1]
    assert load(path, label="y", task="classes").label_values == (10, 20, 30)
    assert load(path, label="y", task="number").labels.tolist() == [10, 30, 20]


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e999"])
def test_a_feature_that_is_not_finite_is_named_by_line_and_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: str
) -> None:
    monkeypatch.setattr("oneway.tables.lines.BLOCK_BYTES", 30)
    lines = [f"{row},{cell if row == 17 else row},{row % 2}" for row in range(30)]
    path = write(tmp_path / "x.csv", "\n".join(["a,Light,y", *lines]))
    with pytest.raises(DataError, match=r"^x.csv: line 19, column 'Light' is -?inf; features"):
        load(path, label="y")


@pytest.mark.parametrize("cell", ["", "NA", "nan", "NaN", "null", "?", "-nan"])
def test_a_gap_in_a_number_gets_the_mean_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: str
) -> None:
    monkeypatch.setattr("oneway.tables.lines.BLOCK_BYTES", 30)
    light = np.arange(30.0) ** 2
    lines = [f"{row % 7},{cell if row == 17 else light[row]},{row % 2}" for row in range(30)]
    table = load(write(tmp_path / "x.csv", "\n".join(["a,Light,y", *lines])), label="y")
    others = np.delete(light, 17)
    np.testing.assert_allclose(table.means[1], others.mean())
    np.testing.assert_allclose(table.scales[1], others.std())
    assert table.features[17, 1] == 0.0
    expected = (others - others.mean()) / others.std()
    np.testing.assert_allclose(np.delete(table.features[:, 1], 17), expected, atol=1e-6)
    assert table.gaps["Light"].tolist() == [17]
    table.write_csv(tmp_path / "again.csv", np.array([16, 17]))
    assert (tmp_path / "again.csv").read_text().splitlines()[1:] == ["2.0,256.0,0", "3.0,,1"]


def test_a_place_in_a_file_is_its_line_whatever_stands_above(tmp_path: Path) -> None:
    text = '\n\na,b,y\n1,"two\nlines",0\n\n ,,\n2,x,1\ninf,x,0\n'
    with pytest.raises(DataError, match=r"^x.csv: line 9, column 'a'"):
        load(write(tmp_path / "x.csv", text), label="y", features=["a"])


def test_text_in_a_column_that_was_numeric_so_far_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oneway.tables.lines.BLOCK_BYTES", 30)
    lines = [f"{'oops' if row == 25 else row},{row % 2}" for row in range(30)]
    path = write(tmp_path / "x.csv", "\n".join(["a,y", *lines]))
    with pytest.raises(DataError, match=r"x.csv: line 27, column 'a' is 'oops', but the column"):
        load(path, label="y")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (SMALL, {}, r"it has: name, age, height, member, late.*label='...'"),
        (SMALL, {"label": "lat"}, "no column 'lat', did you mean 'late'[?] it has: name, age"),
        (SMALL, {"label": "zzz"}, "no column 'zzz'; it has: name, age"),
        (
            SMALL,
            {"label": "name", "task": "binary"},
            r"'name' has 3 distinct values \('ann', 'bob', 'cem'\)",
        ),
        (SMALL, {"label": "late", "features": ["hight"]}, "did you mean 'height'"),
        (SMALL, {"label": "late", "exclude": ["nam"]}, "did you mean 'name'"),
        (SMALL, {"label": "late", "category": ["age"], "numeric": ["age"]}, "two things at once"),
        (SMALL, {"label": "late", "exclude": ["age"], "features": ["age"]}, "two things at once"),
        (SMALL, {"label": "age", "features": ["age"]}, "'age' of x.csv is asked for twice"),
        (SMALL, {"label": "late", "features": ["age", "age"]}, "asked for twice"),
        (SMALL, {"label": "late", "features": []}, "no column besides the label"),
        (SMALL, {"label": "name", "task": "number"}, "'name' is not numeric"),
        (SMALL, {"label": "late", "task": "regression"}, "task is 'regression'"),
        ("x,y\n1,0\n2,\n", {"label": "y"}, "line 3 has no label in column 'y'"),
        ("x,y\n1,0\n2,nan\n", {"label": "y"}, "line 3 has no label in column 'y'"),
        ("x,y\n1,0\n2,inf\n", {"label": "y", "task": "number"}, "line 3, label column 'y' is inf"),
        ("x,y\na,0\nb,1\n", {"label": "y"}, "no column besides the label 'y'.*x: text"),
        ("x,y\n1,0\n2,1,5\n", {"label": "y"}, "not valid CSV with 2 columns"),
        ("x,y\n1,0\n2\n", {"label": "y"}, "line 3 has no label"),
        ("x,x,y\n1,0\n", {"label": "y"}, "two columns named 'x'"),
        ("x,y\n", {"label": "y"}, "has no rows"),
        ("", {"label": "y"}, "is empty"),
        (b"x,y\n\0,0\n1,1\n", {"label": "y"}, "not valid CSV.*not text"),
    ],
)
def test_bad_files_are_refused_with_a_reason(
    tmp_path: Path, text: str | bytes, options: dict[str, object], message: str
) -> None:
    path = write(tmp_path / "x.csv", text)
    with pytest.raises(DataError, match=message) as caught:
        load(path, **options)
    assert "\n" not in str(caught.value)


def test_a_label_with_very_many_values_is_no_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oneway.tables.assemble.MAX_CLASSES", 5)
    path = write(tmp_path / "x.csv", "x,y\n" + "\n".join(f"{i},{i}" for i in range(20)))
    with pytest.raises(DataError, match=r"too many to be classes.*task='number'"):
        load(path, label="y", task="classes")


def test_columns_with_too_many_names_are_left_out_and_the_origin_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oneway.tables.assemble.MAX_DISTINCT_NAMES", 5)
    path = write(
        tmp_path / "x.csv", "x,y,few,many\n" + "\n".join(f"{i},{i % 2},a,m{i}" for i in range(20))
    )
    table = load(path, label="y")
    assert list(table.columns) == ["few"]
    assert table.origin["columns_left_out"] == ["many"]


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)],
)
def test_a_file_that_is_cut_off_says_so(
    tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    rows = "".join(f"{i},{i * 7919 % 1000003},{i % 2}\n" for i in range(5000))
    whole = compress(f"a,b,y\n{rows}".encode())
    path = write(tmp_path / f"x.csv{suffix}", whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"x\.csv.* ends early: .*download it again"):
        load(path, label="y")


def test_a_damaged_gz_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.csv\.gz cannot be read .*download it again"):
        load(write(tmp_path / "x.csv.gz", b"this is not compressed"), label="y")


def test_an_open_quote_does_not_swallow_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oneway.tables.lines.BLOCK_BYTES", 100)
    monkeypatch.setattr("oneway.tables.lines.LONGEST_RECORD_BYTES", 1000)
    path = write(tmp_path / "x.csv", '"x,y\n' + "1,0\n" * 1000)
    with pytest.raises(DataError, match="no line end outside quotes"):
        load(path, label="y")


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("ocupancy", DataError, "did you mean 'occupancy'"),
        ("nothing", DataError, "no data set or file 'nothing'; known are flights"),
        ("missing.csv", MissingDataError, "missing.csv is not there"),
        ("some/where", MissingDataError, "is not there"),
    ],
)
def test_what_does_not_exist_is_named(name: str, error: type[DataError], message: str) -> None:
    with pytest.raises(error, match=message):
        load(name, label="y")


def test_unknown_kinds_of_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x.docx ends in '.docx', but a table is a .csv"):
        load(write(tmp_path / "x.docx", b"x"), label="y")
    with pytest.raises(DataError, match="ends in 'nothing'"):
        load(write(tmp_path / "x", b"x"), label="y")


def test_known_tables_have_their_own_label() -> None:
    with pytest.raises(DataError, match="'flights' has its own label"):
        load("flights", label="late")


@pytest.mark.parametrize(
    "path", ["x" * 300, "x" * 300 + ".csv", "a\0b", "a\0b.csv", "~nobody_/x", 7]
)
def test_what_can_be_no_path_is_refused_with_a_sentence(path: str) -> None:
    with pytest.raises(DataError):
        load(path, label="y")
    with pytest.raises(DataError):
        load(Path(str(path)), label="y")
