"""Arrays through the commands: from a .npy file to a task, a simulation and a peer that learns."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

from oneway.errors import ConfigError, DataError, TaskError
from oneway.peer.home.free_address import free_address
from oneway.peer.store.store import read_snapshot
from oneway.tables import npy_arrays

SHAPE = (1, 5, 5)


@pytest.fixture
def images(here: Path) -> Path:
    rng = np.random.default_rng(5)
    labels = np.arange(120) % 2
    pixels = rng.integers(0, 100, (120, *SHAPE)) + 150 * labels[:, None, None, None]
    npy_arrays.save(here / "images.npy", pixels.astype(np.uint8), np.array(["no", "yes"])[labels])
    return here / "images.npy"


def test_a_task_shows_one_line_for_all_cells(oneway, images):
    result = oneway("peer", "task", images, "--out", "task.toml")
    assert result.code == 0
    assert "array of 1 x 5 x 5" in result.err
    assert sum("features" in line.split()[:1] for line in result.err.splitlines()) == 1
    task = tomllib.loads(Path("task.toml").read_text())
    assert task["features"]["features"]["shape"] == [1, 5, 5]
    assert (task["model"], task["label"], task["classes"]) == ("logistic", "label", ["no", "yes"])


def test_a_range_tells_nothing_of_the_pixels(oneway, images):
    given = ("--label", "tumour", "--range", "features=0..255", "--out", "task.toml")
    result = oneway("peer", "task", images, *given)
    assert result.code == 0
    assert "Careful" not in result.err
    task = tomllib.loads(Path("task.toml").read_text())
    assert task["features"]["features"]["center"] == 127.5
    assert task["label"] == "tumour"
    assert "options" not in task, "where the model starts is a statistic of the labels"


def test_what_is_for_columns_is_refused_for_arrays(oneway, images):
    for flags in (("--private-scales",), ("--exclude", "x"), ("--range", "pixel=0..1")):
        oneway("peer", "task", images, *flags).check_refused(ConfigError, "images.npy")
    oneway("simulate", "--data", images, "--exclude", "x").check_refused(DataError, "images.npy")
    oneway("peer", "task", "mine.csv").check_refused(ConfigError, "--label")


def test_a_peer_learns_every_image_once_and_predicts_one(oneway, images, here):
    flags = ("--privacy", "none", "--samples-per-push", 1, "--out", "task.toml")
    assert oneway("peer", "task", images, *flags).code == 0
    address = free_address(here)
    made = oneway("peer", "init", "ada", "--task", "task.toml", "--listen", address)
    assert made.code == 0, made.err
    run = ("peer", "run", "--data", images, "--until-done")
    assert oneway(*run).code == 0
    assert read_snapshot(here / "peer.sqlite").journal.samples == 120
    again = oneway(*run)
    assert again.code == 0
    assert "nothing new" in again.err
    assert read_snapshot(here / "peer.sqlite").journal.samples == 120
    bright = json.dumps(np.full(SHAPE, 220).tolist())
    said = oneway("peer", "predict", f"features={bright}", "--json").json
    assert said["prediction"] == "yes"
    assert oneway("peer", "predict", "features=[1, 2]").code == 2


def test_a_simulation_reads_them_and_a_deal_writes_them(oneway, images, here):
    told = ("--data", images, "--nodes", 4, "--classes-per-node", 1, "--json")
    result = oneway("simulate", *told)
    assert result.code == 0, result.err
    assert result.json["average_loss"] > 0
    result = oneway("data", "deal", images, "--owner", "label", "--out", "dealt", "--json")
    assert result.code == 0
    assert set(result.json["samples"].values()) == {60}
    rows = npy_arrays.open_file(here / "dealt" / "yes.npy")
    assert (rows.shape, rows.rows[:].dtype) == (SHAPE, np.uint8)
    assert set(rows.labels) == {"yes"}
    assert oneway("data", "deal", images, "--owner", "label", "--out", "dealt", "--force").code == 0


def test_a_function_makes_numbers_of_a_column_of_text(oneway, here, monkeypatch):
    monkeypatch.syspath_prepend(str(here))
    Path("my_lengths.py").write_text(
        "def lengths(text):\n    return [len(text), text.count(' ')]\n"
    )
    rows = [f"{'word ' * (n % 5 + 1)}{n},{'yes' if n % 5 > 2 else 'no'}" for n in range(60)]
    Path("notes.csv").write_text("\n".join(["note,long", *rows, ""]))
    told = ("--label", "long", "--function", "note=my_lengths:lengths")
    result = oneway("peer", "task", "notes.csv", *told, "--out", "task.toml")
    assert result.code == 0, result.err
    assert "transform to 2 by my_lengths:lengths" in result.err
    task = tomllib.loads(Path("task.toml").read_text())
    assert task["features"]["note"]["function"] == "my_lengths:lengths"
    wrong = (*told[:3], "note=my_lengths:nothing")
    oneway("peer", "task", "notes.csv", *wrong).check_refused(DataError, "my_lengths:nothing")
    Path("task.toml").write_text(
        Path("task.toml").read_text().replace("my_lengths:lengths", "my_other:lengths")
    )
    init = oneway("peer", "init", "ada", "--task", "task.toml", "--listen", free_address(here))
    init.check_refused(TaskError, "my_other")
