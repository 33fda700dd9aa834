from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from oneway.datasets.heart import HOSPITALS, NUMBERS, TELLING_GAPS
from oneway.errors import DataError, MissingDataError
from oneway.streams import load

ROWS = {
    "cleveland": "63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,0.0,6.0,0\n",
    "hungarian": "29,0,2,140,?,0,0,170,0,0,?,?,?,0\n",
    "switzerland": "35,1,4,?,0,?,0,130,1,?,?,?,7,3\n",
    "va": "63,1,4,0,260,0,1,112,1,3,2,?,?,2\n",
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONEWAY_DATA", str(tmp_path))
    (tmp_path / "heart").mkdir()
    for hospital, rows in ROWS.items():
        (tmp_path / "heart" / f"processed.{hospital}.data").write_text(rows)
    return tmp_path / "heart"


@pytest.mark.usefixtures("files")
def test_every_hospital_owns_its_patients_and_disease_is_any_narrowing():
    table = load("heart")
    assert table.labels.tolist() == [-1, -1, 1, 1]
    assert table.label_values == ("no", "yes")
    assert table.deal_by("hospital").node_names == HOSPITALS


@pytest.mark.usefixtures("files")
def test_gaps_are_centres_with_a_flag_where_they_tell_something():
    table = load("heart")
    named = [dict(zip(table.feature_names, row, strict=True)) for row in table.features.tolist()]
    assert [row["chol missing"] for row in named] == [0, 1, 1, 0]  # "?", and a cholesterol of 0
    assert [named[patient]["trestbps"] for patient in (2, 3)] == [0, 0]  # "?", and a pressure of 0
    assert "trestbps missing" not in named[0]
    assert [row["sex"] for row in named] == [1, -1, 1, 1]
    assert [row["fbs"] for row in named] == [1, -1, 0, -1]
    assert [row["cp=4"] for row in named] == [0, 0, 1, 1]
    assert not any(row["cp=other"] for row in named)
    assert [row["slope missing"] for row in named] == [0, 1, 1, 0]


@pytest.mark.usefixtures("files")
def test_a_row_of_its_own_encoder_gives_the_same_numbers():
    table = load("heart")
    columns = ["age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang"]
    cells = dict(zip(columns, [35, True, "4", "?", "", None, "0", "130", "yes"], strict=True))
    cells |= {"oldpeak": "?", "slope": "?", "ca": "?", "thal": 7.0}
    np.testing.assert_array_equal(table.encoder.vector(cells).astype(np.float32), table.features[2])


def test_hospitals_take_turns_and_patients_come_in_one_random_order(files: Path):
    """In the Hungarian file the healthy come first, which no hospital would see."""
    ages = [str(30 + patient) for patient in range(20)]
    rows = [f"{age},0,2,140,200,0,0,170,0,0,?,?,?,{age > '40':d}\n" for age in ages]
    (files / "processed.hungarian.data").write_text("".join(rows))
    table = load("heart")
    assert table.deal_by("hospital").rows[0].tolist() == [0, 1, 2, 3]
    own = table.features[table.columns["hospital"].codes == 1, 0]
    assert sorted(own) != own.tolist() != sorted(own, reverse=True)
    np.testing.assert_array_equal(table.features, load("heart").features)


@pytest.mark.parametrize(
    "text", ["", "63,1,1\n", ROWS["va"].replace("63", "old"), "63,1,4,0,260,0,1,112,1,3,2,?,?,9\n"]
)
def test_a_file_that_is_something_else_is_named(files: Path, text: str):
    (files / "processed.va.data").write_text(text)
    with pytest.raises(DataError, match=r"processed.va.data is not UCI's .* data fetch heart"):
        load("heart")


def test_a_missing_file_says_how_to_get_it(files: Path):
    (files / "processed.hungarian.data").unlink()
    with pytest.raises(MissingDataError, match="oneway data fetch heart"):
        load("heart")


def test_flags_are_those_that_differ_by_three_standard_errors(real_data: Path):
    """Of the share with disease where a column is empty from where it is not."""
    if not (real_data / "heart").is_dir():
        pytest.skip("ONEWAY_DATA holds no heart")
    table = load("heart")
    assert len(table) == 920
    assert np.bincount(table.columns["hospital"].codes).tolist() == [303, 294, 123, 200]
    sick = table.labels > 0
    share = sick.mean()
    telling = set()
    for name in (*NUMBERS, "sex", "fbs", "exang"):
        empty = np.zeros(len(table), np.bool_)
        empty[table.gaps[name]] = True
        if not empty.any():
            continue
        error = np.sqrt(share * (1 - share) * (1 / empty.sum() + 1 / (~empty).sum()))
        if abs(sick[empty].mean() - sick[~empty].mean()) > 3 * error:
            telling.add(name)
    assert telling == {name for name in TELLING_GAPS if name != "slope"}
