"""The real server on loopback: idle connections are bounded in number and in time."""

from __future__ import annotations

import asyncio
import socket

import httpx
import pytest
from starlette.responses import PlainTextResponse

from oneway.web import server
from oneway.web.listening import listen, url_of
from oneway.web.server import MOST_CONNECTIONS, run

LIMIT_SECONDS = 240.0
ANSWER = PlainTextResponse("here")
NEVER_SENT = [
    b"",
    b"GET / HTTP/1.1\r\nHost: ",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1",
]


async def patient(scope, receive, send) -> None:
    """An application that reads the whole body first."""
    while (await receive()).get("more_body"):
        pass
    await ANSWER(scope, receive, send)


async def served(scenario) -> None:
    async with asyncio.timeout(LIMIT_SECONDS):
        listener, started = listen("127.0.0.1", 0), asyncio.Event()
        address, url = listener.getsockname(), url_of("127.0.0.1", listener)
        task = asyncio.create_task(run(patient, listener, started.set))
        await started.wait()
        try:
            await scenario(address, url)
        finally:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task


async def is_closed(client: socket.socket) -> bool:
    """Wait for the other end, for a moment; whether it has closed the connection."""
    try:
        async with asyncio.timeout(0.2):
            return await asyncio.get_running_loop().sock_recv(client, 1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


@pytest.mark.parametrize("words", NEVER_SENT, ids=["nothing", "half a request", "half a body"])
def test_idle_http_connections_are_bounded_and_the_newest_stay(words):
    async def scenario(address, url) -> None:
        clients = []
        for _ in range(2 * MOST_CONNECTIONS):
            client = socket.create_connection(address)
            client.setblocking(False)
            client.send(words)
            clients.append(client)
            await asyncio.sleep(0)
        async with httpx.AsyncClient(base_url=url, trust_env=False) as asks:
            assert (await asks.get("/")).text == "here"
        newest = clients[MOST_CONNECTIONS + 1 :]
        assert all([await is_closed(it) for it in clients[:MOST_CONNECTIONS]])
        if words is not NEVER_SENT[0]:  # those may have been idle for too long meanwhile
            assert not any(await asyncio.gather(*map(is_closed, newest)))
        for client in clients:
            client.close()

    asyncio.run(served(scenario))


def test_a_connection_that_sends_nothing_is_closed(monkeypatch):
    monkeypatch.setattr(server, "IDLE_SECONDS", 0)
    closed = []

    async def scenario(address, _) -> None:
        reader, writer = await asyncio.open_connection(*address)
        closed.append(await reader.read())
        writer.close()

    asyncio.run(served(scenario))
    assert closed == [b""]
