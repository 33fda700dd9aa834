"""What every transport must do, as checks that any implementation can be put through.

The checks know only that a transport may lose, so they send again until it arrives, and prove a
refusal by something else that does arrive. Each starts its own peers in a fresh `World`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TypeAlias

from oneway.errors import TransportError
from oneway.testing.transport_check_steps import (
    World,
    answer_until_taken,
    close,
    edge,
    push_until_taken,
    rest,
    send_until_taken,
    until,
    wake,
)
from oneway.transport.base import Arrival

Check: TypeAlias = Callable[[World], Coroutine[None, None, None]]


async def check_transport(new_world: Callable[[], World]) -> None:
    """Put an implementation through every check, each in a world of its own."""
    for check in CHECKS:
        await check(new_world())


async def check_a_frame_reaches_the_one_addressed_and_says_who_sent(world: World) -> None:
    """Two receivers; what is meant for one does not reach the other."""
    alice, bob, carol = [await world.start(name) for name in ("alice", "bob", "carol")]
    for receiver in (bob, carol):
        receiver.admit(None)
        alice.dial(receiver.key, receiver.address)
    for_bob = await push_until_taken(world, alice, bob, b"for bob")
    for_carol = await push_until_taken(world, alice, carol, b"for carol")
    assert for_bob == Arrival(alice.key, b"for bob", "push")
    assert for_carol == Arrival(alice.key, b"for carol", "push")
    assert {arrival.frame for arrival in await rest(world, bob)} <= {b"for bob"}
    await close(alice, bob, carol)


async def check_a_reply_comes_back_over_the_connection_of_the_push(world: World) -> None:
    """The receiver dials nobody, and the sender admits nobody."""
    alice, bob = await edge(world)
    await push_until_taken(world, alice, bob, b"question")
    answer = await send_until_taken(
        world, lambda: bob.reply(alice.key, b"answer"), alice, b"answer"
    )
    assert answer == Arrival(bob.key, b"answer", "reply")
    await close(alice, bob)


async def check_both_may_dial_each_other(world: World) -> None:
    """Two edges in opposite directions are two connections."""
    alice, bob = await edge(world)
    alice.admit(frozenset({bob.key}))
    bob.dial(alice.key, alice.address)
    await push_until_taken(world, alice, bob, b"to bob")
    await push_until_taken(world, bob, alice, b"to alice")
    await answer_until_taken(world, bob, alice, b"an answer, not a push")
    await close(alice, bob)


async def check_frames_arrive_byte_for_byte(world: World) -> None:
    """Also the empty one, and the largest allowed."""
    alice, bob = await edge(world)
    every_byte = bytes(range(256))
    largest = (every_byte * (world.max_frame // 256 + 1))[: world.max_frame]
    for frame in (b"", b"\0", every_byte, largest):
        await push_until_taken(world, alice, bob, frame)
        await answer_until_taken(world, bob, alice, frame)
    await close(alice, bob)


async def check_an_unadmitted_sender_gets_nothing_in(world: World) -> None:
    """It is refused and counted while an admitted one gets through; admitted later, it gets in."""
    alice, mallory, bob = [await world.start(name) for name in ("alice", "mallory", "bob")]
    bob.admit(frozenset({alice.key}))
    for sender in (alice, mallory):
        sender.dial(bob.key, bob.address)

    def refused() -> bool:
        mallory.push(bob.key, b"let me in")
        return bob.losses.refused.get(mallory.key, 0) > 0

    await until(world, refused)
    await push_until_taken(world, alice, bob, b"admitted")
    assert all(arrival.peer == alice.key for arrival in await rest(world, bob))
    bob.admit(frozenset({alice.key, mallory.key}))
    taken = await push_until_taken(world, mallory, bob, b"welcome")
    assert taken.peer == mallory.key
    await close(alice, mallory, bob)


async def check_revoked_admission_takes_effect_on_a_live_connection(world: World) -> None:
    """And so does its return."""
    alice, bob = await edge(world)
    await push_until_taken(world, alice, bob, b"before")
    bob.admit(frozenset())
    await rest(world, bob)
    earlier = bob.losses.refused.get(alice.key, 0)

    def refused() -> bool:
        alice.push(bob.key, b"after")
        return bob.receive_now() is not None or bob.losses.refused.get(alice.key, 0) > earlier

    await until(world, refused)
    assert await rest(world, bob) == []
    bob.admit(frozenset({alice.key}))
    await push_until_taken(world, alice, bob, b"again")
    await close(alice, bob)


async def check_sending_to_nobody_neither_waits_nor_raises(world: World) -> None:
    """Not dialled, dialled but absent, hung up on, and a reply to one who never pushed."""
    alice, bob, carol = [await world.start(name) for name in ("alice", "bob", "carol")]
    bob.admit(None)
    alice.push(bob.key, b"never dialled")
    alice.reply(bob.key, b"never heard of")
    alice.dial(carol.key, carol.address)
    await carol.close()
    for _ in range(1000):
        alice.push(carol.key, b"nobody home")
    alice.dial(bob.key, bob.address)
    await push_until_taken(world, alice, bob, b"somebody home")
    alice.hang_up(bob.key)
    alice.hang_up(bob.key)
    await rest(world, bob)
    alice.push(bob.key, b"hung up")
    assert await rest(world, bob) == []
    await close(alice, bob)


async def check_a_restarted_receiver_is_reached_again(world: World) -> None:
    """Same key, same address, and nothing done by the sender."""
    alice, bob = await edge(world)
    await push_until_taken(world, alice, bob, b"first life")
    address = bob.address
    await bob.close()
    alice.push(bob.key, b"between two lives")
    bob = await world.start("bob", address)
    bob.admit(frozenset({alice.key}))
    await push_until_taken(world, alice, bob, b"second life")
    await answer_until_taken(world, bob, alice, b"still me")
    await close(alice, bob)


async def check_a_restarted_sender_gets_replies_again(world: World) -> None:
    """Replies go to the connection that spoke last."""
    alice, bob = await edge(world)
    await push_until_taken(world, alice, bob, b"first life")
    await alice.close()
    bob.reply(alice.key, b"to a dead one")
    alice = await world.start("alice")
    alice.dial(bob.key, bob.address)
    await push_until_taken(world, alice, bob, b"second life")
    await answer_until_taken(world, bob, alice, b"to the living")
    await close(alice, bob)


async def check_a_receiver_with_another_key_at_the_address_gets_nothing(world: World) -> None:
    """Whoever takes over an address cannot read what is meant for its former owner."""
    alice, bob = await edge(world)
    await push_until_taken(world, alice, bob, b"for bob")
    bob_key, address = bob.key, bob.address
    await bob.close()
    mallory, carol = await world.start("mallory", address), await world.start("carol")
    mallory.admit(None)
    carol.dial(mallory.key, mallory.address)
    seen: list[Arrival] = []
    for number in range(20):
        alice.push(bob_key, b"for bob, not for mallory")
        send = partial(carol.push, mallory.key, bytes([number]))
        await send_until_taken(world, send, mallory, bytes([number]), seen)
    assert all(arrival.peer == carol.key for arrival in [*seen, *await rest(world, mallory)])
    await close(alice, mallory, carol)


async def check_a_changed_address_is_dialled_instead(world: World) -> None:
    """A receiver that moved is reached at its new address."""
    alice, bob = await edge(world)
    await push_until_taken(world, alice, bob, b"here")
    old = bob.address
    await bob.close()
    squatter = await world.start("carol", old)
    bob = await world.start("bob")
    bob.admit(None)
    assert bob.address != old
    alice.dial(bob.key, bob.address)
    alice.dial(bob.key, bob.address)
    await push_until_taken(world, alice, bob, b"there")
    await close(alice, bob, squatter)


async def check_oversized_frames_are_lost_without_harm(world: World) -> None:
    """What is sent after them still arrives, in both directions."""
    alice, bob = await edge(world)
    await push_until_taken(world, alice, bob, b"small")
    too_large = bytes(world.max_frame + 1)

    def counted() -> bool:
        alice.push(bob.key, too_large)
        bob.reply(alice.key, too_large)
        return alice.losses.oversized > 0 and bob.losses.oversized > 0

    await until(world, counted)
    await push_until_taken(world, alice, bob, b"small again")
    await answer_until_taken(world, bob, alice, b"small too")
    received = [*await rest(world, bob), *await rest(world, alice)]
    assert all(len(arrival.frame) <= world.max_frame for arrival in received)
    await close(alice, bob)


async def check_links_tell_how_connections_are_doing(world: World) -> None:
    """Connected, refused, taken over by a stranger, and nobody there."""
    alice, bob = await edge(world)
    await until(world, lambda: alice.links[bob.key].state == "connected")
    bob_key, address = bob.key, bob.address
    await bob.close()
    await until(world, lambda: alice.links[bob_key].state == "connecting")
    bob = await world.start("bob", address)
    await until(world, lambda: alice.links[bob_key].state == "refused")
    await bob.close()
    mallory = await world.start("mallory", address)
    await until(world, lambda: alice.links[bob_key].state == "stranger")
    alice.hang_up(bob_key)
    assert alice.links == {}
    await close(alice, mallory)


async def check_a_waiting_receive_wakes_up(world: World) -> None:
    """For a push, for a reply, and while the waiting peer itself goes on sending."""
    alice, bob = await edge(world)
    await push_until_taken(world, alice, bob, b"hello")
    await rest(world, bob)
    for round_trip in range(50):
        question, answer = b"question %d" % round_trip, b"answer %d" % round_trip
        await wake(world, alice, bob, "push", question)
        await wake(world, bob, alice, "reply", answer)
    await close(alice, bob)


async def check_a_closed_transport_is_quiet(world: World) -> None:
    """It takes calls without harm, may be closed twice, and ends a waiting `receive`."""
    alice, bob = await edge(world)
    await push_until_taken(world, alice, bob, b"hello")
    await rest(world, alice)
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
    await close(bob)


CHECKS: tuple[Check, ...] = (
    check_a_frame_reaches_the_one_addressed_and_says_who_sent,
    check_a_reply_comes_back_over_the_connection_of_the_push,
    check_both_may_dial_each_other,
    check_frames_arrive_byte_for_byte,
    check_an_unadmitted_sender_gets_nothing_in,
    check_revoked_admission_takes_effect_on_a_live_connection,
    check_sending_to_nobody_neither_waits_nor_raises,
    check_a_restarted_receiver_is_reached_again,
    check_a_restarted_sender_gets_replies_again,
    check_a_receiver_with_another_key_at_the_address_gets_nothing,
    check_a_changed_address_is_dialled_instead,
    check_oversized_frames_are_lost_without_harm,
    check_links_tell_how_connections_are_doing,
    check_a_waiting_receive_wakes_up,
    check_a_closed_transport_is_quiet,
)
"""Every check, for test runners that want one test each."""
