"""A first task from a user's file."""

from __future__ import annotations

import gzip
import math
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.errors import ConfigError, DataError, MissingDataError
from oneway.tables import Number
from oneway.tables.inference import make_choices
from oneway.task.derive import Derived, derive_task
from oneway.task.privacy import Privacy
from oneway.task.ranges import Range, parse_ranges
from oneway.task.task import Task


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
        (
            Number("a", 3.0, 1.633),
            Number("b", 20.0, 10.0, missing_indicator=True),
            Number("constant", 5.0, 1.0),
        ),
        ("no", "yes"),
        options={"logistic": {"start": -0.4055}},  # log(2/3): two and one, and one more of each
    )
    assert left_out(derived) == ["when"]
    assert [note.missing for note in derived.notes] == [0, 0, 0, 1, 0]
    assert [note.name for note in derived.notes if note.warns] == ["constant"]
    assert (derived.num_rows, derived.num_without_label) == (3, 2)
    assert Task.parse(derived.task.to_toml()) == derived.task


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


def test_many_numbers_mean_a_regression_with_a_standardised_label():
    rows = [[str(index * 2), str(index * 100)] for index in range(30)]
    for rate in ("auto", 0.1):
        task = derive(rows, "price", "x,price", learning_rate=rate)
        assert (task.model, task.classes) == ("ridge", ())
        assert task.options == {"ridge": {"center": 1450.0, "scale": 865.5}}


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
    assert (task.model, task.classes) == ("softmax", ("1", "9", "10"))


def test_the_model_can_be_chosen():
    rows = [[str(index), str(index % 2)] for index in range(9)]
    assert derive(rows, "y", model="hinge").model == "hinge"
    assert derive(rows, "y", model="ridge").classes == ()


def test_row_numbers_without_a_name_are_left_out(tmp_path):
    path = write(tmp_path / "pandas.csv", "\ufeff,x,y\n0,5,0\n1,6,1\n")
    assert derive_task(path, "y").task.features == (Number("x", 5.5, 0.5),)


@pytest.mark.parametrize(
    ("text", "label", "culprit"),
    [
        ("", "y", "is empty"),
        ("x,late\n1,0", "latte", "'latte'.* did you mean 'late'"),
        ("x,x,y\n1,1,0", "y", "'x'"),
        ("x,y\n1,a\n2,a\n", "y", "1 distinct value"),
        ("x,y\na,0\nb,1\n", "y", "no column besides 'y'.*'x'"),
        ("x,y\n" + "".join(f"1,l{i}\n" for i in range(21)), "y", "'l0'"),
        (None, "y", r"none\.csv"),
    ],
)
def test_a_file_without_a_task_in_it_is_refused(tmp_path, text, label, culprit):
    path = tmp_path / ("none.csv" if text is None else "mine.csv")
    with pytest.raises(MissingDataError if text is None else DataError, match=culprit):
        derive_task(path if text is None else write(path, text), label)


def test_a_model_that_does_not_suit_the_labels_is_refused():
    rows = [["1", str(index % 3)] for index in range(9)]
    with pytest.raises(DataError, match="'y' has 3 distinct values"):
        derive(rows, "y", model="logistic")


def test_a_row_that_is_malformed_is_named(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"x,y\n1,0\n\0,1\n2,1\n")
    with pytest.raises(DataError, match=r"x\.csv: line 3: it holds bytes that are not text"):
        derive_task(tmp_path / "x.csv", "y")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("compress", [None, gzip.compress])
def test_a_task_is_derived_from_what_a_peer_can_read(tmp_path, separator, compress):
    text = 'x,"y"\n 1.5 ,no\n"2.5",yes\ntrue,NA\n'.replace(",", separator).encode()
    path = tmp_path / ("x.csv.gz" if compress else "x.csv")
    path.write_bytes(compress(text) if compress else text)
    derived = derive_task(path, "y")
    assert derived.task.features == (Number("x", 2.0, 0.5),)
    assert derived.task.classes == ("no", "yes")
    assert (derived.num_rows, derived.num_without_label) == (2, 1)


def test_json_lines_give_a_task_as_well(tmp_path):
    lines = '{"x": 1, "y": true}\n{"x": 3, "y": false, "z": [1]}\n{}\n'
    derived = derive_task(write(tmp_path / "mine.jsonl", lines), "y")
    assert derived.task.features == (Number("x", 2.0, 1.0),)
    assert derived.task.classes == ("false", "true")
    assert left_out(derived) == ["z"]
    assert derived.num_without_label == 1


def test_rows_without_a_label_are_skipped_and_counted(tmp_path):
    text = "x,y\n1,2.5\n2,\n3,NA\n4,7.5\n5,None\n6,9.25\n"
    derived = derive_task(write(tmp_path / "mine.csv", text), "y")
    assert (derived.num_rows, derived.num_without_label) == (3, 3)
    np.savez(tmp_path / "a.npz", features=np.arange(6.0)[:, None], labels=[1, np.nan, 3, 4, 5, 6.5])
    arrays = derive_task(tmp_path / "a.npz", None)
    assert (arrays.num_rows, arrays.num_without_label) == (5, 1)


