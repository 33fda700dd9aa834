"""A transport: datagrams on one machine, where everybody who can send may be believed.

A packet is (kind, sender, receiver, frame). Nothing is encrypted or proven: this is for a lab.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Mapping

import msgspec

from oneway.errors import TransportError
from oneway.transport import (
    TRANSPORTS,
    Arrival,
    ConnectionLimits,
    Key,
    Link,
    LinkState,
    Transport,
    parse_address,
)
from oneway.transport.keys import public_of

_ANSWERS: dict[str, LinkState] = {"here": "connected", "no": "refused", "wrong": "stranger"}
_HELLO_SECONDS = 0.05
_SILENT_SECONDS = 1.0


class Udp(Transport):
    """One socket for everything; a dialled receiver is asked again and again if it is there."""

    def __init__(
        self, key: Key, address: str, limits: ConnectionLimits, clock: Callable[[], float]
    ) -> None:
        host, port = parse_address(address, lowest_port=0)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise TransportError(f"cannot listen on {address}: {error.strerror}") from error
        super().__init__(key, f"{host}:{self._socket.getsockname()[1]}", limits)
        self._clock = clock
        self._dialled: dict[Key, tuple[str, int]] = {}
        self._links: dict[Key, Link] = {}
        self._answered: dict[Key, float] = {}
        self._routes: dict[Key, tuple[str, int]] = {}
        self._arrivals: deque[Arrival] = deque()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._read)
        self._hello()

    def dial(self, receiver: Key, address: str) -> None:
        """Remember where the receiver is; a hello goes out soon."""
        place = tuple(parse_address(address))
        if not self._closed and self._dialled.get(receiver) != place:
            self._dialled[receiver] = place
            self._links[receiver] = Link("connecting", self._clock())

    def hang_up(self, receiver: Key) -> None:
        """Forget the receiver."""
        self._dialled.pop(receiver, None)
        self._links.pop(receiver, None)

    @property
    def links(self) -> Mapping[Key, Link]:
        """What the receivers' last answers said."""
        return dict(self._links)

    def send_push(self, receiver: Key, frame: bytes) -> bool:
        """Send to where the receiver was dialled."""
        place = self._dialled.get(receiver)
        return place is not None and self._send("push", receiver, place, frame)

    def send_reply(self, sender: Key, frame: bytes) -> bool:
        """Send to where the sender's last push came from."""
        place = self._routes.get(sender)
        return place is not None and self._send("reply", sender, place, frame)

    def receive_now(self) -> Arrival | None:
        """The next arrival."""
        return self._arrivals.popleft() if self._arrivals else None

    async def close(self) -> None:
        """Stop."""
        if not self._closed:
            self._closed = True
            self._timer.cancel()
            self._loop.remove_reader(self._socket)
            self._socket.close()
            for forgotten in (self._dialled, self._links, self._routes, self._arrivals):
                forgotten.clear()
            self.wake()

    def _hello(self) -> None:
        now = self._clock()
        for receiver, place in self._dialled.items():
            self._send("hello", receiver, place)
            silent = now - self._answered.get(receiver, now) > _SILENT_SECONDS
            if silent and self._links[receiver].state != "connecting":
                self._links[receiver] = Link("connecting", now)
        self._timer = self._loop.call_later(_HELLO_SECONDS, self._hello)

    def _send(self, kind: str, peer: Key, place: tuple[str, int], frame: bytes = b"") -> bool:
        try:
            self._socket.sendto(msgspec.msgpack.encode((kind, self.key, peer, frame)), place)
        except OSError:
            return False
        return True

    def _read(self) -> None:
        while True:
            try:
                packet, place = self._socket.recvfrom(2**16)
                kind, sender, receiver, frame = msgspec.msgpack.decode(
                    packet, type=tuple[str, bytes, bytes, bytes]
                )
            except BlockingIOError:
                return
            except (OSError, msgspec.MsgspecError):
                continue
            self._take(kind, sender, receiver, frame, place)

    def _take(
        self, kind: str, sender: Key, receiver: Key, frame: bytes, place: tuple[str, int]
    ) -> None:
        if kind in _ANSWERS:
            # Whoever is not the receiver answers under its own key, about the one that was meant.
            self._note(receiver if kind == "wrong" else sender, place, _ANSWERS[kind])
        elif receiver != self.key:
            self._socket.sendto(msgspec.msgpack.encode(("wrong", self.key, receiver, b"")), place)
        elif kind == "reply":
            if self._dialled.get(sender) == place:
                self._queue(Arrival(sender, frame, "reply"))
        elif not self.admits(sender):
            self._send("no", sender, place)
        elif kind == "hello":
            self._send("here", sender, place)
        elif len(frame) <= self._limits.max_frame:
            self._routes[sender] = place
            self._queue(Arrival(sender, frame, "push"))

    def _note(self, receiver: Key, place: tuple[str, int], state: LinkState) -> None:
        if self._dialled.get(receiver) == place:
            self._answered[receiver] = self._clock()
            if self._links[receiver].state != state:
                self._links[receiver] = Link(state, self._clock())

    def _queue(self, arrival: Arrival) -> None:
        self._arrivals.append(arrival)
        self.wake()


def listen_udp(
    secret_key: bytes, address: str, *, limits: ConnectionLimits, clock: Callable[[], float]
) -> Transport:
    """Listen with datagrams."""
    return Udp(public_of(secret_key), address, limits, clock)


TRANSPORTS.register(listen_udp, "udp")
