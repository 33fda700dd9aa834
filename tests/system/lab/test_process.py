"""One peer's process: what is started here ends here, whoever dies first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from oneway.errors import OnewayError
from oneway.lab.lab import Lab
from oneway.lab.peer_folders import make_peers
from oneway.lab.peer_process import PeerProcess, niceness
from oneway.lab.ports import Ports

PATIENCE = 300.0
WATCHED = (
    "import time; from oneway.web.server_process import end_with_parent\n"
    f"end_with_parent({os.getpid()})\n"
)
SLEEPS = [sys.executable, "-c", WATCHED + "print('awake', flush=True); time.sleep(600)"]
FAILS = [sys.executable, "-c", "import sys; print('Error: no disk', file=sys.stderr); sys.exit(2)"]
STUBBORN = [
    sys.executable,
    "-c",
    WATCHED + "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('awake', flush=True); time.sleep(600)",
]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def peer(tmp_path, problem):
    with Ports() as ports:
        yield make_peers(tmp_path / "lab", problem, ports.reserve)[0]


@pytest.fixture
def new_process(peer):
    """Makes processes of the peer that end with the test."""
    with ExitStack() as ends:

        def make(run: list[str], rate: float = 0.0) -> PeerProcess:
            process = PeerProcess(peer.home, rate, run, 0)
            ends.callback(process.kill)
            return process

        yield make


def test_a_killed_process_is_gone_at_once_and_can_be_started_again(new_process):
    process = new_process(SLEEPS)
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


def test_a_process_that_ends_by_itself_is_a_failure_with_its_last_words(new_process):
    process = new_process(FAILS)
    process.start()
    assert process.wait(PATIENCE)
    assert process.failure == "peer0 ended by itself with code 2: Error: no disk"


def test_peers_that_do_not_stop_are_killed(tmp_path, problem, monkeypatch):
    monkeypatch.setattr("oneway.lab.lab.peer_command", lambda: STUBBORN)
    monkeypatch.setattr("oneway.lab.lab.STOP_SECONDS", 0.1)
    with Lab(tmp_path / "lab", problem) as lab:
        for peer in range(5):
            log = lab.peers[peer].log_path
            until(lambda log=log: log.exists() and "awake" in log.read_text())
    assert lab.running() == []
    assert any("did not stop and was killed" in event for event in lab.events)


def lives(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:1]
    except OSError:
        return False


STARTS_A_PEER = """
import sys, time
from pathlib import Path
from oneway.lab.peer_process import PeerProcess, peer_command
from oneway.peer.home.home import Home
process = PeerProcess(Home(Path(sys.argv[1])), 1.0, peer_command(), 3)
process.start()
print(process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_peers_are_nice_and_end_when_the_lab_that_started_them_is_killed(peer):
    command = [sys.executable, "-c", STARTS_A_PEER, str(peer.home.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as lab:
        pid = int(lab.stdout.readline())
        try:
            until(peer.home.status_path.exists)
            assert lives(pid)
            own = os.getpriority(os.PRIO_PROCESS, 0)
            assert os.getpriority(os.PRIO_PROCESS, pid) == min(19, own + 3)
            lab.kill()
            lab.wait()
            until(lambda: not lives(pid))
        finally:
            lab.kill()
            if lives(pid):
                os.kill(pid, signal.SIGKILL)


def test_a_peer_ends_soon_after_a_lab_that_was_gone_before_it_began(peer):
    nobody = subprocess.Popen([sys.executable, "-c", ""])
    nobody.wait()
    where = (str(peer.home.folder), str(peer.samples_path), "1")
    command = [sys.executable, "-m", "oneway.lab.child_peer", str(nobody.pid), *where]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        try:
            child.wait(PATIENCE)
        finally:
            child.kill()


@pytest.mark.parametrize("peers", [1, 2, 8, 32, 69])
def test_peers_weigh_together_about_as_much_as_one_process(peers):
    # Linux's scheduler gives a process that is nicer by one step a weight 1.25 times smaller.
    weight = peers * 1.25 ** -niceness(peers)
    assert 0.8 < weight <= 1.0 + 1e-12
