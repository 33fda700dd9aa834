"""ZeroMQ sockets as server and client need them: encrypted, bounded, watched by the event loop."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import zmq

from oneway.protocol.state import Key
from oneway.transport.base import Arrival, ConnectionLimits, Losses, Via
from oneway.transport.descriptors import BorrowedSocket
from oneway.transport.keys import KeyPair
from oneway.transport.unfinished import UnfinishedWatch

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
_RCVMORE = int(zmq.RCVMORE)

_PARTS_PER_TURN = 256

WARN_SECONDS = 30.0
"""The same warning is logged no more often than this."""

# Under the peer's name, because its console shows what is logged there.
_log = logging.getLogger("oneway.peer.transport")
_numbers = itertools.count()


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

    `clock` is for links; `on_readable` is called with an inlet that may have something to read;
    `borrowed` and `unfinished` are for the descriptors of connections.
    """

    context: Context
    keys: KeyPair
    limits: ConnectionLimits
    clock: Callable[[], float]
    loop: asyncio.AbstractEventLoop
    losses: Losses
    on_readable: Callable[[Inlet], None]
    borrowed: BorrowedSocket
    unfinished: UnfinishedWatch
    warn_crowd: RateLimitedWarning
    warn_shortage: RateLimitedWarning

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

    def monitor(self, socket: Socket, events: int) -> Socket:
        """Make a socket on which ZeroMQ tells what happens to the connections of another."""
        address = f"inproc://monitor-{next(_numbers)}"
        socket.monitor(address, events)
        try:
            monitor = self.context.socket(zmq.PAIR)
        except zmq.ZMQError:
            socket.disable_monitor()
            raise
        monitor.set(zmq.LINGER, 0)
        # Without a bound: ZeroMQ's thread would wait for a reader that may be waiting for it.
        monitor.set(zmq.RCVHWM, 0)
        monitor.connect(address)
        return monitor


class RateLimitedWarning:
    """Logs a warning, but no more often than every so many seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._quiet_until = -math.inf

    def __call__(self, sentence: str, *values: object) -> None:
        """Log it, unless the last one was logged just now."""
        if (now := self._clock()) >= self._quiet_until:
            self._quiet_until = now + WARN_SECONDS
            _log.warning(sentence, *values)


class FrameReader:
    """Reads frames from a socket, and says what is wrong with messages that are none.

    A message of many parts is read in many turns: its number of parts is not limited.
    """

    def __init__(self, env: Environment, socket: Socket) -> None:
        self._limits, self._losses = env.limits, env.losses
        self._socket = socket
        self._flawed: Arrival | None = None

    @property
    def is_amid(self) -> bool:
        """Whether parts of the last message are still to be skipped."""
        return self._flawed is not None

    def whole(self, part: zmq.Frame, peer: Key, via: Via) -> Arrival | None:
        """Return what a message is, given its part with the content; None if that takes longer."""
        if part.more:
            self._losses.malformed += 1
            self._flawed = Arrival(peer, b"", via, flaw="a message of several parts")
            return self.skip()
        if len(part) > self._limits.max_frame:
            self._losses.oversized += 1
            flaw = f"a message of {len(part)} bytes, where {self._limits.max_frame} are allowed"
            return Arrival(peer, b"", via, flaw=flaw)
        return Arrival(peer, part.bytes, via)

    def skip(self) -> Arrival | None:
        """Skip more parts of a malformed message; return what it is once that is done."""
        for _ in range(_PARTS_PER_TURN):
            if not self._socket.get(_RCVMORE):
                flawed, self._flawed = self._flawed, None
                return flawed
            self._socket.recv(DONT_WAIT)
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
