from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from oneway import store
from oneway.errors import StoreError
from oneway.store import catalogue
from oneway.store.catalogue import find_runs, look
from oneway.store.entry import read_panel
from oneway.testing.records import make_record

RECORD = make_record(
    config={
        "learning_rate": 0.1,
        "model": {"model": "RidgeRegression"},
        "stream": {"table": {"kind": "file", "path": "/data/room.csv"}},
        "graph": {"graph": "ring", "num_nodes": 2},
        "num_nodes": 2,
        "num_rounds": 2,
    },
)

LAB = {
    "complete": True,
    "seconds": 3.0,
    "sentences": ["mass: exact", "average loss 0.5"],
    "average_loss": {"together": 0.5, "simulated": 0.4, "alone": 0.6},
    "peers": [{"name": "peer0"}, {"name": "peer1"}],
    "config": {"task": {"model": "logistic"}, "graph": {"graph": "ring"}},
}


def named(folder: Path) -> dict[str, store.entry.Entry]:
    return {entry.name: entry for entry in find_runs(folder)}


def lab_in(folder: Path, result: object = LAB) -> Path:
    folder.mkdir(parents=True)
    (folder / "task.toml").touch()
    (folder / "result.json").write_text(result if isinstance(result, str) else json.dumps(result))
    return folder


def test_a_run_is_described_from_its_summary_alone(tmp_path):
    store.save(RECORD, tmp_path / "mine" / "first")
    (entry,) = find_runs(tmp_path)
    assert entry.name == "mine/first"
    assert (entry.kind, entry.is_run, entry.problem, entry.complete) == (
        "simulation", True, "", True,
    )  # fmt: skip
    assert (entry.algorithm, entry.learning_rate, entry.data) == ("ops", "0.1", "room.csv")
    assert (entry.model, entry.graph) == ("ridge regression", "ring")
    assert (entry.num_nodes, entry.num_rounds, entry.seconds) == (2, 2, 0.5)
    assert (entry.rounds_done, entry.average_loss) == (None, None)


def test_the_folder_itself_may_be_a_run(tmp_path):
    store.save(RECORD, tmp_path / "only")
    assert [entry.name for entry in find_runs(tmp_path / "only")] == ["only"]


def test_a_damaged_run_is_listed_with_the_reason_and_others_are_there(tmp_path):
    for name in ("good", "torn", "bare", "old", "list", "deep"):
        store.save(RECORD, tmp_path / name)
    (tmp_path / "torn" / "run.json").write_text('{"format": 1, "algo')
    (tmp_path / "bare" / "arrays.npz").unlink()
    (tmp_path / "old" / "run.json").write_text('{"format": 99}')
    (tmp_path / "list" / "run.json").write_text("[]")
    (tmp_path / "deep" / "run.json").write_text("[" * 100_000)
    found = named(tmp_path)
    assert found["good"].problem == ""
    assert found["torn"].problem
    assert "arrays.npz is missing" in found["bare"].problem
    assert "format 99" in found["old"].problem
    assert "run.json" in found["list"].problem
    assert found["deep"].problem


def test_a_config_of_any_shape_is_no_reason_to_fail(tmp_path):
    odd = {"stream": 7, "graph": ["x"], "model": None, "num_nodes": "many", "learning_rate": {}}
    store.save(replace(RECORD, config=odd), tmp_path / "odd")
    (entry,) = find_runs(tmp_path)
    assert (entry.problem, entry.data, entry.graph, entry.num_nodes) == ("", "", "", None)


def test_links_hidden_folders_and_what_is_no_run_are_not_looked_at(tmp_path):
    store.save(RECORD, tmp_path / "elsewhere" / "run")
    here = tmp_path / "here"
    store.save(RECORD, here / ".hidden" / "run")
    (here / "link").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (here / "other").mkdir()
    (here / "other" / "result.json").write_text("{}")
    linked = here / "linked"
    linked.mkdir()
    (linked / "run.json").symlink_to(tmp_path / "elsewhere" / "run" / "run.json")
    assert find_runs(here) == []


def test_a_lab_is_one_entry_with_sentences_and_its_runs_belong_to_it(tmp_path):
    lab = lab_in(tmp_path / "lab")
    peers = replace(RECORD, config={**RECORD.config, "kind": "lab"})
    store.save(peers, lab / "runs" / "peers")
    store.save(RECORD, lab / "runs" / "ops")
    store.save(RECORD, lab / "peer0" / "not-looked-at")
    found = named(tmp_path)
    assert list(found) == ["lab", "lab/runs/ops", "lab/runs/peers"]
    assert (found["lab"].kind, found["lab"].is_run, found["lab"].num_nodes) == ("lab", False, 2)
    assert found["lab"].average_loss == 0.5
    assert found["lab"].sentences == ("mass: exact", "average loss 0.5")
    members = [found["lab/runs/ops"], found["lab/runs/peers"]]
    assert [(run.kind, run.belongs_to) for run in members] == [
        ("simulation", "lab"),
        ("lab", "lab"),
    ]
    assert look(tmp_path).members_of(found["lab"]) == members


