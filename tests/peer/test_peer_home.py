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
    assert everything_in(home.folder) == {"peer.toml", "task.toml", "key.secret"}


def test_a_task_file_that_is_already_in_the_folder_is_used_as_it_is(tmp_path):
    (tmp_path / "task.toml").write_text(TASK)
    home = Home.create(tmp_path, "alice", tmp_path / "task.toml", "127.0.0.1:7990")
    assert home.task_path.read_text() == TASK
    assert home.task().label == "price"


@pytest.mark.parametrize("name", ["peer.toml", "key.secret", "peer.sqlite", "task.toml"])
def test_what_is_in_the_folder_is_never_overwritten(tmp_path, task, name):
    folder = tmp_path / "alice"
    folder.mkdir()
    (folder / name).write_text("precious")
    with pytest.raises(ConfigError, match=f"already has a {name}, and a peer is never overwritten"):
        Home.create(folder, "alice", task, "127.0.0.1:7990")
    assert everything_in(folder) == {name}
    assert (folder / name).read_text() == "precious"


def test_a_second_peer_in_the_same_folder_is_refused(tmp_path, task):
    home = Home.create(tmp_path / "alice", "alice", task)
    pair = home.keys()
    with pytest.raises(ConfigError, match="never overwritten"):
        Home.create(tmp_path / "alice", "bob", task)
    assert home.keys() == pair
    assert home.config().name == "alice"


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


def test_a_folder_that_cannot_be_made_gets_a_sentence(tmp_path, task):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot make a peer in .*: Not a directory"):
        Home.create(tmp_path / "file" / "alice", "alice", task)


def test_a_folder_without_a_peer_gets_a_remedy(tmp_path):
    remedy = r"oneway peer init NAME --task task\.toml"
    with pytest.raises(ConfigError, match=f"is not a peer's folder .*{remedy}"):
        Home.open(tmp_path)
    with pytest.raises(ConfigError, match=f"there is no peer's folder .*{remedy}"):
        Home.open(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["task.toml", "key.secret"])
def test_a_peer_without_one_of_its_files_is_told_which(tmp_path, task, name):
    home = Home.create(tmp_path / "alice", "alice", task)
    (home.folder / name).unlink()
    with pytest.raises(ConfigError, match=f"has no {name}; put it back from your backup"):
        Home.open(home.folder)


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


def test_the_lock_is_released_when_the_peer_fails(tmp_path, task):
    home = Home.create(tmp_path / "alice", "alice", task)
    with pytest.raises(RuntimeError, match="boom"), home.lock():
        raise RuntimeError("boom")
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
        other.wait(timeout=60)
        assert home.lock_path.read_text().strip() == str(other.pid)
        assert home.running_process() is None
        with home.lock():
            assert home.running_process() == os.getpid()


def test_a_lock_that_is_a_link_or_cannot_be_written_gets_a_sentence(tmp_path, task, monkeypatch):
    home = Home.create(tmp_path / "alice", "alice", task)
    (tmp_path / "other").write_text("precious")
    home.lock_path.symlink_to(tmp_path / "other")
    with pytest.raises(ConfigError, match=r"peer\.lock"), home.lock():
        pass
    assert (tmp_path / "other").read_text() == "precious"
    home.lock_path.unlink()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(ConfigError, match=r"peer\.lock: No space left on device"), home.lock():
            pass
    with home.lock():
        pass


def test_a_damaged_lock_file_names_nobody(tmp_path, task):
    home = Home.create(tmp_path / "alice", "alice", task)
    for content in (b"", b"x", b"-1", b"0", b"9" * 30):
        home.lock_path.write_bytes(content)
        assert home.running_process() is None


def test_a_new_peer_avoids_ports_in_use(tmp_path):
    first = free_address(tmp_path / "alice")
    host, port = first.split(":")
    assert host == "127.0.0.1"
    assert int(port) >= 7701
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, int(port)))
        taken.listen()
        assert free_address(tmp_path / "alice") != first


def test_a_new_peer_avoids_the_ports_of_its_neighbours_that_are_not_running(tmp_path, task):
    alice = Home.create(tmp_path / "alice", "alice", task)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "peer.toml").write_text("?")
    bob = Home.create(tmp_path / "bob", "bob", task)
    assert alice.config().listen != bob.config().listen
