from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import oneway as ow
from oneway.errors import StoreError
from oneway.report.comparison import Comparison, write
from oneway.simulator import Run
from oneway.simulator.comparison import Tuned
from oneway.testing.records import make_record


@pytest.fixture
def comparison() -> Comparison:
    record = make_record(loss_sums=np.linspace(2, 1, 30), correct_counts=np.ones(30, np.int64))
    return Comparison(
        title="first",
        story=[],
        results={"ops": Tuned(Run(record), 0.1, {0.1: 0.75})},
        facts={},
        command="oneway demo",
    )


def everything_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_report_chart_and_runs_are_written_and_replaced(tmp_path, comparison):
    folder = tmp_path / "new" / "demo"
    assert write(folder, comparison) == folder / "report.html"
    assert set(everything_in(folder)) == {
        "report.html",
        "loss.png",
        "runs/ops/run.json",
        "runs/ops/arrays.npz",
    }
    write(folder, dataclasses.replace(comparison, title="second"))
    assert "<h1>second</h1>" in (folder / "report.html").read_text(encoding="utf-8")
    assert ow.Run.load(folder / "runs" / "ops").average_loss == pytest.approx(0.75)


def test_a_folder_that_cannot_be_written_is_named(tmp_path, comparison):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="file"):
        write(tmp_path / "file" / "demo", comparison)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_failed_write_leaves_an_older_demo_and_strangers_alone(tmp_path, comparison):
    """Something that is not a run stands where the run would go."""
    write(tmp_path, comparison)
    (tmp_path / "runs" / "col").mkdir()
    (tmp_path / "runs" / "col" / "notes.txt").write_text("mine")
    before = everything_in(tmp_path)
    both = dict.fromkeys(("col", "ops"), comparison.results["ops"])
    changed = dataclasses.replace(comparison, title="second", results=both)
    with pytest.raises(StoreError, match="runs/col"):
        write(tmp_path, changed)
    assert everything_in(tmp_path) == before


def test_a_report_that_cannot_be_replaced_leaves_no_draft(tmp_path, comparison):
    (tmp_path / "report.html").mkdir()
    with pytest.raises(StoreError, match=r"report\.html"):
        write(tmp_path, comparison)
    assert not list(tmp_path.glob(".*"))
