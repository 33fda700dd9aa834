"""The real network: ZeroMQ over TCP, encrypted and authenticated with CURVE.

Every peer is a Curve25519 key pair. A peer listens on one ROUTER and dials each of its receivers
with a DEALER that accepts only the receiver's key at the other end; replies come back over the same
connection. Everything runs in the thread of the event loop, but for ZeroMQ's own I/O threads, which
encrypt.

What this cannot bound: ZeroMQ collects all parts of a message before it hands over the first, and
limits the size of a part but not their number. An admitted sender that never ends a message can
fill the memory of a receiver; strangers cannot, they are refused before.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeAlias

import zmq

from oneway.errors import TransportError
from oneway.transport.base import Arrival, Key, Link
from oneway.transport.dialled import Dialled
from oneway.transport.limits import Limits
from oneway.transport.listener import Listener
from oneway.transport.losses import LossCounter, Losses
from oneway.transport.sockets import NUM_IO_THREADS, Context, Identity

Inlet: TypeAlias = Listener | Dialled
"""What frames come in through."""

# So many refused frames, or arrivals in a row, before the other tasks of the event loop get a turn.
_TURN = 64


class ZeroMQ:
    """One peer on the network.

    >>> async def example() -> None:
    ...     transport = ZeroMQ.listen(bytes(range(32)), "127.0.0.1:0")
    ...     await transport.close()
    >>> asyncio.run(example())
    """

    def __init__(
        self,
        identity: Identity,
        address: str,
        limits: Limits,
        clock: Callable[[], float],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._identity = identity
        self._limits = limits
        self._clock = clock
        self._loop = loop
        self._losses = LossCounter()
        self._dialled: dict[Key, Dialled] = {}
        # What may have something to read, each once, served in turn.
        self._ready: deque[Inlet] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._received = 0
        self._closed = False
        self._context: Context = zmq.Context(io_threads=NUM_IO_THREADS)
        try:
            self._listener = Listener(
                self._context, identity, address, limits, loop, self._losses, self._list
            )
        except BaseException:
            self._context.destroy(linger=0)
            raise

    @classmethod
    def listen(
        cls,
        secret: bytes,
        address: str,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.time,
    ) -> ZeroMQ:
        """Listen on an address, inside a running event loop; nobody is admitted yet.

        Args:
            secret: The Curve25519 secret key, 32 bytes.
            address: `host:port`; with port 0, a free one is chosen.
            limits: Sizes, queues and times.
            clock: What `links` read the time from.

        Raises:
            TransportError: The address is malformed, in use, or not this machine's.
            KeyFileError: The secret does not have 32 bytes.
        """
        identity = Identity.from_secret(secret)
        return cls(identity, address, limits or Limits(), clock, asyncio.get_running_loop())

    @property
    def key(self) -> Key:
        """My own public key."""
        return self._identity.public

    @property
    def address(self) -> str:
        """Where I listen, with the port that was chosen."""
        return self._listener.address

    def dial(self, receiver: Key, address: str) -> None:
        """Connect to a receiver and stay connected; another address replaces the connection.

        Raises:
            TransportError: The address is malformed.
        """
        known = self._dialled.get(receiver)
        if self._closed or (known is not None and known.address == address):
            return
        dialled = Dialled(
            self._context,
            self._identity,
            receiver,
            address,
            self._limits,
            self._loop,
            self._clock,
            self._losses,
            self._list,
        )
        self.hang_up(receiver)
        self._dialled[receiver] = dialled

    def hang_up(self, receiver: Key) -> None:
        """Close the connection to a receiver; what is queued is lost."""
        dialled = self._dialled.pop(receiver, None)
        if dialled is not None:
            if dialled.listed:
                self._ready.remove(dialled)
            dialled.close()

    def admit(self, senders: frozenset[Key] | None) -> None:
        """Take pushes from these and nobody else, live connections included; None is anyone."""
        self._listener.doorkeeper.admitted = senders

    def push(self, receiver: Key, frame: bytes) -> None:
        """Send to a receiver that was dialled; lost if it cannot leave at once."""
        dialled = self._dialled.get(receiver)
        if len(frame) > self._limits.max_frame:
            self._losses.oversized += 1
        elif dialled is None:
            self._losses.unsent += 1
        else:
            dialled.push(frame)

    def reply(self, sender: Key, frame: bytes) -> None:
        """Send back over the connection on which the sender's last push came."""
        if len(frame) > self._limits.max_frame:
            self._losses.oversized += 1
        elif self._closed:
            self._losses.unsent += 1
        else:
            self._listener.reply(sender, frame)

    def receive_now(self) -> Arrival | None:
        """Return the next arrival; None if there is none, or after many refused frames in a row."""
        ready = self._ready
        for _ in range(_TURN):
            if not ready:
                return None
            inlet = ready[0]
            try:
                arrival = inlet.take()
            except zmq.Again:
                ready.popleft()
                inlet.listed = False
                continue
            ready.rotate(-1)
            if arrival is not None:
                return arrival
        return None

    async def receive(self) -> Arrival:
        """Wait for the next arrival; a flood does not keep other tasks from running.

        Raises:
            TransportError: The transport is closed.
        """
        self._received += 1
        if self._received % _TURN == 0:
            await asyncio.sleep(0)
        while (arrival := self.receive_now()) is None:
            if self._closed:
                raise TransportError(f"{self.address} is closed; receive before closing it")
            if self._ready:
                await asyncio.sleep(0)
                continue
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return arrival

    async def close(self) -> None:
        """Hang up on everybody, free the port, and stop ZeroMQ's threads."""
        if not self._closed:
            self._closed = True
            for receiver in list(self._dialled):
                self.hang_up(receiver)
            self._listener.close()
            self._ready.clear()
            self._wake()
        # In a thread, because an I/O thread that is looking up a name must finish that first.
        await asyncio.to_thread(self._context.term)

    @property
    def links(self) -> Mapping[Key, Link]:
        """Every receiver I dialled and how that connection is doing."""
        # A copy first: a status may be asked for in another thread than the one that dials.
        return {receiver: dialled.link for receiver, dialled in list(self._dialled.items())}

    @property
    def losses(self) -> Losses:
        """What was lost here since the start, as far as this side can know."""
        return self._losses.read()

    def _list(self, inlet: Inlet) -> None:
        if not inlet.listed:
            inlet.listed = True
            self._ready.append(inlet)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
