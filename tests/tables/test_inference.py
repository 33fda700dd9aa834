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
from oneway.tables import Table
from oneway.tables.features import PARTS
from oneway.tables.inference import ColumnNote, make_choices
from oneway.tables.rows import check_columns
from oneway.task.derive import derive_task

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
    "chol": "number, missing values flagged",
    "pulse": "number, missing values flagged",
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
    assert {note.name: note.missing for note in notes if note.missing} == {
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
        assert table.encoder.outputs == csv.encoder.outputs
        np.testing.assert_array_equal(table.features, csv.features)
        np.testing.assert_array_equal(table.labels, csv.labels)
        assert table.deal_by().node_names == ("site 0", "site 1", "site 2")


def test_a_task_is_derived_as_a_table_is_loaded(tmp_path):
    derived = derive_task(as_csv(tmp_path), "ill", choices=make_choices(owner="site"))
    check(derived.notes)
    table = load(tmp_path / "patients.csv", label="ill", owner="site")
    for ours, theirs in zip(derived.task.features, table.encoder.features, strict=True):
        assert (ours.kind, ours.outputs) == (theirs.kind, theirs.outputs)
        assert ours.scaling == pytest.approx(theirs.scaling, rel=1e-3, abs=1e-3)
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
    assert [feature.kind for feature in table.encoder.features] == [
        "category",
        "category",
        "number",
    ]
    assert table.encoder.features[1].values == ("0", "1", "2")
    assert len(table.encoder.features[0].values) == 40
    with pytest.raises(DataError, match=r"'name' cannot be a feature.* unique per row"):
        load(as_csv(tmp_path), label="ill", features=["name"])
    fewer = load(
        as_csv(tmp_path),
        label="ill",
        exclude=["chol"],
        numeric=["treated", "row"],
        category=["age"],
    )
    kinds = {feature.name: feature.kind for feature in fewer.encoder.features}
    assert (kinds["treated"], kinds["row"], kinds["age"]) == ("number", "number", "category")
    assert "chol" not in kinds
    assert "site" in kinds, "no owner was named"


def test_text_among_numbers_that_are_asked_for_is_counted_and_told(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,y\n" + "".join(f"{n if n % 10 else '<5'},{n % 2}\n" for n in range(50)))
    derived = derive_task(path, "y", choices=make_choices(numeric=("a",)))
    assert derived.task.features[0].kind == "number"
    assert "5 cells are no numbers, as '<5'" in derived.notes[1].remark
    with pytest.raises(DataError, match="line 2: feature 'a' is '<5'"):
        load(path, label="y", numeric=["a"])


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


def test_a_number_that_is_the_label_in_another_unit_is_warned_of():
    price = RNG.normal(100, 20, 200)
    frame = pl.DataFrame({"cents": 100 * price, "size": RNG.normal(size=200), "price": price})
    table = Table.from_frame(frame, label="price")
    assert [note.name for note in table.notes if note.warns] == ["cents"]


@pytest.mark.parametrize(
    ("cells", "parts"),
    [
        ([f"2026-03-{day:02}" for day in range(1, 31)], ("weekday", "season")),
        ([f"{day}.3.2026 00:00" for day in range(1, 31)], ("weekday", "season")),
        ([datetime(2026, 3, day) for day in range(1, 31)], ("weekday", "season")),
        ([f"2026-03-{day:02} 14:{day:02}" for day in range(1, 31)], PARTS),
        ([f"14:{minute:02}" for minute in range(30)], ("hour",)),
        ([*["0:00", ""] * 15], ("hour",)),
        ([f"2026-03-{day:02}" for day in range(1, 30)] + ["7:30"], PARTS),
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
    assert parts == PARTS or all(part in note.used for part in parts)


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
    with pytest.raises(DataError, match=r"line 101: feature 'pressure' is 'high'"):
        load(tmp_path / "mine.csv", label="ill", numeric=["pressure"])


def test_all_columns_that_a_file_lacks_are_named_at_once(tmp_path):
    task = derive_task(as_csv(tmp_path), "ill").task
    FRAME[["ill", "ward"]].write_csv(tmp_path / "few.csv")
    with pytest.raises(DataError, match=r"no columns 'age', 'chol'.* it has: ill, ward"):
        load(tmp_path / "few.csv", encoder=task.encoder)
    with pytest.raises(DataError, match=r"columns 'age', 'chol'.*which are not in the header"):
        check_columns(("ill", "ward"), task.columns, "few.csv")
