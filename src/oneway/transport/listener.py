"""The receiving end: one ROUTER that everybody dials, behind a `Doorkeeper`."""

from __future__ import annotations

import asyncio
import errno
import socket as sockets
from collections.abc import Callable

import zmq

from oneway.errors import TransportError
from oneway.transport.address import Address, parse_address
from oneway.transport.base import Arrival, Key
from oneway.transport.doorkeeper import Doorkeeper
from oneway.transport.limits import Limits
from oneway.transport.losses import LossCounter
from oneway.transport.sockets import (
    DONT_WAIT,
    LISTENING_THREAD,
    Context,
    Identity,
    Socket,
    Watched,
    encrypted_socket,
    skip_rest,
)

MAX_ROUTES = 4096
"""Ways back are remembered for this many senders: with anyone admitted, keys cost nothing."""

_REASONS = {
    errno.EADDRINUSE: "the port is in use by another program; choose another",
    errno.EADDRNOTAVAIL: "the address is not one of this machine's; choose one that is",
    errno.EACCES: "this user may not listen on that port; choose one from 1024 to 65535",
    errno.EPERM: "this user may not listen on that port; choose one from 1024 to 65535",
}


class Listener:
    """Takes pushes in and sends replies back the way the sender's last push came.

    Attributes:
        doorkeeper: Knows who is admitted.
        address: Where it listens, with the port that was really chosen.
        listed: Whether the transport has it on its list of what to read from.
    """

    def __init__(
        self,
        context: Context,
        identity: Identity,
        address: str,
        limits: Limits,
        loop: asyncio.AbstractEventLoop,
        losses: LossCounter,
        on_readable: Callable[[Listener], None],
    ) -> None:
        self.listed = False
        self._limits = limits
        self._losses = losses
        # The last way rather than the newest connection: it is always one that has just worked.
        self._routes: dict[Key, bytes] = {}
        place = _resolve(parse_address(address, lowest_port=0))
        self.doorkeeper = Doorkeeper(context, loop, losses)
        router = encrypted_socket(context, zmq.ROUTER, identity, limits)
        router.set(zmq.CURVE_SERVER, 1)
        router.set(zmq.ZAP_DOMAIN, b"oneway")
        router.set(zmq.AFFINITY, LISTENING_THREAD)
        # Unroutable replies are reported, so that they can be counted. Handover stays off: nobody
        # can take over another's connection by claiming its routing id.
        router.set(zmq.ROUTER_MANDATORY, 1)
        router.set(zmq.IPV6, int(place.kind == "ipv6"))
        self.address = _bind(router, place, address)
        self._watched = Watched(router, loop, lambda: on_readable(self))

    def take(self) -> Arrival | None:
        """Read one message; None if it was refused or malformed.

        Raises:
            zmq.Again: There is none.
        """
        router = self._watched.socket
        route = router.recv(DONT_WAIT)
        part = router.recv(DONT_WAIT, copy=False)
        # Admission is asked at the handshake too, but it may have been revoked since.
        peer = bytes.fromhex(str(part.get("User-Id")))
        if part.more:
            skip_rest(router)
            self._losses.malformed += 1
            return None
        if not self.doorkeeper.admits(peer):
            return None
        if len(part) > self._limits.max_frame:
            self._losses.oversized += 1
            return None
        if self._routes.get(peer) != route:
            self._remember(peer, route)
        return Arrival(peer, part.bytes, "push")

    def reply(self, sender: Key, frame: bytes) -> None:
        """Send back; lost if the sender has never come through or is gone, or its queue is full."""
        route = self._routes.get(sender)
        if route is None:
            self._losses.unsent += 1
            return
        try:
            self._watched.socket.send_multipart((route, frame), DONT_WAIT)
        except zmq.ZMQError as error:
            self._losses.unsent += 1
            if error.errno == zmq.EHOSTUNREACH:
                del self._routes[sender]
        if not self.listed:
            self._watched.look()

    def close(self) -> None:
        """Stop listening."""
        self._watched.close()
        self.doorkeeper.close()

    def _remember(self, sender: Key, route: bytes) -> None:
        self._routes.pop(sender, None)
        self._routes[sender] = route
        if len(self._routes) > MAX_ROUTES:
            del self._routes[next(iter(self._routes))]


def _resolve(address: Address) -> Address:
    """Look up a host name: ZeroMQ listens on numbers only."""
    if address.kind != "name":
        return address
    try:
        found = sockets.getaddrinfo(address.host, address.port, type=sockets.SOCK_STREAM)
    except OSError:
        raise TransportError(
            f"cannot listen on {address}: no host is known by that name; choose an address of this "
            'machine with listen = "host:port" in peer.toml'
        ) from None
    family, _, _, _, place = min(found, key=lambda entry: entry[0] != sockets.AF_INET)
    return Address(str(place[0]), address.port, "ipv4" if family == sockets.AF_INET else "ipv6")


def _bind(router: Socket, place: Address, asked: str) -> str:
    try:
        router.bind(f"tcp://{place}")
    except zmq.ZMQError as error:
        reason = _REASONS.get(error.errno or 0, f"{error.strerror}; choose another address")
        raise TransportError(
            f'cannot listen on {asked}: {reason} with listen = "host:port" in peer.toml'
        ) from None
    return router.get_string(zmq.LAST_ENDPOINT).removeprefix("tcp://")
