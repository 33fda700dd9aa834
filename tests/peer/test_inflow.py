"""How much mass one sender may bring, and how often it may ask."""

from __future__ import annotations

import dataclasses

import pytest
from town import LIMITS, TASK, Town, config, key_of, kinds, life, quiet, words

from oneway.peer.inflow import (
    FIRST_UNITS,
    HELLOS,
    HELLOS_PER_SECOND,
    POOR,
    POOR_UNITS_PER_SECOND,
    TURN_SECONDS,
    UNITS_PER_SECOND,
    AskLimit,
    Inflow,
)
from oneway.protocol.fixed_point import LARGEST, ONE, extent, mass_of, zeros
from oneway.protocol.messages import NO_PROGRESS, Ack, Close, Closed, Data, Hello, State
from oneway.protocol.tags import NO_TAG
from oneway.task.task import MOST_AT_ONCE
from oneway.transport.base import Arrival
from oneway.transport.wire import encode

LIMIT = 256.0
AT_ONCE = int(MOST_AT_ONCE) * ONE
FEWEST = max(FIRST_UNITS, AT_ONCE)


# The allowance.


def test_whoever_may_bring_anything_may_bring_a_little_more_and_is_behind_afterwards():
    inflow = Inflow(AT_ONCE / ONE, LIMIT)
    assert inflow.allowance(b"a", 0.0) == FEWEST
    inflow.held = POOR
    inflow.took(b"a", FIRST_UNITS - 1, 0.0)
    assert inflow.allowance(b"a", 0.0) == AT_ONCE
    inflow.took(b"a", AT_ONCE, 0.0)
    assert inflow.allowance(b"a", 0.0) == 0
    behind = (AT_ONCE - 1) / UNITS_PER_SECOND
    assert inflow.allowance(b"a", behind - 0.1) == 0
    assert inflow.allowance(b"a", behind + 0.1) == AT_ONCE
    assert inflow.allowance(b"b", 0.0) == FEWEST
    assert inflow.allowance(b"a", 1e9) == LIMIT * ONE


def test_what_is_handed_out_may_come_back_through_any_sender_but_once():
    inflow = Inflow(AT_ONCE / ONE, LIMIT)
    for sender in (b"a", b"b"):
        inflow.took(sender, FIRST_UNITS, 0.0)
    inflow.handed_out(30 * ONE)
    for sender in (b"a", b"b"):
        assert inflow.allowance(sender, 0.0) == 30 * ONE
    inflow.took(b"a", 20 * ONE, 0.0)
    for sender in (b"a", b"b"):
        assert inflow.allowance(sender, 0.0) == 10 * ONE
    inflow.took(b"a", 10 * ONE, 0.0)
    for sender in (b"a", b"b"):
        assert inflow.allowance(sender, 0.0) == 0
    inflow.handed_out(10**6 * ONE)
    assert inflow.allowance(b"a", 0.0) == LIMIT * ONE


