from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from oneway.datasets.adult import CATEGORIES
from oneway.errors import DataError, MissingDataError
from oneway.streams import load

ROWS = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, "
    "Male, 2174, 0, 40, United-States, <=50K\n"
    "52, ?, 287927, HS-grad, 9, Married-civ-spouse, Armed-Forces, Wife, White, Female, 0, 1902, "
    "45, ?, >50K\n"
)


@pytest.fixture
def adult(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONEWAY_DATA", str(tmp_path))
    (tmp_path / "adult").mkdir()
    return tmp_path / "adult" / "adult.data"


@pytest.mark.parametrize("end", ["", "\n"])
def test_numbers_amounts_and_categories_become_features(adult: Path, end: str) -> None:
    adult.write_text(ROWS + end)
    table = load("adult", standardise=False)
    assert table.labels.tolist() == [-1, 1]
    named = [dict(zip(table.feature_names, row, strict=True)) for row in table.features.tolist()]
    assert [row["age"] for row in named] == [39, 52]
    assert named[0]["capital-gain"] == pytest.approx(np.log(2175.0), rel=1e-6)
    assert named[1]["capital-loss"] == pytest.approx(np.log(1903.0), rel=1e-6)
    assert "fnlwgt" not in named[0]
    on = [{name for name in row if "=" in name and row[name] == 1.0} for row in named]
    assert on[0] == {
        *("workclass=State-gov", "marital-status=Never-married", "occupation=Adm-clerical"),
        *("relationship=Not-in-family", "race=White", "sex=Male", "native-country=United-States"),
    }
    # A gap is none of the columns, and a rare category is another value.
    assert on[1] == {
        *("marital-status=Married-civ-spouse", "occupation=other", "relationship=Wife"),
        *("race=White", "sex=Female"),
    }
    assert table.label_values == ("<=50K", ">50K")
    assert table.columns["education"].values.tolist() == ["Bachelors", "HS-grad"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "age,income\n39,<=50K\n",
        ROWS.replace("39,", "old,"),
        ROWS.replace("<=50K", "<=50K."),
        ROWS.replace(", >50K", ""),
    ],
)
def test_a_file_that_is_something_else_is_named(adult: Path, text: str) -> None:
    adult.write_text(text)
    with pytest.raises(DataError, match=r"adult.data is not UCI's original file.*data fetch adult"):
        load("adult")


def test_a_missing_file_says_how_to_get_it(adult: Path) -> None:
    assert not adult.exists()
    with pytest.raises(MissingDataError, match="oneway data fetch adult"):
        load("adult")


def test_the_real_data_has_all_its_rows_and_gaps_that_tell(real_data: Path) -> None:
    if not (real_data / "adult").is_dir():
        pytest.skip("ONEWAY_DATA holds no adult")
    table = load("adult", standardise=False)
    width = 5 + sum(map(len, CATEGORIES.values())) + len(CATEGORIES) + 2
    assert table.features.shape == (32_561, width)
    assert np.count_nonzero(table.labels > 0) == 7841
    flagged = [feature.name for feature in table.encoding if feature.gaps]
    assert flagged == ["workclass", "occupation"]
    columns = dict(zip(table.feature_names, table.features.T, strict=True))
    shares = {name: float(columns[name].mean()) for name in columns if "=" in name}
    assert min(share for name, share in shares.items() if not name.endswith("=other")) >= 0.01
    assert columns["occupation missing"].sum() == 1843
