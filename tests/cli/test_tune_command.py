"""`oneway tune`: what is best, as a table, as JSON, as a chart and as a task."""

from __future__ import annotations

import sys

import pytest

from oneway.errors import ConfigError, MissingExtraError, StoreError
from oneway.task.task import Task

FEW = ("tune", "--data", "synthetic", "--nodes", 4, "--rounds", 30, "--privacy", "none")


def test_the_best_is_a_task_that_other_commands_take(oneway, here):
    result = oneway(
        *FEW, "--rates", "auto,0.01,0.3", "--methods", "relay,local", "--seeds", 2,
        "--out", "best.toml", "--chart", "loss.png", "--json",
    )  # fmt: skip
    assert result.code == 0, result.err
    answer = result.json
    assert len(answer["trials"]) == 3 * 2 * 2
    best = answer["best"]
    means = {}
    for trial in answer["trials"]:
        key = (trial["method"], trial["learning_rate"])
        means[key] = means.get(key, 0.0) + trial["average_loss"] / 2
    assert (best["method"], best["learning_rate"]) == min(means, key=means.get)
    assert best["average_loss"] == pytest.approx(min(means.values()))
    assert (here / "loss.png").read_bytes().startswith(b"\x89PNG")
    task = Task.read(here / "best.toml")
    assert (task.method, task.learning_rate) == (best["method"], best["learning_rate"])
    assert "start" in task.options["logistic"]
    again = oneway(
        "simulate", "--data", "synthetic", "--task", "best.toml", "--nodes", 4, "--rounds", 30,
        "--json",
    )  # fmt: skip
    [first] = [
        trial["average_loss"]
        for trial in answer["trials"]
        if (trial["method"], trial["learning_rate"], trial["seed"])
        == (best["method"], best["learning_rate"], 0)
    ]
    assert again.json["average_loss"] == pytest.approx(first, rel=1e-6)
    init = oneway("peer", "init", "carol", "--task", "best.toml", "--home", "carol")
    assert init.code == 0, init.err


def test_what_a_folder_remembers_is_not_run_again(oneway, here):
    command = (*FEW, "--rates", "0.1,0.3", "--seeds", 2, "--resume", "runs", "--json")
    first, second = oneway(*command), oneway(*command)
    assert first.code == second.code == 0, first.err
    # Also the seconds that runs took are those of the first time.
    assert first.json == second.json
    assert len(list((here / "runs").glob("*.json"))) == 4 + 1  # and what made the folder
    (here / "file").write_text("")
    oneway(*FEW, "--resume", "file").check_refused(StoreError, "--resume")
    oneway(*FEW, "--resume", "").check_refused(ConfigError, "--resume is ''")


def test_a_cluster_that_cannot_be_used_gets_one_sentence(oneway, monkeypatch):
    oneway(*FEW, "--on", "rya").check_refused(ConfigError, "'rya'")
    monkeypatch.setitem(sys.modules, "ray", None)
    oneway(*FEW, "--on", "ray").check_refused(MissingExtraError, ".[ray]")
