"""Signal handlers for SIGINT and SIGTERM, set for a while."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TypeAlias

Handler: TypeAlias = Callable[[int, FrameType | None], object] | signal.Handlers


@contextmanager
def on_signals(
    handler: Handler, numbers: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM)
) -> Iterator[None]:
    """Handle signals in the block; what handled them before does so again after it."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, usual in before.items():
            signal.signal(number, usual)


def wait_for_signal() -> None:
    """Block until SIGINT or SIGTERM."""
    arrived = threading.Event()
    with on_signals(lambda *_: arrived.set()):
        while not arrived.wait(1.0):
            pass
