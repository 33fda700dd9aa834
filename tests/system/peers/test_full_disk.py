"""A peer on a file system that is really full: what it says, and that it goes on by itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MOUNT = 'mount -t tmpfs -o size=8M tmpfs "$0" && cd "$0" && exec "$@"'
"""A small file system in a name space of its own, which ends with its process."""

LIFE = """
import time
from pathlib import Path
import oneway as ow
from oneway.peer.doctor import diagnose
from oneway.peer.machine import examine, last_status
from oneway.peer.store.store import read_snapshot


def until(holds, what):
    deadline = time.monotonic() + 240
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)

def fill():
    with open("filler", "ab", buffering=0) as file:
        while True:
            try:
                file.write(bytes(4096))
            except OSError:
                return

def problem_seen_after(seconds):
    now = time.time() + seconds
    status = last_status(peer.home, now)
    findings = diagnose(status, peer.home.config(), peer.task, examine(peer.home, now))
    found = [it.sentence for it in findings if "disk" in it.sentence or "kill" in it.sentence]
    return status, found

table = ow.streams.synthetic(num_samples=100, num_features=2, seed=0).table
with ow.Peer.create("alice", ow.Task.of(table)) as peer:
    label = peer.task.classes[0]
    row = dict.fromkeys(peer.task.encoder.names, 1.0)
    until(lambda: peer.home.status() is not None, "a first status")
    before = time.time()
    fill()

    def learn_until_full():
        peer.learn_one(row, label)
        fill()
        return bool(peer.node.disk_problem)

    until(learn_until_full, "a commit that fails")
    until(lambda: peer.disclosed_status().disk_problem, "a status that says so")
    told = peer.disclosed_status()
    assert "is full; free some room" in told.disk_problem, told.disk_problem
    assert before <= told.disk_problem_since <= time.time()
    assert not Path("alice/status.new").exists()
    assert not peer.home.status().disk_problem, "it could be written after all"
    status, found = problem_seen_after(60)
    assert "is full; free some room" in status.disk_problem, status.disk_problem
    assert len(found) == 1 and "since" in found[0] and "by itself" in found[0], found
    learned = peer.node.snapshot.journal.samples
    durable = read_snapshot(peer.home.store_path).journal.samples
    assert durable < learned

    Path("filler").unlink()
    until(lambda: not peer.disclosed_status().disk_problem, "room again")
    until(lambda: peer.home.status().samples >= learned, "a status with all samples")
    assert read_snapshot(peer.home.store_path).journal.samples >= learned
    peer.learn_one(row, label)
"""


def in_small_file_system(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", MOUNT, str(folder), *command],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_a_peer_says_that_its_disk_is_full_and_goes_on_when_there_is_room(tmp_path):
    if shutil.which("unshare") is None or in_small_file_system(tmp_path, "true").returncode:
        pytest.skip("a small file system needs Linux, unshare and user namespaces")
    done = in_small_file_system(tmp_path, sys.executable, "-c", LIFE)
    assert done.returncode == 0, done.stderr
    assert "is full; free some room" in done.stderr
    assert "can be made durable again" in done.stderr
