"""Client side of ZeroMQ: one DEALER per receiver, which accepts no other key at the other end."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import struct

import zmq

from oneway.protocol.state import Key
from oneway.transport.address import parse_address
from oneway.transport.base import Arrival, Link, LinkState
from oneway.transport.descriptors import descriptor_limit, is_shortage
from oneway.transport.unfinished import Unfinished
from oneway.transport.zeromq_sockets import (
    DIALLING_THREAD,
    DONT_WAIT,
    Environment,
    FrameReader,
    Socket,
    WatchedSocket,
    milliseconds,
)

_MONITORED = (
    zmq.EVENT_CONNECTED
    | zmq.EVENT_CLOSED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)


_TIMED_OUT = 0.9
"""A handshake that ends after this share of the time it is given has timed out."""


class Connection:
    """A connection to one receiver that is made again whenever it is lost.

    ZeroMQ reconnects by itself after a lost connection, but gives up for good after a refusal or a
    malformed answer, and says so nowhere. So whatever the cause, a connection that has been down
    for `limits.redial` seconds is dialled afresh. In between there may be no socket at all: making
    one takes descriptors, which may all be in use.

    Attributes:
        address: What was dialled.
        link: How the connection is doing.
        queued: Whether the transport has it in its queue of what to read from.
    """

    def __init__(self, env: Environment, receiver: Key, address: str) -> None:
        self.address = address
        self.link = Link("connecting", env.clock())
        self.queued = False
        self._env = env
        self._receiver = receiver
        self._place = parse_address(address)
        self._endpoint = f"tcp://{self._place}"
        self._attempts = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._answered = False
        self._answered_at = 0.0
        self._unfinished: Unfinished | None = None
        self._endless: Arrival | None = None
        self._watched: WatchedSocket | None = None
        self._open()

    def push(self, frame: bytes) -> bool:
        """Send; False if the connection is down or its queue is full."""
        if self._watched is None:
            return False
        sent = True
        try:
            self._watched.socket.send(frame, DONT_WAIT)
        except zmq.Again:
            sent = False
        if not self.queued:
            self._watched.look()
        return sent

    def take(self) -> Arrival | None:
        """Read one reply; None if that takes several turns.

        Raises:
            zmq.Again: There is none.
        """
        if self._endless is not None:
            endless, self._endless = self._endless, None
            return endless
        if self._watched is None:
            raise zmq.Again
        if self._reader.is_amid:
            return self._reader.skip()
        part = self._watched.socket.recv(DONT_WAIT, copy=False)
        if self._unfinished is not None:
            self._unfinished.progressed = True
        return self._reader.whole(part, self._receiver, "reply")

    def close(self) -> None:
        """Hang up; what is queued is lost."""
        self._stop_timer()
        self._watch_unfinished(None)
        if self._watched is not None:
            self._watched.socket.disable_monitor()
            self._monitor.close()
            self._watched.close()
            self._watched = None

    def _open(self) -> None:
        """Dial; where there is no descriptor left for that, try again later."""
        self._answered = False
        self._start_timer()
        try:
            dealer = self._env.socket(zmq.DEALER)
            try:
                monitor = self._env.monitor(dealer, _MONITORED)
            except zmq.ZMQError:
                dealer.close(linger=0)
                raise
        except zmq.ZMQError as error:
            if not is_shortage(error):
                raise
            self._env.warn_shortage(
                "cannot dial %s: this process has all %d files open that it may have; it tries "
                "again, but raise the limit (ulimit -n) if this stays so",
                self.address,
                descriptor_limit(),
            )
            return
        self._configure(dealer)
        self._monitor = WatchedSocket(monitor, self._env.loop, self._follow)
        self._reader = FrameReader(self._env, dealer)
        self._watched = WatchedSocket(dealer, self._env.loop, lambda: self._env.on_readable(self))
        dealer.connect(self._endpoint)

    def _configure(self, dealer: Socket) -> None:
        dealer.set(zmq.CURVE_SERVERKEY, self._receiver)
        # Frames are queued only while the connection is up, and are gone when it breaks: they hold
        # running totals, and those of before the break would only delay the newest. ZMQ_CONFLATE
        # (keep the last frame) would fit too, but one connection carries several kinds of message.
        dealer.set(zmq.IMMEDIATE, 1)
        dealer.set(zmq.RECONNECT_IVL, milliseconds(self._env.limits.reconnect))
        dealer.set(zmq.RECONNECT_IVL_MAX, milliseconds(self._env.limits.reconnect_max))
        dealer.set(zmq.AFFINITY, DIALLING_THREAD)
        # A name may stand for either family, and ZeroMQ tries only one address: take turns.
        odd_attempt = next(self._attempts) % 2 == 1
        kind = self._place.kind
        dealer.set(zmq.IPV6, int(kind == "ipv6" or (kind == "name" and odd_attempt)))

    def _follow(self) -> None:
        while True:
            try:
                head, _endpoint = self._monitor.socket.recv_multipart(DONT_WAIT)
            except zmq.Again:
                return
            event, value = struct.unpack_from("=HI", head)
            self._note(zmq.Event(event), value)

    def _note(self, event: zmq.Event, value: int) -> None:
        if event == zmq.EVENT_CONNECTED:
            self._answered, self._answered_at = True, self._env.clock()
            self._watch_unfinished(Unfinished(value, self._end_endless))
            return
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._stop_timer()
            self._become("connected")
        elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            self._become("refused")
        elif event == zmq.EVENT_CLOSED:
            self._become("connecting")
        elif event == zmq.EVENT_DISCONNECTED:
            self._start_timer()
            self._watch_unfinished(None)
            self._note_end()
        self._answered = False

    def _note_end(self) -> None:
        if self._answered:
            # Whoever has another key hangs up at once. A process that is stopped never answers,
            # although the kernel accepts connections for it, until the handshake times out.
            self._become("unresponsive" if self._has_timed_out else "stranger")
            # ZeroMQ counts an answer as a success and would be back at once, ten times a second.
            if self._watched is not None:
                with contextlib.suppress(zmq.ZMQError):
                    self._watched.socket.disconnect(self._endpoint)
        elif self.link.state == "connected":
            self._become("connecting")

    def _watch_unfinished(self, unfinished: Unfinished | None) -> None:
        if self._unfinished is not None:
            self._env.unfinished.remove(self._unfinished)
        self._unfinished = unfinished
        if unfinished is not None:
            self._env.unfinished.add(unfinished)

    def _end_endless(self) -> None:
        """Hang up on a receiver whose reply has no end, and dial it again later."""
        self._env.losses.malformed += 1
        self._endless = Arrival(self._receiver, b"", "reply", flaw="a message without an end")
        self.close()
        self._become("connecting")
        self._start_timer()
        self._env.on_readable(self)

    def _become(self, state: LinkState) -> None:
        if state != self.link.state:
            self.link = Link(state, self._env.clock())

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self._env.loop.call_later(self._env.limits.redial, self._redial)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def _has_timed_out(self) -> bool:
        limits = self._env.limits
        patience = min(limits.handshake, limits.redial)
        return self._env.clock() - self._answered_at >= _TIMED_OUT * patience

    def _redial(self) -> None:
        if self._answered and self._has_timed_out:
            self._become("unresponsive")
        self.close()
        self._open()
