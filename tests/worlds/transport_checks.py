"""Transport checks: what every implementation must do.

The checks know only that a transport may lose, so they send again until it arrives, and prove a
refusal by something else that does arrive. Each starts its own peers in a fresh `World`.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Protocol, TypeAlias

from oneway.errors import TransportError
from oneway.testing import MemoryNetwork
from oneway.transport.base import Arrival, Transport, Via

PATIENCE = 240.0
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


class MemoryWorld:
    """Endpoints of one memory network; all that is in flight is delivered when time passes."""

    max_frame = 10_000

    def __init__(self) -> None:
        self.network = MemoryNetwork(self.max_frame)
        self._free = itertools.count()

    async def start(self, name: str, address: str | None = None) -> Transport:
        """Start an endpoint; its key follows from the name."""
        key = hashlib.sha256(name.encode()).digest()
        return self.network.endpoint(key, address or f"place {next(self._free)}")

    async def pass_time(self) -> None:
        """Deliver everything."""
        self.network.deliver_all()
        await asyncio.sleep(0)


Check: TypeAlias = Callable[[World], Coroutine[None, None, None]]

CHECKS: list[Check] = []
"""Every check, for test runners that want one test each."""


async def check_transport(new_world: Callable[[], World]) -> None:
    """Put an implementation through every check, each in a world of its own.

    Raises:
        AssertionError: It breaks a promise.
        TimeoutError: Something that should have happened did not.
    """
    for check in CHECKS:
        await check(new_world())


class _Stage:
    """The transports of one check, and the steps that checks are made of."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._started: list[Transport] = []

    async def start(self, name: str, address: str | None = None) -> Transport:
        """Start a transport that is closed when the check ends."""
        self._started.append(await self.world.start(name, address))
        return self._started[-1]

    async def edge(self) -> tuple[Transport, Transport]:
        """Start alice and bob, with alice trusting bob and bob admitting alice."""
        alice, bob = await self.start("alice"), await self.start("bob")
        bob.admit(frozenset({alice.key}))
        alice.dial(bob.key, bob.address)
        return alice, bob

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let time pass until the condition holds."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await self.world.pass_time()

    async def deliver(
        self, sender: Transport, via: Via, receiver: Transport, frame: bytes
    ) -> list[Arrival]:
        """Send again and again until the frame arrives; return what arrived before it."""
        others: list[Arrival] = []
        async with asyncio.timeout(PATIENCE):
            while True:
                _send(sender, via, receiver, frame)
                await self.world.pass_time()
                while (arrival := receiver.receive_now()) is not None:
                    if arrival.frame == frame:
                        assert arrival == Arrival(sender.key, frame, via)
                        return others
                    others.append(arrival)

    async def drain(self, receiver: Transport) -> list[Arrival]:
        """Take what still arrives, until time passes in vain a few times."""
        arrivals: list[Arrival] = []
        quiet = 0
        while quiet < 5:
            quiet += 1
            await self.world.pass_time()
            while (arrival := receiver.receive_now()) is not None:
                arrivals.append(arrival)
                quiet = 0
        return arrivals

    async def wake(self, sender: Transport, via: Via, receiver: Transport, frame: bytes) -> None:
        """Send while the receiver already waits, and itself sends, until it wakes by the frame."""

        async def wait() -> None:
            while (await receiver.receive()).frame != frame:
                pass

        waiting = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE):
            while not waiting.done():
                _send(sender, via, receiver, frame)
                _send(receiver, "reply" if via == "push" else "push", sender, b"meanwhile")
                await self.world.pass_time()
        await waiting

    async def close(self) -> None:
        """Close every transport that was started; some are closed already."""
        for transport in self._started:
            await transport.close()


def _send(sender: Transport, via: Via, receiver: Transport, frame: bytes) -> None:
    (sender.push if via == "push" else sender.reply)(receiver.key, frame)


def _check(steps: Callable[[_Stage], Coroutine[None, None, None]]) -> Check:
    """Make a check of its steps and list it; its transports are closed however it ends."""

    @wraps(steps)
    async def check(world: World) -> None:
        stage = _Stage(world)
        try:
            await steps(stage)
        finally:
            await stage.close()

    CHECKS.append(check)
    return check


@_check
async def check_a_frame_reaches_the_one_addressed_and_says_who_sent(stage: _Stage) -> None:
    """Two receivers; what is meant for one does not reach the other."""
    alice, bob, carol = [await stage.start(name) for name in ("alice", "bob", "carol")]
    for receiver in (bob, carol):
        receiver.admit(None)
        alice.dial(receiver.key, receiver.address)
    assert await stage.deliver(alice, "push", bob, b"for bob") == []
    assert await stage.deliver(alice, "push", carol, b"for carol") == []
    assert {arrival.frame for arrival in await stage.drain(bob)} <= {b"for bob"}