def test_who_has_brought_less_lately_comes_first():
    inflow = Inflow(AT_ONCE / ONE, LIMIT)
    inflow.took(b"greedy", FIRST_UNITS, 0.0)
    inflow.took(b"modest", FIRST_UNITS - ONE // 2, 0.0)
    inflow.waits(b"modest", 3 * ONE, 0.0)
    inflow.handed_out(ONE // 2)
    assert inflow.allowance(b"greedy", 0.0) == AT_ONCE  # too little for the other
    inflow.handed_out(2 * ONE)
    assert inflow.allowance(b"greedy", 1.0) == 0
    assert inflow.allowance(b"modest", 1.0) >= 3 * ONE
    inflow.took(b"modest", 3 * ONE, 1.0)
    inflow.handed_out(ONE)
    assert inflow.allowance(b"greedy", 1.0) >= ONE  # it has had its turn
    inflow.waits(b"modest", ONE, 1.0)
    assert inflow.allowance(b"greedy", 1.1 + TURN_SECONDS) >= ONE  # who is gone has none


def test_nobody_keeps_others_away_by_offering_what_cannot_be_taken():
    inflow = Inflow(AT_ONCE / ONE, LIMIT)
    inflow.took(b"honest", ONE // 2, 0.0)
    inflow.waits(b"mallory", 10**6 * ONE, 0.0)
    assert inflow.allowance(b"honest", 0.0) == max(FIRST_UNITS - ONE // 2, AT_ONCE)


def test_to_a_peer_that_holds_little_more_may_be_brought():
    poor, rich = Inflow(AT_ONCE / ONE, LIMIT, held=0), Inflow(AT_ONCE / ONE, LIMIT, held=POOR)
    for inflow in (poor, rich):
        inflow.took(b"a", AT_ONCE, 0.0)
    assert poor.allowance(b"a", AT_ONCE / POOR_UNITS_PER_SECOND) == AT_ONCE
    assert rich.allowance(b"a", AT_ONCE / POOR_UNITS_PER_SECOND) == 0


def test_a_restart_lets_in_nothing_more_for_nothing():
    """A peer that is killed again and again would else take in as much again every time."""
    again = Inflow(AT_ONCE / ONE, LIMIT, held=POOR)
    again.took(b"a", 1, 0.0)
    assert again.allowance(b"a", 0.0) == 0


def test_some_hellos_in_a_row_are_answered_and_then_so_many_a_second():
    asks = AskLimit()
    assert [asks.may_ask(b"a", 5.0) for _ in range(100)].count(True) == HELLOS
    assert asks.may_ask(b"b", 5.0)
    many = [asks.may_ask(b"a", 5.0 + i / 100) for i in range(1, 1001)]
    assert many.count(True) == pytest.approx(10 * HELLOS_PER_SECOND, abs=1)
    assert [asks.may_ask(b"a", 1e6) for _ in range(100)].count(True) == HELLOS


# A sender that brings mass without end.


class Flood:
    """An admitted sender that knows what was heard of it, and always brings as much as it may."""

    def __init__(self, town: Town) -> None:
        self.town, self.epoch, self.key = town, 7, key_of("mallory")
        self.say(Hello(self.epoch, life(), 0, 1))
        [state] = [word for word in self.answers() if isinstance(word, State)]
        self.ledger, self.granted = state.ledger, state.granted

    def say(self, message) -> None:
        content = encode(message, self.town.task.fingerprint)
        self.town.nodes["bob"].take(Arrival(self.key, content, "push"))

    def answers(self) -> list:
        bob = self.town.nodes["bob"]
        batch = bob.begin()
        frames = [] if batch is None else bob.committed(batch)
        self.town.send("bob", [frame for frame in frames if frame.peer != self.key])
        return words([frame for frame in frames if frame.peer == self.key])

    @property
    def heard(self):
        edge = self.town.state("bob").in_[self.key, self.epoch]
        return edge.seq, edge.heard

    def push(self, mass: float, kind: type = Data, at: float = 0.0) -> None:
        seq, heard = self.heard
        total = heard + zeros(TASK.dim)
        total[-1] += int(mass * ONE)
        total[:-1] += int(at * mass * ONE)
        if kind is Data:
            self.say(
                Data(
                    self.epoch,
                    life(),
                    self.ledger,
                    1,
                    self.granted,
                    seq + 1,
                    total,
                    NO_TAG,
                    NO_PROGRESS,
                )
            )
        else:
            self.say(Close(self.epoch, life(), self.ledger, seq + 1, total, NO_TAG, NO_PROGRESS))
        self.answers()


@pytest.mark.parametrize("seconds", [0.0025, 1.0, 20.0])
@pytest.mark.parametrize("kind", [Data, Close])
def test_a_flood_of_mass_is_bounded_by_time_and_in_all_and_harms_nobody_else(seconds, kind):
    """A thousand messages with as much as may come, as fast as in the report, and slowly."""
    town = quiet(alice=["bob"], bob=["carol"], carol=[])
    bob = town.nodes["bob"]
    flood = Flood(town)
    began, taken = town.time, 0
    amount = FIRST_UNITS / ONE
    for _ in range(1000):
        town.time += seconds
        before = mass_of(town.state("bob").holding)
        if kind is Close:  # an edge can be closed once: so it begins others
            flood.epoch += 1
            flood.say(Hello(flood.epoch, life(), 0, 1))
            flood.answers()
            if (flood.key, flood.epoch) not in town.state("bob").in_:
                continue
        flood.push(amount, kind)
        amount = max(0.01, bob.inbox.inflow.allowance(flood.key, town.time) / ONE)
        taken += mass_of(town.state("bob").holding) - before
        in_the_long_run = UNITS_PER_SECOND * (town.time - began)
        assert taken <= POOR + FIRST_UNITS + AT_ONCE + in_the_long_run
        assert mass_of(town.state("bob").holding) <= TASK.mass_limit * ONE
    assert taken > 0  # it is no use to see that nothing comes if nothing does
    assert town.strikes() == 0
    assert bob.guard.about(flood.key).strikes == 0
    town.check_books()

    # Who is honest gets through, and so does bob.
    heard = mass_of(town.state("bob").in_[key_of("alice"), 1].heard)
    for _ in range(3):
        town.time += 1.0
        town.learn("alice")
        town.learn("bob")
        town.pass_time(1.0)
    assert mass_of(town.state("bob").in_[key_of("alice"), 1].heard) > heard
    assert town.state("alice").out[key_of("bob"), 1].in_flight == 0
    assert town.strikes() == 0


def test_what_waits_is_shown_and_comes_in_when_it_may():
    """An honest sender that is told nothing says it again, and nothing of it is lost."""
    town = quiet(alice=["bob"], bob=[])
    bob = town.nodes["bob"]
    bob.inbox.inflow.took(key_of("alice"), FIRST_UNITS + ONE // 4, town.time)
    town.learn("alice")
    record = bob.guard.about(key_of("alice"))
    assert record.waiting
    assert record.waiting_mass == ONE // 2
    assert town.state("bob").mass == 1.0
    assert town.strikes() == 0
    for _ in range(200):
        town.pass_time(1.0)
    assert not record.waiting
    assert town.state("bob").mass == 1.5
    town.check_exact()


def test_more_mass_circulates_than_a_unit_a_second_since_it_was_handed_out_before():
    town = quiet(alice=["bob"], bob=["alice"])
    for _ in range(200):  # 0.4 seconds
        town.learn("alice")
        town.learn("bob")
    assert mass_of(town.state("bob").in_[key_of("alice"), 1].heard) > 40 * ONE
    assert not town.nodes["bob"].guard.about(key_of("alice")).rejected["has to wait"]
    town.check_exact()


# A sender that asks without end.


def test_a_hundred_hellos_cost_no_more_than_the_answers_to_a_few():
    town = quiet(alice=["bob"], bob=[])
    town.learn("alice")
    bob, sender = town.nodes["bob"], key_of("mallory")

    def ask(epochs) -> list:
        for epoch in epochs:
            content = encode(Hello(epoch, life(), 0, 1), TASK.fingerprint)
            bob.take(Arrival(sender, content, "push"))
        batch = bob.begin()
        return [] if batch is None else bob.committed(batch)

    said = ask(range(10, 110))
    assert kinds(said).count(State) <= HELLOS
    assert sum(len(frame.content) for frame in said) < 8000
    kept = [edge for edge in town.state("bob").in_.values() if edge.sender == sender]
    assert len(kept) <= bob.rules.most_edges
    assert bob.guard.about(sender).rejected["asked too often"] == 100 - HELLOS
    assert bob.guard.about(sender).strikes == 0
    assert ask(range(110, 210)) == []
    town.time += 1.0
    assert kinds(ask(range(210, 310))).count(State) <= HELLOS_PER_SECOND
    # Meanwhile another sender, that has restarted, is answered.
    town.power_on("alice", town.power_off("alice"), config("alice", ["bob"]))
    town.pass_time(0.1)
    assert town.state("alice").out[key_of("bob"), 1].is_at_rest
    town.check_exact()


def test_a_hello_is_answered_with_one_total_however_many_edges_have_some():
    """Of the others a digest: a sender that misses one of them asks for it."""
    town = quiet(alice=["bob"], bob=[])
    flood = Flood(town)
    for _ in range(40):
        flood.epoch += 1
        town.time += 1.0
        flood.say(Hello(flood.epoch, life(), 0, 1))
        flood.answers()
        if (flood.key, flood.epoch) in town.state("bob").in_:
            flood.push(0.01)
    used = [edge for edge in town.state("bob").in_.values() if edge.sender == flood.key]
    assert len(used) == LIMITS.rules(TASK, b"").most_edges
    town.time += 100.0
    flood.say(Hello(used[0].epoch, life(), 0, 2))
    said = flood.answers()
    assert sum(isinstance(word, State | Closed) for word in said) == 1
    assert sum(isinstance(word, Ack) for word in said) == len(used) - 1


def test_what_a_newcomer_mints_at_its_first_inflow_does_not_use_up_its_senders_allowance():
    town = Town({"alice": ["bob"], "bob": []})
    town.exchange()
    town.nodes["alice"].ensure_minted()
    town.learn("alice")
    assert town.state("bob").mass == 1.5
    town.learn("alice")
    assert town.state("bob").mass == 1.75
    assert not town.nodes["bob"].guard.about(key_of("alice")).rejected["has to wait"]


@pytest.mark.parametrize("radius", [1.0, 1000.0, 2.0**15, 2.0**18])
def test_no_mass_is_held_beyond_what_fits_with_any_radius(radius):
    """Even at the edge of the radius, and without a clip, no number comes near 63 bits."""
    task = dataclasses.replace(TASK, radius=radius, mass_cap=1.0)
    town = Town({"bob": []}, task=task)
    town.nodes["bob"].ensure_minted()
    flood = Flood(town)
    for _ in range(400):
        town.time += 3600.0
        flood.push(1.0, at=radius)
        state = town.state("bob")
        assert mass_of(state.holding) <= task.mass_limit * ONE
        assert extent(state.holding) <= LARGEST
    assert state.mass > min(200.0, task.mass_limit - 2.0)
    town.check_books()
