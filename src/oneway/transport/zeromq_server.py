"""Server side of ZeroMQ: one ROUTER that all senders dial, behind admission control by key.

Admission is ZeroMQ's authentication protocol ZAP, https://rfc.zeromq.org/spec/27/: a question per
connection, before anything else of it is read.
"""

from __future__ import annotations

import errno
import socket as sockets
from collections import deque
from collections.abc import Callable

import zmq

from oneway.errors import TransportError
from oneway.protocol.state import Key
from oneway.transport.address import Address, parse_address
from oneway.transport.base import Arrival
from oneway.transport.zeromq_accepted import AcceptedConnections
from oneway.transport.zeromq_sockets import (
    DONT_WAIT,
    LISTENING_THREAD,
    Environment,
    FrameReader,
    Socket,
    WatchedSocket,
)

MAX_ROUTES = 4096
"""Ways back are remembered for this many senders: with anyone admitted, keys cost nothing."""

# Short, so that a burst of connections waits in the kernel, and its surplus is closed in time.
_BACKLOG = 16

_ZAP_ADDRESS = "inproc://zeromq.zap.01"

_REASONS = {
    errno.EADDRINUSE: "the port is in use by another program; choose another",
    errno.EADDRNOTAVAIL: "the address is not one of this machine's; choose one that is",
    errno.EACCES: "this user may not listen on that port; choose one from 1024 to 65535",
    errno.EPERM: "this user may not listen on that port; choose one from 1024 to 65535",
}


class Server:
    """Takes pushes in and sends replies back the way the sender's last push came.

    Attributes:
        address: Where it listens, with the port that was really chosen.
        queued: Whether the transport has it in its queue of what to read from.
    """

    def __init__(self, env: Environment, address: str, admits: Callable[[Key], bool]) -> None:
        self.queued = False
        self._env = env
        self._admits = admits
        # The last way rather than the newest connection: it is always one that has just worked.
        self._routes: dict[Key, bytes] = {}
        place = _resolve(parse_address(address, lowest_port=0))
        # Before the first listening socket of its context: without it, ZeroMQ admits everybody.
        zap = env.context.socket(zmq.REP)
        zap.set(zmq.LINGER, 0)
        zap.bind(_ZAP_ADDRESS)
        self._zap = WatchedSocket(zap, env.loop, self._authenticate)
        router = env.socket(zmq.ROUTER)
        router.set(zmq.CURVE_SERVER, 1)
        router.set(zmq.ZAP_DOMAIN, b"oneway")
        router.set(zmq.AFFINITY, LISTENING_THREAD)
        router.set(zmq.BACKLOG, _BACKLOG)
        # Unroutable replies are reported, so that they can be counted. Handover stays off: nobody
        # can take over another's connection by claiming its routing id.
        router.set(zmq.ROUTER_MANDATORY, 1)
        router.set(zmq.IPV6, int(place.kind == "ipv6"))
        self.address = _bind(router, place, address)
        port = parse_address(self.address).port
        self._accepted = AcceptedConnections(env, router, port, self._note_endless)
        self._endless: deque[Arrival] = deque()
        self._reader = FrameReader(env, router)
        self._watched = WatchedSocket(router, env.loop, lambda: env.on_readable(self))

    def take(self) -> Arrival | None:
        """Read one message; None if it was refused, or takes several turns to read.

        Raises:
            zmq.Again: There is none.
        """
        if self._endless:
            return self._endless.popleft()
        if self._reader.is_amid:
            flawed = self._reader.skip()
            return flawed if flawed is not None and self._admits(flawed.peer) else None
        router = self._watched.socket
        route = router.recv(DONT_WAIT)
        part = router.recv(DONT_WAIT, copy=False)
        peer = bytes.fromhex(str(part.get("User-Id")))
        self._accepted.brought(route, peer, part)
        arrival = self._reader.whole(part, peer, "push")
        # Admission is asked at the handshake too, but it may have been revoked since.
        if not self._admits(peer):
            return None
        if self._routes.get(peer) != route:
            self._remember(peer, route)
        return arrival

    def reply(self, sender: Key, frame: bytes) -> bool:
        """Send back; False if the sender never pushed or is gone, or its queue is full."""
        route = self._routes.get(sender)
        if route is None:
            return False
        sent = True
        try:
            self._watched.socket.send_multipart((route, frame), DONT_WAIT)
        except zmq.ZMQError as error:
            sent = False
            if error.errno == zmq.EHOSTUNREACH:
                del self._routes[sender]
        if not self.queued:
            self._watched.look()
        return sent

    def close(self) -> None:
        """Stop listening."""
        self._accepted.close()
        self._watched.close()
        self._zap.close()

    def _remember(self, sender: Key, route: bytes) -> None:
        self._routes.pop(sender, None)
        self._routes[sender] = route
        if len(self._routes) > MAX_ROUTES:
            del self._routes[next(iter(self._routes))]

    def _note_endless(self, sender: Key) -> None:
        self._endless.append(Arrival(sender, b"", "push", flaw="a message without an end"))
        self._env.on_readable(self)

    def _authenticate(self) -> None:
        """Answer ZeroMQ's questions; an admitted connection gets its key as its user id."""
        socket = self._zap.socket
        while True:
            try:
                version, request_id, *_, key = socket.recv_multipart(DONT_WAIT)
            except zmq.Again:
                return
            # In hexadecimal, since a user id ends at its first zero byte.
            user_id = key.hex().encode() if self._admits(key) else b""
            status = (b"200", b"admitted") if user_id else (b"400", b"not admitted")
            socket.send_multipart([version, request_id, *status, user_id, b""], DONT_WAIT)


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
    *_, place = min(found, key=lambda entry: entry[0] != sockets.AF_INET)
    return Address(str(place[0]), address.port)


def _bind(router: Socket, place: Address, asked: str) -> str:
    try:
        router.bind(f"tcp://{place}")
    except zmq.ZMQError as error:
        reason = _REASONS.get(error.errno or 0, f"{error.strerror}; choose another address")
        raise TransportError(
            f'cannot listen on {asked}: {reason} with listen = "host:port" in peer.toml'
        ) from None
    return router.get_string(zmq.LAST_ENDPOINT).removeprefix("tcp://")
