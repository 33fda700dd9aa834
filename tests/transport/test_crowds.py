"""More connections and more bytes than a peer wants: bounded, and nobody else is harmed."""

import asyncio
import contextlib
import math
import socket

import pytest
import zmq
from bounded import noted, run

from oneway.transport import ConnectionLimits, unfinished, zeromq_accepted

FAST = ConnectionLimits(
    max_frame=10_000, heartbeat=30.0, reconnect=0.01, reconnect_max=0.1, redial=0.2, handshake=30.0
)
UNFINISHED = 7_000_000
"""Bytes of a message that are passed on: more than is allowed, and less than all of it."""

counts_bytes = pytest.mark.skipif(
    not hasattr(socket, "TCP_INFO"),
    reason="this system does not tell how much a connection brought",
)


@pytest.fixture
def listen(listen):
    return noted(listen)


async def reach(sender, receiver, frame=b"still there?"):
    """Push until the frame arrives."""
    receiver_frames = set()
    while frame not in receiver_frames:
        sender.push(receiver.key, frame)
        await asyncio.sleep(0.002)
        while (arrival := receiver.receive_now()) is not None:
            if arrival.peer == sender.key:
                receiver_frames.add(arrival.frame)


async def until(condition):
    while not condition():
        await asyncio.sleep(0.002)


