"""A stranger with hundreds of idle connections, against a real process with few descriptors."""

from __future__ import annotations

import contextlib
import resource
import selectors
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_peers import PATIENCE, Town, befriend, is_well, until

from oneway.lab.peer_process import PeerProcess
from oneway.peer.identity.card import Card
from oneway.transport.address import parse_address

LIMIT = 256


class Stranger:
    """Keeps connections to a port open and says nothing; opens others for those that are closed."""

    def __init__(self, place: tuple[str, int], count: int) -> None:
        self._place = place
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


def hears(peer: PeerProcess) -> bool:
    status = peer.status()
    return status is not None and any(receiver.acked for receiver in status.receivers)


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with Town(tmp_path / "town") as made:
        yield made


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
def test_a_stranger_with_idle_connections_neither_ends_a_peer_nor_takes_its_descriptors(town):
    """One receiver is not what it was, so that it is dialled again and again."""
    alice, bob = town.peer("alice"), town.peer("bob", 10_000)
    befriend(alice, bob)
    with socket.create_server(("127.0.0.1", 0)) as absent:
        carol = Card(bytes(range(32)), *absent.getsockname(), "carol")
        bob.change(lambda config: config.with_receiver(carol, own_key=bob.key))
        for peer in (alice, bob):
            peer.start()
        resource.prlimit(bob.pid, resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
        until(lambda: hears(alice), "bob hears alice")
        stranger = Stranger(parse_address(bob.config.listen), 2 * LIMIT)
        town.callback(stranger.leave)
        absent.setblocking(False)
        dialled, began = 0, bob.status().time

        def is_going_on() -> bool:
            # Whoever answers without carol's key is dialled afresh, which takes new sockets.
            nonlocal dialled
            stranger.persist()
            with contextlib.suppress(BlockingIOError):
                absent.accept()[0].close()
                dialled += 1
            in_use = len(list(Path(f"/proc/{bob.pid}/fd").iterdir()))
            has_spoken = bob.status().time >= began + 2
            return dialled >= 3 and in_use <= LIMIT // 2 and has_spoken

        until(is_going_on, "bob frees its descriptors and goes on")
        is_well(bob)
        assert alice.status().receivers[0].link == "connected"
        bob.ask_to_stop()
        assert bob.wait(PATIENCE)
