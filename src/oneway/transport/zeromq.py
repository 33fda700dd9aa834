"""ZeroMQ transport: TCP, encrypted and authenticated with CURVE.

Every peer is a Curve25519 key pair. A peer listens on one ROUTER and dials each of its receivers
with a DEALER that accepts only the receiver's key at the other end; replies come back over the same
connection. Everything runs in the thread of the event loop, but for ZeroMQ's own I/O threads, which
encrypt.

ZeroMQ itself bounds neither how many connections strangers open nor how many parts a message has;
`zeromq_accepted` and `unfinished` do.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping

import zmq

from oneway.errors import TransportError
from oneway.protocol.state import Key
from oneway.transport.base import ARRIVALS_PER_TURN, Arrival, ConnectionLimits, Link, Transport
from oneway.transport.descriptors import (
    BorrowedSocket,
    descriptor_limit,
    is_shortage,
    require_descriptors,
)
from oneway.transport.keys import KeyPair, public_of
from oneway.transport.unfinished import UnfinishedWatch
from oneway.transport.zeromq_client import Connection
from oneway.transport.zeromq_server import Server
from oneway.transport.zeromq_sockets import (
    NUM_IO_THREADS,
    Context,
    Environment,
    Inlet,
    RateLimitedWarning,
)

_DESCRIPTORS_TO_START = 24

_UNFINISHED_BYTES = 2**22
"""What a connection may bring for a message that has no end yet, beside twice its queue."""


class ZeroMQ(Transport):
    """One peer on the network.

    >>> async def example() -> None:
    ...     transport = ZeroMQ(bytes(range(32)), "127.0.0.1:0")
    ...     await transport.close()
    >>> asyncio.run(example())
    """

    def __init__(
        self,
        secret_key: bytes,
        address: str,
        *,
        limits: ConnectionLimits | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Listen on an address as `Listen` says; with port 0, a free one is chosen.

        Raises:
            ConfigError: The address is malformed.
            TransportError: The address is in use, or not this machine's; or no files can be opened.
            KeyFileError: The secret does not have 32 bytes.
        """
        keys, limits = KeyPair(public_of(secret_key), secret_key), limits or ConnectionLimits()
        super().__init__(keys.public, address, limits)
        self._loop = asyncio.get_running_loop()
        self._connections: dict[Key, Connection] = {}
        # What may have something to read, each once, served in turn.
        self._ready: deque[Inlet] = deque()
        try:
            # ZeroMQ ends the process if it cannot open what its threads need.
            require_descriptors(_DESCRIPTORS_TO_START)
            borrowed = BorrowedSocket()
        except OSError as error:
            raise _no_descriptors(address, error) from None
        context: Context = zmq.Context(io_threads=NUM_IO_THREADS)
        allowance = 2 * limits.queue * limits.max_frame + _UNFINISHED_BYTES
        self._env = Environment(
            context,
            keys,
            limits,
            clock,
            self._loop,
            self._losses,
            self._enqueue,
            borrowed,
            UnfinishedWatch(self._loop, borrowed, allowance),
            RateLimitedWarning(self._loop.time),
            RateLimitedWarning(self._loop.time),
        )
        try:
            self._server = Server(self._env, address, self.admits)
        except BaseException as error:
            borrowed.close()
            context.destroy(linger=0)
            if isinstance(error, zmq.ZMQError) and is_shortage(error):
                raise _no_descriptors(address, error) from None
            raise
        self.address = self._server.address

    def dial(self, receiver: Key, address: str) -> None:
        """Connect to a receiver and stay connected; another address replaces the connection.

        Raises:
            ConfigError: The address is malformed.
        """
        known = self._connections.get(receiver)
        if self._closed or (known is not None and known.address == address):
            return
        connection = Connection(self._env, receiver, address)
        self.hang_up(receiver)
        self._connections[receiver] = connection

    def hang_up(self, receiver: Key) -> None:
        """Close the connection to a receiver; what is queued is lost."""
        connection = self._connections.pop(receiver, None)
        if connection is not None:
            if connection.queued:
                self._ready.remove(connection)
            connection.close()

    @property
    def links(self) -> Mapping[Key, Link]:
        """Every receiver I dialled and how that connection is doing."""
        # A copy first: a status may be asked for in another thread than the one that dials.
        return {receiver: known.link for receiver, known in list(self._connections.items())}

    def send_push(self, receiver: Key, frame: bytes) -> bool:
        """Send to a receiver that was dialled; False if it cannot leave at once."""
        connection = self._connections.get(receiver)
        return connection is not None and connection.push(frame)

    def send_reply(self, sender: Key, frame: bytes) -> bool:
        """Send over the connection of the sender's last push."""
        return not self._closed and self._server.reply(sender, frame)

    def receive_now(self) -> Arrival | None:
        """Return the next arrival; None if there is none, or after many refused frames in a row."""
        ready = self._ready
        for _ in range(ARRIVALS_PER_TURN):
            if not ready:
                return None
            inlet = ready[0]
            try:
                arrival = inlet.take()
            except zmq.Again:
                ready.popleft()
                inlet.queued = False
                continue
            ready.rotate(-1)
            if arrival is not None:
                return arrival
        # Not at once: a flood of refused frames must not keep other tasks from running.
        self._loop.call_soon(self.wake)
        return None

    async def close(self) -> None:
        """Hang up on every receiver, free the port, and stop ZeroMQ's threads."""
        if not self._closed:
            self._closed = True
            for receiver in list(self._connections):
                self.hang_up(receiver)
            self._server.close()
            self._env.unfinished.close()
            self._env.borrowed.close()
            self._ready.clear()
            self.wake()
        # In a thread, because an I/O thread that is looking up a name must finish that first.
        await asyncio.to_thread(self._env.context.term)

    def _enqueue(self, inlet: Inlet) -> None:
        if not inlet.queued:
            inlet.queued = True
            self._ready.append(inlet)
        self.wake()


def _no_descriptors(address: str, error: OSError | zmq.ZMQError) -> TransportError:
    return TransportError(
        f"cannot listen on {address}: {error.strerror or error}; this process may have "
        f"{descriptor_limit()} files open, raise that limit (ulimit -n)"
    )
