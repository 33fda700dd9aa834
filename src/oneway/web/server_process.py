"""Server in a child process that ignores Ctrl-C and ends with its parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event

from oneway.errors import OnewayError
from oneway.web.interrupts import on_signals

START_SECONDS = 120.0
STOP_SECONDS = 5.0
WATCH_SECONDS = 0.5
GRACE_SECONDS = 10.0


@contextmanager
def server_process(
    serve: Callable[..., None], *arguments: object, what: str, ended: Callable[[], None]
) -> Iterator[None]:
    """Run a server in a process of its own while the block runs.

    Args:
        serve: Called in the child with the arguments, and with a function to call once it serves.
        arguments: What can be pickled; a listening socket can.
        what: What is served, for messages.
        ended: Called, from a thread, if the child ends before the block does.

    Raises:
        OnewayError: If the child ends before it serves, or takes too long.
    """
    # A fresh interpreter, without the threads and locks of this one.
    fresh = multiprocessing.get_context("spawn")
    ready = fresh.Event()
    run = (serve, arguments, ready, os.getpid())
    child = fresh.Process(target=_run, args=run, name=what, daemon=True)
    # Inherited: Ctrl-C is for the parent, which may still have something to show.
    with on_signals(signal.SIG_IGN, (signal.SIGINT,)):
        child.start()
    over = threading.Event()

    def tell_its_end() -> None:
        child.join()
        if not over.is_set():
            ended()

    try:
        _wait_until(ready, child, what)
        threading.Thread(target=tell_its_end, daemon=True).start()
        yield
    finally:
        over.set()
        child.terminate()
        child.join(STOP_SECONDS)
        if child.is_alive():
            child.kill()


def _wait_until(ready: Event, child: BaseProcess, what: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not ready.wait(0.5):
        if not child.is_alive() or time.monotonic() > deadline:
            raise OnewayError(f"{what} did not start; try again without it")


def _run(
    serve: Callable[..., None], arguments: tuple[object, ...], ready: Event, parent: int
) -> None:
    end_with_parent(parent)
    # Ends by itself, so that nothing stays behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    serve(*arguments, ready.set)


def end_with_parent(parent: int) -> None:
    """Watch the parent from a daemon thread, and end this process soon after it: at first cleanly.

    Also if the parent was killed, which it cannot tell its children.

    Args:
        parent: The id of the process that started this one, by its own account: it may be gone.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="parent watch", daemon=True).start()
