"""Faults on purpose, reproducible."""

import asyncio
import random

from oneway.testing import MemoryNetwork
from oneway.transport.faults import Faults, Faulty, with_faults

ALICE, BOB, CAROL = b"a" * 32, b"b" * 32, b"c" * 32


class Scheduler:
    """Time that passes when told to."""

    def __init__(self):
        self.planned = []

    def later(self, seconds, callback):
        self.planned.append((seconds, callback))

    def run(self):
        planned, self.planned = sorted(self.planned, key=lambda item: item[0]), []
        for _, callback in planned:
            callback()


def edge(faults=Faults(), seed=7):  # noqa: B008 - a frozen value
    network, scheduler = MemoryNetwork(), Scheduler()
    alice = Faulty(network.endpoint(ALICE), faults, random.Random(seed), scheduler.later)
    bob = Faulty(network.endpoint(BOB), Faults(), random.Random(seed), scheduler.later)
    for one, other in ((alice, bob), (bob, alice)):
        one.admit(None)
        one.dial(other.key, other.address)
    return network, scheduler, alice, bob


def received(network, endpoint):
    network.deliver_all()
    return [arrival.frame for arrival in iter(endpoint.receive_now, None)]


def numbered(count):
    return [b"%d" % number for number in range(count)]


def push_all(sender, receiver, frames):
    for frame in frames:
        sender.push(receiver.key, frame)


def test_loss_strikes_about_as_often_as_asked():
    network, _, alice, bob = edge(Faults(loss=0.2))
    push_all(alice, bob, numbered(10_000))
    # Six standard deviations of a binomial.
    assert abs(len(received(network, bob)) - 8000) < 240


def test_a_delay_is_at_most_what_was_asked_and_changes_the_order():
    network, scheduler, alice, bob = edge(Faults(delay=3.0))
    push_all(alice, bob, numbered(50))
    assert received(network, bob) == []
    assert all(0.0 <= seconds <= 3.0 for seconds, _ in scheduler.planned)
    scheduler.run()
    late = received(network, bob)
    assert late != numbered(50)
    assert sorted(late) == sorted(numbered(50))


def test_a_cut_stops_both_ways_until_it_ends():
    network, _, alice, bob = edge()
    alice.cut = frozenset({BOB})
    alice.push(bob.key, b"lost")
    bob.push(alice.key, b"lost too")
    assert received(network, bob) == received(network, alice) == []
    alice.cut = frozenset()
    alice.push(bob.key, b"healed")
    bob.push(alice.key, b"healed")
    assert received(network, bob) == received(network, alice) == [b"healed"]


def in_loop(steps):
    async def scenario():
        return steps()

    return asyncio.run(scenario())


def test_the_injector_is_put_in_changed_and_taken_out_while_running():
    def steps():
        network, keys = MemoryNetwork(), {"bob": BOB}
        real, bob = network.endpoint(ALICE), network.endpoint(BOB)
        bob.admit(None)
        real.dial(BOB, bob.address)
        lossy = with_faults(real, Faults(loss=1.0), keys)
        lossy.push(BOB, b"lost")
        cut = with_faults(lossy, Faults(cut=("bob", "a stranger")), keys)
        cut.push(BOB, b"lost too")
        assert cut is lossy
        assert received(network, bob) == []
        healed = with_faults(cut, Faults(), keys)
        healed.push(BOB, b"heard")
        assert healed is real
        assert received(network, bob) == [b"heard"]
        # A task that still waits in the injector takes in what comes, also from who was cut.
        real.admit(None)
        bob.dial(ALICE, real.address)
        bob.push(ALICE, b"heard too")
        assert received(network, cut) == [b"heard too"]

    in_loop(steps)
