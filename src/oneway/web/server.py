"""ASGI server (uvicorn) as a task of the caller's event loop; graceful shutdown on cancel."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

_GRACE_SECONDS = 1
"""How long requests under way may take to end."""

_BACKLOG = 128

IDLE_SECONDS = 5
"""How long a connection may wait for its next request."""

MOST_CONNECTIONS = 64
"""Open HTTP connections; one more closes the oldest that is idle, or else the oldest."""


async def run(
    app: ASGIApp,
    listener: socket.socket,
    ready: Callable[[], None] = lambda: None,
    *,
    live: bool = False,
) -> None:
    """Serve until cancelled, then let requests under way end, for a second at most.

    Args:
        app: What to serve.
        listener: Where, bound already; closed in the end.
        ready: Called once requests are taken.
        live: Whether it speaks over WebSockets too, and wants to be told of start and end.
    """
    logger = logging.getLogger("uvicorn")
    if live:
        # Tracebacks go to stderr unless the process logs elsewhere; bad requests are not reported.
        logger.setLevel(logging.ERROR)
    elif not logger.handlers:
        # `web.api` has logged the errors of an API already.
        logger.addHandler(logging.NullHandler())
    config = uvicorn.Config(
        app,
        http=_Connection,
        ws="wsproto" if live else "none",
        lifespan="on" if live else "off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    server = _Server(config, ready)
    with listener:
        try:
            await server.serve(sockets=[listener])
        except asyncio.CancelledError:
            if server.started:
                await server.shutdown(sockets=[listener])
            raise


class _Connection(H11Protocol):
    """HTTP connection that ends if it stays idle, or if newer ones need its place.

    Any local user can connect, without a token too: connections must not use up the descriptors
    that the process needs for its own files.
    """

    _numbers = count()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._number = next(self._numbers)
        # uvicorn itself waits for a first request without a limit.
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )
        others = [it for it in self.connections if isinstance(it, _Connection)]
        is_open = [it for it in others if not it.transport.is_closing()]
        if len(is_open) > MOST_CONNECTIONS:
            # Aborted, not closed: what is not read by the other end would keep it open.
            min(is_open, key=_Connection._place).transport.abort()

    def _place(self) -> tuple[bool, int]:
        """Those with a request that is complete and not answered come last, then the newest."""
        cycle = self.cycle
        is_busy = cycle is not None and not cycle.more_body and not cycle.response_complete
        return is_busy, self._number


class _Server(uvicorn.Server):
    """uvicorn without its own signal handlers."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
