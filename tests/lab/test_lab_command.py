"""`oneway lab`: a table, a verdict, an exit code; and sentences for what makes no sense."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from oneway.cli.main import main

MADE = ("lab", "--data", "synthetic", "--nodes", 3)
PATIENCE = 300.0


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def call(*arguments: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.delenv("FORCE_COLOR", raising=False)
        patch.setattr(sys, "argv", ["oneway", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
    return int(left.value.code or 0), out.getvalue(), err.getvalue()


def test_it_prints_the_peers_the_audit_and_the_comparison_and_leaves_them_in_a_folder(here):
    code, out, err = call(*MADE, "--samples", 30, "--rate", 0, "--out", "made")
    assert code == 0, err
    assert "mass 3 x 2^40 = 3,298,534,883,328 units: exact" in out
    assert "numerator of 11 numbers: exact" in out
    assert re.search(
        r"average loss 0\.\d+; in the simulator, .* 0\.\d+ \([+-].*%\); each alone", out
    )
    result = json.loads((here / "made" / "result.json").read_text())
    assert [peer["samples"] for peer in result["peers"]] == [30, 30, 30]
    assert (here / "made" / "peer2" / "peer.toml").exists()
    code, _, err = call(*MADE, "--samples", 30, "--out", "made")
    assert code == 2
    assert "--out made exists" in err
    assert "--force" in err
    code, out, err = call(*MADE, "--samples", 20, "--rate", 0, "--out", "made", "--force", "--json")
    assert code == 0, err
    assert [peer["samples"] for peer in json.loads(out)["peers"]] == [20, 20, 20]


BAD_FLAGS = {
    "a share of messages above 1": (("--loss", 1.5), r"--loss is 1.5"),
    "a negative rate": (("--rate", -1), r"--rate is -1"),
    "no samples": (("--samples", 0), r"--samples is 0"),
    "no nodes": (("--nodes", 0), r"nodes is 0"),
    "a time that is none": (("--kill-every", "often"), r"'often'"),
    "an unknown graph": (("--graph", "rnig"), r"'rnig'.*'ring'"),
    "an unknown data set": (("--data", "ocupancy"), r"'ocupancy'.*'occupancy'"),
    "a label for made-up data": (("--label", "y"), r"'y'"),
    "a model without labels": (("--model", "softmax"), r"synthetic.*--model"),
    "a learning rate of 0": (("--learning-rate", 0), r"learning_rate is 0"),
    "an owner that is no column": (("--owner", "dest"), r"'dest'"),
}


@pytest.mark.parametrize("case", BAD_FLAGS)
def test_bad_flags_get_a_sentence_and_leave_nothing_behind(here, case):
    flags, sentence = BAD_FLAGS[case]
    code, out, err = call(*MADE, *flags, "--out", "made")
    assert (code, out) == (2, "")
    assert re.search(sentence, err), err
    assert "Traceback" not in err
    assert not (here / "made").exists()


def test_one_interrupt_ends_the_learning_and_the_books_still_balance(here):
    arguments = ["--samples", "100000", "--rate", "20", "--out", "made", "--json"]
    command = [sys.executable, "-m", "oneway.cli.child_process", str(os.getpid())]
    lab = subprocess.Popen(
        [*command, *map(str, MADE), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    try:
        deadline = time.monotonic() + PATIENCE
        stores = [here / "made" / f"peer{peer}" / "status.json" for peer in range(3)]
        while not all(_samples(path) > 0 for path in stores):
            assert lab.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        lab.send_signal(signal.SIGINT)
        out, err = lab.communicate(timeout=PATIENCE)
    finally:
        lab.kill()
        lab.communicate()
    assert lab.returncode == 130, err
    result = json.loads(out)
    assert result["audit"]["exact"] is True
    assert result["complete"] is False
    assert all(0 < peer["samples"] < 100_000 for peer in result["peers"])
    assert result["average_loss"]["together"] > 0


def _samples(path: Path) -> int:
    try:
        return int(json.loads(path.read_text())["samples"])
    except (OSError, ValueError):
        return 0
