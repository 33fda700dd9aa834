"""A network inside one process: nothing moves until the test says so, and time does not exist.

>>> network = MemoryNetwork()
>>> alice, bob = network.endpoint(b"a" * 32), network.endpoint(b"b" * 32)
>>> alice.dial(bob.key, bob.address)
>>> bob.admit(frozenset({alice.key}))
>>> alice.push(bob.key, b"hello")
>>> bob.receive_now() is None
True
>>> network.deliver(0)
>>> bob.receive_now().frame
b'hello'
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping

import msgspec

from oneway.errors import TransportError
from oneway.transport.base import Arrival, Key, Link, Via
from oneway.transport.losses import LossCounter, Losses


class Parcel(msgspec.Struct, frozen=True):
    """A frame in flight.

    Attributes:
        sender: Who sent it.
        receiver: Who it is for.
        frame: The bytes.
        via: Push or reply.
        dialler: The end that dialled: the sender of a push, the one a reply goes to.
        address: What was dialled.
    """

    sender: Key
    receiver: Key
    frame: bytes
    via: Via
    dialler: MemoryEndpoint
    address: str


class MemoryNetwork:
    """Frames in flight, oldest first; the test decides what becomes of them.

    Attributes:
        in_flight: The parcels; read it, and change it as you like.
        max_frame: Larger frames are lost.
    """

    def __init__(self, max_frame: int = 2**20) -> None:
        self.in_flight: list[Parcel] = []
        self.max_frame = max_frame
        self.listeners: dict[str, MemoryEndpoint] = {}

    def endpoint(self, key: Key, address: str | None = None) -> MemoryEndpoint:
        """Start listening; the address is the key in hexadecimal unless another is given.

        Raises:
            TransportError: Somebody listens there already.
        """
        return MemoryEndpoint(self, key, key.hex() if address is None else address)

    def deliver(self, index: int) -> None:
        """Let one parcel arrive, if there is still somebody to take it."""
        parcel = self.in_flight.pop(index)
        if parcel.via == "push":
            listener = self.listeners.get(parcel.address)
            # Who listens there now may be somebody else, who could not have read the parcel.
            if listener is not None and listener.key == parcel.receiver:
                listener.take_push(parcel)
        else:
            parcel.dialler.take_reply(parcel)

    def drop(self, index: int) -> None:
        """Lose one parcel."""
        del self.in_flight[index]

    def duplicate(self, index: int) -> None:
        """Put a copy of one parcel at the end."""
        self.in_flight.append(self.in_flight[index])

    def deliver_all(self) -> None:
        """Deliver what is in flight, oldest first."""
        while self.in_flight:
            self.deliver(0)


class MemoryEndpoint:
    """One peer's end of a `MemoryNetwork`; works with and without an event loop."""

    def __init__(self, network: MemoryNetwork, key: Key, address: str) -> None:
        if address in network.listeners:
            raise TransportError(
                f"cannot listen on {address}: another endpoint of this network listens there; "
                "close it first or choose another address"
            )
        network.listeners[address] = self
        self._network = network
        self._key = key
        self._address = address
        self._closed = False
        self._admitted: frozenset[Key] | None = frozenset()
        self._dialled: dict[Key, str] = {}
        self._routes: dict[Key, tuple[MemoryEndpoint, str]] = {}
        self._arrivals: deque[Arrival] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._losses = LossCounter()

    @property
    def key(self) -> Key:
        """My own public key."""
        return self._key

    @property
    def address(self) -> str:
        """Where I listen."""
        return self._address

    def dial(self, receiver: Key, address: str) -> None:
        """Connect to a receiver."""
        if not self._closed:
            self._dialled[receiver] = address

    def hang_up(self, receiver: Key) -> None:
        """Close the connection; replies that are in flight on it are lost."""
        self._dialled.pop(receiver, None)

    def admit(self, senders: frozenset[Key] | None) -> None:
        """Take pushes from these and nobody else; parcels in flight included."""
        self._admitted = senders

    def push(self, receiver: Key, frame: bytes) -> None:
        """Put a frame in flight."""
        address = self._dialled.get(receiver)
        if address is None:
            self._losses.unsent += 1
        elif len(frame) > self._network.max_frame:
            self._losses.oversized += 1
        else:
            parcel = Parcel(self._key, receiver, frame, "push", self, address)
            self._network.in_flight.append(parcel)

    def reply(self, sender: Key, frame: bytes) -> None:
        """Put a frame in flight, back to where the sender's last push came from."""
        route = self._routes.get(sender)
        if route is None:
            self._losses.unsent += 1
        elif len(frame) > self._network.max_frame:
            self._losses.oversized += 1
        else:
            self._network.in_flight.append(Parcel(self._key, sender, frame, "reply", *route))

    def take_push(self, parcel: Parcel) -> None:
        """Queue a push, if its sender is admitted."""
        if self._admitted is not None and parcel.sender not in self._admitted:
            self._losses.refuse(parcel.sender)
            return
        self._routes[parcel.sender] = (parcel.dialler, parcel.address)
        self._queue(Arrival(parcel.sender, parcel.frame, "push"))

    def take_reply(self, parcel: Parcel) -> None:
        """Queue a reply, if the connection it came over is still up."""
        if self._dialled.get(parcel.sender) == parcel.address:
            self._queue(Arrival(parcel.sender, parcel.frame, "reply"))

    def receive_now(self) -> Arrival | None:
        """Return the next arrival, or None if there is none."""
        return self._arrivals.popleft() if self._arrivals else None

    async def receive(self) -> Arrival:
        """Wait for the next arrival.

        Raises:
            TransportError: The endpoint is closed.
        """
        while not self._arrivals:
            if self._closed:
                raise TransportError(f"{self._address} is closed; receive before closing it")
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._arrivals.popleft()

    async def close(self) -> None:
        """Stop listening and hang up."""
        self.crash()

    def crash(self) -> None:
        """Do what `close` does, at once: for tests without an event loop."""
        if self._closed:
            return
        self._closed = True
        del self._network.listeners[self._address]
        self._dialled.clear()
        self._routes.clear()
        self._arrivals.clear()
        self._wake()

    @property
    def links(self) -> Mapping[Key, Link]:
        """Every receiver I dialled, as it would be found if the network were quiet."""
        return {key: self._link(key, address) for key, address in self._dialled.items()}

    @property
    def losses(self) -> Losses:
        """What was lost here since the start."""
        return self._losses.read()

    def _link(self, receiver: Key, address: str) -> Link:
        listener = self._network.listeners.get(address)
        if listener is None:
            return Link("connecting", since=0.0)
        if listener.key != receiver:
            return Link("stranger", since=0.0)
        admitted = listener._admitted is None or self._key in listener._admitted
        return Link("connected" if admitted else "refused", since=0.0)

    def _queue(self, arrival: Arrival) -> None:
        self._arrivals.append(arrival)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
