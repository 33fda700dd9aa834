"""ZeroMQ sockets as every connection needs them: encrypted, bounded, watched by the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import zmq
from zmq.utils import z85

from oneway.errors import KeyFileError
from oneway.transport.base import Key
from oneway.transport.limits import Limits

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


@dataclass(frozen=True)
class Identity:
    """A Curve25519 key pair, raw."""

    public: Key
    secret: bytes = field(repr=False)

    @classmethod
    def from_secret(cls, secret: bytes) -> Identity:
        """Derive the public key.

        Raises:
            KeyFileError: The secret does not have 32 bytes.
        """
        if len(secret) != 32:
            raise KeyFileError(
                f"the secret key has {len(secret)} bytes, but a Curve25519 secret has 32; "
                "restore the key file from a backup"
            )
        return cls(z85.decode(zmq.curve_public(z85.encode(secret))), secret)


class Watched:
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


def encrypted_socket(context: Context, kind: int, identity: Identity, limits: Limits) -> Socket:
    """Make a socket with the bounds and times of `limits`; the caller adds the other side's key."""
    socket = context.socket(kind)
    socket.set(zmq.CURVE_PUBLICKEY, identity.public)
    socket.set(zmq.CURVE_SECRETKEY, identity.secret)
    socket.set(zmq.MAXMSGSIZE, limits.max_frame + _CURVE_OVERHEAD)
    socket.set(zmq.SNDHWM, limits.queue)
    socket.set(zmq.RCVHWM, limits.queue)
    socket.set(zmq.HANDSHAKE_IVL, milliseconds(limits.handshake))
    socket.set(zmq.HEARTBEAT_IVL, milliseconds(limits.heartbeat))
    socket.set(zmq.HEARTBEAT_TIMEOUT, milliseconds(3 * limits.heartbeat))
    socket.set(zmq.HEARTBEAT_TTL, milliseconds(3 * limits.heartbeat))
    socket.set(zmq.LINGER, 0)
    return socket


def milliseconds(seconds: float) -> int:
    """Return whole milliseconds, at least one: 0 would mean "never" to ZeroMQ."""
    return max(1, round(1000 * seconds))


def skip_rest(socket: Socket) -> None:
    """Read and forget the remaining parts of a message."""
    while socket.get(zmq.RCVMORE):
        socket.recv(DONT_WAIT)