@_check
async def check_a_reply_comes_back_over_the_connection_of_the_push(stage: _Stage) -> None:
    """The receiver dials nobody, and the sender admits nobody."""
    alice, bob = await stage.edge()
    await stage.deliver(alice, "push", bob, b"question")
    await stage.deliver(bob, "reply", alice, b"answer")


@_check
async def check_both_may_dial_each_other(stage: _Stage) -> None:
    """Two edges in opposite directions are two connections."""
    alice, bob = await stage.edge()
    alice.admit(frozenset({bob.key}))
    bob.dial(alice.key, alice.address)
    await stage.deliver(alice, "push", bob, b"to bob")
    await stage.deliver(bob, "push", alice, b"to alice")
    await stage.deliver(bob, "reply", alice, b"an answer, not a push")


@_check
async def check_frames_arrive_byte_for_byte(stage: _Stage) -> None:
    """Also the empty one, and the largest allowed."""
    alice, bob = await stage.edge()
    every_byte, size = bytes(range(256)), stage.world.max_frame
    largest = (every_byte * (size // 256 + 1))[:size]
    for frame in (b"", b"\0", every_byte, largest):
        await stage.deliver(alice, "push", bob, frame)
        await stage.deliver(bob, "reply", alice, frame)


@_check
async def check_an_unadmitted_sender_gets_nothing_in(stage: _Stage) -> None:
    """It is refused and counted while an admitted one gets through; admitted later, it gets in."""
    alice, mallory, bob = [await stage.start(name) for name in ("alice", "mallory", "bob")]
    bob.admit(frozenset({alice.key}))
    for sender in (alice, mallory):
        sender.dial(bob.key, bob.address)

    def refused() -> bool:
        mallory.push(bob.key, b"let me in")
        return bob.losses.refused.get(mallory.key, 0) > 0

    await stage.until(refused)
    seen = await stage.deliver(alice, "push", bob, b"admitted")
    assert all(arrival.peer == alice.key for arrival in [*seen, *await stage.drain(bob)])
    bob.admit(frozenset({alice.key, mallory.key}))
    await stage.deliver(mallory, "push", bob, b"welcome")


@_check
async def check_revoked_admission_takes_effect_on_a_live_connection(stage: _Stage) -> None:
    """And so does its return."""
    alice, bob = await stage.edge()
    await stage.deliver(alice, "push", bob, b"before")
    bob.admit(frozenset())
    await stage.drain(bob)
    earlier = bob.losses.refused.get(alice.key, 0)

    def refused() -> bool:
        alice.push(bob.key, b"after")
        return bob.receive_now() is not None or bob.losses.refused.get(alice.key, 0) > earlier

    await stage.until(refused)
    assert await stage.drain(bob) == []
    bob.admit(frozenset({alice.key}))
    await stage.deliver(alice, "push", bob, b"again")


@_check
async def check_sending_to_nobody_neither_waits_nor_raises(stage: _Stage) -> None:
    """Not dialled, dialled but absent, hung up on, and a reply to one who never pushed."""
    alice, bob, carol = [await stage.start(name) for name in ("alice", "bob", "carol")]
    bob.admit(None)
    alice.push(bob.key, b"never dialled")
    alice.reply(bob.key, b"never heard of")
    alice.dial(carol.key, carol.address)
    await carol.close()
    for _ in range(1000):
        alice.push(carol.key, b"nobody home")
    alice.dial(bob.key, bob.address)
    await stage.deliver(alice, "push", bob, b"somebody home")
    alice.hang_up(bob.key)
    alice.hang_up(bob.key)
    await stage.drain(bob)
    alice.push(bob.key, b"hung up")
    assert await stage.drain(bob) == []


@_check
async def check_a_restarted_receiver_is_reached_again(stage: _Stage) -> None:
    """Same key, same address, and nothing done by the sender."""
    alice, bob = await stage.edge()
    await stage.deliver(alice, "push", bob, b"first life")
    address = bob.address
    await bob.close()
    alice.push(bob.key, b"between two lives")
    bob = await stage.start("bob", address)
    bob.admit(frozenset({alice.key}))
    await stage.deliver(alice, "push", bob, b"second life")
    await stage.deliver(bob, "reply", alice, b"still me")


@_check
async def check_a_restarted_sender_gets_replies_again(stage: _Stage) -> None:
    """Replies go to the connection that spoke last."""
    alice, bob = await stage.edge()
    await stage.deliver(alice, "push", bob, b"first life")
    await alice.close()
    bob.reply(alice.key, b"to a dead one")
    alice = await stage.start("alice")
    alice.dial(bob.key, bob.address)
    await stage.deliver(alice, "push", bob, b"second life")
    await stage.deliver(bob, "reply", alice, b"to the living")


@_check
async def check_a_receiver_with_another_key_at_the_address_gets_nothing(stage: _Stage) -> None:
    """Whoever takes over an address cannot read what is meant for its former owner."""
    alice, bob = await stage.edge()
    await stage.deliver(alice, "push", bob, b"for bob")
    bob_key, address = bob.key, bob.address
    await bob.close()
    mallory, carol = await stage.start("mallory", address), await stage.start("carol")
    mallory.admit(None)
    carol.dial(mallory.key, mallory.address)
    seen: list[Arrival] = []
    for number in range(20):
        alice.push(bob_key, b"for bob, not for mallory")
        seen += await stage.deliver(carol, "push", mallory, bytes([number]))
    assert all(arrival.peer == carol.key for arrival in [*seen, *await stage.drain(mallory)])


@_check
async def check_a_changed_address_is_dialled_instead(stage: _Stage) -> None:
    """A receiver that moved is reached at its new address."""
    alice, bob = await stage.edge()
    await stage.deliver(alice, "push", bob, b"here")
    old = bob.address
    await bob.close()
    await stage.start("carol", old)
    bob = await stage.start("bob")
    bob.admit(None)
    assert bob.address != old
    alice.dial(bob.key, bob.address)
    alice.dial(bob.key, bob.address)
    await stage.deliver(alice, "push", bob, b"there")


@_check
async def check_oversized_frames_are_lost_without_harm(stage: _Stage) -> None:
    """What is sent after them still arrives, in both directions."""
    alice, bob = await stage.edge()
    await stage.deliver(alice, "push", bob, b"small")
    largest = stage.world.max_frame
    too_large = bytes(largest + 1)

    def counted() -> bool:
        alice.push(bob.key, too_large)
        bob.reply(alice.key, too_large)
        return alice.losses.oversized > 0 and bob.losses.oversized > 0

    await stage.until(counted)
    received = await stage.deliver(alice, "push", bob, b"small again")
    received += await stage.deliver(bob, "reply", alice, b"small too")
    received += [*await stage.drain(bob), *await stage.drain(alice)]
    assert all(len(arrival.frame) <= largest for arrival in received)


@_check
async def check_links_tell_how_connections_are_doing(stage: _Stage) -> None:
    """Connected, refused, taken over by a stranger, and nobody there."""
    alice, bob = await stage.edge()
    await stage.until(lambda: alice.links[bob.key].state == "connected")
    bob_key, address = bob.key, bob.address
    await bob.close()
    await stage.until(lambda: alice.links[bob_key].state == "connecting")
    bob = await stage.start("bob", address)
    await stage.until(lambda: alice.links[bob_key].state == "refused")
    await bob.close()
    await stage.start("mallory", address)
    await stage.until(lambda: alice.links[bob_key].state == "stranger")
    alice.hang_up(bob_key)
    assert alice.links == {}


@_check
async def check_a_waiting_receive_wakes_up(stage: _Stage) -> None:
    """For a push, for a reply, and while the waiting peer itself goes on sending."""
    alice, bob = await stage.edge()
    await stage.deliver(alice, "push", bob, b"hello")
    await stage.drain(bob)
    for round_trip in range(50):
        await stage.wake(alice, "push", bob, b"question %d" % round_trip)
        await stage.wake(bob, "reply", alice, b"answer %d" % round_trip)


@_check
async def check_a_closed_transport_is_quiet(stage: _Stage) -> None:
    """It takes calls without harm, may be closed twice, and ends a waiting `receive`."""
    alice, bob = await stage.edge()
    await stage.deliver(alice, "push", bob, b"hello")
    await stage.drain(alice)
    waiting = asyncio.ensure_future(alice.receive())
    await asyncio.sleep(0)
    await alice.close()
    await alice.close()
    outcome = (await asyncio.gather(waiting, return_exceptions=True))[0]
    assert isinstance(outcome, TransportError)
    alice.push(bob.key, b"too late")
    alice.reply(bob.key, b"too late")
    alice.dial(bob.key, bob.address)
    alice.hang_up(bob.key)
    assert alice.receive_now() is None
    assert alice.links == {}
