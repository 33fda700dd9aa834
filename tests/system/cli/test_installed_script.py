"""The installed `oneway` script as real processes."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import oneway as ow

SCRIPT = Path(sys.executable).with_name("oneway")
LIMIT_SECONDS = 240.0
LONG_RUN = (
    "simulate", "--data=synthetic", "--resample=20000000", "--delta=1e-7", "--engine=reference",
    "--json",
)  # fmt: skip
PLAIN = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the script is not installed")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
        env=PLAIN,
    )


def test_it_knows_its_version():
    done = run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"oneway {ow.__version__}\n", "")


def test_bad_input_is_one_sentence_and_exit_code_2():
    done = run("graph", "nowhere.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: ")
    assert "nowhere.csv" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_reader_that_goes_away_causes_no_traceback(spawn):
    process = spawn(
        [SCRIPT, "data", "list", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=LIMIT_SECONDS)
    assert err == b""


def test_ctrl_c_in_a_terminal_ends_a_long_run_with_what_it_has(spawn, read_until):
    """The progress bar shows that the run has begun: only then is Ctrl-C sent, once."""
    terminal, its_end = pty.openpty()
    try:
        process = spawn([SCRIPT, *LONG_RUN], stdout=subprocess.PIPE, stderr=its_end)
        os.close(its_end)
        seen = read_until(terminal, b"relay, rounds")
        process.send_signal(signal.SIGINT)
        seen += read_until(terminal, b"Interrupted")
        out, _ = process.communicate(timeout=LIMIT_SECONDS)
    finally:
        os.close(terminal)
    assert process.returncode == 130
    answer = json.loads(out)
    assert answer["complete"] is False
    assert 0 < answer["average_loss"] < 1
    assert b"Traceback" not in seen
