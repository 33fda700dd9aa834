"""What the columns of a real table become: numbers, booleans, categories, times, arrays, gaps."""

from __future__ import annotations

import csv
import io
import json
import math
import tempfile
from datetime import date, datetime, time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.datasets import load
from oneway.errors import DataError, TaskError
from oneway.tables import Array, Boolean, Category, Encoder, Number, Table, Time
from oneway.tables.features import make_feature, parse_time
from oneway.tables.rows import RowReader

AGE = Number("age", 40.0, 12.5, missing_indicator=True)
SMOKER = Boolean("smoker")
SEX = Category("sex", values=("female", "male"))
PAIN = Category("pain", values=("1", "2", "3"), missing_indicator=True)
VISIT = Time("visit", missing_indicator=True)
SCAN = Array("scan", (2, 2), 5.0, 2.0, missing_indicator=True)
ENCODER = Encoder((SEX, AGE, VISIT, SMOKER, PAIN, SCAN), "ill", "binary", ("no", "yes"))
FILLED = {
    "sex": "male",
    "age": "65",
    "visit": "2026-03-02 06:00",
    "smoker": "no",
    "pain": "9",
    "scan": "[[5, 7], [3, 5]]",
}

gaps = st.sampled_from(["", "NA", "?", "nan", " ", "None", "<NA>", " NA", "nUll"])
pixels = st.lists(st.integers(0, 255) | st.floats(-1e6, 1e6), min_size=4, max_size=4)
cells = {
    "sex": st.sampled_from(["female", "male", " male ", "diverse", "FEMALE", "1", '5" pipe'])
    | gaps,
    "age": st.integers(0, 120).map(str) | st.sampled_from(["1e2", " 33.5", "+1", "01"]) | gaps,
    "visit": st.datetimes(datetime(1990, 1, 1), datetime(2030, 1, 1)).map(str)
    | st.dates().map(str)
    | st.times().map(str)
    | gaps,
    "smoker": st.sampled_from(["yes", "no", "True", "f", "1", "0.0", "Y", "off", "+1", "01"])
    | gaps,
    "pain": st.sampled_from(["1", "2.0", "3", "4", "-1", "true", "+1", "01", "1.00"]) | gaps,
    "scan": pixels.map(json.dumps) | pixels.map(lambda it: json.dumps([it[:2], it[2:]])) | gaps,
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
    assert list(ENCODER.outputs) == [
        *("sex=female", "sex=male", "sex=other", "age", "age missing"),
        *("visit hour sin", "visit hour cos", "visit weekday sin", "visit weekday cos"),
        *("visit season sin", "visit season cos", "visit missing"),
        *("smoker", "pain=1", "pain=2", "pain=3", "pain=other", "pain missing"),
        *("scan[0, 0]", "scan[0, 1]", "scan[1, 0]", "scan[1, 1]", "scan missing"),
    ]
    assert (ENCODER.width, ENCODER.shape) == (23, (23,))
    vector = ENCODER.vector(FILLED)
    assert vector[:9].tolist() == [0, 1, 0, 2, 0, 1, pytest.approx(0, abs=1e-15), 0, 1]
    assert vector[11:].tolist() == [0, -1, 0, 0, 0, 1, 0, 0, 1, -1, 0, 0]
    flags = ENCODER.vector(dict.fromkeys(ENCODER.names, ""))
    assert np.flatnonzero(flags).tolist() == [4, 11, 17, 22]
    assert Category("x", values=("other",)).outputs == ("x=other", "x=any other")


@given(rows=samples)
def test_a_whole_table_and_a_single_row_are_equal_to_the_last_bit(rows):
    """For every kind of feature; and what a table writes, a peer reads as the same numbers."""
    text = as_csv(rows)
    vectors = row_by_row(text, ENCODER)
    with tempfile.TemporaryDirectory() as folder:
        table = whole_table(Path(folder), text, ENCODER)
        assert table.encoder.outputs == ENCODER.outputs
        np.testing.assert_array_equal(table.features, vectors.astype(np.float32))
        table.write_csv(Path(folder) / "again.csv", np.arange(len(rows)))
        again = row_by_row((Path(folder) / "again.csv").read_bytes(), ENCODER)
        np.testing.assert_array_equal(again.astype(np.float32), table.features)
        np.testing.assert_array_equal(table.recoded(ENCODER).features, table.features)


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        *(("age", "old"), ("smoker", "maybe"), ("smoker", "2"), ("visit", "03/04/2026")),
        *(("age", "inf"), ("scan", "[1, 2]")),
    ],
)
def test_a_cell_that_its_feature_cannot_be_is_named_with_its_line(tmp_path, name, cell):
    with pytest.raises(DataError, match=name):
        ENCODER.vector(FILLED | {name: cell})
    rows = [FILLED | {"ill": "no"}, FILLED | {"ill": "no", name: cell}]
    with pytest.raises(DataError, match=f"line 3.*{name}"):
        whole_table(tmp_path, as_csv(rows), ENCODER)


