"""What moves frames between peers: a promise small enough to build a fake of.

A frame is opaque bytes (`wire` gives it meaning). An edge A -> B is one connection, dialled by A:
A's pushes go over it, and B's replies come back over it, so a receiver never has to dial anybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import msgspec

from oneway.transport.losses import Losses

Key: TypeAlias = bytes
"""A peer's Curve25519 public key, 32 bytes: its only name on the network."""

Via: TypeAlias = Literal["push", "reply"]
"""A push came from somebody who dialled me; a reply came back over a connection I dialled."""

LinkState: TypeAlias = Literal["connecting", "connected", "refused", "stranger"]
"""How a dialled connection is doing.

Nobody answers (so far); up; the receiver does not admit me; somebody answers at that address, but
does not prove to have the receiver's key.
"""


# A struct, because one is made for every frame and a frozen dataclass takes four times as long.
class Arrival(msgspec.Struct, frozen=True, gc=False):
    """A frame that came in.

    Attributes:
        peer: Who sent it, proven by the transport.
        frame: What was sent, byte for byte.
        via: Whether it was pushed to me or answers me.
    """

    peer: Key
    frame: bytes
    via: Via


@dataclass(frozen=True)
class Link:
    """How a connection I dialled is doing, and since when in seconds of the transport's clock."""

    state: LinkState
    since: float


class Transport(Protocol):
    """It may lose, delay, repeat and reorder; it never invents, and it says who sent.

    Nothing here waits but `receive` and `close`, and nothing raises because of what the network
    does. A closed transport loses everything. A new transport admits nobody.
    """

    @property
    def key(self) -> Key:
        """My own public key."""
        ...

    @property
    def address(self) -> str:
        """Where I listen, with the port that was really chosen."""
        ...

    def dial(self, receiver: Key, address: str) -> None:
        """Connect to a receiver and stay connected; does nothing if that is so already.

        Raises:
            TransportError: The address is malformed.
        """
        ...

    def hang_up(self, receiver: Key) -> None:
        """Close the connection to a receiver; what is under way may be lost."""
        ...

    def admit(self, senders: frozenset[Key] | None) -> None:
        """Take pushes from these and nobody else, live connections included; None is anyone."""
        ...

    def push(self, receiver: Key, frame: bytes) -> None:
        """Send over the connection I dialled; without one, or with its queue full, it is lost."""
        ...

    def reply(self, sender: Key, frame: bytes) -> None:
        """Send back over the connection on which the sender's last push came."""
        ...

    def receive_now(self) -> Arrival | None:
        """Return the next arrival, or None if there is none at this moment."""
        ...

    async def receive(self) -> Arrival:
        """Wait for the next arrival; one task at a time may wait.

        Raises:
            TransportError: The transport is closed.
        """
        ...

    async def close(self) -> None:
        """Stop listening, hang up on everybody, and free everything; may be called again."""
        ...

    @property
    def links(self) -> Mapping[Key, Link]:
        """Every receiver I dialled and how that connection is doing."""
        ...

    @property
    def losses(self) -> Losses:
        """What was lost here since the start, as far as this side can know."""
        ...
