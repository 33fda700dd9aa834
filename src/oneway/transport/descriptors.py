"""File descriptors: how many there are, what running out of them looks like, acting on ZeroMQ's."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import logging
import os
import resource
import socket
import struct
import termios
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

SHORTAGE_SECONDS = 30.0
"""How often a shortage is told."""

_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

# In Linux' struct tcp_info, tcpi_bytes_received; other systems do not tell.
_TCP_INFO: int | None = getattr(socket, "TCP_INFO", None)
_BYTES_RECEIVED, _TCP_INFO_SIZE = 128, 136


def descriptor_limit() -> int:
    """Return how many descriptors this process may have open at once."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**30 if limit == resource.RLIM_INFINITY else limit


def is_shortage(error: Exception) -> bool:
    """Whether an error says that there are no descriptors (or buffers) left at this moment."""
    return getattr(error, "errno", None) in _SHORTAGES


def require_descriptors(count: int) -> None:
    """Check that so many descriptors can be opened now.

    Raises:
        OSError: They cannot.
    """
    with ExitStack() as opened:
        for _ in range(count):
            opened.enter_context(socket.socket())


class BorrowedSocket:
    """Looks at TCP connections of ZeroMQ, and ends them, by the numbers of their descriptors.

    ZeroMQ tells the number and goes on: the connection may be closed by now, and the number belong
    to something else. So the descriptor is first copied, which pins what it stands for, and the
    copy is looked at. The copy's own number is held in reserve: it works without a free one.
    """

    def __init__(self) -> None:
        self._copy, self._blank = socket.socket(), socket.socket()

    def received(self, descriptor: int) -> int | None:
        """Return how many bytes came in until now and were read; None if this system cannot say."""
        if _TCP_INFO is None:
            return None
        try:
            with self._borrow(descriptor) as borrowed:
                facts = borrowed.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _TCP_INFO_SIZE)
                waiting = fcntl.ioctl(borrowed, termios.FIONREAD, bytes(4))
        except OSError:
            return None
        if len(facts) < _TCP_INFO_SIZE:
            return None
        (received,) = struct.unpack_from("=Q", facts, _BYTES_RECEIVED)
        return int(received) - int.from_bytes(waiting, "little")

    def end(self, descriptor: int, port: int) -> bool:
        """End a connection of a local port, whoever made it; False if it is no such connection."""
        try:
            with self._borrow(descriptor) as borrowed:
                if borrowed.getsockname()[1] != port:
                    return False
                borrowed.shutdown(socket.SHUT_RDWR)
        except (OSError, IndexError):
            return False
        return True

    def close(self) -> None:
        """Give the reserve back."""
        self._copy.close()
        self._blank.close()

    @contextmanager
    def _borrow(self, descriptor: int) -> Iterator[socket.socket]:
        os.dup2(descriptor, self._copy.fileno(), inheritable=False)
        try:
            yield self._copy
        finally:
            # A copy that stayed would keep the connection open after ZeroMQ has closed it.
            os.dup2(self._blank.fileno(), self._copy.fileno(), inheritable=False)


def warn_of_shortage(
    log: logging.Logger,
) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """Say once in a while that connections cannot be accepted, instead of a traceback for each."""
    next_line = 0.0

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal next_line
        error = context.get("exception")
        if not isinstance(error, OSError) or not is_shortage(error):
            loop.default_exception_handler(context)
        elif loop.time() >= next_line:
            next_line = loop.time() + SHORTAGE_SECONDS
            log.warning("no connection can be accepted for now: %s", error.strerror)

    return handle
