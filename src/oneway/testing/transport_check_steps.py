"""The steps that the checks of transports are made of: start, send until it arrives, wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from oneway.transport.base import Arrival, Transport, Via

PATIENCE = 30.0
"""Seconds after which what did not happen never will: far more than a slow machine needs."""


class World(Protocol):
    """Where transports are started; how its time passes is its own affair."""

    @property
    def max_frame(self) -> int:
        """The size limit of all frames, in bytes."""
        ...

    async def start(self, name: str, address: str | None = None) -> Transport:
        """Start a transport; the same name has the same key, and no address means any free one."""
        ...

    async def pass_time(self) -> None:
        """Let frames move: deliver them all, or let real time pass."""
        ...


async def edge(world: World) -> tuple[Transport, Transport]:
    """Start alice and bob, with alice trusting bob and bob admitting alice."""
    alice, bob = await world.start("alice"), await world.start("bob")
    bob.admit(frozenset({alice.key}))
    alice.dial(bob.key, bob.address)
    return alice, bob


async def close(*transports: Transport) -> None:
    """Close them all."""
    for transport in transports:
        await transport.close()


async def until(world: World, condition: Callable[[], bool]) -> None:
    """Let time pass until the condition holds."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await world.pass_time()


async def send_until_taken(
    world: World,
    send: Callable[[], None],
    receiver: Transport,
    frame: bytes,
    seen: list[Arrival] | None = None,
) -> Arrival:
    """Send again and again until the frame arrives; other arrivals are put into `seen`."""
    async with asyncio.timeout(PATIENCE):
        while True:
            send()
            await world.pass_time()
            while (arrival := receiver.receive_now()) is not None:
                if arrival.frame == frame:
                    return arrival
                if seen is not None:
                    seen.append(arrival)


async def push_until_taken(
    world: World, sender: Transport, receiver: Transport, frame: bytes
) -> Arrival:
    """Push again and again until the frame arrives, by its sender's name."""
    push = partial(sender.push, receiver.key, frame)
    return _sent_by(sender, "push", await send_until_taken(world, push, receiver, frame))


async def answer_until_taken(
    world: World, receiver: Transport, sender: Transport, frame: bytes
) -> Arrival:
    """Reply again and again until the frame arrives, by its sender's name."""
    reply = partial(receiver.reply, sender.key, frame)
    return _sent_by(receiver, "reply", await send_until_taken(world, reply, sender, frame))


def _sent_by(sender: Transport, via: Via, arrival: Arrival) -> Arrival:
    assert arrival.peer == sender.key
    assert arrival.via == via
    return arrival


async def rest(world: World, receiver: Transport) -> list[Arrival]:
    """Take what still arrives, until time passes in vain a few times."""
    arrivals: list[Arrival] = []
    quiet = 0
    while quiet < 5:
        quiet += 1
        await world.pass_time()
        while (arrival := receiver.receive_now()) is not None:
            arrivals.append(arrival)
            quiet = 0
    return arrivals


async def wake(
    world: World, sender: Transport, receiver: Transport, via: Via, frame: bytes
) -> None:
    """Send while the receiver already waits, and itself sends, until it wakes with the frame."""

    async def wait() -> None:
        while (await receiver.receive()).frame != frame:
            pass

    waiting = asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        while not waiting.done():
            if via == "push":
                sender.push(receiver.key, frame)
                receiver.reply(sender.key, b"meanwhile")
            else:
                sender.reply(receiver.key, frame)
                receiver.push(sender.key, b"meanwhile")
            await world.pass_time()
    await waiting
