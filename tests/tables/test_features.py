"""What the columns of a real table become: numbers, booleans, categories, times, and gaps."""

from __future__ import annotations

import csv
import io
import math
import tempfile
from datetime import date, datetime, time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.datasets import load
from oneway.errors import DataError, TaskError
from oneway.tables import Encoder, Feature, Table
from oneway.tables.rows import RowReader
from oneway.tables.times import parse_time, waves

AGE = Feature("age", 40.0, 12.5, gaps=True)
SMOKER = Feature("smoker", kind="boolean")
SEX = Feature("sex", values=("female", "male"))
PAIN = Feature("pain", values=("1", "2", "3"), gaps=True)
VISIT = Feature("visit", kind="time", gaps=True)
ENCODER = Encoder((SEX, AGE, VISIT, SMOKER, PAIN), "ill", "binary", ("no", "yes"))

gaps = st.sampled_from(["", "NA", "?", "nan", " ", "None", "<NA>"])
cells = {
    "sex": st.sampled_from(["female", "male", " male ", "diverse", "FEMALE", "1"]) | gaps,
    "age": st.integers(0, 120).map(str) | st.sampled_from(["1e2", " 33.5"]) | gaps,
    "visit": st.datetimes(datetime(1990, 1, 1), datetime(2030, 1, 1)).map(str)
    | st.dates().map(str)
    | st.times().map(str)
    | gaps,
    "smoker": st.sampled_from(["yes", "no", "True", "f", "1", "0.0", "Y", "off"]) | gaps,
    "pain": st.sampled_from(["1", "2.0", "3", "4", "-1", "true"]) | gaps,
    "ill": st.sampled_from(["no", "yes"]),
}
samples = st.lists(st.fixed_dictionaries(cells), min_size=1, max_size=12)


