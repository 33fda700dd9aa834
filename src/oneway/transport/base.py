"""Transport interface: moves frames between peers; what every implementation promises and shares.

A frame is opaque bytes (`wire` gives it meaning). An edge A -> B is one connection, dialled by A:
A's pushes go over it, and B's replies come back over it, so a receiver never has to dial.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal, Protocol, TypeAlias

import msgspec

from oneway.errors import ConfigError, TransportError
from oneway.protocol.state import Key
from oneway.registry import Registry

Via: TypeAlias = Literal["push", "reply"]
"""A push came over a connection that its sender dialled; a reply over one that I dialled."""

LinkState: TypeAlias = Literal["connecting", "connected", "refused", "stranger", "unresponsive"]
"""How a dialled connection is doing.

No answer (so far); up; the receiver does not admit me; there is an answer at that address, but
without a proof of the receiver's key; the connection is accepted there, and nothing answers.
"""

MAX_NAMED = 1024
"""Refusals are counted by key for this many keys, then together: anyone can make keys."""

MAX_QUEUED_BYTES = 2**24
"""What waits per connection and direction; two frames do in any case."""

ARRIVALS_PER_TURN = 64
"""Arrivals in a row before the other tasks of the event loop get a turn."""


@dataclass(frozen=True)
class ConnectionLimits:
    """Bounds on what the network can make a peer hold, and on how long it waits.

    One connection can make a peer hold about `queue * max_frame` bytes, so a peer sets `max_frame`
    to what its model needs; `for_frames` sets the queue to match.

    Attributes:
        max_frame: Bytes; larger frames are lost.
        queue: Frames that wait per connection and direction. Small, because a frame carries a
            running total: when the queue is full, what is in it is out of date anyway.
        heartbeat: Seconds between signs of life; three missed ones end a connection.
        handshake: Seconds in which a connection must have proven both keys.
        reconnect: Seconds before the first attempt to reconnect; doubles up to `reconnect_max`.
        reconnect_max: Longest pause between two attempts.
        redial: Seconds without a connection after which dialling starts afresh.
        connections: How many others may have open with this peer; no more than half of the
            descriptors that the process may have.

    Raises:
        ConfigError: One of them is not positive.
    """

    max_frame: int = 2**20
    queue: int = 64
    heartbeat: float = 5.0
    handshake: float = 5.0
    reconnect: float = 0.1
    reconnect_max: float = 1.0
    redial: float = 5.0
    connections: int = 4096

    @classmethod
    def for_frames(cls, max_frame: int) -> ConnectionLimits:
        """Return the default limits for frames of a size, with queues bounded in bytes."""
        return cls(max_frame, queue=max(2, min(cls.queue, MAX_QUEUED_BYTES // max_frame)))

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not 0 < value < 2**31:
                raise ConfigError(f"limits: {item.name} is {value!r}, but it must be positive")


# A struct, because one is made for every frame and a frozen dataclass takes four times as long.
class Arrival(msgspec.Struct, frozen=True, gc=False):
    """A frame that came in.

    Attributes:
        peer: Who sent it, proven by the transport.
        frame: What was sent, byte for byte.
        via: Whether it was pushed to me or answers me.
        flaw: What came instead of a frame, which is empty then; no honest peer sends that.
    """

    peer: Key
    frame: bytes
    via: Via
    flaw: str = ""


@dataclass(frozen=True)
class Link:
    """How a connection I dialled is doing, and since when in seconds of the transport's clock."""

    state: LinkState
    since: float


@dataclass
class Losses:
    """Counters of what was lost at this end since the start, in bounded memory.

    Attributes:
        unsent: Frames that could not leave: no connection, or its queue was full.
        oversized: Frames above the size limit, on their way out or in.
        malformed: Messages that are not one frame, or have no end.
        crowded_out: Connections of others that were closed because there were too many.
        refused: By key, attempts to connect and frames of senders that are not admitted.
        refused_others: The same for the keys after the first `MAX_NAMED`.
    """

    unsent: int = 0
    oversized: int = 0
    malformed: int = 0
    crowded_out: int = 0
    refused: Counter[Key] = field(default_factory=Counter)
    refused_others: int = 0

    def refuse(self, key: Key) -> None:
        """Count one refusal."""
        if key in self.refused or len(self.refused) < MAX_NAMED:
            self.refused[key] += 1
        else:
            self.refused_others += 1


