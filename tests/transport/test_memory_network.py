"""The network that a test drives."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.errors import TransportError
from oneway.testing.memory_network import MemoryNetwork

ALICE, BOB = b"a" * 32, b"b" * 32


def edge():
    network = MemoryNetwork()
    alice, bob = network.endpoint(ALICE), network.endpoint(BOB)
    alice.dial(BOB, bob.address)
    bob.admit(frozenset({ALICE}))
    return network, alice, bob


def frames(endpoint):
    return [arrival.frame for arrival in iter(endpoint.receive_now, None)]


def test_the_test_chooses_the_order():
    network, alice, bob = edge()
    for frame in (b"1", b"2", b"3", b"4"):
        alice.push(BOB, frame)
    network.deliver(2)
    network.drop(0)
    network.duplicate(0)
    network.deliver_all()
    assert frames(bob) == [b"3", b"2", b"4", b"2"]
    assert network.in_flight == []


def test_a_frame_in_flight_survives_the_death_of_its_sender_but_its_answer_does_not():
    network, alice, bob = edge()
    alice.push(BOB, b"last words")
    alice.crash()
    network.deliver(0)
    assert frames(bob) == [b"last words"]
    network.endpoint(ALICE).dial(BOB, bob.address)
    bob.reply(ALICE, b"to the one who asked, not to its next life")
    network.deliver_all()
    assert bob.receive_now() is None
    assert network.listeners[ALICE.hex()].receive_now() is None


def test_two_cannot_listen_on_one_address():
    network = MemoryNetwork()
    network.endpoint(ALICE, "here")
    with pytest.raises(TransportError, match=r"^cannot listen on here: another endpoint"):
        network.endpoint(BOB, "here")


def test_a_cancelled_receive_loses_nothing():
    async def scenario():
        network, alice, bob = edge()
        waiting = asyncio.ensure_future(bob.receive())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        alice.push(BOB, b"1")
        network.deliver_all()
        return await bob.receive()

    assert asyncio.run(scenario()).frame == b"1"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["push", "reply", "deliver", "drop", "duplicate", "admit", "revoke"]),
            st.integers(0, 50),
        ),
        max_size=80,
    )
)
def test_whatever_the_schedule_nothing_is_invented(steps):
    network, alice, bob = edge()
    sent = {"push": set(), "reply": set()}
    for number, (step, index) in enumerate(steps):
        frame = b"%d" % number
        if step == "push":
            alice.push(BOB, frame)
            sent["push"].add(frame)
        elif step == "reply":
            bob.reply(ALICE, frame)
            sent["reply"].add(frame)
        elif step in ("admit", "revoke"):
            bob.admit(frozenset({ALICE} if step == "admit" else ()))
        elif network.in_flight:
            getattr(network, step)(index % len(network.in_flight))
    for arrival in iter(bob.receive_now, None):
        assert (arrival.peer, arrival.via) == (ALICE, "push")
        assert arrival.frame in sent["push"]
    for arrival in iter(alice.receive_now, None):
        assert (arrival.peer, arrival.via) == (BOB, "reply")
        assert arrival.frame in sent["reply"]