def as_csv(rows: list[dict[str, str]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, [*ENCODER.names, ENCODER.label], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def row_by_row(text: bytes, encoder: Encoder) -> np.ndarray:
    reader = RowReader("the data", [*encoder.names, encoder.label])
    rows = [*reader.feed(text), *reader.finish()]
    return np.array([encoder.vector(row.values) for row in rows])  # type: ignore[union-attr]


def whole_table(folder: Path, text: bytes, encoder: Encoder) -> Table:
    path = folder / "samples.csv"
    path.write_bytes(text)
    return load(path, encoder=encoder)


def test_one_feature_is_one_column_to_the_user_and_several_to_the_model():
    assert ENCODER.names == ("sex", "age", "visit", "smoker", "pain")
    assert ENCODER.outputs == (
        *("sex=female", "sex=male", "sex=other", "age", "age missing"),
        *("visit hour sin", "visit hour cos", "visit weekday sin", "visit weekday cos"),
        *("visit season sin", "visit season cos", "visit missing"),
        *("smoker", "pain=1", "pain=2", "pain=3", "pain=other", "pain missing"),
    )
    assert ENCODER.width == 18
    filled = {"sex": "male", "age": "65", "visit": "2026-03-02 06:00", "smoker": "no", "pain": "9"}
    vector = ENCODER.vector(filled)
    assert vector[:9].tolist() == [0, 1, 0, 2, 0, 1, pytest.approx(0, abs=1e-15), 0, 1]
    assert vector[11:].tolist() == [0, -1, 0, 0, 0, 1, 0]
    flags = ENCODER.vector(dict.fromkeys(ENCODER.names, ""))
    assert np.flatnonzero(flags).tolist() == [4, 11, 17]


@settings(deadline=None)
@given(rows=samples)
def test_a_whole_table_and_a_single_row_are_equal_to_the_last_bit(rows):
    text = as_csv(rows)
    vectors = row_by_row(text, ENCODER)
    with tempfile.TemporaryDirectory() as folder:
        table = whole_table(Path(folder), text, ENCODER)
        assert table.feature_names == table.encoder.outputs == ENCODER.outputs
        np.testing.assert_array_equal(table.features, vectors.astype(np.float32))
        # And the way back: what a peer reads in its file is what the simulator has.
        table.write_csv(Path(folder) / "again.csv", np.arange(len(rows)))
        again = row_by_row((Path(folder) / "again.csv").read_bytes(), ENCODER)
        np.testing.assert_array_equal(again.astype(np.float32), table.features)
        np.testing.assert_array_equal(table.recoded(ENCODER).features, table.features)


@pytest.mark.parametrize(
    ("name", "cell"),
    [("age", "old"), ("smoker", "maybe"), ("smoker", "2"), ("visit", "03/04/2026"), ("age", "inf")],
)
def test_a_cell_that_its_feature_cannot_be_is_named_with_its_line(tmp_path, name, cell):
    filled = {"sex": "male", "age": "65", "visit": "2026-03-02", "smoker": "1", "pain": "1"}
    with pytest.raises(DataError, match=f"{name}"):
        ENCODER.vector(filled | {name: cell})
    rows = [filled | {"ill": "no"}, filled | {"ill": "no", name: cell}]
    with pytest.raises(DataError, match=f"line 3.*{name}"):
        whole_table(tmp_path, as_csv(rows), ENCODER)


def test_cells_may_be_values_of_python_and_json():
    filled = {"sex": "male", "age": 65, "visit": date(2026, 3, 2), "smoker": False, "pain": 2}
    text = {"sex": "male", "age": "65", "visit": "2.3.2026", "smoker": "no", "pain": "2"}
    np.testing.assert_array_equal(ENCODER.vector(filled), ENCODER.vector(text))
    for raw in (
        datetime(2026, 3, 2, 6),
        np.datetime64("2026-03-02T06:00"),
        pd.Timestamp(2026, 3, 2, 6),
    ):
        assert VISIT.encode(raw) == VISIT.encode("2026-03-02T06:00:00+01:00")
    assert VISIT.encode(pd.NaT) == VISIT.encode(math.nan) == VISIT.encode("")
    with pytest.raises(DataError, match=r"'sex' is a list of 1; it must be text or a number"):
        SEX.encode(["male"])


def test_a_time_says_hour_weekday_and_season_as_points_of_circles():
    def circle(part: float) -> list[float]:
        return [math.sin(2 * math.pi * part), math.cos(2 * math.pi * part)]

    moment = parse_time("2024-12-31 18:45")
    assert moment is not None
    expected = [*circle((18 * 60 + 45) / 1440), *circle(1 / 7), *circle(365 / 366)]
    np.testing.assert_allclose(waves(moment), expected, atol=1e-15)
    assert VISIT.encode(time(18, 45))[2:] == (0.0,) * 5, "no date, and no gap"
    assert VISIT.encode("2024-12-31")[:2] == (0.0, 0.0), "no hour"


def test_a_time_has_the_parts_that_it_is_to_have_in_one_order():
    day = Feature("day", kind="time", parts=("season", "weekday"))
    assert day.outputs == ("day weekday sin", "day weekday cos", "day season sin", "day season cos")
    whole = VISIT.encode("2024-12-31 18:45")
    assert day.encode("2024-12-31") == day.encode("2024-12-31 18:45") == whole[2:6]
    assert Feature("at", kind="time", parts=("hour",)).encode("18:45") == whole[:2]
    assert Feature("day", kind="time", parts=("season", "hour", "weekday")) == Feature(
        "day", kind="time"
    )


@pytest.mark.parametrize("text", ["2023-02-29", "24:00", "2024-1/2", "99", "1.1.99", "12:5"])
def test_what_is_no_time_is_none(text):
    assert parse_time(text) is None


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"kind": "category"}, "without values"),
        ({"parts": ("hour",)}, "parts hour, and is a number"),
        ({"kind": "time", "parts": ("hour", "hour")}, "twice"),
        ({"kind": "time", "parts": ("minute",)}, "parts"),
        ({"kind": "boolean", "values": ("a",)}, "boolean with values"),
        ({"kind": "colour"}, "kind is 'colour'"),
        ({"values": "ab"}, "values is 'ab'; it must be a list"),
        ({"values": ("1", "1.0")}, "'1.0' twice"),
        ({"values": ("NA",)}, "word for an empty cell"),
        ({"values": ("a",), "center": 1.0}, "only numbers are scaled"),
        ({"gaps": "yes"}, "gaps is 'yes'"),
    ],
)
def test_a_feature_that_breaks_a_rule_is_named(told, message):
    with pytest.raises(TaskError, match=f"feature 'x'.*{message}"):
        Feature("x", **told)


def test_a_value_called_other_keeps_its_column_apart():
    assert Feature("x", values=("other",)).outputs == ("x=other", "x=any other")
