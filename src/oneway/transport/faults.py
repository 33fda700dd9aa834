"""Fault injection: a transport around a transport that loses, delays and cuts.

Faults strike what is sent, pushes and replies alike; a cut also strikes what comes in.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, TypeAlias

from msgspec import Meta

from oneway.files.validation import check_fields
from oneway.protocol.state import Key
from oneway.transport.base import Arrival, Link, Transport, Via

Later: TypeAlias = Callable[[float, Callable[[], None]], object]
"""Calls a function after so many seconds: `loop.call_later`, or a fake in tests."""


@dataclass(frozen=True)
class Faults:
    """What goes wrong on purpose with the frames a peer sends; for labs and tests only.

    Attributes:
        loss: Probability that a frame is lost.
        delay: Longest delay in seconds; each frame is delayed by a uniform part of it.
        cut: Names of peers that nothing is sent to, and nothing taken from.

    Raises:
        ConfigError: One of them breaks its rule.
    """

    loss: Annotated[float, Meta(ge=0, le=1)] = 0.0
    delay: Annotated[float, Meta(ge=0)] = 0.0
    cut: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)


class Faulty(Transport):
    """A transport whose sends suffer from `faults`, reproducibly for the same seed and frames.

    Attributes:
        inner: What really sends; closed with this.
        faults: May be replaced at any time; its names are not read here.
        cut: Keys of the peers that are cut; may be replaced at any time.
    """

    def __init__(self, inner: Transport, faults: Faults, rng: random.Random, later: Later) -> None:
        """Wrap a transport; `rng` decides which frame is struck, `later` is how to wait."""
        super().__init__(inner.key, inner.address, inner._limits)
        self._losses = inner._losses
        self.inner = inner
        self.faults = faults
        self.cut: frozenset[Key] = frozenset()
        self._rng = rng
        self._later = later

    def dial(self, receiver: Key, address: str) -> None:
        """Connect to a receiver and stay connected."""
        self.inner.dial(receiver, address)

    def hang_up(self, receiver: Key) -> None:
        """Close the connection to a receiver."""
        self.inner.hang_up(receiver)

    def admit(self, senders: frozenset[Key] | None) -> None:
        """Take pushes from these and no others."""
        self.inner.admit(senders)

    @property
    def links(self) -> Mapping[Key, Link]:
        """Every receiver I dialled; a cut is below the surface and not seen here."""
        return self.inner.links

    def send_push(self, receiver: Key, frame: bytes) -> bool:
        """Push, if the faults let it; what they strike is not counted."""
        return self._send(receiver, frame, "push")

    def send_reply(self, sender: Key, frame: bytes) -> bool:
        """Reply, if the faults let it."""
        return self._send(sender, frame, "reply")

    def receive_now(self) -> Arrival | None:
        """Return the next arrival from a peer that is not cut, or None if there is none."""
        while (arrival := self.inner.receive_now()) is not None:
            if arrival.peer not in self.cut:
                return arrival
        return None

    async def receive(self) -> Arrival:
        """Wait for the next arrival from a peer that is not cut.

        Raises:
            TransportError: The transport is closed.
        """
        while (arrival := await self.inner.receive()).peer in self.cut:
            pass
        return arrival

    async def close(self) -> None:
        """Close what is inside; delayed frames are lost."""
        await self.inner.close()

    def _send(self, peer: Key, frame: bytes, via: Via) -> bool:
        faults = self.faults
        if peer in self.cut or self._rng.random() < faults.loss:
            return True
        if faults.delay > 0.0:
            seconds = self._rng.uniform(0.0, faults.delay)
            self._later(seconds, partial(self._hand_over, peer, frame, via))
        else:
            self._hand_over(peer, frame, via)
        return True

    def _hand_over(self, peer: Key, frame: bytes, via: Via) -> None:
        # A partition also stops what was delayed before it began.
        if peer in self.cut:
            return
        if via == "push":
            self.inner.push(peer, frame)
        else:
            self.inner.reply(peer, frame)


def with_faults(transport: Transport, faults: Faults, keys: Mapping[str, Key]) -> Transport:
    """Put the fault injector around a running transport, change its faults, or take it out again.

    Use what is returned from now on; without faults that is the transport itself. `keys` are those
    of the peers that `faults.cut` can name.
    """
    injector = transport if isinstance(transport, Faulty) else None
    if injector is None:
        if faults == Faults():
            return transport
        later = asyncio.get_running_loop().call_later
        injector = Faulty(transport, faults, random.Random(), later)
    # Also before it is taken out: a task may still wait in its `receive`.
    injector.faults = faults
    injector.cut = frozenset(keys[name] for name in faults.cut if name in keys)
    return injector.inner if faults == Faults() else injector
