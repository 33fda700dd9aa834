"""A server in a child process: it serves while the block runs, and never outlives it."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from oneway.errors import OnewayError
from oneway.web.listening import listen
from oneway.web.server_process import server_process

LIMIT_SECONDS = 240.0


def serve_its_id(listener: socket.socket, ready: Callable[[], None]) -> None:
    """Tell whoever connects which process this is."""
    listener.listen()
    ready()
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(str(os.getpid()).encode())


def stop_at_once(_: Callable[[], None]) -> None:
    raise SystemExit(0)


def serve_for_a_moment(folder: Path, ready: Callable[[], None]) -> None:
    ready()
    while not (folder / "end").exists():
        time.sleep(0.01)


def is_alive(process: int) -> bool:
    return Path(f"/proc/{process}/stat").exists()


def test_it_serves_from_another_process_that_ends_with_the_block():
    with listen("127.0.0.1", 0) as listener:
        with server_process(serve_its_id, listener, what="the test", ended=lambda: None):
            with socket.create_connection(listener.getsockname(), LIMIT_SECONDS) as client:
                server = int(client.recv(100))
            assert server != os.getpid()
            assert is_alive(server)
        assert not is_alive(server)


def test_a_server_that_does_not_start_is_named():
    with (
        pytest.raises(OnewayError, match="the test"),
        server_process(stop_at_once, what="the test", ended=lambda: None),
    ):
        pytest.fail("it was said to be ready")


def test_its_early_end_is_told(tmp_path: Path):
    told = threading.Event()
    with server_process(serve_for_a_moment, tmp_path, what="the test", ended=told.set):
        assert not told.is_set()
        (tmp_path / "end").touch()
        assert told.wait(LIMIT_SECONDS)