def test_cells_may_be_values_of_python_and_json():
    values = {"age": 65, "visit": date(2026, 3, 2), "smoker": False, "pain": 2}
    text = {"age": "65", "visit": "2.3.2026", "smoker": "no", "pain": "2"}
    for scan in (np.array([[5, 7], [3, 5]]), [5, 7, 3, 5], ((5.0, 7.0), (3.0, 5.0))):
        given_values = ENCODER.vector(FILLED | values | {"scan": scan})
        np.testing.assert_array_equal(given_values, ENCODER.vector(FILLED | text))
    for raw in (
        datetime(2026, 3, 2, 6),
        np.datetime64("2026-03-02T06:00"),
        pd.Timestamp(2026, 3, 2, 6),
    ):
        assert VISIT.encode(raw) == VISIT.encode("2026-03-02T06:00:00+01:00")
    assert VISIT.encode(pd.NaT) == VISIT.encode(math.nan) == VISIT.encode("")
    with pytest.raises(DataError, match="'sex'"):
        SEX.encode(["male"])


def test_a_time_says_hour_weekday_and_season_as_points_of_circles():
    def circle(part: float) -> list[float]:
        return [math.sin(2 * math.pi * part), math.cos(2 * math.pi * part)]

    moment = parse_time("2024-12-31 18:45")
    assert moment is not None
    expected = [*circle((18 * 60 + 45) / 1440), *circle(1 / 7), *circle(365 / 366)]
    whole = VISIT.encode("2024-12-31 18:45")
    np.testing.assert_allclose(whole[:6], expected, atol=1e-15)
    assert VISIT.encode(time(18, 45))[2:] == [0.0] * 5, "no date, and not missing"
    assert VISIT.encode("2024-12-31")[:2] == [0.0, 0.0], "no hour"
    day = Time("day", parts=("season", "weekday"))
    assert day.outputs == ("day weekday sin", "day weekday cos", "day season sin", "day season cos")
    assert day.encode("2024-12-31") == day.encode("2024-12-31 18:45") == whole[2:6]
    assert Time("day", parts=("season", "hour", "weekday")) == Time("day")
    for text in ("2023-02-29", "24:00", "2024-1/2", "99", "1.1.99", "12:5"):
        assert parse_time(text) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "category"},
        {"parts": ("hour",)},
        {"values": ()},
        {"kind": "time", "parts": ("hour", "hour")},
        {"kind": "time", "parts": ("minute",)},
        {"kind": "boolean", "values": ("a",)},
        {"kind": "colour"},
        {"values": "ab"},
        {"values": ("1", "1.0")},
        {"values": ("NA",)},
        {"values": ("a",), "center": 1.0},
        {"missing_indicator": "yes"},
        {"shape": (0, 2)},
        {"shape": (2.5,)},
        {"shape": "28"},
        {"kind": "array"},
        {"kind": "time", "shape": (2,)},
        {"values": ("a", "b"), "shape": (2,)},
        {"shape": (2,), "scale": 0.0},
    ],
)
def test_a_feature_that_breaks_a_rule_is_named(wrong):
    with pytest.raises(TaskError, match="feature 'x'"):
        make_feature("x", wrong)
