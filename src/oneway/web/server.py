"""ASGI server (uvicorn) as a task of the caller's event loop; graceful shutdown on cancel."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

_GRACE_SECONDS = 1
"""How long requests under way may take to end."""

_BACKLOG = 128


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
        http="h11",
        ws="wsproto" if live else "none",
        lifespan="on" if live else "off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
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
