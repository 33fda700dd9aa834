"""What columns are is told by what they hold, unless somebody says it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from oneway.datasets import load
from oneway.errors import DataError
from oneway.tables import Feature, Table
from oneway.tables.format import check_columns
from oneway.tables.inference import ColumnNote
from oneway.task.task_from_file import derive_task

ROWS = 120
RNG = np.random.default_rng(7)


def patients() -> pl.DataFrame:
    ill = RNG.integers(0, 2, ROWS)
    chol = np.where(RNG.random(ROWS) < np.where(ill, 0.6, 0.1), None, RNG.normal(240, 40, ROWS))
    return pl.DataFrame(
        {
            "row": np.arange(ROWS),
            "age": RNG.integers(20, 90, ROWS),
            "chol": pl.Series(chol.tolist(), dtype=pl.Float64),
            "pulse": [None if n % 9 == 0 else float(n % 50) for n in range(ROWS)],
            "sex": RNG.choice(["f", "m"], ROWS),
            "ward": [f"ward {n % 40}" for n in range(ROWS)],
            "smoker": RNG.choice(["yes", "no"], ROWS),
            "treated": RNG.integers(0, 2, ROWS),
            "visit": [f"2026-01-{1 + n % 28:02} {n % 24:02}:15" for n in range(ROWS)],
            "name": [f"patient {n:04}" for n in RNG.permutation(ROWS)],
            "ward number": RNG.permutation(np.arange(ROWS) * 7 + 1000),
            "country": ["Utopia"] * ROWS,
            "diagnosis": np.where(ill, "I20", "healthy"),
            "score": 10.0 * ill + RNG.random(ROWS),
            "nothing": pl.Series([None] * ROWS, dtype=pl.String),
            "site": [f"site {n % 3}" for n in range(ROWS)],
            "ill": ill,
        }
    )


FRAME = patients()
USED = {
    "age": "number",
    "chol": "number, gaps flagged",
    "pulse": "number",
    "sex": "category of 2",
    "ward": "category of 40",
    "smoker": "boolean",
    "treated": "boolean",
    "visit": "time",
    "ward number": "number",
    "country": "category of 1",
    "diagnosis": "category of 2",
    "score": "number",
}
WARNED = {"row", "ward number", "country", "diagnosis", "score", "name"}


def as_csv(folder: Path, frame: pl.DataFrame = FRAME) -> Path:
    frame.write_csv(folder / "patients.csv")
    return folder / "patients.csv"


def check(notes: tuple[ColumnNote, ...]) -> None:
    assert {note.name: note.used for note in notes if note.used} == {
        "ill": "label",
        **USED,
    }
    left_out = {note.name: note.remark for note in notes if not note.used}
    assert set(left_out) == {"row", "name", "nothing", "site"}
    assert all(left_out.values()), "nothing is left out without a reason"
    assert {note.name for note in notes if note.warns} == WARNED
    assert {note.name: note.gaps for note in notes if note.gaps} == {
        "chol": FRAME["chol"].null_count(),
        "pulse": 14,
        "nothing": ROWS,
    }


def test_frames_and_files_are_told_alike(tmp_path):
    options = {"label": "ill", "owner": "site"}
    FRAME.write_parquet(tmp_path / "patients.parquet")
    csv = load(as_csv(tmp_path), **options)
    others = [
        Table.from_frame(FRAME, **options),
        Table.from_frame(pd.DataFrame(FRAME.to_dict(as_series=False)), **options),
        load(tmp_path / "patients.parquet", **options),
    ]
    for table in (csv, *others):
        check(table.notes)
        assert table.label_kind == "binary"
        assert table.feature_names == csv.feature_names
        np.testing.assert_array_equal(table.features, csv.features)
        np.testing.assert_array_equal(table.labels, csv.labels)
        assert table.deal_by().node_names == ("site 0", "site 1", "site 2")


def test_a_task_is_derived_as_a_table_is_loaded(tmp_path):
    from oneway.tables.inference import make_choices

    derived = derive_task(as_csv(tmp_path), "ill", choices=make_choices(owner="site"))
    check(derived.notes)
    table = load(tmp_path / "patients.csv", label="ill", owner="site")
    assert [f.kind for f in derived.task.features] == [f.kind for f in table.encoding]
    assert [f.values for f in derived.task.features] == [f.values for f in table.encoding]
    assert [f.gaps for f in derived.task.features] == [f.gaps for f in table.encoding]
    for ours, theirs in zip(derived.task.features, table.encoding, strict=True):
        assert ours.center == pytest.approx(theirs.center, rel=1e-3, abs=1e-3)
        assert ours.scale == pytest.approx(theirs.scale, rel=1e-3)
    again = load(tmp_path / "patients.csv", encoder=derived.task.encoder)
    np.testing.assert_allclose(again.features, table.features, atol=2e-3)
    assert {note.name: note.used for note in again.notes if note.used} == {
        "ill": "label",
        **USED,
    }


def test_what_is_said_comes_before_what_is_found(tmp_path):
    table = load(
        as_csv(tmp_path),
        label="ill",
        features=["ward", "treated", "age"],
        category={"treated": ["0", "1", "2"]},
    )
    assert [feature.kind for feature in table.encoding] == ["category", "category", "number"]
    assert table.encoding[1].values == ("0", "1", "2")
    assert len(table.encoding[0].values) == 40
    with pytest.raises(DataError, match=r"'name' cannot be a feature.* unique per row"):
        load(as_csv(tmp_path), label="ill", features=["name"])
    fewer = load(
        as_csv(tmp_path),
        label="ill",
        exclude=["chol"],
        numeric=["treated", "row"],
        category=["age"],
    )
    kinds = {feature.name: feature.kind for feature in fewer.encoding}
    assert (kinds["treated"], kinds["row"], kinds["age"]) == ("number", "number", "category")
    assert "chol" not in kinds
    assert "site" in kinds, "no owner was named"


def test_text_among_numbers_that_are_asked_for_is_counted_and_told(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,y\n" + "".join(f"{n if n % 10 else '<5'},{n % 2}\n" for n in range(50)))
    derived = derive_task(path, "y", choices=make(numeric=("a",)))
    assert derived.task.features[0].kind == "number"
    assert "5 cells are no numbers, as '<5'" in derived.notes[1].remark
    with pytest.raises(DataError, match="line 2, column 'a' is '<5'"):
        load(path, label="y", numeric=["a"])


def make(**said):
    from oneway.tables.inference import make_choices

    return make_choices(**said)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["no", "yes"] * 20, "binary"),
        ([0, 1] * 20, "binary"),
        (["a", "b", "c", "d"] * 10, "classes"),
        ([1, 2, 3, 5] * 10, "classes"),
        ([0.5, 1.0, 1.5, 2.0] * 10, "number"),
        (list(range(40)), "number"),
    ],
)
def test_the_label_says_what_is_learned(labels, kind):
    frame = pl.DataFrame({"x": RNG.normal(size=40), "y": labels}, strict=False)
    assert Table.from_frame(frame, label="y").label_kind == kind


def test_a_flag_for_gaps_needs_labels_that_differ_by_four_standard_errors():
    count = 4_000
    for extra, telling in ((0.30, True), (0.02, False)):
        gap = np.arange(count) % 4 == 0
        label = RNG.random(count) < 0.3 + extra * gap
        values = pl.Series(np.where(gap, np.nan, RNG.normal(size=count))).fill_nan(None)
        frame = pl.DataFrame(
            {"x": values, "y": label, "price": 10.0 * label + RNG.normal(size=count)}
        )
        for target, others in (("y", ["price"]), ("price", ["y"])):
            table = Table.from_frame(frame, label=target, exclude=others)
            assert table.encoding == (Feature("x", *table.encoding[0].scaling, gaps=telling),)


def test_a_number_that_is_the_label_in_another_unit_is_warned_of():
    price = RNG.normal(100, 20, 200)
    frame = pl.DataFrame({"cents": 100 * price, "size": RNG.normal(size=200), "price": price})
    table = Table.from_frame(frame, label="price")
    assert [note.name for note in table.notes if note.warns] == ["cents"]


def test_values_of_a_category_are_those_of_the_whole_file(tmp_path, monkeypatch):
    monkeypatch.setattr("oneway.tables.lines.BLOCK_BYTES", 200)
    path = tmp_path / "x.csv"
    lines = [f"{n % 7},{'early' if n < 100 else 'late'},{n % 2}" for n in range(200)]
    path.write_text("\n".join(["a,when,y", *lines]))
    table = load(path, label="y")
    assert table.encoding[1].values == ("early", "late")
    assert table.features[:, 1:].sum(axis=0).tolist() == [100, 100, 0]


@pytest.mark.parametrize("frame", [[[1, 2]], np.eye(2), {"a": [1]}, "patients.csv"])
def test_what_is_no_frame_is_refused(frame):
    with pytest.raises(DataError, match="from_arrays"):
        Table.from_frame(frame, label="y")


def test_names_of_a_frame_are_text_and_there_once():
    with pytest.raises(DataError, match="named 0"):
        Table.from_frame(pd.DataFrame([[1, 2]]), label="y")
    with pytest.raises(DataError, match="two columns named 'a'"):
        Table.from_frame(pd.DataFrame([[1, 2]], columns=["a", "a"]), label="a")


def test_types_of_pandas_with_gaps_of_their_own():
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
    kinds = [feature.kind for feature in table.encoding]
    assert kinds == ["number", "boolean", "category", "category", "time"]
    assert np.all(table.features[1] == 0.0), "a row of gaps"
    assert [note.gaps for note in table.notes] == [0, 10, 10, 10, 10, 10]


def test_a_table_keeps_its_name_where_numbers_have_gaps():
    frame = pl.DataFrame({"age": [40.0, None, 52.0, 61.0], "ill": ["no", "yes", "no", "yes"]})
    table = Table.from_frame(frame, label="ill", name="patients")
    assert table.name == "patients"
    assert table.gaps["age"].tolist() == [1]
    assert table.features[1, 0] == 0.0


@pytest.mark.parametrize(
    ("cells", "parts"),
    [
        ([f"2026-03-{day:02}" for day in range(1, 31)], ("weekday", "season")),
        ([f"{day}.3.2026 00:00" for day in range(1, 31)], ("weekday", "season")),
        ([datetime(2026, 3, day) for day in range(1, 31)], ("weekday", "season")),
        ([f"2026-03-{day:02} 14:{day:02}" for day in range(1, 31)], ()),
        ([f"14:{minute:02}" for minute in range(30)], ("hour",)),
        ([*["0:00", ""] * 15], ("hour",)),
        ([f"2026-03-{day:02}" for day in range(1, 30)] + ["7:30"], ()),
    ],
)
def test_a_time_has_the_parts_that_its_cells_tell(cells, parts):
    label = ["a", "b"] * 15
    table = Table.from_frame(pd.DataFrame({"at": cells, "label": label}), label="label")
    [feature] = table.encoder.features
    assert (feature.kind, feature.parts) == ("time", parts)
    rows = [table.encoder.vector({"at": cell}) for cell in cells]
    np.testing.assert_array_equal(table.features, np.array(rows, np.float32))
    note = next(it for it in table.notes if it.name == "at")
    assert all(part in note.used for part in parts)


def test_a_mistake_among_numbers_is_named_and_codes_with_letters_stay_a_category(tmp_path):
    rng = np.random.default_rng(1)
    pressure = [*map(str, rng.normal(130.0, 20.0, 99).round(1)), "high"]
    codes = ["1", "2", "3"] * 33 + ["X"]
    frame = pd.DataFrame({"pressure": pressure, "code": codes, "ill": ["no", "yes"] * 50})
    told = {note.name: note for note in Table.from_frame(frame, label="ill").notes}
    assert (told["pressure"].used, told["pressure"].warns) == ("", True)
    assert "numbers but for 1 cell, as 'high'" in told["pressure"].remark
    assert told["code"].used == "category of 4"
    frame.to_csv(tmp_path / "mine.csv", index=False)
    with pytest.raises(DataError, match=r"line 101, column 'pressure' is 'high'") as raised:
        load(tmp_path / "mine.csv", label="ill", numeric=["pressure"])
    assert "--exclude pressure" in raised.value.for_shell


def test_all_columns_that_a_file_lacks_are_named_at_once(tmp_path):
    task = derive_task(as_csv(tmp_path), "ill").task
    FRAME[["ill", "ward"]].write_csv(tmp_path / "few.csv")
    with pytest.raises(DataError, match=r"no columns 'age', 'chol'.* it has: ill, ward"):
        load(tmp_path / "few.csv", encoder=task.encoder)
    with pytest.raises(DataError, match=r"columns 'age', 'chol'.*which are not in the header"):
        check_columns(("ill", "ward"), task.columns, "few.csv")
