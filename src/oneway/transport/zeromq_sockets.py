"""ZeroMQ sockets as server and client need them: encrypted, bounded, watched by the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import zmq

from oneway.transport.base import Arrival, ConnectionLimits, Losses
from oneway.transport.keys import KeyPair

Socket: TypeAlias = "zmq.Socket[bytes]"
Context: TypeAlias = "zmq.Context[Socket]"

NUM_IO_THREADS = 2
LISTENING_THREAD = 1 << 0
# A host name is looked up by the I/O thread, which stands still meanwhile: dialling has its own.
DIALLING_THREAD = 1 << 1

# CURVE wraps a frame in a command with a name, a nonce and a tag, and the limit is on the whole.
_CURVE_OVERHEAD = 64

# As plain integers: the enumerations cost more than the calls they are passed to.
DONT_WAIT = int(zmq.NOBLOCK)
_EVENTS = int(zmq.EVENTS)
_POLLIN = int(zmq.POLLIN)


class Inlet(Protocol):
    """What frames come in through: the server, or a client's connection.

    Attributes:
        queued: Whether the transport has it in its queue of what to read from.
    """

    queued: bool

    def take(self) -> Arrival | None:
        """Read one message; None if it was refused or malformed.

        Raises:
            zmq.Again: There is none.
        """
        ...


@dataclass(frozen=True)
class Environment:
    """What the server and all connections of one transport share.

    `clock` is for links; `on_readable` is called with an inlet that may have something to read.
    """

    context: Context
    keys: KeyPair
    limits: ConnectionLimits
    clock: Callable[[], float]
    loop: asyncio.AbstractEventLoop
    losses: Losses
    on_readable: Callable[[Inlet], None]

    def socket(self, kind: int) -> Socket:
        """Make an encrypted socket with the limits; the caller adds the other side's key."""
        limits = self.limits
        socket = self.context.socket(kind)
        socket.set(zmq.CURVE_PUBLICKEY, self.keys.public)
        socket.set(zmq.CURVE_SECRETKEY, self.keys.secret)
        socket.set(zmq.MAXMSGSIZE, limits.max_frame + _CURVE_OVERHEAD)
        socket.set(zmq.SNDHWM, limits.queue)
        socket.set(zmq.RCVHWM, limits.queue)
        socket.set(zmq.HANDSHAKE_IVL, milliseconds(limits.handshake))
        socket.set(zmq.HEARTBEAT_IVL, milliseconds(limits.heartbeat))
        socket.set(zmq.HEARTBEAT_TIMEOUT, milliseconds(3 * limits.heartbeat))
        socket.set(zmq.HEARTBEAT_TTL, milliseconds(3 * limits.heartbeat))
        socket.set(zmq.LINGER, 0)
        return socket

    def whole_frame(self, socket: Socket, part: zmq.Frame) -> bytes | None:
        """Return a received part if it is a whole message within the limit, or count what it is."""
        if part.more:
            while socket.get(zmq.RCVMORE):
                socket.recv(DONT_WAIT)
            self.losses.malformed += 1
        elif len(part) > self.limits.max_frame:
            self.losses.oversized += 1
        else:
            return part.bytes
        return None


class WatchedSocket:
    """A socket, and what to call in the event loop when it has something to read.

    This is the synchronous socket with the loop on its file descriptor: zmq.asyncio makes futures
    for every frame and was measured at a seventh of the frames per second.
    """

    def __init__(
        self, socket: Socket, loop: asyncio.AbstractEventLoop, on_readable: Callable[[], None]
    ) -> None:
        self.socket = socket
        self._loop = loop
        self._on_readable = on_readable
        self._descriptor = int(socket.get(zmq.FD))
        loop.add_reader(self._descriptor, self.look)
        # Nothing can be there yet, but only from the first look on does the descriptor tell.
        socket.get(_EVENTS)

    def look(self) -> None:
        """Ask whether there is something to read; also needed after every send.

        The descriptor tells of changes, not of states, and any call on the socket, a send too,
        can swallow the change.
        """
        if int(self.socket.get(_EVENTS)) & _POLLIN:
            self._on_readable()

    def close(self) -> None:
        """Stop watching, then close."""
        self._loop.remove_reader(self._descriptor)
        self.socket.close(linger=0)


def milliseconds(seconds: float) -> int:
    """Return whole milliseconds, at least one: 0 would mean "never" to ZeroMQ."""
    return max(1, round(1000 * seconds))
