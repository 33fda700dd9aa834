"""Faults on purpose: a transport around a transport that loses, delays, repeats, reorders and cuts.

Faults strike what is sent, pushes and replies alike; a cut can also strike what comes in.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Literal, TypeAlias

from oneway.errors import ConfigError
from oneway.transport.base import Arrival, Key, Link, Transport, Via
from oneway.transport.losses import Losses

Direction: TypeAlias = Literal["out", "in", "both"]
"""Of what I send to a peer, what it sends to me, or either."""

Later: TypeAlias = Callable[[float, Callable[[], None]], object]
"""Calls a function after so many seconds: `loop.call_later`, or a fake in tests."""


@dataclass(frozen=True)
class Faults:
    """How a network misbehaves.

    Attributes:
        loss: Probability that a frame is lost.
        duplicate: Probability that a frame is sent twice.
        reorder: Probability that a frame is held back until the next one to that peer has gone.
        delay: Longest delay in seconds; each frame is delayed by a uniform part of it.

    Raises:
        ConfigError: A probability is not one, or the delay is negative or not finite.
    """

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    delay: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            highest = float("inf") if field.name == "delay" else 1.0
            if not 0.0 <= value <= highest or value == float("inf"):
                rule = "finite and not negative" if field.name == "delay" else "between 0 and 1"
                raise ConfigError(f"faults: {field.name} is {value!r}, but it must be {rule}")


class Faulty:
    """A transport whose sends suffer from `faults`, reproducibly for the same seed and frames.

    Attributes:
        faults: May be replaced at any time.
    """

    def __init__(self, inner: Transport, faults: Faults, rng: random.Random, later: Later) -> None:
        """Wrap a transport.

        Args:
            inner: What really sends; closed with this.
            faults: The faults to begin with.
            rng: Decides who is struck.
            later: How to wait.
        """
        self.faults = faults
        self._inner = inner
        self._rng = rng
        self._later = later
        self._cut_out: set[Key] = set()
        self._cut_in: set[Key] = set()
        self._held: dict[tuple[Key, Via], bytes] = {}

    def cut(self, peer: Key, direction: Direction = "both") -> None:
        """Let nothing through to a peer, or from it, or either."""
        if direction != "in":
            self._cut_out.add(peer)
        if direction != "out":
            self._cut_in.add(peer)

    def heal(self, peer: Key) -> None:
        """Undo every cut between a peer and me."""
        self._cut_out.discard(peer)
        self._cut_in.discard(peer)

    @property
    def key(self) -> Key:
        """My own public key."""
        return self._inner.key

    @property
    def address(self) -> str:
        """Where I listen."""
        return self._inner.address

    def dial(self, receiver: Key, address: str) -> None:
        """Connect to a receiver and stay connected."""
        self._inner.dial(receiver, address)

    def hang_up(self, receiver: Key) -> None:
        """Close the connection to a receiver."""
        self._inner.hang_up(receiver)

    def admit(self, senders: frozenset[Key] | None) -> None:
        """Take pushes from these and nobody else."""
        self._inner.admit(senders)

    def push(self, receiver: Key, frame: bytes) -> None:
        """Push, if the faults let it."""
        self._send(receiver, frame, "push")

    def reply(self, sender: Key, frame: bytes) -> None:
        """Reply, if the faults let it."""
        self._send(sender, frame, "reply")

    def receive_now(self) -> Arrival | None:
        """Return the next arrival from a peer that is not cut, or None if there is none."""
        while (arrival := self._inner.receive_now()) is not None:
            if arrival.peer not in self._cut_in:
                return arrival
        return None

    async def receive(self) -> Arrival:
        """Wait for the next arrival from a peer that is not cut.

        Raises:
            TransportError: The transport is closed.
        """
        while (arrival := await self._inner.receive()).peer in self._cut_in:
            pass
        return arrival

    async def close(self) -> None:
        """Close what is inside; frames held back or delayed are lost."""
        self._held.clear()
        await self._inner.close()

    @property
    def links(self) -> Mapping[Key, Link]:
        """Every receiver I dialled; a cut is below the surface and not seen here."""
        return self._inner.links

    @property
    def losses(self) -> Losses:
        """What was lost by what is inside; the faults do not count themselves."""
        return self._inner.losses

    def _send(self, peer: Key, frame: bytes, via: Via) -> None:
        faults = self.faults
        if peer in self._cut_out or self._strikes(faults.loss):
            return
        overtaken = self._held.pop((peer, via), None)
        if overtaken is None and self._strikes(faults.reorder):
            self._held[peer, via] = frame
            return
        for _ in range(2 if self._strikes(faults.duplicate) else 1):
            self._let_go(peer, frame, via)
        if overtaken is not None:
            self._let_go(peer, overtaken, via)

    def _strikes(self, probability: float) -> bool:
        # No draw without a fault, so that one fault's probability does not change another's luck.
        return probability > 0.0 and self._rng.random() < probability

    def _let_go(self, peer: Key, frame: bytes, via: Via) -> None:
        if self.faults.delay > 0.0:
            seconds = self._rng.uniform(0.0, self.faults.delay)
            self._later(seconds, partial(self._hand_over, peer, frame, via))
        else:
            self._hand_over(peer, frame, via)

    def _hand_over(self, peer: Key, frame: bytes, via: Via) -> None:
        # A partition also stops what was delayed before it began.
        if peer in self._cut_out:
            return
        if via == "push":
            self._inner.push(peer, frame)
        else:
            self._inner.reply(peer, frame)
