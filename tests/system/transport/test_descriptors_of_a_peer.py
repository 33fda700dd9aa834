"""A stranger with hundreds of idle connections, against a real process with few descriptors."""

import contextlib
import json
import resource
import selectors
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bounded import WAIT
from plain import PLAIN_TOML

from oneway.peer.home.home import Home

LIMIT = 256
TASK = f"""
{PLAIN_TOML}label = "y"
model = "logistic"
classes = ["0", "1"]
learning_rate = 0.01
[features]
x = {{}}
"""


class Stranger:
    """Keeps connections to a port open and says nothing; opens others for those that are closed."""

    def __init__(self, port: int, count: int) -> None:
        self._place = ("127.0.0.1", port)
        self._lines = selectors.DefaultSelector()
        for _ in range(count):
            self._open()

    def _open(self) -> None:
        line = socket.socket()
        line.setblocking(False)
        line.connect_ex(self._place)
        self._lines.register(line, selectors.EVENT_READ)

    def persist(self) -> None:
        """Replace what was closed."""
        for key, _ in self._lines.select(0.01):
            try:
                is_open = bool(key.fileobj.recv(64))
            except OSError:
                is_open = False
            if not is_open:
                self._lines.unregister(key.fileobj)
                key.fileobj.close()
                self._open()

    def leave(self) -> None:
        for key in list(self._lines.get_map().values()):
            key.fileobj.close()
        self._lines.close()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
def test_a_stranger_with_idle_connections_neither_ends_a_peer_nor_takes_its_descriptors(tmp_path):
    """A real process; one receiver is not what it was, so that it is dialled again and again."""
    (tmp_path / "task.toml").write_text(TASK)
    with socket.create_server(("127.0.0.1", 0)) as absent, contextlib.ExitStack() as ends:
        alice, bob = [new_peer(tmp_path, name, free_port()) for name in ("alice", "bob")]
        carol = new_peer(tmp_path, "carol", absent.getsockname()[1])
        trust(alice, bob)
        trust(bob, carol)
        process = start(bob, ends, limit=LIMIT)
        start(alice, ends)
        eventually(lambda: is_acknowledged(alice))
        port = int(bob.config().listen.rpartition(":")[2])
        stranger = Stranger(port, 2 * LIMIT)
        ends.callback(stranger.leave)
        absent.setblocking(False)
        dialled, in_use, began = 0, LIMIT, status(bob)["time"]
        deadline = time.monotonic() + WAIT
        # Whoever answers without carol's key is dialled afresh, which takes new sockets.
        while dialled < 3 or in_use > LIMIT // 2 or status(bob)["time"] < began + 2:
            assert process.poll() is None
            assert time.monotonic() < deadline
            stranger.persist()
            in_use = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
            with contextlib.suppress(BlockingIOError):
                absent.accept()[0].close()
                dialled += 1
        assert status(alice)["receivers"][0]["link"] == "connected"
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as place:
        return place.getsockname()[1]


def new_peer(folder, name, port):
    return Home.create(folder / name, name, folder / "task.toml", f"127.0.0.1:{port}")


def trust(sender, receiver):
    key, other = sender.keys().public, receiver.keys().public
    card = receiver.config().card(other)
    sender.change(lambda config: config.with_receiver(card, own_key=key))
    card = sender.config().card(key)
    receiver.change(lambda config: config.with_sender(card, own_key=other))


def start(home, ends, limit=None):
    """A peer in a process of its own, which ends with the test; it listens on return."""

    def lower_limit():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    process = subprocess.Popen(
        [sys.executable, "-m", "oneway", "peer", "run", "--home", str(home.folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=lower_limit,
    )
    ends.callback(process.stdout.close)
    ends.callback(process.wait)
    ends.callback(process.kill)
    assert b"listens" in process.stdout.readline()
    return process


def status(home):
    return json.loads((home.folder / "status.json").read_text())


def is_acknowledged(home):
    with contextlib.suppress(OSError, ValueError):
        return any(receiver["acked"] for receiver in status(home)["receivers"])
    return False


def eventually(holds):
    deadline = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