RANGES = {"age": Range(0.0, 120.0), "pulse": Range(30.0, 200.0)}


def patients(path: Path, shift: int = 0) -> Path:
    rows = [f"{shift + 7 * n % 31},{40 + shift + 5 * n % 31},{n % 2},p{n // 3}" for n in range(30)]
    return write(path, "\n".join(["age,pulse,ill,patient", *rows, ""]))


def test_ranges_alone_use_no_data_at_all(tmp_path):
    made = [
        derive_task(
            patients(tmp_path / "p.csv", shift), "ill", ranges=RANGES,
            choices=make_choices(exclude=("patient",)),
        )
        for shift in (0, 50)
    ]  # fmt: skip
    assert made[0].task == made[1].task
    age, pulse = made[0].task.features
    assert (age.center, age.scale) == (60.0, pytest.approx(60 / math.sqrt(3), rel=1e-4))
    assert (pulse.center, pulse.scale) == (115.0, pytest.approx(85 / math.sqrt(3), rel=1e-4))
    assert made[0].exact == ()


def test_a_column_without_a_range_is_scaled_by_its_data_and_named(tmp_path):
    path = patients(tmp_path / "p.csv")
    derived = derive_task(path, "ill", ranges={"age": RANGES["age"]})
    plain = derive_task(path, "ill")
    assert "pulse" in derived.exact
    assert "age" not in derived.exact
    assert "'pulse'" in derived.scales
    assert derived.task.features[1] == plain.task.features[1]
    assert derived.task.features[0] != plain.task.features[0]


def test_rows_of_a_group_above_its_limit_do_not_count(tmp_path):
    privacy = Privacy(unit="group", group="patient", records_per_group=2)
    derived = derive_task(patients(tmp_path / "p.csv"), "ill", privacy=privacy)
    assert (derived.num_rows, derived.num_over) == (20, 10)
    assert left_out(derived) == ["patient"]
    with pytest.raises(DataError, match="'person'"):
        derive_task(tmp_path / "p.csv", "ill", privacy=Privacy(unit="group", group="person"))


@pytest.mark.parametrize(
    ("ranges", "privacy", "culprit"),
    [
        (RANGES | {"Age": Range(0, 1)}, Privacy(), "did you mean 'age'"),
        (RANGES | {"ill": Range(0, 1)}, Privacy(), "'ill'"),
    ],
)
def test_ranges_and_privacy_that_do_not_suit_the_file_are_refused(
    tmp_path, ranges, privacy, culprit
):
    with pytest.raises(ConfigError, match=culprit):
        derive_task(patients(tmp_path / "p.csv"), "ill", ranges=ranges, privacy=privacy)


def test_a_delta_above_one_in_the_number_of_rows_is_refused(tmp_path):
    path = write(tmp_path / "p.csv", "age,ill\n" + "".join(f"{n},{n % 2}\n" for n in range(101)))
    with pytest.raises(ConfigError, match=r"delta is 0\.01"):
        derive_task(path, "ill", privacy=Privacy(delta=0.01))


@pytest.mark.parametrize(
    "texts",
    [["age"], ["=0..1"], ["age=0"], ["age=a..b"], ["age=1..1"], ["age=2..1"], ["age=0..inf"],
     ["age=nan..1"], ["age=0..1", "age=0..2"]],
)  # fmt: skip
def test_a_malformed_range_is_refused(texts):
    with pytest.raises(ConfigError, match="range"):
        parse_ranges(texts)


def test_a_range_may_be_as_wide_as_numbers_are():
    [known] = parse_ranges(["a=b=-1e308..1.5e308"]).values()
    assert known.scaling[0] == pytest.approx(2.5e307)


BARE = """
import sys
for name in ("polars", "scipy", "sklearn", "pandas", "numba"):
    sys.modules[name] = None  # as if it were not installed
from pathlib import Path
import oneway as ow
from oneway.errors import MissingExtraError
from oneway.peer.home.home import Home
from oneway.tables import Category, Number
from oneway.task.derive import derive_task

folder = Path(sys.argv[1])
task = ow.Task("logistic", "y", (Number("x"), Category("c", ("a", "b"))), ("0", "1"))
(folder / "task.toml").write_text(task.to_toml())
Home.create(folder / "peer", "peer", folder / "task.toml", "127.0.0.1:5999")
with ow.Peer(folder / "peer") as peer:
    for row in range(8):
        peer.learn_one({"x": row, "c": "ab"[row % 2]}, str(row % 2))
    assert peer.predict_one({"x": "2", "c": None}) in ("0", "1")
try:
    derive_task(folder / "rows.csv", "y")
except MissingExtraError as error:
    print(error)
"""


def test_a_peer_does_without_polars_and_deriving_says_what_it_needs(tmp_path):
    command = [sys.executable, "-c", BARE, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "needs polars" in ran.stdout
    assert "[tables]" in ran.stdout
