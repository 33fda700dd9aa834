"""Real tables through every command: classes, numbers, categories, times and gaps."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path

import numpy as np
import pytest
from mixed_tables import MODELS, ROWS, says_what_became_of_columns, write_table

from oneway.task.task import Task


@pytest.fixture(params=list(MODELS))
def table(request, tmp_path) -> tuple[Path, str]:
    return write_table(tmp_path / "mine.csv", request.param), MODELS[request.param]


def test_a_task_is_derived_for_any_label(oneway, table):
    path, model = table
    result = oneway("peer", "task", path, "--label", "y", "--exclude", "site")
    assert result.code == 0, result.err
    assert says_what_became_of_columns(result.err)
    task = Task.parse(result.out)
    assert task.model == model
    assert task.encoder.names == ("age", "dose", "smoker", "visit")
    assert task.rows == ROWS
    assert task.dim % (2 + 4 + 1 + 6 + 1) == 0  # age has missing values, and a flag for them
    assert "without noise" in result.out
    assert "values of categories" in result.err


def test_a_table_is_dealt_with_its_own_cells_and_the_task_for_its_label(oneway, table, tmp_path):
    path, model = table
    out = tmp_path / "dealt"
    result = oneway("data", "deal", path, "--label", "y", "--owner", "site", "--out", out)
    assert result.code == 0, result.err
    assert says_what_became_of_columns(result.err)
    assert "Careful" in result.err
    assert (out / "task.toml").read_text().startswith("# Centers, scales")
    task = Task.read(out / "task.toml")
    assert task.model == model
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["site"] == "north"]
    with (out / "north.csv").open() as file:
        dealt = list(csv.DictReader(file))
    assert len(dealt) == len(rows)
    for row, again in zip(rows, dealt, strict=True):
        assert [again[name] for name in ("dose", "smoker", "visit")] == [
            row[name] for name in ("dose", "smoker", "visit")
        ]
        assert (again["age"] == "") == (row["age"] == "")
        np.testing.assert_array_equal(task.encoder.vector(again), task.encoder.vector(row))


def test_flags_say_what_columns_are(oneway, tmp_path):
    path = write_table(tmp_path / "mine.csv", "two", grade=np.arange(ROWS) % 3)
    flags = ("--features", "grade,dose", "--features", "smoker", "--category", "grade=0,1,2,3")
    result = oneway("peer", "task", path, "--label", "y", *flags)
    features = tomllib.loads(result.out)["features"]
    assert list(features) == ["grade", "dose", "smoker"]
    assert features["grade"] == {"values": ["0", "1", "2", "3"]}
    assert features["dose"] == {"values": ["high", "low", "mid"]}
    for command in ("simulate", "data deal"):
        rest = ("--nodes", 4, "--json") if command == "simulate" else ()
        given = ("--data", path) if command == "simulate" else (path, "--owner", "site")
        more = () if command == "simulate" else ("--out", tmp_path / "dealt")
        result = oneway(*command.split(), *given, "--label", "y", *flags, *rest, *more)
        assert result.code == 0, result.err
        assert "2 categories, 1 boolean" in result.err
    task = Task.read(tmp_path / "dealt" / "task.toml")
    assert task.encoder.names == ("grade", "dose", "smoker")
    wrong = oneway("simulate", "--data", path, "--label", "y", "--exclude", "doze")
    assert wrong.code == 2
    assert "did you mean 'dose'" in wrong.err


def test_sites_merge_their_tasks_without_their_data(oneway, tmp_path):
    for name in ("a", "b"):
        path = write_table(tmp_path / f"{name}.csv", "two", dose=["low", name] * (ROWS // 2))
        flags = ("--label", "y", "--exclude", "site", "--out", tmp_path / f"{name}.toml")
        assert oneway("peer", "task", path, *flags).code == 0
        path.unlink()
    both = (tmp_path / "a.toml", tmp_path / "b.toml")
    result = oneway("peer", "task", "--merge", *both)
    assert result.code == 0, result.err
    task = Task.parse(result.out)
    assert task.features[1].values == ("a", "b", "low")
    assert task.rows == 2 * ROWS
    assert "480 rows of 2 sites" in " ".join(result.err.split())
    refused = oneway("peer", "task", "--merge", *both, "--label", "y")
    assert (refused.code, "label" in refused.err) == (2, True)
    alone = oneway("peer", "task", *both)
    assert (alone.code, "--merge" in alone.err) == (2, True)
