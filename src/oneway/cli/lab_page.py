"""The page of a lab: a process of its own, so that whoever looks does not slow the lab down."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from oneway.cli.output import note
from oneway.cli.page import announce, dashboard_extra, page_place
from oneway.errors import OnewayError

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from multiprocessing.synchronize import Event

    from oneway.cli.page import Place
    from oneway.lab.api import LabServer

START_SECONDS = 60.0
STOP_SECONDS = 5.0


@contextmanager
def lab_page(
    listen: str | None, token_file: Path | None, open_browser: bool, *, aside: bool = False
) -> Iterator[LabServer]:
    """Serve the page of a lab while the block runs; yields where the lab meets it.

    Raises:
        ConfigError: If the address is none, the token is missing or poor, or cannot be read.
        TransportError: If that cannot be listened on; names a port that is free.
        MissingExtraError: If the extra `dashboard` is not installed.
    """
    with dashboard_extra():
        import nicegui  # noqa: F401

        from oneway.lab.api import open_desk
    with page_place(listen, token_file, "the page of the lab") as place, open_desk() as server:
        # A fresh interpreter: threads and locks of this one are none of its business.
        fresh = multiprocessing.get_context("spawn")
        ready = fresh.Event()
        page = fresh.Process(
            target=_serve, args=(place, server.url, server.token, ready), name="page", daemon=True
        )
        with _ignoring_interrupts():
            page.start()
        over = threading.Event()
        try:
            _wait_until(ready, page)
            threading.Thread(target=_tell_its_end, args=(page, over), daemon=True).start()
            announce(place, open_browser, aside=aside)
            yield server
        finally:
            over.set()
            page.terminate()
            page.join(STOP_SECONDS)
            if page.is_alive():
                page.kill()


def wait_for_interrupt() -> None:
    """Leave the page as it is until Ctrl-C or SIGTERM."""
    note("The page stays until Ctrl-C.")
    enough = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: enough.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        while not enough.wait(1.0):
            pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """What is started in the block ignores Ctrl-C from its first moment.

    Ctrl-C is for the lab, which still has to let everything arrive and to show its audit.
    """
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _wait_until(ready: Event, page: BaseProcess) -> None:
    """Wait for the page.

    Raises:
        OnewayError: If its process has ended, or takes too long.
    """
    deadline = time.monotonic() + START_SECONDS
    while not ready.wait(0.5):
        if not page.is_alive() or time.monotonic() > deadline:
            raise OnewayError("the page did not start; run the lab without --dashboard")


def _tell_its_end(page: BaseProcess, over: threading.Event) -> None:
    page.join()
    if not over.is_set():
        note("The page has ended; the lab goes on. Ctrl-C ends it.")


def _serve(place: Place, lab_url: str, lab_token: str, ready: Event) -> None:
    """What the page's process does."""
    from oneway.dashboard.lab.site import serve_lab

    # Ends by itself, so that nothing stays behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    serve_lab(place.listener, place.host, place.token, lab_url, lab_token, ready.set)
