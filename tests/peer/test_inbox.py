"""What a peer takes in from its neighbours: far models, many edges, old backups, copies."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from msgspec.structs import replace
from town import SAMPLE, TASK, Town, config, key_of, kinds, life, quiet

from oneway.peer.home.config import Sender
from oneway.peer.home.limits import Limits
from oneway.peer.inbox import MOST_STRANGERS
from oneway.peer.send_schedule import HEARTBEAT
from oneway.protocol.fixed_point import ONE, mass_of, zeros
from oneway.protocol.messages import Hello, Receipt
from oneway.protocol.state import OutPhase
from oneway.protocol.tags import NO_TAG, digest_of, sign
from oneway.protocol.transitions import restart
from oneway.transport.base import Arrival
from oneway.transport.wire import encode


def settle(town: Town, seconds: float = 4 * HEARTBEAT) -> None:
    until = town.time + seconds
    while town.time < until:
        town.pass_time(5.0)


def circulate(town: Town, turns: int, seconds: float = 0.05) -> None:
    for _ in range(turns):
        for name in list(town.nodes):
            if not town.nodes[name].stopped:
                town.nodes[name].learn(SAMPLE, "yes")
        town.pass_time(seconds)
        town.check_books()


# The clip always holds.


# Honest senders of many edges.


@pytest.mark.parametrize("lost", [False, True], ids=["all is heard", "much is lost"])
def test_an_honest_sender_may_withdraw_its_trust_and_renew_it_for_ever(lost):
    town = quiet(alice=["bob"], bob=["alice"])
    alice, bob = town.nodes["alice"], town.nodes["bob"]
    rng = np.random.default_rng(3)
    for _ in range(150):
        circulate(town, 1)
        alice.follow(config("alice"))
        if lost and rng.random() < 0.5:
            town.commit("alice", alice)
            town.network.in_flight.clear()
        town.pass_time(0.5)
        alice.follow(config("alice", ["bob"]))
        town.pass_time(0.5)
    assert town.strikes() == 0
    assert not bob.guard.about(key_of("alice")).rejected["quarantined"]
    edges = [edge for edge in town.state("bob").in_.values() if edge.sender == key_of("alice")]
    assert len(edges) <= 2 * bob.rules.most_edges + 1
    settle(town)
    circulate(town, 5)
    settle(town)
    assert len(town.state("alice").settled) <= 2 * bob.rules.most_edges + 1
    live = [edge for edge in town.state("alice").out.values() if edge.phase is OutPhase.OPEN]
    assert len(live) == 1
    assert live[0].is_at_rest
    assert mass_of(live[0].sent) > 0
    town.check_exact()


# Receivers restored from a backup.


def wind_on(town: Town, mass: float) -> None:
    """As if every edge of a ring at rest had carried so much more: who holds what is the same."""
    more = zeros(TASK.dim)
    more[-1] = int(mass * ONE)
    for name, node in town.nodes.items():
        state = town.state(name)
        [(edge_id, edge)] = state.out.items()
        assert edge.is_at_rest
        total = edge.sent + more
        proof = (edge.receiver, edge.epoch, edge.seq, digest_of(total))
        tag = sign(node.rules.secret, state.ledger, *proof)
        node._set(replace(state, out={edge_id: replace(edge, totals={edge.seq: total})}))
        [there] = [other for other in town.nodes if key_of(other) == edge.receiver]
        heard = town.state(there).in_[node.key, edge.epoch]
        anew = {(node.key, edge.epoch): replace(heard, heard=total, tag=tag)}
        town.nodes[there]._set(replace(town.state(there), in_=anew))
    town.check_exact()


RINGS = {
    "two": {"alice": ["bob"], "bob": ["alice"]},
    "three": {"alice": ["bob"], "bob": ["carol"], "carol": ["alice"]},
}


@pytest.mark.parametrize("boot", [None, 0], ids=["clock right", "clock behind"])
@pytest.mark.parametrize("ring", ["two", "three"])
def test_a_backup_older_than_thousands_of_units_handed_over_costs_neither_mass_nor_trust(
    ring, boot
):
    edges = RINGS[ring]
    town = quiet(**edges)
    circulate(town, 10)
    backup = town.durable["bob"]
    circulate(town, 10)
    settle(town, 10.0)
    wind_on(town, 5000.0)
    circulate(town, 10)
    town.power_off("bob")
    town.power_on("bob", backup, config("bob", edges["bob"]), boot)
    circulate(town, 40, seconds=0.5)
    settle(town)
    circulate(town, 40, seconds=0.5)
    settle(town)
    assert town.strikes() == 0
    assert not any(node.stopped for node in town.nodes.values())
    assert [mass_of(state.owed) for state in town.states()] == [0] * len(edges)
    assert sum(mass_of(state.holding) for state in town.states()) == len(edges) * ONE
    town.check_exact()
    for name in edges:
        assert [it.is_at_rest for it in town.state(name).out.values()] == [True]


def test_neighbours_restored_together_do_not_drain_the_network():
    """What Alice forgot she owes to nobody: Bob does, who is restored, too."""
    edges = RINGS["three"]
    town = quiet(**edges)
    circulate(town, 10)
    backups = dict(town.durable)
    circulate(town, 40)
    for name in ("alice", "bob"):
        town.power_off(name)
    for name in ("alice", "bob"):
        town.power_on(name, backups[name], config(name, edges[name]))
    circulate(town, 10, seconds=0.5)
    lowest = town.nodes["alice"].learner.mass_bounds[0]
    for _ in range(100):
        circulate(town, 1, seconds=0.5)
        assert all(state.mass >= lowest for state in town.states())
    # What Alice burned of that nobody can pay back; a debt leaves a peer half a unit.
    assert all(state.mass >= 0.4 for state in town.states())
    assert town.strikes() == 0
    settle(town)
    town.check_exact()


@pytest.mark.parametrize("method", ["ops", "relay"])
def test_an_old_backup_moves_nobody_far(method):
    """A debt paid at the model that was handed over would carry what remains hundreds away."""
    rng, edges, limits = np.random.default_rng(4), RINGS["three"], Limits(pushes_per_second=1e3)
    town = Town(edges, task=dataclasses.replace(TASK, method=method), limits=limits)

    def go(turns: int, seconds: float) -> float:
        farthest = 0.0
        for _ in range(turns):
            for node in town.nodes.values():
                u, v = rng.normal(size=2)
                node.learn({"u": u, "v": v}, "yes" if u - 2.0 * v + rng.normal() > 0 else "no")
            town.pass_time(seconds)
            farthest = max(farthest, *(np.abs(node.estimate).max() for node in town.nodes.values()))
        return farthest

    go(20, 0.05)
    backup = town.durable["bob"]
    before = go(700, 0.05)  # more than a peer may hold is handed over
    town.power_off("bob")
    town.power_on("bob", backup, config("bob", edges["bob"], limits=limits))
    assert go(60, 0.5) < 1.5 * before
    assert town.strikes() == 0
    assert sum(state.mass for state in town.states()) == pytest.approx(3.0, abs=1e-3)
    assert [mass_of(state.owed) for state in town.states()] == [0] * 3
    settle(town)
    town.check_exact()


# Copies of a peer.


def clone(town: Town, name: str, boot: int, receivers) -> str:
    """Start a copy of a peer's folder at another address, while the first one runs."""
    copy, snapshot = f"{name}-copy", town.durable[name]
    anew = replace(snapshot, state=restart(snapshot.state, boot))
    town.start(copy, anew, config(name, receivers), key=key_of(name))
    town.connect(copy, address=copy)
    return copy


