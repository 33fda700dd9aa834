"""The real network, on loopback."""

import asyncio
import re
import select
import socket
import threading
from pathlib import Path

import pytest
import zmq

from oneway.errors import ConfigError, TransportError
from oneway.transport import Arrival, zeromq_server

WAIT = 240.0


def run(scenario):
    async def bounded():
        async with asyncio.timeout(WAIT):
            return await scenario()

    return asyncio.run(bounded())


async def connected(sender, receiver):
    """Dial, admit, and wait until frames can flow."""
    receiver.admit(None)
    sender.dial(receiver.key, receiver.address)
    while sender.links[receiver.key].state != "connected":
        await asyncio.sleep(0.002)


def open_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_no_wake_up_is_lost_in_thousands_of_round_trips(listen):
    """Nothing is sent twice here: a single arrival that nobody is woken for would hang."""

    async def scenario():
        alice, bob = listen("alice"), listen("bob")
        await connected(alice, bob)
        await connected(bob, alice)
        left = 1000

        async def answer(peer):
            while left:
                arrival = await peer.receive()
                if arrival.via == "push":
                    peer.reply(arrival.peer, arrival.frame)
                else:
                    answers.release()

        answers = asyncio.Semaphore(0)
        tasks = [asyncio.ensure_future(answer(peer)) for peer in (alice, bob)]
        while left:
            alice.push(bob.key, b"%d" % left)
            bob.push(alice.key, b"%d" % left)
            await answers.acquire()
            await answers.acquire()
            left -= 1
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert alice.losses == bob.losses == type(alice.losses)()
        await alice.close()
        await bob.close()

    run(scenario)


@pytest.mark.parametrize("via", ["push", "reply"])
def test_a_send_that_swallows_the_signal_of_an_arrival_passes_it_on(listen, via):
    """ZeroMQ signals an arrival once, and any call on the socket may be the one that hears it."""

    async def scenario():
        alice, bob = listen("alice"), listen("bob")
        await connected(alice, bob)
        alice.push(bob.key, b"hello")
        await bob.receive()
        receiver = bob if via == "push" else alice
        waiting = asyncio.ensure_future(receiver.receive())
        await asyncio.sleep(0)
        # From here on without a turn for the event loop, which would hear the signal first.
        if via == "push":
            alice.push(bob.key, b"awaited")
            watched, send = bob._server._watched, lambda: bob.reply(alice.key, b"meanwhile")
        else:
            bob.reply(alice.key, b"awaited")
            connection = alice._connections[bob.key]
            watched, send = connection._watched, lambda: alice.push(bob.key, b"meanwhile")
        descriptor = watched.socket.get(zmq.FD)
        assert select.select([descriptor], [], [], WAIT)[0]
        while select.select([descriptor], [], [], 0)[0]:
            send()
            # ZeroMQ looks for signals at most once per millisecond of sending.
            select.select([], [], [], 0.002)
        assert (await waiting).frame == b"awaited"
        await alice.close()
        await bob.close()

    for _ in range(5):
        run(scenario)


@pytest.mark.parametrize(
    ("address", "error"),
    [
        ("192.0.2.1:7001", TransportError),
        ("no-such-host.invalid:7001", TransportError),
        ("127.0.0.1", ConfigError),
    ],
)
def test_an_address_that_cannot_be_listened_on_gets_a_sentence(listen, address, error):
    async def scenario():
        with pytest.raises(error, match=re.escape(address)):
            listen("alice", address)

    run(scenario)


def test_a_failed_start_leaves_nothing_behind(listen):
    async def scenario():
        alice = listen("alice")
        before = threading.active_count(), open_descriptors()
        for _ in range(3):
            with pytest.raises(TransportError):
                listen("bob", alice.address)
        assert (threading.active_count(), open_descriptors()) == before
        await alice.close()

    run(scenario)


def test_closing_frees_every_descriptor(listen):
    async def scenario():
        # Once before counting: the first close starts the event loop's own worker thread.
        await listen("alice").close()
        before = open_descriptors()
        alice, bob = listen("alice"), listen("bob")
        await connected(alice, bob)
        alice.dial(bytes(range(32)), "127.0.0.1:9")
        alice.push(bob.key, b"hello")
        await bob.receive()
        await alice.close()
        await bob.close()
        assert open_descriptors() == before

    run(scenario)


def test_a_receiver_that_accepts_and_never_answers_is_unresponsive_and_no_stranger(listen):
    """As the kernel does for a process that is stopped."""

    async def scenario():
        alice, bob = listen("alice"), listen("bob")
        await bob.close()
        with socket.create_server(("127.0.0.1", 0)) as silent:
            alice.dial(bob.key, f"127.0.0.1:{silent.getsockname()[1]}")
            while (state := alice.links[bob.key].state) == "connecting":
                await asyncio.sleep(0.01)
        assert state == "unresponsive"
        await alice.close()

    run(scenario)


def test_what_was_queued_for_a_receiver_that_died_is_not_sent_to_its_next_life(listen):
    """A frame carries a running total: one of before the break would only delay the newest."""

    async def scenario():
        alice, bob = listen("alice"), listen("bob")
        await connected(alice, bob)
        address, key = bob.address, bob.key
        await bob.close()
        while alice.links[key].state == "connected":
            await asyncio.sleep(0.002)
        alice.push(key, b"stale")
        bob = listen("bob", address)
        bob.admit(None)
        while alice.links[key].state != "connected":
            await asyncio.sleep(0.002)
        alice.push(key, b"fresh")
        assert (await bob.receive()).frame == b"fresh"
        await alice.close()
        await bob.close()

    run(scenario)


def test_ways_back_are_remembered_for_a_bounded_number_of_senders(listen, monkeypatch):
    monkeypatch.setattr(zeromq_server, "MAX_ROUTES", 2)

    async def scenario():
        bob = listen("bob")
        senders = [listen(name) for name in ("alice", "carol", "dave")]
        for sender in senders:
            await connected(sender, bob)
            sender.push(bob.key, b"hello")
            await bob.receive()
        for sender in senders:
            bob.reply(sender.key, b"answer")
        assert bob.losses.unsent == 1
        for sender in senders[1:]:
            assert (await sender.receive()).frame == b"answer"
        for peer in (bob, *senders):
            await peer.close()

    run(scenario)


class Endless:
    """An inlet that always has something, or always something refused."""

    queued = True

    def __init__(self, arrival):
        self.arrival = arrival

    def take(self):
        return self.arrival


@pytest.mark.parametrize("arrival", [Arrival(bytes(32), b"more", "push"), None])
def test_other_tasks_run_while_frames_pour_in(listen, arrival):
    async def scenario():
        bob = listen("bob")
        bob._ready.append(Endless(arrival))
        turns = 0

        async def receive():
            while True:
                await bob.receive()

        receiving = asyncio.ensure_future(receive())
        while turns < 10:
            turns += 1
            await asyncio.sleep(0)
        receiving.cancel()
        await asyncio.gather(receiving, return_exceptions=True)
        await bob.close()

    run(scenario)
