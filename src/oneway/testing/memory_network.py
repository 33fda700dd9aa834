"""In-memory network: nothing moves until the test says so, and time does not exist.

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

from collections import deque
from collections.abc import Mapping

import msgspec

from oneway.errors import TransportError
from oneway.protocol.state import Key
from oneway.transport.base import Arrival, ConnectionLimits, Link, Transport, Via


class Datagram(msgspec.Struct, frozen=True):
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
        in_flight: The datagrams; read it, and change it as you like.
        limits: Larger frames than its `max_frame` are lost.
    """

    def __init__(self, max_frame: int = 2**20) -> None:
        self.in_flight: list[Datagram] = []
        self.limits = ConnectionLimits(max_frame)
        self.listeners: dict[str, MemoryEndpoint] = {}

    def endpoint(self, key: Key, address: str | None = None) -> MemoryEndpoint:
        """Start listening; the address is the key in hexadecimal unless another is given.

        Raises:
            TransportError: Somebody listens there already.
        """
        return MemoryEndpoint(self, key, key.hex() if address is None else address)

    def send(self, datagram: Datagram) -> None:
        """Put a datagram in flight."""
        self.in_flight.append(datagram)

    def deliver(self, index: int) -> None:
        """Let one datagram arrive, if there is still somebody to take it."""
        self.arrive(self.in_flight.pop(index))

    def arrive(self, datagram: Datagram) -> None:
        """Hand a datagram to whom it is for, if there is still somebody to take it."""
        if datagram.via == "push":
            listener = self.listeners.get(datagram.address)
            # Who listens there now may be somebody else, who could not have read the datagram.
            if listener is not None and listener.key == datagram.receiver:
                listener.take_push(datagram)
        else:
            datagram.dialler.take_reply(datagram)

    def is_silent(self, listener: MemoryEndpoint) -> bool:
        """Whether who listens has not been heard for so long that connections to it are down."""
        return False

    def drop(self, index: int) -> None:
        """Lose one datagram."""
        del self.in_flight[index]

    def duplicate(self, index: int) -> None:
        """Put a copy of one datagram at the end."""
        self.in_flight.append(self.in_flight[index])

    def deliver_all(self) -> None:
        """Deliver what is in flight, oldest first."""
        while self.in_flight:
            self.deliver(0)


class MemoryEndpoint(Transport):
    """One peer's end of a `MemoryNetwork`; works with and without an event loop."""

    def __init__(self, network: MemoryNetwork, key: Key, address: str) -> None:
        if address in network.listeners:
            raise TransportError(
                f"cannot listen on {address}: another endpoint of this network listens there; "
                "close it first or choose another address"
            )
        super().__init__(key, address, network.limits)
        network.listeners[address] = self
        self._network = network
        self._dialled: dict[Key, str] = {}
        self._routes: dict[Key, tuple[MemoryEndpoint, str]] = {}
        self._arrivals: deque[Arrival] = deque()

    def dial(self, receiver: Key, address: str) -> None:
        """Connect to a receiver."""
        if not self._closed:
            self._dialled[receiver] = address

    def hang_up(self, receiver: Key) -> None:
        """Close the connection; replies that are in flight on it are lost."""
        self._dialled.pop(receiver, None)

    @property
    def links(self) -> Mapping[Key, Link]:
        """Every receiver I dialled, as it would be found if the network were quiet."""
        return {key: self._link(key, address) for key, address in self._dialled.items()}

    def send_push(self, receiver: Key, frame: bytes) -> bool:
        """Put a frame in flight."""
        address = self._dialled.get(receiver)
        if address is None:
            return False
        self._network.send(Datagram(self.key, receiver, frame, "push", self, address))
        return True

    def send_reply(self, sender: Key, frame: bytes) -> bool:
        """Put a frame in flight, back to where the sender's last push came from."""
        route = self._routes.get(sender)
        if route is None:
            return False
        self._network.send(Datagram(self.key, sender, frame, "reply", *route))
        return True

    def take_push(self, datagram: Datagram) -> None:
        """Queue a push, if its sender is admitted."""
        if self.admits(datagram.sender):
            self._routes[datagram.sender] = (datagram.dialler, datagram.address)
            self._queue(Arrival(datagram.sender, datagram.frame, "push"))

    def take_reply(self, datagram: Datagram) -> None:
        """Queue a reply, if the connection it came over is still up."""
        if self._dialled.get(datagram.sender) == datagram.address:
            self._queue(Arrival(datagram.sender, datagram.frame, "reply"))

    def receive_now(self) -> Arrival | None:
        """Return the next arrival, or None if there is none."""
        return self._arrivals.popleft() if self._arrivals else None

    async def close(self) -> None:
        """Stop listening and hang up."""
        self.crash()

    def crash(self) -> None:
        """Do what `close` does, at once: for tests without an event loop."""
        if not self._closed:
            self._closed = True
            del self._network.listeners[self.address]
            for forgotten in (self._dialled, self._routes, self._arrivals):
                forgotten.clear()
            self.wake()

    def _link(self, receiver: Key, address: str) -> Link:
        listener = self._network.listeners.get(address)
        if listener is None or self._network.is_silent(listener):
            return Link("connecting", since=0.0)
        if listener.key != receiver:
            return Link("stranger", since=0.0)
        admitted = listener._admitted is None or self.key in listener._admitted
        return Link("connected" if admitted else "refused", since=0.0)

    def _queue(self, arrival: Arrival) -> None:
        self._arrivals.append(arrival)
        self.wake()
