"""Faults on purpose, reproducible."""

import asyncio
import random

import pytest

from oneway.errors import ConfigError
from oneway.testing.memory import MemoryNetwork
from oneway.transport import Faults, Faulty

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


def test_without_faults_everything_arrives_in_order():
    network, _, alice, bob = edge()
    push_all(alice, bob, numbered(100))
    assert received(network, bob) == numbered(100)


def test_loss_strikes_about_as_often_as_asked():
    network, _, alice, bob = edge(Faults(loss=0.2))
    push_all(alice, bob, numbered(10_000))
    # Six standard deviations of a binomial.
    assert abs(len(received(network, bob)) - 8000) < 240


def test_replies_suffer_like_pushes():
    network, _, alice, bob = edge()
    bob.push(alice.key, b"question")
    assert received(network, alice) == [b"question"]
    alice.faults = Faults(loss=1.0)
    alice.reply(bob.key, b"answer")
    assert received(network, bob) == []
    alice.faults = Faults(duplicate=1.0)
    alice.reply(bob.key, b"answer")
    assert received(network, bob) == [b"answer", b"answer"]


def test_a_reordered_frame_goes_right_after_the_next_one():
    network, _, alice, bob = edge(Faults(reorder=1.0))
    push_all(alice, bob, numbered(5))
    assert received(network, bob) == [b"1", b"0", b"3", b"2"]


def test_a_frame_held_back_is_not_overtaken_by_what_goes_to_others():
    network, _, alice, bob = edge(Faults(reorder=1.0))
    alice.push(bob.key, b"held")
    alice.dial(CAROL, "nowhere")
    alice.push(CAROL, b"held too")
    alice.push(bob.key, b"first")
    assert received(network, bob) == [b"first", b"held"]


def test_a_delay_is_at_most_what_was_asked_and_changes_the_order():
    network, scheduler, alice, bob = edge(Faults(delay=3.0))
    push_all(alice, bob, numbered(50))
    assert received(network, bob) == []
    assert all(0.0 <= seconds <= 3.0 for seconds, _ in scheduler.planned)
    scheduler.run()
    late = received(network, bob)
    assert late != numbered(50)
    assert sorted(late) == sorted(numbered(50))


def test_the_same_seed_makes_the_same_faults():
    def run(seed):
        everything = Faults(loss=0.3, duplicate=0.3, reorder=0.3, delay=1.0)
        network, scheduler, alice, bob = edge(everything, seed)
        push_all(alice, bob, numbered(200))
        scheduler.run()
        return received(network, bob)

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_a_cut_is_one_way():
    network, _, alice, bob = edge()
    alice.cut(bob.key, "out")
    alice.push(bob.key, b"lost")
    bob.push(alice.key, b"heard")
    assert received(network, bob) == []
    assert received(network, alice) == [b"heard"]
    alice.heal(bob.key)
    alice.cut(bob.key, "in")
    alice.push(bob.key, b"heard")
    bob.push(alice.key, b"lost")
    assert received(network, bob) == [b"heard"]
    assert received(network, alice) == []
    alice.heal(bob.key)
    bob.push(alice.key, b"healed")
    assert received(network, alice) == [b"healed"]


def test_a_cut_also_stops_what_was_delayed_before_it():
    network, scheduler, alice, bob = edge(Faults(delay=1.0))
    alice.push(bob.key, b"on its way")
    alice.cut(bob.key)
    scheduler.run()
    assert received(network, bob) == []


def test_receive_waits_past_what_a_cut_swallows():
    async def scenario():
        network, _, alice, bob = edge()
        alice.cut(bob.key, "in")
        carol = network.endpoint(CAROL)
        carol.dial(ALICE, alice.address)
        bob.push(alice.key, b"swallowed")
        carol.push(alice.key, b"heard")
        network.deliver_all()
        return await alice.receive()

    assert asyncio.run(scenario()).frame == b"heard"


@pytest.mark.parametrize("wrong", [{"loss": 1.1}, {"duplicate": -0.1}, {"reorder": float("nan")}])
def test_a_probability_that_is_none_is_refused(wrong):
    with pytest.raises(ConfigError, match=r"but it must be between 0 and 1$"):
        Faults(**wrong)


@pytest.mark.parametrize("delay", [-1.0, float("inf"), float("nan")])
def test_a_delay_that_never_ends_is_refused(delay):
    with pytest.raises(ConfigError, match=r"delay is .* but it must be finite and not negative$"):
        Faults(delay=delay)