class Crowd:
    """A stranger that keeps connections open; those closed on it are counted.

    It says one byte: a connection that waits in the kernel is only taken from there for some.
    """

    def __init__(self):
        self.closed = 0
        self.refill = False
        self._tasks = []

    async def open(self, address, count):
        host, port = address.rsplit(":", 1)
        self._place = (host, int(port))
        for _ in range(count):
            self._tasks.append(asyncio.ensure_future(self._hold()))

    async def _hold(self):
        loop, again = asyncio.get_running_loop(), True
        while again:
            with socket.socket() as line, contextlib.suppress(ConnectionError):
                line.setblocking(False)
                await loop.sock_connect(line, self._place)
                await loop.sock_sendall(line, b"\xff")
                while await loop.sock_recv(line, 64):
                    pass
            self.closed += 1
            again = self.refill

    async def leave(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def test_idle_connections_of_strangers_are_bounded_and_the_newest_stay(listen, monkeypatch):
    monkeypatch.setattr(zeromq_accepted, "MAX_UNPROVEN", 8)

    async def scenario():
        bob, crowd = listen("bob", limits=FAST), Crowd()
        await crowd.open(bob.address, 100)
        await until(lambda: crowd.closed == 92)
        assert bob.losses.crowded_out == 92
        await crowd.leave()
        await bob.close()

    run(scenario)


def test_admitted_senders_go_on_and_come_in_while_a_stranger_takes_every_place(listen, monkeypatch):
    """One is there before the crowd, one comes in the middle of it."""
    monkeypatch.setattr(zeromq_accepted, "MAX_UNPROVEN", 64)

    async def scenario():
        alice, bob, carol = [listen(name, limits=FAST) for name in ("alice", "bob", "carol")]
        bob.admit(frozenset({alice.key, carol.key}))
        alice.dial(bob.key, bob.address)
        await reach(alice, bob)
        connected_since, crowd = alice.links[bob.key].since, Crowd()
        crowd.refill = True
        await crowd.open(bob.address, 100)
        await until(lambda: crowd.closed > 200)
        carol.dial(bob.key, bob.address)
        await reach(carol, bob)
        await reach(alice, bob)
        assert alice.links[bob.key].since == connected_since
        await crowd.leave()
        for peer in (alice, bob, carol):
            await peer.close()

    run(scenario)


def test_one_key_has_a_few_connections_at_most(listen, bare_dealer):
    async def scenario():
        alice, bob = listen("alice", limits=FAST), listen("bob", limits=FAST)
        bob.admit(None)
        alice.dial(bob.key, bob.address)
        await reach(alice, bob)
        connected_since = alice.links[bob.key].since
        with contextlib.ExitStack() as opened:
            for number in range(zeromq_accepted.MAX_PER_KEY + 1):
                assert bob.losses.crowded_out == 0
                dealer, key = opened.enter_context(bare_dealer("mallory", bob))
                dealer.send(b"%d" % number)
                assert (await bob.receive()).peer == key
            assert bob.losses.crowded_out == 1
        await reach(alice, bob)
        assert alice.links[bob.key].since == connected_since
        await alice.close()
        await bob.close()

    run(scenario)


class Relay:
    """Passes on so many bytes to one side and then no more, without closing: no message ends."""

    def __init__(self, address, *, to_listener=math.inf, to_dialler=math.inf):
        self._place = address.rsplit(":", 1)
        self._most = (to_listener, to_dialler)

    async def __aenter__(self):
        self._lines = set()
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    def _connect(self, reader, writer):
        self._lines.add(asyncio.ensure_future(self._pass_on(reader, writer)))

    async def _pass_on(self, reader, writer):
        listener_reader, listener_writer = await asyncio.open_connection(*self._place)
        try:
            async with asyncio.TaskGroup() as ways:
                ways.create_task(self._copy(reader, listener_writer, self._most[0]))
                ways.create_task(self._copy(listener_reader, writer, self._most[1]))
        finally:
            for line in (writer, listener_writer):
                line.close()
                with contextlib.suppress(ConnectionError):
                    await line.wait_closed()

    async def _copy(self, source, target, most):
        with contextlib.suppress(ConnectionError):
            while chunk := await source.read(65536):
                if most > 0:
                    target.write(chunk)
                    await target.drain()
                most -= len(chunk)
        # One side has hung up; so does the other.
        target.close()


@counts_bytes
@pytest.mark.parametrize(
    ("part", "count"),
    [(b"", 250_000), (bytes(10_000), 1000)],
    ids=["empty parts", "full parts"],
)
def test_a_message_without_an_end_is_ended_and_its_sender_named(listen, bare_dealer, part, count):
    async def scenario():
        alice, bob = listen("alice", limits=FAST), listen("bob", limits=FAST)
        bob.admit(None)
        alice.dial(bob.key, bob.address)
        async with Relay(bob.address, to_listener=UNFINISHED) as relay:
            with bare_dealer("mallory", bob, relay.address) as (dealer, key):
                dealer.send(b"hello")
                assert (await bob.receive()).peer == key
                # What comes before the next look counts as brought together with the hello.
                known = bob._server._accepted._known.values()
                await until(lambda: not any(accepted.progressed for accepted in known))
                dealer.send_multipart([part] * count)
                arrival = await bob.receive()
        assert (arrival.peer, arrival.frame, arrival.via) == (key, b"", "push")
        assert "without an end" in arrival.flaw
        assert bob.losses.malformed == 1
        await reach(alice, bob)
        await alice.close()
        await bob.close()

    run(scenario)


@counts_bytes
def test_a_reply_without_an_end_is_ended_and_the_receiver_dialled_again(listen, identity_of):
    async def scenario():
        alice, identity = listen("alice", limits=FAST), identity_of("mallory")
        with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
            router.set(zmq.LINGER, 0)
            router.set(zmq.CURVE_SERVER, 1)
            router.set(zmq.CURVE_SECRETKEY, identity.secret)
            port = router.bind_to_random_port("tcp://127.0.0.1")

            async def next_push():
                while not router.poll(0):
                    alice.push(identity.public, b"question")
                    await asyncio.sleep(0.002)
                return router.recv_multipart()[0]

            async with Relay(f"127.0.0.1:{port}", to_dialler=UNFINISHED) as relay:
                alice.dial(identity.public, relay.address)
                route = await next_push()
                router.send_multipart([route, *[bytes(10_000)] * 1000])
                arrival = await alice.receive()
                assert (arrival.peer, arrival.via) == (identity.public, "reply")
                assert "without an end" in arrival.flaw
                while (await next_push()) == route:
                    pass
        await alice.close()

    run(scenario)


@counts_bytes
def test_a_full_queue_is_no_message_without_an_end(listen, monkeypatch):
    """The receiver is busy with something else, for many looks at what has come in."""
    monkeypatch.setattr(unfinished, "LOOK_SECONDS", 0.001)
    looks = 0
    look = unfinished.UnfinishedWatch._look

    def counted(self):
        nonlocal looks
        looks += 1
        look(self)

    monkeypatch.setattr(unfinished.UnfinishedWatch, "_look", counted)

    async def scenario():
        alice, bob = listen("alice", limits=FAST), listen("bob", limits=FAST)
        bob.admit(None)
        alice.dial(bob.key, bob.address)
        await reach(alice, bob)
        connected_since = alice.links[bob.key].since
        goal = looks + 200
        while looks < goal:
            alice.push(bob.key, bytes(10_000))
            await asyncio.sleep(0)
        await reach(alice, bob)
        assert bob.losses.malformed == 0
        assert alice.links[bob.key].since == connected_since
        await alice.close()
        await bob.close()

    run(scenario)


def test_a_message_of_many_parts_is_read_in_turns(listen, bare_dealer):
    """Other tasks run meanwhile, and what follows it arrives."""

    async def scenario():
        bob = listen("bob", limits=FAST)
        bob.admit(None)
        with bare_dealer("mallory", bob) as (dealer, key):
            dealer.send_multipart([b""] * 20_000)
            dealer.send(b"afterwards")
            vain = 0
            while (arrival := bob.receive_now()) is None:
                vain += bool(bob._server._reader.is_amid)
                await asyncio.sleep(0)
            assert (arrival.peer, arrival.frame) == (key, b"")
            assert "several parts" in arrival.flaw
            assert vain > 0
            assert (await bob.receive()).frame == b"afterwards"
        await bob.close()

    run(scenario)


@pytest.mark.parametrize(
    ("max_frame", "queue"),
    [(2**10, 64), (2**18, 64), (2**20, 16), (1_200_000, 13), (2**24, 2), (2**30, 2)],
)
def test_queues_are_bounded_in_bytes_but_hold_two_frames(max_frame, queue):
    limits = ConnectionLimits.for_frames(max_frame)
    assert (limits.max_frame, limits.queue) == (max_frame, queue)
