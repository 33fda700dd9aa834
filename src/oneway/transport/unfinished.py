"""Finds connections that bring more than their queue holds without finishing a message.

ZeroMQ collects all parts of a message before it hands over the first, and limits the size of a part
but not their number: without this, a message that never ends would fill the memory.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

from oneway.transport.descriptors import BorrowedSocket

LOOK_SECONDS = 0.25

CONNECTIONS_PER_LOOK = 256
"""Looking at one takes some microseconds; where there are more, they take turns."""


class Unfinished:
    """The unfinished message of a connection: what it brought since it handed over the last one.

    Attributes:
        descriptor: Its number.
        on_excess: Called when it brought too much.
        progressed: To be set when it has handed over a message.
        mark: Bytes that had come in when a message was last handed over.
    """

    __slots__ = ("descriptor", "mark", "on_excess", "progressed")

    def __init__(self, descriptor: int, on_excess: Callable[[], None]) -> None:
        self.descriptor = descriptor
        self.on_excess = on_excess
        self.progressed = False
        self.mark = 0


class UnfinishedWatch:
    """Looks at all connections in turn, a few times a second, as long as there are any."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, borrowed: BorrowedSocket, allowance: int
    ) -> None:
        """Watch that none brings more than `allowance` bytes without a message."""
        self._loop = loop
        self._borrowed = borrowed
        self._allowance = allowance
        self._connections: dict[Unfinished, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, unfinished: Unfinished) -> None:
        """Watch a connection from now on."""
        self._connections[unfinished] = None
        if self._timer is None:
            self._timer = self._loop.call_later(LOOK_SECONDS, self._look)

    def remove(self, unfinished: Unfinished) -> None:
        """Watch it no more."""
        self._connections.pop(unfinished, None)

    def close(self) -> None:
        """Watch nothing more."""
        self._connections.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        for unfinished in list(itertools.islice(self._connections, CONNECTIONS_PER_LOOK)):
            del self._connections[unfinished]
            self._connections[unfinished] = None
            received = self._borrowed.received(unfinished.descriptor)
            if received is None:
                continue
            if unfinished.progressed or received < unfinished.mark:
                unfinished.mark, unfinished.progressed = received, False
            elif received - unfinished.mark > self._allowance:
                self.remove(unfinished)
                unfinished.on_excess()
        if self._connections:
            self._timer = self._loop.call_later(LOOK_SECONDS, self._look)
