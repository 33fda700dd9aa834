from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from oneway.datasets.susy import FEATURES
from oneway.errors import DataError
from oneway.streams import load

HEADER = '"date","Temperature","Humidity","Light","CO2","HumidityRatio","Occupancy"\n'


def write_occupancy(folder: Path) -> None:
    (folder / "occupancy").mkdir()
    rows = {
        "datatraining.txt": '"1","2015-02-04 17:51:00",23.18,27.272,426,721.25,0.0048,1\n',
        "datatest.txt": '"140","2015-02-02 14:19:00",23.7,26.272,585.2,749.2,0.0047,1\n'
        '"141","2015-02-02 14:19:59",23.718,26.29,578.4,760.4,0.0047,0\n',
        "datatest2.txt": '"1",2015-02-11 14:48:00,21.76,31.1333333333333,437.3,1029.6,0.005,1\n',
    }
    for name, text in rows.items():
        (folder / "occupancy" / name).write_text(HEADER + text)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONEWAY_DATA", str(tmp_path))
    return tmp_path


def test_occupancy_is_in_the_order_of_time_and_the_date_is_no_feature(folder: Path) -> None:
    write_occupancy(folder)
    table = load("occupancy", standardise=False)
    assert table.feature_names == ("Temperature", "Humidity", "Light", "CO2", "HumidityRatio")
    np.testing.assert_allclose(table.features[:, 2], [585.2, 578.4, 426, 437.3], rtol=1e-6)
    assert table.labels.tolist() == [1, -1, 1, 1]
    dates = table.columns["date"].values.tolist()
    assert dates == sorted(dates)
    assert dates[0] == "2015-02-02 14:19:00"


def test_an_occupancy_file_that_is_something_else_is_named(folder: Path) -> None:
    write_occupancy(folder)
    (folder / "occupancy" / "datatest2.txt").write_text(HEADER + '"1",2015,warm,1,1,1,1,1\n')
    with pytest.raises(DataError, match=r"datatest2.txt is not UCI's original file.*data fetch"):
        load("occupancy")
    (folder / "occupancy" / "datatest2.txt").write_text("")
    with pytest.raises(DataError, match=r"datatest2.txt is not UCI's original file"):
        load("occupancy")


def test_the_real_occupancy_data_has_all_its_rows(real_data: Path) -> None:
    if not (real_data / "occupancy").is_dir():
        pytest.skip("ONEWAY_DATA holds no occupancy")
    table = load("occupancy")
    assert table.features.shape == (20_560, 5)
    assert np.count_nonzero(table.labels > 0) == 1729 + 972 + 2049
    assert table.label_values == (0, 1)
    dates = table.columns["date"].values
    assert (dates[1:] >= dates[:-1]).all()
    assert (dates[0], dates[-1]) == ("2015-02-02 14:19:00", "2015-02-18 09:19:00")
    np.testing.assert_allclose(table.features.mean(axis=0, dtype=float), 0.0, atol=1e-6)
    stream = table.deal(20, adversarial=0.5, seed=7)
    assert stream.num_rounds == 1028
    assert 0.3 < stream.adversarial_share <= 0.5


def susy_rows(num_rows: int = 20) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.column_stack([np.arange(num_rows) % 2, rng.normal(size=(num_rows, 18))])


def as_csv(rows: np.ndarray) -> bytes:
    return "".join(",".join(f"{value:.18e}" for value in row) + "\n" for row in rows).encode()


def as_libsvm(rows: np.ndarray) -> bytes:
    lines = []
    for label, *features in rows:
        entries = [f"{index + 1}:{value:.18e}" for index, value in enumerate(features) if value]
        lines.append(f"{label:.0f} {' '.join(entries)} \n")
    return "".join(lines).encode()


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("SUSY.csv", as_csv),
        ("SUSY.csv.gz", lambda rows: gzip.compress(as_csv(rows))),
        ("SUSY", as_libsvm),
        ("SUSY.bz2", lambda rows: bz2.compress(as_libsvm(rows))),
        ("SUSY.xz", lambda rows: lzma.compress(as_libsvm(rows))),
    ],
)
def test_susy_is_read_in_every_format(
    folder: Path, name: str, write: Callable[[np.ndarray], bytes]
) -> None:
    (folder / "susy").mkdir()
    rows = susy_rows()
    rows[3, 5] = 0.0
    (folder / "susy" / name).write_bytes(write(rows))
    table = load("susy", standardise=False)
    assert table.name == "susy"
    assert table.feature_names == FEATURES
    np.testing.assert_array_equal(table.features, rows[:, 1:].astype(np.float32))
    assert table.labels.tolist() == [-1, 1] * 10
    assert table.label_values == (0, 1)


def test_the_full_susy_is_preferred_to_the_sample_and_the_name_tells(folder: Path) -> None:
    (folder / "susy").mkdir()
    (folder / "susy" / "SUSY-10k.csv.gz").write_bytes(gzip.compress(as_csv(susy_rows(4))))
    sample = load("susy")
    assert sample.name == "susy (10,000-row sample)"
    assert sample.origin["sample"] is True
    (folder / "susy" / "SUSY.csv").write_bytes(as_csv(susy_rows(6)))
    full = load("susy")
    assert (full.name, len(full), full.origin["sample"]) == ("susy", 6, False)


def test_a_susy_file_that_is_cut_off_says_so(folder: Path) -> None:
    (folder / "susy").mkdir()
    whole = gzip.compress(as_csv(susy_rows(200)))
    (folder / "susy" / "SUSY.csv.gz").write_bytes(whole[:-20])
    with pytest.raises(DataError, match=r"SUSY.csv.gz ends early.*download it again"):
        load("susy")


def test_the_real_sample_of_susy_has_ten_thousand_rows(real_data: Path) -> None:
    if not (real_data / "susy" / "SUSY-10k.csv.gz").is_file():
        pytest.skip("ONEWAY_DATA holds no SUSY-10k.csv.gz")
    table = load(real_data / "susy" / "SUSY-10k.csv.gz", label="0.000000000000000000e+00")
    assert table.features.shape == (9_999, 18)  # without names the first row is taken as header
    table = load("susy")
    if table.origin["sample"]:
        assert table.features.shape == (10_000, 18)
        assert 0.4 < (table.labels > 0).mean() < 0.5
