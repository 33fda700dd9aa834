"""What is found below a folder, and how it is described."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_record

from oneway import store
from oneway.dashboard.runs.stored_runs import StoredRuns
from oneway.errors import StoreError
from oneway.store import Entry, find_runs

RECORD = make_record(
    config={
        "learning_rate": 0.1,
        "model": {"model": "RidgeRegression"},
        "stream": {"table": {"kind": "file", "path": "/data/room.csv"}},
        "graph": {"graph": "ring", "num_nodes": 2},
        "num_nodes": 2,
    },
)

LAB = {
    "complete": True,
    "seconds": 3.0,
    "sentences": ["mass: exact", "average loss 0.5"],
    "average_loss": {"yours": 0.5, "shared": 0.55, "alone": 0.6, "simulated": 0.4},
    "peers": [{"name": "peer0"}, {"name": "peer1"}],
    "config": {"task": {"model": "logistic", "method": "relay"}, "graph": {"graph": "ring"}},
}


def named(folder: Path) -> dict[str, Entry]:
    return {entry.name: entry for entry in find_runs(folder)}


def lab_in(folder: Path, result: str = json.dumps(LAB)) -> Path:
    folder.mkdir(parents=True)
    (folder / "task.toml").touch()
    (folder / "result.json").write_text(result)
    return folder


def test_a_run_is_described_from_its_summary_alone(tmp_path):
    folder = store.save(RECORD, tmp_path / "mine" / "first")
    (folder / "arrays.npz").write_bytes(b"not read")
    (entry,) = find_runs(tmp_path)
    assert entry.name == "mine/first"
    assert (entry.kind, entry.is_run, entry.problem, entry.complete) == (
        "simulation", True, "", True,
    )  # fmt: skip
    assert (entry.method, entry.learning_rate, entry.data) == ("ops", "0.1", "room.csv")
    assert (entry.model, entry.graph) == ("ridge regression", "ring")
    assert (entry.num_nodes, entry.rounds_done, entry.seconds) == (2, 2, 0.5)
    assert entry.average_loss == 0.75
    assert json.loads(json.dumps(entry.as_json()))["path"] == str(folder)


def test_damaged_entries_are_listed_with_the_reason_beside_good_ones(tmp_path):
    for name in ("good", "torn", "old", "list"):
        store.save(RECORD, tmp_path / name)
    (tmp_path / "torn" / "run.json").write_text('{"format": 1, "algo')
    (tmp_path / "old" / "run.json").write_text('{"format": 99}')
    (tmp_path / "list" / "run.json").write_text("[]")
    lab_in(tmp_path / "lab", result='{"complete": tr')
    found = named(tmp_path)
    assert found["good"].problem == ""
    assert "format 99" in found["old"].problem
    assert "result.json" in found["lab"].problem
    assert all(found[name].problem for name in ("torn", "list"))


def test_links_hidden_folders_and_other_files_are_not_listed(tmp_path):
    store.save(RECORD, tmp_path / "elsewhere" / "run")
    here = tmp_path / "here"
    store.save(RECORD, here / ".hidden" / "run")
    (here / "link").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (here / "other").mkdir()
    (here / "other" / "result.json").write_text("{}")
    assert find_runs(here) == []


def test_a_lab_is_one_entry_and_its_runs_belong_to_it(tmp_path):
    lab = lab_in(tmp_path / "lab")
    store.save(replace(RECORD, config={**RECORD.config, "kind": "lab"}), lab / "runs" / "peers")
    store.save(RECORD, lab / "runs" / "ops")
    store.save(RECORD, lab / "peer0" / "not-listed")
    found = named(tmp_path)
    assert list(found) == ["lab", "lab/runs/ops", "lab/runs/peers"]
    assert (found["lab"].kind, found["lab"].is_run, found["lab"].num_nodes) == ("lab", False, 2)
    assert (found["lab"].method, found["lab"].average_loss) == ("relay", 0.5)
    assert found["lab"].sentences == ("mass: exact", "average loss 0.5")
    members = StoredRuns(tmp_path).members_of(found["lab"])
    assert [(run.kind, run.belongs_to) for run in members] == [
        ("simulation", "lab"),
        ("lab", "lab"),
    ]


def test_a_demo_has_its_report_and_its_runs(tmp_path):
    store.save(RECORD, tmp_path / "demo" / "runs" / "ops")
    for name in ("report.html", "loss.png"):
        (tmp_path / "demo" / name).touch()
    found = named(tmp_path)
    assert found["demo"].report == tmp_path / "demo" / "report.html"
    assert found["demo"].data == "flights by tailnum"
    run = found["demo/runs/ops"]
    assert (run.kind, run.belongs_to) == ("demo", "demo")


def test_a_page_follows_what_happens_in_the_folder(tmp_path):
    folder = store.save(RECORD, tmp_path / "runs" / "first")
    runs = StoredRuns(tmp_path / "runs")
    first = runs.record("first")
    runs.refresh()
    assert runs.record("first") is first
    store.save(replace(RECORD, method="local"), folder)
    os.utime(folder / "run.json", ns=(1, 1))
    runs.refresh()
    assert (runs["first"].method, runs.record("first").method) == ("local", "local")
    folder.parent.rename(tmp_path / "gone")
    runs.refresh()
    assert (runs.entries, "runs" in runs.problem) == ({}, True)
    (tmp_path / "gone").rename(folder.parent)
    runs.refresh()
    assert (list(runs.entries), runs.problem) == (["first"], "")


def test_only_listed_names_can_be_opened(tmp_path):
    store.save(RECORD, tmp_path / "inside" / "run")
    store.save(RECORD, tmp_path / "outside")
    lab_in(tmp_path / "inside" / "lab")
    runs = StoredRuns(tmp_path / "inside")
    for name in ("../outside", "lab"):
        with pytest.raises(StoreError, match=name):
            runs.record(name)
