from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from oneway.errors import ConfigError, KeyFileError, TaskError
from oneway.peer.home.free_address import free_address
from oneway.peer.home.home import Home
from oneway.peer.identity.keys import load, save
from oneway.task.task import Task
from oneway.transport import keys
from oneway.transport.address import parse_address

TASK = """\
# ours
model = "ridge"
label = "price"
[features]
size = {}
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    path = tmp_path / "shared-task.toml"
    path.write_text(TASK)
    return path


def everything_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_new_peer_has_a_key_a_task_and_a_configuration(tmp_path, task):
    made = Home.create(tmp_path / "deep" / "alice", "alice", task, "127.0.0.1:7990")
    home = Home.open(tmp_path / "deep" / "alice")
    assert home == made
    assert home.config().name == "alice"
    assert home.config().listen == "127.0.0.1:7990"
    assert home.task() == Task.parse(TASK)
    assert home.task_path.read_text() == TASK
    assert home.config().card(home.keys().public).name == "alice"
    assert everything_in(home.folder) == {"peer.toml", "peers.toml", "task.toml", "key.secret"}


@pytest.mark.parametrize(
    "name", ["peer.toml", "peers.toml", "key.secret", "peer.sqlite", "task.toml"]
)
def test_what_is_in_the_folder_is_never_overwritten(tmp_path, task, name):
    folder = tmp_path / "alice"
    folder.mkdir()
    (folder / name).write_text("precious")
    with pytest.raises(ConfigError, match=f"already has a {name}, and a peer is never overwritten"):
        Home.create(folder, "alice", task, "127.0.0.1:7990")
    assert everything_in(folder) == {name}
    assert (folder / name).read_text() == "precious"


@pytest.mark.parametrize(
    ("name", "listen", "error"),
    [
        ("a b", "127.0.0.1:7990", "the name 'a b' cannot be used"),
        ("alice", "127.0.0.1", "is not host:port"),
        ("alice", "127.0.0.1:70000", "1 to 65535"),
    ],
)
def test_a_mistake_leaves_nothing_behind(tmp_path, task, name, listen, error):
    with pytest.raises(ConfigError, match=error):
        Home.create(tmp_path / "new" / "alice", name, task, listen)
    assert not (tmp_path / "new").exists()


def test_a_bad_or_missing_task_leaves_nothing_behind(tmp_path, task):
    task.write_text("model = 3")
    with pytest.raises(TaskError, match=r"shared-task.toml has no label"):
        Home.create(tmp_path / "alice", "alice", task)
    with pytest.raises(TaskError, match=r"there is no .*other.toml; name the task.toml"):
        Home.create(tmp_path / "alice", "alice", tmp_path / "other.toml")
    assert not (tmp_path / "alice").exists()


@pytest.mark.parametrize("failing", ["write_atomically", "write_config", "sync_folder"])
def test_a_full_disk_at_any_step_leaves_nothing_behind(tmp_path, task, monkeypatch, failing):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"oneway.peer.home.home.{failing}", full)
    with pytest.raises(ConfigError, match=r"cannot make a peer in .*: No space left on device"):
        Home.create(tmp_path / "new" / "alice", "alice", task, "127.0.0.1:7990")
    assert not (tmp_path / "new").exists()


def test_of_two_that_make_a_peer_at_once_the_second_harms_nothing(tmp_path, task, monkeypatch):
    folder = tmp_path / "alice"
    folder.mkdir()
    theirs = keys.generate()

    def other_was_faster() -> keys.KeyPair:
        save(theirs, folder / "key.secret")
        return keys.KeyPair(b"", bytes(32))

    monkeypatch.setattr("oneway.peer.home.home.generate", other_was_faster)
    with pytest.raises(KeyFileError, match="never overwritten"):
        Home.create(folder, "alice", task, "127.0.0.1:7990")
    assert load(folder / "key.secret") == theirs


def test_two_processes_cannot_run_the_same_peer(tmp_path, task):
    home = Home.create(tmp_path / "alice", "alice", task)
    assert home.running_process() is None
    with home.lock():
        assert home.running_process() == os.getpid()
        with (
            pytest.raises(ConfigError, match=f"already running as process {os.getpid()}"),
            home.lock(),
        ):
            pass
        assert home.running_process() == os.getpid()
    assert home.running_process() is None
    with home.lock():
        pass


def test_a_killed_peer_does_not_keep_the_lock(tmp_path, task):
    home = Home.create(tmp_path / "alice", "alice", task)
    program = (
        "import sys, time; from pathlib import Path; from oneway.peer.home.home import Home\n"
        "with Home(Path(sys.argv[1])).lock():\n"
        "    print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(home.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        assert home.running_process() == other.pid
        with pytest.raises(ConfigError, match=f"process {other.pid}"), home.lock():
            pass
        other.send_signal(signal.SIGKILL)
        other.wait(timeout=240)
        assert home.lock_path.read_text().strip() == str(other.pid)
        assert home.running_process() is None
        with home.lock():
            assert home.running_process() == os.getpid()


def test_peers_that_do_not_run_get_different_ports_wherever_their_folders_are(tmp_path, task):
    folders = [tmp_path / name / "peer" for name in ("ann", "bob", "carl")]
    folders += [tmp_path / "dora", tmp_path / "erin"]
    homes = [Home.create(folder, "peer", task) for folder in folders]
    assert len({home.config().listen for home in homes}) == len(folders)


def test_a_new_peer_avoids_a_port_in_use(tmp_path):
    first = free_address(tmp_path / "alice")
    host, port = parse_address(first)
    with socket.create_server((host, port)):
        assert free_address(tmp_path / "alice") != first
    assert free_address(tmp_path / "alice") == first


def test_a_store_that_a_backup_left_open_to_others_is_closed_before_it_is_used(tmp_path, task):
    home = Home.create(tmp_path / "alice", "alice", task)
    files = [home.folder / f"peer.sqlite{end}" for end in ("", "-wal", "-shm")]
    for path in files:
        path.touch()
        path.chmod(0o644)
    with home.lock():
        assert [path.stat().st_mode & 0o777 for path in files] == [0o600] * 3