class Transport(ABC):
    """One peer's end of a network, which may lose, delay, repeat and reorder, but never invents.

    Nothing here waits but `receive` and `close`, and nothing raises because of what the network
    does. A closed transport loses everything. A new transport admits no sender.

    A subclass sends in `send_push` and `send_reply`, hands out what came in by `receive_now`, asks
    `admits` before it takes a push in, and calls `wake` when there is something to receive.

    Attributes:
        key: My own public key.
        address: Where I listen, with the port that was really chosen.
    """

    def __init__(self, key: Key, address: str, limits: ConnectionLimits) -> None:
        self.key = key
        self.address = address
        self._limits = limits
        self._losses = Losses()
        self._admitted: frozenset[Key] | None = frozenset()
        self._closed = False
        self._received = 0
        self._arrived = asyncio.Event()

    @abstractmethod
    def dial(self, receiver: Key, address: str) -> None:
        """Connect to a receiver and stay connected; another address replaces the connection.

        Raises:
            ConfigError: The address is malformed.
        """

    @abstractmethod
    def hang_up(self, receiver: Key) -> None:
        """Close the connection to a receiver, if there is one; what is under way may be lost."""

    @property
    @abstractmethod
    def links(self) -> Mapping[Key, Link]:
        """Every receiver I dialled and how that connection is doing."""

    @abstractmethod
    def send_push(self, receiver: Key, frame: bytes) -> bool:
        """Send over the connection I dialled; False if the frame cannot leave at once."""

    @abstractmethod
    def send_reply(self, sender: Key, frame: bytes) -> bool:
        """Send over the connection of the sender's last push; False if it cannot leave at once."""

    @abstractmethod
    def receive_now(self) -> Arrival | None:
        """Return the next arrival, or None if there is none at this moment."""

    @abstractmethod
    async def close(self) -> None:
        """Stop listening, hang up on every receiver, and free everything; may be called again."""

    def admit(self, senders: frozenset[Key] | None) -> None:
        """Take pushes from these and no others, live connections included; None is anyone."""
        self._admitted = senders

    def admits(self, sender: Key) -> bool:
        """Whether a sender is admitted at this moment; counts the refusal if not."""
        if self._admitted is None or sender in self._admitted:
            return True
        self._losses.refuse(sender)
        return False

    def push(self, receiver: Key, frame: bytes) -> None:
        """Send over the connection I dialled; without one, or with its queue full, it is lost."""
        if len(frame) > self._limits.max_frame:
            self._losses.oversized += 1
        elif not self.send_push(receiver, frame):
            self._losses.unsent += 1

    def reply(self, sender: Key, frame: bytes) -> None:
        """Send back over the connection on which the sender's last push came."""
        if len(frame) > self._limits.max_frame:
            self._losses.oversized += 1
        elif not self.send_reply(sender, frame):
            self._losses.unsent += 1

    async def receive(self) -> Arrival:
        """Wait for the next arrival; one task at a time may wait, and a flood lets others run.

        Raises:
            TransportError: The transport is closed.
        """
        self._received += 1
        if self._received % ARRIVALS_PER_TURN == 0:
            await asyncio.sleep(0)
        while (arrival := self.receive_now()) is None:
            if self._closed:
                raise TransportError(f"{self.address} is closed; receive before closing it")
            self._arrived.clear()
            await self._arrived.wait()
        return arrival

    def wake(self) -> None:
        """Let a waiting `receive` look again."""
        self._arrived.set()

    @property
    def losses(self) -> Losses:
        """What was lost here since the start, as far as this side can know; a copy."""
        return replace(self._losses, refused=Counter(dict(self._losses.refused)))


class Listen(Protocol):
    """Factory of a transport, as it is registered in `TRANSPORTS`; called in a running loop."""

    def __call__(
        self,
        secret_key: bytes,
        address: str,
        *,
        limits: ConnectionLimits,
        clock: Callable[[], float],
    ) -> Transport:
        """Listen on an address.

        Args:
            secret_key: Proves who this peer is: a Curve25519 secret, whose public key is on cards.
            address: `host:port`, as in peer.toml.
            limits: Sizes, queues and times.
            clock: What `links` read the time from.

        Raises:
            TransportError: The address cannot be listened on.
        """
        ...


TRANSPORTS: Registry[Listen] = Registry("transport")
"""Transports by the name that `transport` in peer.toml gives; `zeromq` is the default."""
