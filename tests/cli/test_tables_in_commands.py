"""Real tables through every command: classes, numbers, categories, times and gaps."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path

import numpy as np
import pytest

from oneway.task.task import Task

ROWS = 240


def write_table(path: Path, label: str, **changes: object) -> Path:
    """A file with columns of all kinds, an owner, and a label of some kind."""
    rng = np.random.default_rng(3)
    age, dose = rng.integers(20, 90, ROWS), rng.choice(["low", "mid", "high"], ROWS)
    score = 0.1 * (age - 55) + 2.0 * (dose == "high") + 0.3 * rng.normal(size=ROWS)
    labels = {
        "two": np.where(score > 0, "ill", "well"),
        "three": np.select([score < -1, score < 2], ["none", "mild"], "severe"),
        "number": np.round(100 + 10 * score, 3),
    }[label]
    columns = {
        "id": np.arange(1, ROWS + 1),
        "age": [str(a) if n % 11 else "" for n, a in enumerate(age)],
        "dose": dose,
        "smoker": rng.choice(["yes", "no"], ROWS),
        "visit": [f"2026-03-{1 + n % 28:02} {n % 24:02}:30" for n in range(ROWS)],
        "site": rng.choice(["north", "south", "west"], ROWS),
        "y": labels,
    } | changes
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


MODELS = {"two": "logistic", "three": "softmax", "number": "ridge"}


@pytest.fixture(params=list(MODELS))
def table(request, tmp_path) -> tuple[Path, str]:
    return write_table(tmp_path / "mine.csv", request.param), MODELS[request.param]


def says_what_became_of_columns(err: str) -> bool:
    lines = {line.split()[0]: line for line in err.splitlines() if line.split()}
    return (
        "category of 3" in lines["dose"]
        and "boolean" in lines["smoker"]
        and "time" in lines["visit"]
        and "22 (9%)" in lines["age"]
        and "left out" in lines["id"]
        and "identifier" in lines["id"]
    )


def test_a_task_is_derived_for_any_label(oneway, table):
    path, model = table
    result = oneway("peer", "task", path, "--label", "y", "--exclude", "site")
    assert result.code == 0, result.err
    assert says_what_became_of_columns(result.err)
    task = Task.parse(result.out)
    assert task.model == model
    assert task.encoder.names == ("age", "dose", "smoker", "visit")
    assert task.rows == ROWS
    assert task.dim % (1 + 4 + 1 + 6 + 1) == 0
    assert "without noise" in result.out
    assert "values of categories" in result.err


def test_a_simulation_chooses_the_model_by_the_label(oneway, table):
    path, model = table
    result = oneway("simulate", "--data", path, "--label", "y", "--owner", "site", "--json")
    assert result.code == 0, result.err
    assert says_what_became_of_columns(result.err)
    names = {"logistic": "LogisticRegression", "softmax": "SoftmaxRegression"}
    expected = names.get(model, "RidgeRegression")
    assert result.json["config"]["model"]["model"] == expected
    assert (result.json["accuracy"] is None) == (model == "ridge")


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
        assert "category of 4" in result.err
    task = Task.read(tmp_path / "dealt" / "task.toml")
    assert task.encoder.names == ("grade", "dose", "smoker")
    wrong = oneway("simulate", "--data", path, "--label", "y", "--exclude", "doze")
    assert wrong.code == 2
    assert "did you mean 'dose'" in wrong.err


def test_a_known_data_set_has_its_own_columns(oneway):
    result = oneway("simulate", "--data", "synthetic", "--exclude", "x")
    assert result.code == 2
    assert "exclude is for files" in result.err


def test_private_scales_need_the_values_of_categories_from_public_knowledge(oneway, tmp_path):
    path = write_table(tmp_path / "mine.csv", "two")
    flags = ("--label", "y", "--exclude", "site,id", "--private-scales", "--range", "age=0..120")
    result = oneway("peer", "task", path, *flags)
    assert result.code == 0, result.err
    assert "dose" not in tomllib.loads(result.out)["features"], "its values are those of patients"
    assert "category=dose=A,B" in " ".join(result.err.split())
    result = oneway("peer", "task", path, *flags, "--category", "dose=low,mid,high")
    features = tomllib.loads(result.out)["features"]
    assert features["dose"] == {"values": ["low", "mid", "high"]}
    assert "gaps" not in features["age"]
    refused = oneway("peer", "task", path, *flags, "--category", "dose")
    assert refused.code == 2
    assert "dose=A,B,C" in refused.err


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


@pytest.mark.parametrize("label", ["three", "number"])
def test_real_peers_learn_any_label_from_a_real_table(oneway, tmp_path, label):
    path = write_table(tmp_path / "mine.csv", label)
    flags = ("--owner", "site", "--nodes", 3, "--samples", 15, "--rate", 0, "--json")
    out = tmp_path / "lab"
    result = oneway("lab", "--data", path, "--label", "y", *flags, "--out", out)
    assert result.code == 0, result.err
    assert says_what_became_of_columns(result.err)
    assert Task.read(out / "task.toml").model == MODELS[label]
    given = ("dose=high", "smoker=yes", "visit=2026-03-01 07:30", "age=80")
    answer = oneway("peer", "predict", *given, "--home", out / "north")
    assert answer.code == 0, answer.err
    missing = oneway("peer", "predict", "dose=high", "--home", out / "north")
    assert missing.code == 2
    assert all(f"'{name}'" in missing.err for name in ("age", "smoker", "visit"))


def test_nobody_is_warned_of_the_statistics_of_public_data(oneway, tmp_path):
    given = ("flights", "--owner", "origin", "--samples", 20, "--out", tmp_path / "flights")
    result = oneway("data", "deal", *given)
    assert result.code == 0, result.err
    assert "Careful" not in result.err
