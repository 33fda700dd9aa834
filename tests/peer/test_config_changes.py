"""Changes of peers.toml by several at once: none is lost, and peer.toml stays as it was written."""

from __future__ import annotations

import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from plain import PLAIN

from oneway.errors import ConfigError
from oneway.peer.home.config import PeerConfig
from oneway.peer.home.home import Home
from oneway.tables import Number
from oneway.task.task import Task

COUNT = 20

PROGRAM = """\
import sys
from pathlib import Path
from oneway.peer.trust import admit_one
from oneway.peer.home.home import Home

home, first = Home(Path(sys.argv[1])), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.read()
for number in range(first, first + int(sys.argv[3])):
    admit_one(home, bytes([number]) * 32)
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    task = tmp_path / "task.toml"
    task.write_text(Task("ridge", "price", (Number("size"),), **PLAIN).to_toml())
    return Home.create(tmp_path / "alice", "alice", task, "127.0.0.1:7990")


def admit(home: Home, first: int) -> None:
    for number in range(first, first + COUNT):
        key = bytes([number]) * 32
        home.change(lambda config, key=key: config.with_sender(key, own_key=bytes(32)))


def test_what_two_threads_change_at_once_is_all_kept(home: Home):
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda first: admit(home, first), (1, 1 + COUNT)))
    assert len(home.config().senders) == 2 * COUNT


def test_what_two_processes_change_at_once_is_all_kept(home: Home):
    with ExitStack() as stack:
        # At the end of the block their input is closed, which ends them whatever has happened.
        others = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", PROGRAM, str(home.folder), str(first), str(COUNT)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
            for first in (1, 1 + COUNT)
        ]
        for other in others:
            assert other.stdout is not None
            assert other.stdout.readline() == b"ready\n"
        for other in others:
            assert other.stdin is not None
            other.stdin.close()
        for other in others:
            assert other.wait(timeout=240) == 0
    assert len(home.config().senders) == 2 * COUNT


def test_a_change_that_fails_changes_nothing_and_the_next_one_goes_on(home: Home):
    def refuse(_: PeerConfig) -> PeerConfig:
        raise ConfigError("not so")

    before = home.peers_path.read_bytes()
    with pytest.raises(ConfigError, match="not so"):
        home.change(refuse)
    assert home.peers_path.read_bytes() == before
    home.change(lambda config: replace(config, paused=True))
    assert home.config().paused


def test_a_peer_that_runs_can_be_changed_and_its_own_lock_is_another(home: Home):
    with home.lock():
        home.change(lambda config: replace(config, paused=True))
    assert home.config().paused
    assert stat.S_IMODE(home.peers_lock_path.stat().st_mode) == 0o600
    assert Home.open(home.folder).running_process() is None


def test_changes_leave_what_the_owner_wrote_alone(home: Home):
    written = f"# At the fair.\n{home.config_path.read_text()}\n# the end"
    home.config_path.write_text(written)
    admit(home, 1)
    home.change(lambda config: replace(config, paused=True, anyone=True))
    assert home.config_path.read_text() == written
    with pytest.raises(ConfigError, match=r"peer\.toml .* edit that file"):
        home.change(lambda config: replace(config, keep=0.25))
    home.peers_path.unlink()
    with pytest.raises(ConfigError, match=r"peers\.toml; put it back"):
        home.config()