def test_a_damaged_lab_is_listed_with_the_reason(tmp_path):
    lab_in(tmp_path / "torn", result='{"complete": tr')
    lab_in(tmp_path / "odd", result={"peers": 3, "sentences": 4, "average_loss": "x", "config": 1})
    found = named(tmp_path)
    assert "result.json" in found["torn"].problem
    assert found["odd"].problem == ""


def test_a_reproduction_has_a_report_and_panels(tmp_path):
    folder = tmp_path / "again"
    (folder / "cells").mkdir(parents=True)
    (folder / "cells" / f"{'a1' * 12}.npz").touch()
    (unfinished,) = find_runs(tmp_path)
    assert (unfinished.kind, unfinished.complete, unfinished.report) == (
        "reproduction", False, None,
    )  # fmt: skip
    assert "not finished" in unfinished.sentences[0]
    (folder / "panels").mkdir()
    lines = ["curve,iteration,mean,standard_deviation,seeds", "ops,1,0.7,0.1,2", "ops,2,inf,0,2"]
    (folder / "panels" / "local.csv").write_text("\n".join(lines))
    (folder / "report.html").write_text("<html>")
    (entry,) = find_runs(tmp_path)
    assert (entry.complete, entry.report) == (True, folder / "report.html")
    assert entry.panels == ("local",)
    (curve,) = read_panel(entry, "local")
    assert (curve.name, curve.rounds, curve.means[0], curve.num_seeds) == ("ops", [1, 2], 0.7, 2)
    with pytest.raises(StoreError, match=r"secret.* local"):
        read_panel(entry, "../../secret")
    (folder / "panels" / "local.csv").write_text("curve,iteration\nops,x\n")
    with pytest.raises(StoreError, match=r"local\.csv"):
        read_panel(entry, "local")


def test_a_demo_has_a_report_and_its_runs_belong_to_it(tmp_path):
    store.save(RECORD, tmp_path / "demo" / "runs" / "ops")
    for name in ("report.html", "loss.png"):
        (tmp_path / "demo" / name).touch()
    found = named(tmp_path)
    assert (found["demo"].kind, found["demo"].is_run) == ("demo", False)
    assert found["demo/runs/ops"].belongs_to == "demo"


def test_what_has_not_changed_is_not_read_again(tmp_path):
    for name in ("same", "changed", "gone"):
        store.save(RECORD, tmp_path / name)
    before = look(tmp_path)
    store.save(replace(RECORD, algorithm="local"), tmp_path / "changed")
    shutil.rmtree(tmp_path / "gone")
    after = look(tmp_path, before)
    assert [entry.name for entry in after.entries] == ["changed", "same"]
    assert after["changed"].algorithm == "local"
    assert after["same"] is before["same"]


def test_a_name_is_looked_up_and_never_taken_for_a_path(tmp_path):
    store.save(RECORD, tmp_path / "inside" / "run")
    store.save(RECORD, tmp_path / "outside")
    found = look(tmp_path / "inside")
    assert found["run"].is_run
    for name in ("../outside", str(tmp_path / "outside"), "run/../run", ""):
        with pytest.raises(StoreError, match=re.escape(repr(name))):
            found[name]


def test_names_that_are_no_utf8_can_be_told(tmp_path):
    store.save(RECORD, tmp_path / os.fsdecode(b"b\xffd") / "run")
    (entry,) = find_runs(tmp_path)
    assert entry.name.encode().decode() == "b\N{REPLACEMENT CHARACTER}d/run"
    assert store.load(entry.path).algorithm == "ops"


def test_the_search_ends_and_says_so(tmp_path, monkeypatch):
    for number in range(4):
        store.save(RECORD, tmp_path / f"run{number}")
    assert not look(tmp_path).cut_short
    monkeypatch.setattr(catalogue, "MOST_ENTRIES", 2)
    found = look(tmp_path)
    assert (len(found.entries), found.cut_short) == (2, True)
    deep = tmp_path.joinpath("deep", *"abcdefghij")
    store.save(RECORD, deep)
    monkeypatch.setattr(catalogue, "MOST_ENTRIES", 100)
    assert (len(look(tmp_path).entries), look(tmp_path).cut_short) == (4, True)


def test_a_folder_that_is_none_gets_a_sentence(tmp_path):
    with pytest.raises(StoreError, match="nowhere"):
        find_runs(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="file"):
        find_runs(tmp_path / "file")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("sample_counts", np.ones(3), r"sample_counts .*\(3,\)"),
        ("masses", np.ones((2, 2)), r"masses .*\(2, 2\)"),
        ("numerators", np.ones((3, 1)), r"numerators .*\(3, 1\)"),
        ("disagreement", np.array(["a", "b"]), "disagreement"),
        ("correct_counts", np.ones(5), r"correct_counts .*\(5,\)"),
    ],
)
def test_arrays_that_do_not_fit_together_are_damage(tmp_path, name, value, said):
    store.save(replace(RECORD, **{name: value}), tmp_path / "run")
    with pytest.raises(StoreError, match=said):
        store.load(tmp_path / "run")
