"""A first task from a user's file."""

from __future__ import annotations

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.errors import DataError, MissingDataError
from oneway.streams import data_folder
from oneway.task.private_scales import Range
from oneway.task.task import Feature, Task
from oneway.task.task_from_file import Derived, derive_task


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def derive(rows: list[list[str]], label: str, header: str = "x,y", **options: Any) -> Task:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "mine.csv"
        write(path, "\n".join([header, *(",".join(row) for row in rows)]))
        return derive_task(path, label, **options).task


def left_out(derived: Derived) -> list[str]:
    return [note.name for note in derived.notes if not note.used]


def test_a_task_is_derived_from_a_file(tmp_path):
    path = write(
        tmp_path / "mine.csv",
        "when,a,b,constant,late\nmon,1,10,5,no\ntue,3,,5,yes\nwed,5,30,5,no\n\nx\nthu,7,50,5,\n",
    )
    derived = derive_task(path, "late")
    assert derived.task == Task(
        "logistic",
        "late",
        (Feature("a", 3.0, 1.633), Feature("b", 20.0, 10.0), Feature("constant", 5.0, 1.0)),
        ("no", "yes"),
        options={"logistic": {"start": -0.4055}},  # log(2/3): two and one, and one more of each
    )
    assert left_out(derived) == ["when"]
    assert [note.gaps for note in derived.notes] == [0, 0, 0, 1, 0]
    assert [note.name for note in derived.notes if note.warns] == ["constant"]
    assert (derived.num_rows, derived.num_bad_rows) == (3, 2)
    assert Task.parse(derived.task.to_toml()) == derived.task


@settings(deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30), st.sampled_from([0.0, 1.0, 1e9, -1e12])
)
def test_derived_scaling_gives_zero_mean_and_unit_variance(values, offset):
    column = [value + offset for value in values]
    spread = np.std(column)
    rows = [[repr(value), str(index % 2)] for index, value in enumerate(column)]
    task = derive(rows, "y")
    scaled = np.array([task.encoder.vector({"x": row[0]})[0] for row in rows])
    if spread > 1e-9 * max(1.0, abs(offset)):
        assert abs(scaled.mean()) < 1e-3
        assert abs(scaled.std() - 1) < 1e-3


def test_many_numbers_mean_a_regression_with_room_for_them():
    rows = [[str(index * 2), str(index * 100)] for index in range(30)]
    task = derive(rows, "price", "x,price")
    assert (task.model, task.classes) == ("ridge", ())
    assert task.options == {"ridge": {"center": 1450.0, "scale": 865.5}}
    assert task.radius == 1000.0  # parameters are in units of the scale
    numbers = derive(rows, "price", "x,price", learning_rate=0.1)
    assert numbers.options == {}
    assert numbers.radius == 1e5


def test_a_model_starts_from_statistics_only_where_the_task_has_others_anyway(tmp_path):
    rows = "x,late\n" + "".join(f"{n},{'yes' if n % 4 else 'no'}\n" for n in range(40))
    path = write(tmp_path / "mine.csv", rows)
    shared = derive_task(path, "late")
    assert shared.task.options == {"logistic": {"start": 1.0361}}  # log(31/11)
    assert "shares" in shared.scales
    known = {"x": Range(0.0, 50.0)}
    assert derive_task(path, "late", ranges=known).task.options == {}
    assert derive_task(path, "late", learning_rate=0.1).task.options == {}
    given = derive_task(path, "late", options={"logistic": {"start": 0.5}})
    assert given.task.options == {"logistic": {"start": 0.5}}


def test_a_few_labels_mean_classes_in_their_order():
    rows = [["1", label] for label in ("10", "9", "1.0", "1", "9")]
    task = derive(rows, "y")
    assert (task.model, task.classes) == ("softmax", ("1.0", "9", "10"))


def test_the_model_can_be_chosen():
    rows = [[str(index), str(index % 2)] for index in range(9)]
    assert derive(rows, "y", model="hinge").model == "hinge"
    assert derive(rows, "y", model="ridge").classes == ()


