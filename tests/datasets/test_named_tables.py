"""The tables that are known by name: what their files become, and what is refused."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from oneway.datasets import DATASETS, fetch, load_for
from oneway.datasets.uci import ADULT_CATEGORIES, HOSPITALS, SUSY_FEATURES
from oneway.errors import DataError, MissingDataError
from oneway.streams import Table, load

ADULT = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, "
    "Male, 2174, 0, 40, United-States, <=50K\n"
    "52, ?, 287927, HS-grad, 9, Married-civ-spouse, Armed-Forces, Wife, White, Female, 0, 1902, "
    "45, ?, >50K\n"
)
HEART = {
    "heart/processed.cleveland.data": "63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,0.0,6.0,0"
    "\n",
    "heart/processed.hungarian.data": "29,0,2,140,?,0,0,170,0,0,?,?,?,0\n",
    "heart/processed.switzerland.data": "35,1,4,?,0,?,0,130,1,?,?,?,7,3\n",
    "heart/processed.va.data": "63,1,4,0,260,0,1,112,1,3,2,?,?,2\n",
}
HEADER = '"date","Temperature","Humidity","Light","CO2","HumidityRatio","Occupancy"\n'
OCCUPANCY = {
    "occupancy/datatraining.txt": HEADER
    + '"1","2015-02-04 17:51:00",23.18,27.272,426,721.25,0.0048,1\n',
    "occupancy/datatest.txt": HEADER
    + '"140","2015-02-02 14:19:00",23.7,26.272,585.2,749.2,0.0047,1\n'
    '"141","2015-02-02 14:19:59",23.718,26.29,578.4,760.4,0.0047,0\n',
    "occupancy/datatest2.txt": HEADER
    + '"1",2015-02-11 14:48:00,21.76,31.1333333333333,437.3,1029.6,0.005,1\n',
}
FILES: dict[str, dict[str, str]] = {
    "adult": {"adult/adult.data": ADULT},
    "heart": HEART,
    "occupancy": OCCUPANCY,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONEWAY_DATA", str(tmp_path))
    return tmp_path


def put(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def raw(table: Table) -> list[dict[str, float]]:
    """Rows before they were standardised, as close as float32 has them."""
    means, scales = table.encoder.scaling
    rows = table.features * scales + means
    return [dict(zip(table.encoder.outputs, row, strict=True)) for row in rows.tolist()]


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        ("adult", "adult/adult.data", ""),
        ("adult", "adult/adult.data", "age,income\n39,<=50K\n"),
        ("adult", "adult/adult.data", ADULT.replace("39,", "old,")),
        ("adult", "adult/adult.data", ADULT.replace("<=50K", "<=50K.")),
        ("adult", "adult/adult.data", ADULT.replace(", >50K", "")),
        ("heart", "heart/processed.va.data", ""),
        ("heart", "heart/processed.va.data", "63,1,1\n"),
        ("heart", "heart/processed.va.data", "old,1,4,0,260,0,1,112,1,3,2,?,?,2\n"),
        ("heart", "heart/processed.va.data", "63,1,4,0,260,0,1,112,1,3,2,?,?,9\n"),
        ("occupancy", "occupancy/datatest2.txt", ""),
        ("occupancy", "occupancy/datatest2.txt", HEADER + '"1",2015,warm,1,1,1,1,1\n'),
    ],
)
def test_a_file_that_is_something_else_is_named(folder, name, file, content):
    put(folder, FILES[name] | {file: content})
    with pytest.raises(DataError, match=f"{file.partition('/')[2]}.*data fetch {name}"):
        load(name)


@pytest.mark.parametrize("name", ["adult", "heart", "occupancy", "susy", "mnist"])
def test_missing_data_says_where_to_put_it_and_how_to_download_it(folder, name):
    with pytest.raises(MissingDataError) as caught:
        load(name)
    for culprit in (str(folder / DATASETS[name].files[0].path), f"data fetch {name}"):
        assert culprit in str(caught.value)


def test_adult_has_numbers_amounts_and_categories(folder):
    put(folder, {"adult/adult.data": ADULT + "\n"})
    table = load("adult")
    assert table.labels.tolist() == [-1, 1]
    named = raw(table)
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
    assert table.encoder.classes == ("<=50K", ">50K")
    assert table.frame["education"].to_list() == ["Bachelors", "HS-grad"]


def test_the_real_adult_has_all_its_rows_and_gaps_that_tell(real_data):
    if not (real_data / "adult").is_dir():
        pytest.skip("ONEWAY_DATA holds no adult")
    table = load("adult")
    width = 5 + sum(map(len, ADULT_CATEGORIES.values())) + len(ADULT_CATEGORIES) + 2
    assert table.features.shape == (32_561, width)
    assert np.count_nonzero(table.labels > 0) == 7841
    assert [it.name for it in table.encoder.features if it.missing_indicator] == [
        "workclass",
        "occupation",
    ]
    columns = dict(zip(table.encoder.outputs, table.features.T, strict=True))
    shares = {name: float(columns[name].mean()) for name in columns if "=" in name}
    assert min(share for name, share in shares.items() if not name.endswith("=other")) >= 0.01
    assert columns["occupation missing"].sum() == 1843


def test_heart_has_flags_where_gaps_tell_and_rows_of_its_encoder(folder):
    put(folder, HEART)
    table = load("heart")
    assert table.labels.tolist() == [-1, -1, 1, 1]
    assert table.encoder.classes == ("no", "yes")
    assert table.deal_by("hospital").node_names == HOSPITALS
    named = [dict(zip(table.encoder.outputs, row, strict=True)) for row in table.features.tolist()]
    assert [row["chol missing"] for row in named] == [0, 1, 1, 0]  # "?", and a cholesterol of 0
    assert [named[patient]["trestbps"] for patient in (2, 3)] == [0, 0]  # "?", and a pressure of 0
    assert "trestbps missing" not in named[0]
    assert [row["sex"] for row in named] == [1, -1, 1, 1]
    assert [row["fbs"] for row in named] == [1, -1, 0, -1]
    assert [row["cp=4"] for row in named] == [0, 0, 1, 1]
    assert [row["slope missing"] for row in named] == [0, 1, 1, 0]
    columns = ["age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang"]
    cells = dict(zip(columns, [35, True, "4", "?", "", None, "0", "130", "yes"], strict=True))
    cells |= {"oldpeak": "?", "slope": "?", "ca": "?", "thal": 7.0}
    np.testing.assert_array_equal(table.encoder.vector(cells).astype(np.float32), table.features[2])


def test_hospitals_take_turns_and_patients_come_in_one_random_order(folder):
    """In the Hungarian file the healthy come first, which no hospital would see."""
    ages = [str(30 + patient) for patient in range(20)]
    rows = [f"{age},0,2,140,200,0,0,170,0,0,?,?,?,{age > '40':d}\n" for age in ages]
    put(folder, HEART | {"heart/processed.hungarian.data": "".join(rows)})
    table = load("heart")
    assert table.deal_by("hospital").rows[0].tolist() == [0, 1, 2, 3]
    own = table.features[table.owners("hospital").codes == 1, 0]
    assert sorted(own) != own.tolist() != sorted(own, reverse=True)
    np.testing.assert_array_equal(table.features, load("heart").features)


@pytest.mark.parametrize("name", ["heart", "occupancy"])
def test_the_real_files_have_the_known_digests(real_data, name):
    for file in DATASETS[name].files:
        if not (real_data / file.path).is_file():
            pytest.skip(f"ONEWAY_DATA holds no {name}")
        assert file.digest(real_data / file.path) == file.sha256


def test_occupancy_is_in_the_order_of_time_and_the_date_is_no_feature(folder):
    put(folder, OCCUPANCY)
    table = load("occupancy")
    assert table.encoder.outputs == ("Temperature", "Humidity", "Light", "CO2", "HumidityRatio")
    light = [row["Light"] for row in raw(table)]
    np.testing.assert_allclose(light, [585.2, 578.4, 426, 437.3], rtol=1e-6)
    assert table.labels.tolist() == [1, -1, 1, 1]
    assert table.encoder.label == "Occupancy"
    dates = table.frame["date"].to_list()
    assert dates == sorted(dates)


def test_the_real_occupancy_data_has_all_its_rows(real_data):
    if not (real_data / "occupancy").is_dir():
        pytest.skip("ONEWAY_DATA holds no occupancy")
    table = load("occupancy")
    assert table.features.shape == (20_560, 5)
    assert np.count_nonzero(table.labels > 0) == 1729 + 972 + 2049
    dates = table.frame["date"]
    assert dates.is_sorted()
    assert (dates[0], dates[-1]) == ("2015-02-02 14:19:00", "2015-02-18 09:19:00")


def susy_rows(num_rows: int = 20) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.column_stack([np.arange(num_rows) % 2, rng.normal(size=(num_rows, 18))])


def as_csv(rows: np.ndarray) -> bytes:
    return "".join(",".join(f"{value:.18e}" for value in row) + "\n" for row in rows).encode()


@pytest.mark.parametrize(
    ("name", "write"),
    [("SUSY.csv", as_csv), ("SUSY.csv.gz", lambda rows: gzip.compress(as_csv(rows)))],
)
def test_susy_is_read_plain_and_compressed(
    folder: Path, name: str, write: Callable[[np.ndarray], bytes]
) -> None:
    rows = susy_rows()
    put(folder, {f"susy/{name}": write(rows)})
    table = load("susy")
    assert (table.name, table.encoder.names) == ("susy", SUSY_FEATURES)
    means, scales = rows[:, 1:].mean(axis=0), rows[:, 1:].std(axis=0)
    np.testing.assert_allclose(table.features, (rows[:, 1:] - means) / scales, atol=1e-6)
    assert (table.labels.tolist(), table.encoder.classes) == ([-1, 1] * 10, ("0", "1"))


def test_the_full_susy_is_preferred_to_the_sample_and_a_cut_file_says_so(folder):
    put(folder, {"susy/SUSY-10k.csv.gz": gzip.compress(as_csv(susy_rows(4)))})
    sample = load("susy")
    assert sample.name == "susy (10,000-row sample)"
    put(folder, {"susy/SUSY.csv": as_csv(susy_rows(6))})
    full = load("susy")
    assert (full.name, len(full)) == ("susy", 6)
    put(folder, {"susy/SUSY.csv.gz": gzip.compress(as_csv(susy_rows(200)))[:-20]})
    with pytest.raises(DataError, match=r"SUSY.csv.gz.*download it again"):
        load("susy")


def test_digits_come_with_scikit_learn():
    table = load("digits")
    assert (len(table), table.shape, table.label_kind) == (1797, (1, 8, 8), "classes")
    assert table.encoder.names == ("image",)
    pixels = table.arrays()
    assert (pixels.min(), pixels.max()) == (0, 16)
    assert [path.name for path in fetch("digits")] == ["digits.csv.gz"]
    with pytest.raises(DataError, match="digits"):
        load_for("digits", "binary")


def test_mnist_takes_the_images_to_learn_from_before_those_to_test(folder):
    for name, rows in (("t10k", 4), ("train", 6)):
        for what, shape in (("images-idx3", (rows, 2, 2)), ("labels-idx1", (rows,))):
            numbers = np.arange(np.prod(shape), dtype=np.uint8) % 3
            head = bytes([0, 0, 8, len(shape)]) + np.array(shape, ">u4").tobytes()
            put(folder, {f"mnist/{name}-{what}-ubyte": head + numbers.tobytes()})
        table = load("mnist")
        assert len(table) == rows
        assert ("test" in table.name) == (name == "t10k")


PINNED = {
    "occupancy": (4.341926388261841, -154.94851365313025),
    "susy": (21.641583107336757, -2.7996344841433967),
    "adult": (416.11607382692597, -235.1000787708702),
    "heart": (78.51591857078093, 20.183884124802596),
    "flights": (530.9570037430507, -2120.1154065507108),
    "digits": (-118.69911883309157, 97.50479969497779),
    "mnist": (-74.88787529795532, 486.0479309759393),
}
"""Weighted sums of features and labels of the files in the shared data."""


@pytest.mark.parametrize("name", PINNED)
def test_the_numbers_of_a_real_table_stay_the_same(name, real_data):
    """Weighted by row and column, so that a swap is seen; measured before tables kept frames."""
    if DATASETS[name].url and not (real_data / name).is_dir():
        pytest.skip(f"ONEWAY_DATA holds no {name}")
    table = load(name)
    if len(table) not in (20_560, 10_000, 32_561, 920, 327_346, 1_797):
        pytest.skip("the whole file is there, not its sample")
    rows, columns = table.features.shape
    by_row = (table.features.astype(float) * np.sin(np.arange(columns) + 1)).sum(axis=1)
    found = (by_row @ np.cos(np.arange(rows) % 97), table.labels @ np.cos(np.arange(rows) % 89))
    assert found == pytest.approx(PINNED[name], rel=1e-6, abs=1e-6)
