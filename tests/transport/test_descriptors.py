"""No descriptors left: a warning and another try, never an end; strangers cannot bring it about."""

import asyncio
import contextlib
import resource
import socket

import pytest
from bounded import noted, run

from oneway.errors import TransportError
from oneway.transport.descriptors import BorrowedSocket


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


def test_a_start_without_descriptors_gets_a_sentence(listen):
    async def scenario():
        with no_descriptors(), pytest.raises(TransportError, match="ulimit"):
            listen("alice")

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