def test_row_numbers_without_a_name_are_left_out(tmp_path):
    short = write(tmp_path / "r.csv", '"x","y"\n"1",5,0\n"2",6,1\n')
    pandas = write(tmp_path / "pandas.csv", "\ufeff,x,y\n0,5,0\n1,6,1\n")
    for path in (short, pandas):
        assert derive_task(path, "y").task.features == (Feature("x", 5.5, 0.5),)


@pytest.mark.parametrize(
    ("text", "label", "message"),
    [
        ("", "y", "is empty"),
        ("x,late\n1,0", "latte", "'latte'.* did you mean 'late'"),
        ("x,x,y\n1,1,0", "y", "two columns named 'x'"),
        ("x,y\n", "y", "has 0 distinct values, but there is nothing to learn"),
        ("x,y\n1,a\n2,a\n", "y", "has 1 distinct value, but there is nothing to learn"),
        ("x,y\na,0\nb,1\n", "y", "has no column besides 'y'.*'x': text, unique per row"),
        ("x,y\n" + "".join(f"1,l{i}\n" for i in range(21)), "y", "holds 'l0', but at most 20"),
    ],
)
def test_a_file_without_a_task_in_it_gets_a_sentence(tmp_path, text, label, message):
    with pytest.raises(DataError, match=message):
        derive_task(write(tmp_path / "mine.csv", text), label)


def test_a_model_that_does_not_suit_the_labels_gets_a_sentence():
    rows = [["1", str(index % 3)] for index in range(9)]
    with pytest.raises(DataError, match="more than 2 distinct values, but logistic tells at most"):
        derive(rows, "y", model="logistic")


def test_a_file_that_is_no_csv_gets_a_sentence(tmp_path):
    (tmp_path / "binary.csv").write_bytes(b"\x1f\x8b\x00x,y\n")
    for name in ("binary.csv", "."):
        with pytest.raises(DataError, match=r"binary.csv|is a folder"):
            derive_task(tmp_path / name, "y")
    with pytest.raises(MissingDataError, match=r"none.csv"):
        derive_task(tmp_path / "none.csv", "y")


def test_a_row_that_is_no_text_is_a_bad_row(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"x,y\n1,0\n\0,1\n2,1\n")
    derived = derive_task(tmp_path / "x.csv", "y")
    assert (derived.num_rows, derived.num_bad_rows) == (2, 1)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("compress", [None, gzip.compress])
def test_a_task_is_derived_from_what_a_peer_can_read(tmp_path, separator, compress):
    text = 'x,"y"\n 1.5 ,no\n"2.5",yes\ntrue,NA\n'.replace(",", separator).encode()
    path = tmp_path / ("x.csv.gz" if compress else "x.csv")
    path.write_bytes(compress(text) if compress else text)
    derived = derive_task(path, "y")
    assert derived.task.features == (Feature("x", 2.0, 0.5),)
    assert derived.task.classes == ("no", "yes")
    assert (derived.num_rows, derived.num_bad_rows) == (2, 1)


def test_json_lines_give_a_task_as_well(tmp_path):
    lines = '{"x": 1, "y": true}\n{"x": 3, "y": false, "z": [1]}\n{}\n'
    derived = derive_task(write(tmp_path / "mine.jsonl", lines), "y")
    assert derived.task.features == (Feature("x", 2.0, 1.0),)
    assert derived.task.classes == ("false", "true")
    assert left_out(derived) == ["z"]
    assert derived.num_bad_rows == 1


def test_the_published_occupancy_file_gives_a_task():
    path = data_folder() / "occupancy" / "datatraining.txt"
    if not path.exists():
        pytest.skip("the Room Occupancy files are not there")
    derived = derive_task(path, "Occupancy")
    assert derived.num_rows == 8143
    names = ["date", "Temperature", "Humidity", "Light", "CO2", "HumidityRatio"]
    assert [feature.name for feature in derived.task.features] == names
    assert derived.task.features[0] == Feature("date", kind="time")
    assert derived.task.features[3] == Feature("Light", 119.52, 194.7)
