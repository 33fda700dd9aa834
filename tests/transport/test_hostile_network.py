"""What strangers and bad company can do to a listening peer: nothing but be counted."""

import asyncio
import contextlib

import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.transport.base import MAX_NAMED, Losses

WAIT = 240.0
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01CURVE" + bytes(15) + bytes(32)

raw_bytes = st.binary(max_size=300)
after_greeting = st.binary(max_size=300).map(lambda tail: GREETING + tail)
commands = st.binary(max_size=194).map(
    lambda body: GREETING + b"\x04\xc8\x05HELLO" + body + bytes(194 - len(body))
)
huge_claims = st.integers(0, 2**64 - 1).map(
    lambda size: GREETING + b"\x06" + size.to_bytes(8, "big") + b"x" * 50
)


def run(scenario):
    async def bounded():
        async with asyncio.timeout(WAIT):
            return await scenario()

    return asyncio.run(bounded())


async def round_trip(sender, receiver, frame=b"still there?"):
    """Push until the frame arrives, and return everything that came with it."""
    seen = []
    while True:
        sender.push(receiver.key, frame)
        await asyncio.sleep(0.002)
        while (arrival := receiver.receive_now()) is not None:
            seen.append(arrival)
            if arrival.frame == frame:
                return seen


async def knock(address, payload):
    """Send bytes to a port as they are, and go away."""
    host, _, port = address.rpartition(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(payload)
    with contextlib.suppress(ConnectionError):
        await writer.drain()
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


@settings(max_examples=20, deadline=None)
@given(st.lists(raw_bytes | after_greeting | commands | huge_claims, min_size=1, max_size=10))
def test_random_bytes_on_the_port_do_not_stop_a_listener(listen, payloads):
    async def scenario():
        alice, bob = listen("alice"), listen("bob")
        bob.admit(frozenset({alice.key}))
        alice.dial(bob.key, bob.address)
        for payload in payloads:
            await knock(bob.address, payload)
        assert {arrival.peer for arrival in await round_trip(alice, bob)} == {alice.key}
        await alice.close()
        await bob.close()

    run(scenario)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(st.binary(max_size=100), min_size=1, max_size=5), max_size=20))
def test_random_messages_of_an_admitted_sender_arrive_or_are_named_with_their_sender(
    listen, bare_dealer, messages
):
    async def scenario():
        bob = listen("bob")
        bob.admit(None)
        with bare_dealer("mallory", bob) as (dealer, key):
            for message in messages:
                dealer.send_multipart(message)
            dealer.send(b"the last one" * 10)
            arrivals = []
            while not arrivals or arrivals[-1].frame != b"the last one" * 10:
                arrivals.append(await bob.receive())
        assert {arrival.peer for arrival in arrivals} == {key}
        sound = [(message[0], True) if len(message) == 1 else (b"", False) for message in messages]
        assert [(arrival.frame, not arrival.flaw) for arrival in arrivals[:-1]] == sound
        assert bob.losses.malformed == sum(len(message) > 1 for message in messages)
        await bob.close()

    run(scenario)


def test_an_oversized_reply_does_not_lose_the_receiver_for_good(listen, identity_of):
    """ZeroMQ would not reconnect after it by itself."""

    async def scenario():
        alice = listen("alice")
        identity = identity_of("mallory")
        with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
            router.set(zmq.LINGER, 0)
            router.set(zmq.CURVE_SERVER, 1)
            router.set(zmq.CURVE_SECRETKEY, identity.secret)
            port = router.bind_to_random_port("tcp://127.0.0.1")
            alice.dial(identity.public, f"127.0.0.1:{port}")

            async def next_push():
                while not router.poll(0):
                    alice.push(identity.public, b"question")
                    await asyncio.sleep(0.002)
                return router.recv_multipart()[0]

            route = await next_push()
            router.send_multipart([route, bytes(1_000_000)])
            while (await next_push()) == route:
                pass
            route = await next_push()
            router.send_multipart([route, b"well-behaved"])
            assert (await alice.receive()).frame == b"well-behaved"
        await alice.close()

    run(scenario)


def test_a_claimed_routing_id_does_not_change_who_sent(listen, bare_dealer):
    async def scenario():
        bob = listen("bob")
        bob.admit(None)
        with bare_dealer("alice", bob, routing_id=b"alice") as (alice, alice_key):
            alice.send(b"by alice")
            assert (await bob.receive()).peer == alice_key
            with bare_dealer("mallory", bob, routing_id=b"alice") as (mallory, mallory_key):
                mallory.send(b"by mallory")
                for _ in range(100):
                    alice.send(b"by alice")
                    bob.reply(alice_key, b"for alice")
                    arrival = await bob.receive()
                    is_hers = arrival.frame == b"by alice"
                    assert arrival.peer == (alice_key if is_hers else mallory_key)
                assert mallory.poll(0) == 0
        await bob.close()

    run(scenario)


def test_a_captured_conversation_replayed_byte_for_byte_brings_nothing_in(listen):
    async def scenario():
        alice, bob, carol = listen("alice"), listen("bob"), listen("carol")
        bob.admit(None)
        captured = bytearray()

        async def copy(source, target, record):
            with contextlib.suppress(ConnectionError):
                while chunk := await source.read(65536):
                    if record:
                        captured.extend(chunk)
                    target.write(chunk)
            target.close()

        async def relay(reader, writer):
            host, _, port = bob.address.rpartition(":")
            to_bob, from_bob = await asyncio.open_connection(host, int(port))
            await asyncio.gather(copy(reader, from_bob, True), copy(to_bob, writer, False))

        async with await asyncio.start_server(relay, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            alice.dial(bob.key, f"127.0.0.1:{port}")
            await round_trip(alice, bob, b"once only")
            await alice.close()
        assert len(captured) > 200
        while bob.receive_now() is not None:
            pass
        await knock(bob.address, bytes(captured))
        carol.dial(bob.key, bob.address)
        seen = [arrival for _ in range(10) for arrival in await round_trip(carol, bob)]
        assert {arrival.peer for arrival in seen} == {carol.key}
        await bob.close()
        await carol.close()

    run(scenario)


@pytest.mark.parametrize("admitted", [True, False], ids=["admitted", "revoked"])
def test_a_flood_cannot_grow_memory_without_bound(listen, bare_dealer, admitted):
    """The receiver is asleep, and of 200 MB all but what the kernel buffers stays outside."""

    async def scenario():
        bob = listen("bob")
        bob.admit(None)
        with bare_dealer("mallory", bob, sndhwm=64) as (dealer, key):
            dealer.send(b"hello")
            assert (await bob.receive()).peer == key
            bob.admit(None if admitted else frozenset())
            accepted = 0
            while accepted < 20_000 and dealer.poll(500, zmq.POLLOUT):
                dealer.send(bytes(10_000), zmq.NOBLOCK)
                accepted += 1
            assert accepted < 4000
            taken = 0
            for _ in range(10_000):
                taken += bob.receive_now() is not None
            assert taken <= (accepted if admitted else 0)
        await bob.close()

    run(scenario)


def test_refusals_are_counted_by_key_up_to_a_bound():
    losses = Losses()
    for number in range(MAX_NAMED + 5):
        losses.refuse(number.to_bytes(32, "big"))
    losses.refuse(bytes(32))
    assert len(losses.refused) == MAX_NAMED
    assert losses.refused[bytes(32)] == 2
    assert losses.refused_others == 5
