"""Server of pages: NiceGUI behind access control, until Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine

from fastapi import FastAPI
from nicegui import ui

from oneway.web.access_control import PageAccess
from oneway.web.server import run

_RECONNECT_SECONDS = 10.0


def serve(
    register: Callable[[], None],
    listener: socket.socket,
    host: str,
    *,
    token: str = "",
    ready: Callable[[], None] = lambda: None,
    beside: Callable[[], Coroutine[None, None, None]] | None = None,
) -> None:
    """Serve pages until Ctrl-C. NiceGUI is one per process, and so is this.

    Args:
        register: Declares the pages with `nicegui.ui.page`.
        listener: Where to serve, bound already.
        host: What it is bound to: requests for another host are refused.
        token: What everybody has to show; empty for none.
        ready: Called once the pages can be opened.
        beside: Runs beside the server, for ever; cancelled in the end.
    """
    # It logs addresses as they were asked for, and anybody's page can ask for anything.
    logging.getLogger("nicegui").addFilter(_Plain())
    api = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    register()
    ui.run_with(
        api,
        title="oneway",
        favicon=_ICON,
        dark=None,
        language="en-US",
        binding_refresh_interval=None,
        reconnect_timeout=_RECONNECT_SECONDS,
        # What a browser missed is shown afresh; to keep it would only cost memory.
        message_history_length=0,
        show_welcome_message=False,
    )
    app = PageAccess(api, host, listener.getsockname()[1], token)

    async def whole() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(run(app, listener, ready, live=True), name="serve")
            if beside is not None:
                tasks.create_task(beside(), name="beside")

    asyncio.run(whole())


class _Plain(logging.Filter):
    """Lets no control character of a message reach the terminal."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the message; it always passes."""
        text = record.getMessage()
        record.msg = "".join(letter if letter.isprintable() else "?" for letter in text)
        record.args = ()
        return True


_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="8" cy="16" r="6" '
    'fill="#0072b2"/><path d="M15 16h11m-5-5 5 5-5 5" fill="none" stroke="#d55e00" '
    'stroke-width="3.5" stroke-linecap="round" stroke-linejoin="round"/></svg>'
)
