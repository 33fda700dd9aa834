"""Processes of tests end with their test, also when the tests themselves are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

SECONDS = 60.0
SLEEP = "import time; time.sleep(3600)"
TESTS = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("conftest", sys.argv[1])
conftest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(conftest)
started = conftest.Background([sys.executable, "-c", sys.argv[2]])
print(started.process.pid, flush=True)
sys.stdin.read()
"""


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + SECONDS
    while is_running(pid):
        assert time.monotonic() < deadline, f"process {pid} was left running"
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
def test_a_background_process_ends_when_the_tests_are_killed():
    conftest = Path(__file__).with_name("conftest.py")
    with subprocess.Popen(
        [sys.executable, "-c", TESTS, str(conftest), SLEEP],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as tests:
        assert tests.stdout is not None
        pid = int(tests.stdout.readline())
        assert is_running(pid)
        os.kill(tests.pid, signal.SIGKILL)
    wait_until_gone(pid)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
def test_a_background_process_ends_when_its_test_fails(background):
    with suppress(ZeroDivisionError), background([sys.executable, "-c", SLEEP]) as process:
        assert is_running(process.pid)
        raise ZeroDivisionError
    assert not is_running(process.pid)
