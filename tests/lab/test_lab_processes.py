"""One peer's process: what is started here ends here, whoever dies first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from oneway.errors import OnewayError
from oneway.lab.lab import Lab
from oneway.lab.process import PeerProcess, niceness
from oneway.lab.setup import make_members

PATIENCE = 60.0
SLEEPS = [sys.executable, "-c", "import time; print('awake', flush=True); time.sleep(600)"]
FAILS = [sys.executable, "-c", "import sys; print('Error: no disk', file=sys.stderr); sys.exit(2)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('awake', flush=True)"
    "; time.sleep(600)",
]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def member(tmp_path, problem):
    ports = count(30_000)
    return make_members(tmp_path / "lab", problem, lambda: f"127.0.0.1:{next(ports)}")[0]


def test_a_killed_process_is_gone_at_once_and_can_be_started_again(member):
    process = PeerProcess(member, 0.0, SLEEPS)
    process.start()
    first = process.pid
    with pytest.raises(OnewayError, match="peer0 runs already"):
        process.start()
    process.kill()
    assert (process.pid, process.is_running, process.was_killed) == (None, False, True)
    assert process.failure == ""
    process.start()
    assert process.pid not in (None, first)
    assert (process.starts, process.was_killed) == (2, False)
    process.kill()


def test_a_process_that_is_asked_to_stop_was_not_killed(member):
    process = PeerProcess(member, 0.0, SLEEPS)
    process.start()
    until(lambda: "awake" in process.log_path.read_text())
    process.ask_to_stop()
    assert process.wait(PATIENCE)
    assert not process.was_killed
    assert process.failure == ""


def test_a_process_that_ends_by_itself_is_a_failure_with_its_last_words(member):
    process = PeerProcess(member, 0.0, FAILS)
    process.start()
    assert process.wait(PATIENCE)
    assert process.failure == "peer0 ended by itself with code 2: Error: no disk"


def test_the_lab_says_which_peer_ended_by_itself(tmp_path, problem):
    def all_ended() -> bool:
        return not lab.running()

    with Lab(tmp_path / "lab", problem, run=FAILS) as lab:
        until(all_ended)
        with pytest.raises(OnewayError, match=r"peer0 ended by itself with code 2: Error: no disk"):
            lab.statuses()


def test_peers_that_do_not_stop_are_killed(tmp_path, problem):
    times = count(step=20)
    with Lab(tmp_path / "lab", problem, run=STUBBORN, clock=lambda: float(next(times))) as lab:
        for peer in range(5):
            log = lab.members[peer].home.folder / "peer.log"
            until(lambda log=log: log.exists() and "awake" in log.read_text())
    assert lab.running() == []
    assert any("did not stop and was killed" in event for event in lab.events)


def test_a_peer_is_run_as_on_the_command_line_with_its_folder_data_and_rate(member):
    show = [sys.executable, "-c", "import sys; print(sys.argv[1:])"]
    for rate, ending in ((0.0, "samples.csv']"), (2.5, "'--rate', '2.5']")):
        process = PeerProcess(member, rate, show)
        process.start()
        process.wait(PATIENCE)
        said = process.log_path.read_text().splitlines()[-1]
        assert said.startswith(f"['--home', '{member.home.folder}', '--data', ")
        assert said.endswith(ending)


def lives(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:1]
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_peers_end_when_the_lab_that_started_them_is_killed(member):
    lab = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys, os, time\n"
            "from oneway.lab.process import command\n"
            f"peer = subprocess.Popen([*command(8), '--home', {str(member.home.folder)!r}])\n"
            "print(peer.pid, flush=True)\n"
            "time.sleep(600)\n",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert lab.stdout is not None
    peer = int(lab.stdout.readline())
    try:
        until(lambda: member.home.status_path.exists())
        assert lives(peer)
        assert os.getpriority(os.PRIO_PROCESS, peer) == niceness(8)
        lab.send_signal(signal.SIGKILL)
        lab.wait()
        until(lambda: not lives(peer))
    finally:
        lab.kill()
        lab.wait()
        lab.stdout.close()
        if lives(peer):
            os.kill(peer, signal.SIGKILL)


@pytest.mark.parametrize("peers", [1, 2, 8, 32, 69])
def test_peers_weigh_together_about_as_much_as_one_process(peers):
    # Linux's scheduler gives a process that is nicer by one step a weight 1.25 times smaller.
    weight = peers * 1.25 ** -niceness(peers)
    assert 0.8 < weight <= 1.0 + 1e-12


def test_nobody_is_nicer_than_linux_knows():
    assert niceness(128) == niceness(5_000) == 19