@pytest.mark.parametrize("boot", [0, 1 << 50], ids=["clock behind", "clock right"])
@pytest.mark.parametrize("edges", [RINGS["two"], RINGS["three"]], ids=["two", "three"])
def test_of_two_copies_of_a_peer_exactly_one_stops_within_seconds_and_nobody_is_harmed(edges, boot):
    town = quiet(**edges)
    circulate(town, 20)
    copy = clone(town, "alice", boot, edges["alice"])
    began = town.time
    both = ("alice", copy)
    while not any(town.nodes[name].stopped for name in both):
        circulate(town, 1, seconds=0.1)
        assert town.time - began < 10.0
    # The one that ran first goes on: it has all that the network knows of it.
    assert [name for name in both if town.nodes[name].stopped] == [copy]
    assert town.nodes["bob"].guard.runs_twice(key_of("alice"))
    town.power_off(copy)
    circulate(town, 20, seconds=0.5)
    settle(town)
    circulate(town, 40, seconds=0.5)
    settle(town)
    assert not any(node.stopped for node in town.nodes.values())
    assert town.strikes() == 0
    assert all(town.state(name).mass > 0.01 for name in town.nodes)
    town.check_exact()


# Strangers.


def test_of_strangers_only_so_many_are_listened_to():
    """With anyone admitted, keys cost nothing: who was named, or heard before, is heard still."""
    town = quiet(alice=["bob"], bob=["carol"], carol=[])
    bob = town.nodes["bob"]
    known = set(town.state("bob").lives)
    for number in range(MOST_STRANGERS + 100):
        hello = encode(Hello(1, life(), 0, 1), TASK.fingerprint)
        bob.take(Arrival(key_of(f"stranger{number}"), hello, "push"))
    strangers = set(town.state("bob").lives) - known
    assert MOST_STRANGERS - 2 <= len(strangers) <= MOST_STRANGERS + 1
    assert len(town.state("bob").in_) <= MOST_STRANGERS + 2
    town.exchange()
    before = town.state("bob").mass
    town.learn("alice")
    assert town.state("bob").mass > before
    bob.follow(config("bob", ["carol"], senders=(Sender(key_of("dave")),)))
    hello = encode(Hello(1, life(), 0, 1), TASK.fingerprint)
    bob.take(Arrival(key_of("dave"), hello, "push"))
    assert key_of("dave") in town.state("bob").lives
    town.check_exact()


# What is to be answered.


def test_what_could_not_be_made_durable_is_answered_later():
    town = quiet(alice=["bob"], bob=[])
    alice, bob = town.nodes["alice"], town.nodes["bob"]
    town.time += 1.0
    alice.learn(SAMPLE, "yes")
    [push] = alice.committed(alice.begin())
    bob.take(Arrival(key_of("alice"), push.content, push.via))
    receipt = Receipt(1, life(leaving=True), key_of("carol"), key_of("dave"), 1, NO_TAG, NO_TAG)
    bob.take(Arrival(key_of("carol"), encode(receipt, TASK.fingerprint), "push"))
    bob.failed(bob.begin(), "the disk is full")
    assert len(bob.committed(bob.begin())) == 2
    assert bob.begin() is None


def test_a_receipt_is_confirmed_to_who_leaves_and_to_nobody_else():
    town = quiet(bob=[])
    bob = town.nodes["bob"]
    for teller, confirmed in (("carol", 1), ("erin", 0)):
        receipt = Receipt(1, life(), key_of("carol"), key_of("dave"), 1, NO_TAG, NO_TAG)
        bob.take(Arrival(key_of(teller), encode(receipt, TASK.fingerprint), "push"))
        batch = bob.begin()
        said = [] if batch is None else kinds(bob.committed(batch))
        assert said.count(Receipt) == confirmed
