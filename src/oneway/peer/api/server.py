"""Serving the local API from a task of the peer's own event loop."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import uvicorn
from starlette.applications import Starlette

from oneway.errors import TransportError
from oneway.peer.identity.address import join_address

_GRACE_SECONDS = 1
"""How long requests under way may take to end."""

_BACKLOG = 128


async def run(app: Starlette, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until cancelled; see `oneway.peer.api.api.serve`."""
    # Without any handler Python would print uvicorn's errors; with this one they go to the handlers
    # that the process has set up, if any.
    logger = logging.getLogger("uvicorn")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    with closing(await _bound(host, port)) as listener:
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=_BACKLOG,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        address = join_address(host, listener.getsockname()[1])
        server = _Server(config, lambda: ready(f"http://{address}"))
        try:
            await server.serve(sockets=[listener])
        except asyncio.CancelledError:
            if server.started:
                await server.shutdown(sockets=[listener])
            raise


class _Server(uvicorn.Server):
    """A server that is a guest in its process: signals are the peer's business."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _bound(host: str, port: int) -> socket.socket:
    """Return a socket bound to the address: left to itself, uvicorn would end the process."""
    address = join_address(host, port)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, _, _, _, place = found[0]
        return _bind(family, place)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            with closing(_bind(family, (place[0], 0))) as other:
                free = other.getsockname()[1]
            raise TransportError(
                f"the local API cannot listen on {address}: another program does; choose another "
                f"port, {free} is free"
            ) from error
        raise TransportError(
            f"the local API cannot listen on {address}: {error.strerror}; choose an address of "
            "this machine and a port from 1024 on, such as 127.0.0.1:8701"
        ) from error


def _bind(family: int, place: tuple[object, ...]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Connections of a server that has just stopped are no obstacle.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
    except BaseException:
        listener.close()
        raise
    return listener
