"""The page of a lab as a process of its own, beside the lab."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

from nicegui import ui

from oneway.dashboard.lab.client import LabClient
from oneway.dashboard.lab.page import LabPage
from oneway.dashboard.lab.watcher import LabWatcher
from oneway.dashboard.server import serve


def serve_lab(
    listener: socket.socket,
    host: str,
    token: str,
    lab_url: str,
    lab_token: str,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve the page of a lab for as long as the lab's process runs.

    Args:
        listener: Where, bound already.
        host: What it is bound to.
        token: What everybody has to show; empty for none.
        lab_url: The lab's API.
        lab_token: What the lab wants to be shown.
        ready: Called once the page can be opened.
    """
    watcher = LabWatcher(LabClient(lab_url, lab_token))

    def register() -> None:
        @ui.page("/")
        def lab() -> None:
            LabPage(watcher)

    async def watch() -> None:
        async with watcher.client:
            await watcher.watch()

    serve(
        register,
        listener,
        host,
        token=token,
        ready=ready,
        beside=watch,
        parent=os.getppid(),
    )
