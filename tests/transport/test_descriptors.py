"""No descriptors left: a warning and another try, never an end; strangers cannot bring it about."""

import asyncio
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
from bounded import WAIT, noted, run
from plain import PLAIN_TOML

from oneway.errors import TransportError
from oneway.peer.home.home import Home
from oneway.transport.descriptors import BorrowedSocket

LIMIT = 256
TASK = f"""
{PLAIN_TOML}label = "y"
model = "logistic"
classes = ["0", "1"]
learning_rate = 0.01
[features]
x = {{}}
"""


@pytest.fixture
def listen(listen):
    return noted(listen)


@contextlib.contextmanager
def no_descriptors():
    """Nothing more can be opened in this process for the time being."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def warned(caplog):
    while not caplog.records:
        await asyncio.sleep(0.01)
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    return caplog.records[-1].getMessage()


def test_redialling_without_descriptors_is_a_warning_and_another_try(listen, caplog):
    async def scenario():
        alice, bob = listen("alice"), listen("bob")
        address, key = bob.address, bob.key
        await bob.close()
        alice.dial(key, address)
        with no_descriptors():
            assert address in await warned(caplog)
            alice.push(key, b"lost")
            assert alice.receive_now() is None
            assert alice.links[key].state == "connecting"
        bob = listen("bob", address)
        bob.admit(None)
        while alice.links[key].state != "connected":
            await asyncio.sleep(0.002)
        await alice.close()
        await bob.close()

    run(scenario)


def test_dialling_without_descriptors_is_done_once_there_are_some(listen, caplog):
    async def scenario():
        alice, bob = listen("alice"), listen("bob")
        bob.admit(None)
        with no_descriptors():
            alice.dial(bob.key, bob.address)
            assert bob.address in await warned(caplog)
            alice.dial(bob.key, bob.address)
        while alice.links[bob.key].state != "connected":
            await asyncio.sleep(0.002)
        await alice.close()
        await bob.close()

    run(scenario)


def test_a_start_without_descriptors_gets_a_sentence(listen):
    async def scenario():
        with no_descriptors(), pytest.raises(TransportError, match="ulimit"):
            listen("alice")

    run(scenario)


def test_a_transport_without_descriptors_can_be_closed(listen, caplog):
    async def scenario():
        alice = listen("alice")
        # Its thread is started, and the descriptors of that are opened, while there are some.
        await asyncio.to_thread(lambda: None)
        with no_descriptors():
            alice.dial(bytes(range(32)), "127.0.0.1:9")
            await warned(caplog)
            alice.hang_up(bytes(range(32)))
            await alice.close()

    run(scenario)


def test_a_borrowed_descriptor_that_is_no_connection_of_the_port_is_left_alone(tmp_path):
    """The number may belong to anything by the time it is used."""
    borrowed = BorrowedSocket()
    with socket.create_server(("127.0.0.1", 0)) as server, (tmp_path / "file").open("w") as file:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as dialled:
            accepted, _ = server.accept()
            with accepted:
                for other in (dialled.fileno(), file.fileno(), 9999):
                    assert not borrowed.end(other, port)
                dialled.sendall(b"still open")
                assert accepted.recv(100) == b"still open"
                assert borrowed.end(accepted.fileno(), port)
                assert dialled.recv(100) == b""
        assert borrowed.received(file.fileno()) is None
    borrowed.close()


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
