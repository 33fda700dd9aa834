from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import oneway as ow
from oneway.errors import StoreError
from oneway.records import RunRecord
from oneway.report.demo import write
from oneway.report.page import Comparison


@pytest.fixture
def comparison() -> Comparison:
    record = RunRecord(
        algorithm="ops",
        loss_sums=np.linspace(2, 1, 30),
        sample_counts=np.full(30, 2),
        correct_counts=np.ones(30, np.int64),
        disagreement=np.full(30, 0.1),
        numerators=np.zeros((2, 3)),
        masses=np.ones(2),
        complete=True,
        seconds=0.5,
    )
    return Comparison(
        title="first",
        story=[],
        records={"ops": record},
        rates={"ops": 0.1},
        tried={"ops": {0.1: 0.75}},
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
    with pytest.raises(StoreError, match=r"cannot write .*file"):
        write(tmp_path / "file" / "demo", comparison)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_failed_write_leaves_an_older_demo_and_strangers_alone(tmp_path, comparison):
    """Something that is not a run stands where the run would go."""
    write(tmp_path, comparison)
    before = everything_in(tmp_path)
    (tmp_path / "runs" / "col").mkdir()
    both = {"col": comparison.records["ops"], "ops": comparison.records["ops"]}
    changed = dataclasses.replace(
        comparison,
        title="second",
        records=both,
        rates=dict.fromkeys(both, 0.1),
        tried={name: {0.1: 0.75} for name in both},
    )
    with pytest.raises(StoreError, match=r"runs/col exists and is not a stored run"):
        write(tmp_path, changed)
    assert everything_in(tmp_path) == before


def test_a_report_that_cannot_be_replaced_leaves_no_draft(tmp_path, comparison):
    (tmp_path / "report.html").mkdir()
    with pytest.raises(StoreError, match=r"cannot write .*report\.html: Is a directory"):
        write(tmp_path, comparison)
    assert not list(tmp_path.glob(".*"))
