"""Connections that others have opened: bounded in number, the least proven closed first.

ZeroMQ's listener accepts whatever comes until the process has no descriptors left. It tells of each
connection through its monitor, so that the surplus can be closed here.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from functools import partial

import zmq

from oneway.protocol.state import Key
from oneway.transport.descriptors import descriptor_limit
from oneway.transport.unfinished import Unfinished
from oneway.transport.zeromq_sockets import DONT_WAIT, Environment, Socket, WatchedSocket

MAX_UNPROVEN = 256
"""Connections without a proven key; an honest one needs a few milliseconds for the proof."""

MAX_PER_KEY = 4
"""Connections of one key: one is enough, but those it has lost may take some seconds to end."""

_EVENTS_PER_TURN = 256


class Accepted(Unfinished):
    """One connection that another peer opened.

    Attributes:
        since: When it was accepted.
        key: Its peer, once it has brought a message.
        route: What the ROUTER calls it, once it has brought a message.
    """

    __slots__ = ("key", "route", "since")

    def __init__(self, descriptor: int, since: float, on_excess: Callable[[], None]) -> None:
        super().__init__(descriptor, on_excess)
        self.since = since
        self.key: Key | None = None
        self.route = b""


class AcceptedConnections:
    """Follows what a ROUTER accepts and loses, and closes what is too much.

    A connection is unproven at first. ZeroMQ ends it unless it proves an admitted key within
    `limits.handshake`, so an older one has; it is silent until it brings its first message.
    """

    def __init__(
        self, env: Environment, router: Socket, port: int, on_endless: Callable[[Key], None]
    ) -> None:
        """Follow a ROUTER on a port; `on_endless` hears who sent a message without an end."""
        self._env = env
        self._router = router
        self._port = port
        self._on_endless = on_endless
        limit = descriptor_limit()
        self._most = min(env.limits.connections, max(2, limit // 2))
        self._most_unproven = min(MAX_UNPROVEN, max(1, self._most // 2))
        self._rule = (
            f"at most {self._most_unproven} may be without a proven key, {self._most} in all and "
            f"{MAX_PER_KEY} of one key; if nobody floods this port, raise the limit of open files, "
            f"which is {limit} (ulimit -n)"
        )
        self._unproven: dict[int, Accepted] = {}
        self._silent: dict[int, Accepted] = {}
        self._known: dict[int, Accepted] = {}
        self._of_key: dict[Key, deque[Accepted]] = {}
        self._of_route: dict[bytes, Accepted] = {}
        events = zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED
        self._monitor = WatchedSocket(env.monitor(router, events), env.loop, self._follow)

    def brought(self, route: bytes, key: Key, part: zmq.Frame) -> None:
        """Note that a connection handed over a message, whose first part this is."""
        accepted = self._of_route.get(route)
        if accepted is None:
            accepted = self._identify(route, key, int(part.get(zmq.SRCFD)))
            if accepted is None:
                return
        accepted.progressed = True

    def close(self) -> None:
        """Follow no longer; the connections end with their ROUTER."""
        self._router.disable_monitor()
        self._monitor.close()

    def _identify(self, route: bytes, key: Key, descriptor: int) -> Accepted | None:
        if descriptor not in self._unproven and descriptor not in self._silent:
            # Its acceptance was told before its message, but not read yet.
            self._follow()
        accepted = self._unproven.pop(descriptor, None) or self._silent.pop(descriptor, None)
        if accepted is None:
            # There is a flood of news; its next message will do.
            return None
        accepted.key, accepted.route = key, route
        self._known[descriptor] = self._of_route[route] = accepted
        same_key = self._of_key.setdefault(key, deque())
        same_key.append(accepted)
        if len(same_key) > MAX_PER_KEY:
            self._close_surplus(same_key[0])
        return accepted

    def _follow(self) -> None:
        receive = self._monitor.socket.recv_multipart
        for _ in range(_EVENTS_PER_TURN):
            try:
                head, _endpoint = receive(DONT_WAIT)
            except zmq.Again:
                break
            event, descriptor = struct.unpack_from("=HI", head)
            self._forget(descriptor)
            if event == zmq.EVENT_ACCEPTED:
                self._add(descriptor)
        else:
            # Not at once: a flood of connections must not keep other tasks from running.
            self._env.loop.call_soon(self._look_again)
        self._balance()

    def _look_again(self) -> None:
        if not self._monitor.socket.closed:
            self._monitor.look()

    def _add(self, descriptor: int) -> None:
        accepted = Accepted(descriptor, self._env.loop.time(), partial(self._end_it, descriptor))
        self._unproven[descriptor] = accepted
        self._env.unfinished.add(accepted)

    def _forget(self, descriptor: int) -> None:
        for group in (self._unproven, self._silent, self._known):
            accepted = group.pop(descriptor, None)
            if accepted is not None:
                self._env.unfinished.remove(accepted)
                if accepted.key is not None:
                    self._forget_key(accepted, accepted.key)

    def _forget_key(self, accepted: Accepted, key: Key) -> None:
        if self._of_route.get(accepted.route) is accepted:
            del self._of_route[accepted.route]
        same_key = self._of_key[key]
        same_key.remove(accepted)
        if not same_key:
            del self._of_key[key]

    def _balance(self) -> None:
        unproven, silent, known = self._unproven, self._silent, self._known
        # A second more: by then ZeroMQ has surely ended it.
        proven_since = self._env.loop.time() - self._env.limits.handshake - 1.0
        while unproven and (oldest := _first(unproven)).since < proven_since:
            silent[oldest.descriptor] = unproven.pop(oldest.descriptor)
        while len(unproven) > self._most_unproven:
            self._close_surplus(_first(unproven))
        while len(unproven) + len(silent) + len(known) > self._most:
            self._close_surplus(_first(silent or unproven or known))

    def _close_surplus(self, accepted: Accepted) -> None:
        self._env.losses.crowded_out += 1
        self._env.warn_crowd(
            "connections of others are closed because there are too many (%d so far): %s",
            self._env.losses.crowded_out,
            self._rule,
        )
        self._end(accepted)

    def _end_it(self, descriptor: int) -> None:
        """End a connection whose message has no end."""
        for group in (self._unproven, self._silent, self._known):
            if (accepted := group.get(descriptor)) is not None:
                self._env.losses.malformed += 1
                if accepted.key is not None:
                    self._on_endless(accepted.key)
                self._end(accepted)

    def _end(self, accepted: Accepted) -> None:
        self._forget(accepted.descriptor)
        self._env.borrowed.end(accepted.descriptor, self._port)


def _first(group: dict[int, Accepted]) -> Accepted:
    return next(iter(group.values()))
