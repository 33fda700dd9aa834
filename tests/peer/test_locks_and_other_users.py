"""Files of a peer on a machine with other users: nobody but its owner can lock or misplace them."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from oneway.errors import ConfigError
from oneway.peer.home.home import Home
from oneway.peer.home.process_lock import in_turn

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")

LOCK_AS_NOBODY = f"""
import fcntl, os, sys
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
try:
    file = os.open(sys.argv[1], os.O_RDONLY)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    print("locked", flush=True)
except OSError as error:
    print(type(error).__name__, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def home() -> Iterator[Home]:
    """A peer in a folder that every user can look into, as home folders often are."""
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder) / "task.toml"
        task.write_text('model = "ridge"\nlabel = "price"\n[features]\nsize = {}\n')
        home = Home.create(Path(folder) / "alice", "alice", task, "127.0.0.1:7990")
        for path in (Path(folder), home.folder):
            path.chmod(0o755)
        yield home


@contextmanager
def locked_by_nobody(path: Path) -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, "-c", LOCK_AS_NOBODY, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        yield other.stdout.readline().strip()
        other.stdin.close()
        other.wait(timeout=60)


def lock_and_release(home: Home, name: str) -> None:
    if name == home.config_lock_path.name:
        home.change(lambda config: config)
        return
    with home.lock():
        pass


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_locks_are_closed_to_others_whatever_the_umask(home):
    before = os.umask(0)
    try:
        home.change(lambda config: config)
        with home.lock():
            pass
    finally:
        os.umask(before)
    assert [mode_of(path) for path in (home.lock_path, home.config_lock_path)] == [0o600, 0o600]


@as_root
@pytest.mark.parametrize("name", ["peer.lock", "peer.toml.lock"])
@pytest.mark.parametrize("mode", [None, 0o644, 0o666], ids=str)
def test_another_user_cannot_lock_a_peer_out(home, name, mode):
    """A lock file of an earlier version, open to all, is closed by the first that uses it."""
    path = home.folder / name
    if mode is not None:
        path.touch()
        path.chmod(mode)
    with home.lock():
        home.change(lambda config: config)
    with locked_by_nobody(path) as said, home.lock():
        assert said == "PermissionError"
        home.change(lambda config: config)


@as_root
def test_a_stranger_that_holds_a_lock_from_before_is_told_from_a_peer(home):
    home.lock_path.touch(0o644)
    with (
        locked_by_nobody(home.lock_path) as said,
        pytest.raises(ConfigError, match=rf"does not say who .* rm {re.escape(str(home.folder))}"),
        home.lock(),
    ):
        assert said == "locked"
    with home.lock():
        pass


@as_root
@pytest.mark.parametrize("name", ["peer.lock", "peer.toml.lock"])
def test_a_lock_file_of_another_user_is_refused(home, name):
    path = home.folder / name
    path.touch(0o666)
    os.chown(path, NOBODY, NOBODY)
    sentence = rf"{name}: it belongs to user {NOBODY} and you are user 0; .* rm "
    with pytest.raises(ConfigError, match=sentence):
        lock_and_release(home, name)
    assert path.read_text() == ""


@pytest.mark.parametrize("name", ["peer.lock", "peer.toml.lock"])
def test_a_link_a_pipe_or_a_folder_is_no_lock_and_is_not_followed(home, name):
    path, precious = home.folder / name, home.folder / "precious"
    precious.write_text("precious")
    precious.chmod(0o644)
    for put in (lambda: path.symlink_to(precious), lambda: os.mkfifo(path), path.mkdir):
        put()
        with pytest.raises(ConfigError, match=f"{name}: it is .*, and a lock is an ordinary file"):
            lock_and_release(home, name)
        assert home.running_process() is None
        path.rmdir() if path.is_dir() else path.unlink()
    assert (precious.read_text(), mode_of(precious)) == ("precious", 0o644)


def test_a_lock_that_is_never_released_is_not_waited_for_without_end(tmp_path):
    with (
        in_turn(tmp_path / "lock"),
        pytest.raises(ConfigError, match="lock is locked by a program"),
        in_turn(tmp_path / "lock", patience=0.05),
    ):
        pass


@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
def test_a_store_that_a_backup_left_open_to_others_is_closed_before_it_is_used(home, end):
    """Whoever can read SQLite's files can lock them, and every commit would fail."""
    path = home.folder / f"peer.sqlite{end}"
    path.touch()
    path.chmod(0o644)
    with home.lock():
        assert mode_of(path) == 0o600


def test_a_link_in_the_place_of_the_status_is_replaced_and_not_followed(home):
    precious = home.folder / "precious"
    precious.write_text("precious")
    (home.folder / "status.new").symlink_to(precious)
    home.write_status({"name": "alice"})
    assert precious.read_text() == "precious"
    assert "alice" in home.status_path.read_text()


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702], ids=oct)
def test_a_folder_that_every_user_may_write_into_is_refused(home, mode):
    """Who can replace peer.toml decides whom the peer trusts."""
    home.folder.chmod(mode)
    with pytest.raises(ConfigError, match=f"has mode {mode:04o}.*chmod o-w"), home.lock():
        pass
    assert not home.lock_path.exists()
    home.folder.chmod(0o770)
    with home.lock():
        pass
