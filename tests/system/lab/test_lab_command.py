"""`oneway lab` with real peers: a table, a verdict, an exit code, and what it leaves behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import call

from oneway import metrics, store
from oneway.files.output_folder import MARKER

MADE = ("lab", "--data", "synthetic", "--nodes", 3)
PATIENCE = 300.0


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def test_a_lab_prints_its_verdict_and_leaves_runs_that_agree_with_it(here):
    # More samples than a curve has groups, so that some groups hold several.
    first = call(*MADE, "--samples", 1100, "--rate", 0, "--out", "made")
    assert first.code == 0, first.err
    assert "mass 3 x 2^40 = 3,298,534,883,328 units: exact" in first.out
    assert "numerator of 31 numbers: exact" in first.out
    losses = r"average loss: yours 0\.\d+, shared 0\.\d+, alone 0\.\d+, base rate 0\.\d+; in the"
    assert re.search(losses, first.out)
    result = json.loads((here / "made" / "result.json").read_text())
    assert [peer["samples"] for peer in result["peers"]] == [1100] * 3
    assert result["audit"]["wrong_numbers"] == {"numerator": 0, "parcel": 0, "count": 0}
    assert result["verdict"] in first.out
    assert all(peer["believes"] and peer["verdict"] for peer in result["peers"])
    check_runs(here / "made", result["average_loss"])
    assert call(*MADE, "--samples", 30, "--out", "made").code == 2
    (here / "made" / "peer1" / "notes.txt").write_text("mine")
    assert "notes.txt" in call(*MADE, "--samples", 30, "--out", "made", "--force").err
    (here / "made" / "peer1" / "notes.txt").unlink()
    again = call(*MADE, "--samples", 20, "--rate", 0, "--out", "made", "--force", "--json")
    assert again.code == 0, again.err
    assert [peer["samples"] for peer in again.json["peers"]] == [20, 20, 20]


def check_runs(folder: Path, said: dict[str, float]) -> None:
    """Stored runs hold what the result says: peers, the same simulated, mutual trust only."""
    assert json.loads((folder / MARKER).read_text())["made_by"] == "lab"
    runs = {path.name: store.load(path) for path in (folder / "runs").iterdir()}
    assert runs.keys() == {"peers", "relay", "dol-symm"}
    peers, simulated = runs["peers"], runs["relay"].personal
    assert peers.personal.average_loss == pytest.approx(said["yours"], abs=1e-9)
    assert metrics.average_loss(peers) == pytest.approx(said["shared"], abs=1e-9)
    assert simulated.average_loss == pytest.approx(said["simulated"], abs=1e-12)
    assert peers.complete
    assert peers.sample_counts.tolist() == [3] * 1100
    assert peers.masses.sum() == 3.0
    assert np.isfinite(peers.disagreement).all()
    # Learning alone is computed twice: by the peers themselves, and by the simulator.
    assert metrics.alone_loss(peers) == pytest.approx(said["alone"], rel=1e-9)
    # A peer's rows are float64, a table's features float32: with those the simulator's number is
    # the peers' one, too.
    assert simulated.alone_loss == pytest.approx(said["alone"], rel=1e-8)
    assert metrics.base_loss(peers) == pytest.approx(said["base_rate"], rel=1e-9)
    assert peers.measures.accuracy == pytest.approx(metrics.accuracy(peers), abs=1e-12)
    assert sum(map(sum, peers.measures.confusion)) == 3300
    assert peers.config["stream"] == runs["relay"].config["stream"]


def test_one_interrupt_ends_the_learning_and_the_books_still_balance(here, spawn):
    arguments = ["--samples", "100000", "--rate", "20", "--out", "made", "--json"]
    lab = spawn(
        [sys.executable, "-m", "oneway", *MADE, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    deadline = time.monotonic() + PATIENCE
    stores = [here / "made" / f"peer{peer}" / "status.json" for peer in range(3)]
    while not all(_samples(path) > 0 for path in stores):
        assert lab.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    lab.send_signal(signal.SIGINT)
    out, err = lab.communicate(timeout=PATIENCE)
    assert lab.returncode == 130, err
    result = json.loads(out)
    assert result["audit"]["exact"] is True
    assert result["complete"] is False
    assert all(0 < peer["samples"] < 100_000 for peer in result["peers"])
    assert result["average_loss"]["yours"] > 0


def _samples(path: Path) -> int:
    try:
        return int(json.loads(path.read_text())["samples"])
    except (OSError, ValueError):
        return 0
