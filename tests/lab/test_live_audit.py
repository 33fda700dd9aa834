"""The live audit: never wrong about true books, however stale, and never blind to a wrong unit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.lab.live_audit import LiveAudit, Reading
from oneway.protocol.audit import Books

ANN, BOB, CEM = b"a", b"b", b"c"
NAMES = {ANN: "ann", BOB: "bob", CEM: "cem"}
ONE = 1 << 40


def reading(key: bytes, time: float, held: int, sent=None, heard=None, **facts) -> Reading:
    return Reading(NAMES[key], time, Books(held, ONE, sent or {}, heard or {}), **facts)


def two(sent: int = 7, heard: int = 7, ann: float = 2.0, bob: float = 2.0) -> dict[bytes, Reading]:
    """Ann has handed something to Bob; the books of both balance."""
    return {
        ANN: reading(ANN, ann, ONE - sent, sent={BOB: sent}),
        BOB: reading(BOB, bob, ONE + heard, heard={ANN: heard}),
    }


def test_a_network_at_work_is_exact_and_says_what_is_on_its_way():
    found = LiveAudit().check(two(sent=7, heard=4))
    assert found.is_exact
    assert (found.held, found.in_flight, found.brought) == (2 * ONE - 3, 3, 2 * ONE)
    assert found.total == found.brought
    assert found.problems == []


def test_books_that_do_not_balance_are_seen():
    states = two()
    states[BOB] = replace(states[BOB], books=replace(states[BOB].books, held=ONE + 6))
    found = LiveAudit().check(states)
    assert not found.is_exact
    assert found.problems == [
        "the books of bob do not balance: it holds 1,099,511,627,782 units, and by what came and "
        "went it must be 1,099,511,627,783"
    ]


def test_a_unit_that_was_acknowledged_and_not_heard_is_seen():
    states = two(sent=7, heard=6)
    assert LiveAudit().check(states).is_exact
    states[ANN] = replace(states[ANN], complete={BOB})
    found = LiveAudit().check(states)
    assert found.problems == ["bob acknowledged 1 units from ann and did not take them in"]


def test_what_waited_is_not_forgotten_when_the_receiver_goes_on():
    live_audit = LiveAudit()
    live_audit.check(two(sent=3, heard=7, ann=1.0, bob=2.0))
    found = live_audit.check(two(sent=6, heard=7, ann=2.0, bob=9.0))
    assert found.problems == ["bob heard 1 units from ann that were never sent"]
    # Seen once, it stays until it is put right.
    assert not live_audit.check(two(sent=6, heard=7, ann=2.0, bob=10.0)).is_exact
    assert live_audit.check(two(sent=7, heard=7, ann=11.0, bob=10.0)).is_exact


def test_a_receiver_that_was_presumed_dead_may_hold_what_was_taken_back():
    states = two(sent=5, heard=7)
    assert not LiveAudit().check(states).is_exact
    states[ANN] = replace(states[ANN], given_up={BOB})
    assert LiveAudit().check(states).is_exact


def test_totals_that_wrapped_are_compared_by_their_difference():
    most = 2**63 - 1
    ann = reading(ANN, 1.0, ONE - 1, sent={BOB: -(2**63)}, heard={CEM: most})
    bob = reading(BOB, 1.0, ONE, sent={CEM: most - 5}, heard={ANN: most - 5})
    assert LiveAudit().check({ANN: ann, BOB: bob}).problems == []
    forged = replace(bob, books=replace(bob.books, heard={ANN: -(2**63) + 1}))
    found = LiveAudit().check({ANN: ann, BOB: forged}).problems
    assert found[-1] == "bob heard 1 units from ann that were never sent"


def test_books_that_cannot_be_read_are_a_problem():
    found = LiveAudit().check(two(), ["the books of cem cannot be read: no disk"])
    assert not found.is_exact


class World:
    """Peers that hand mass to each other, and what each could be read as at every moment."""

    def __init__(self) -> None:
        self.now = 0.0
        self.held = dict.fromkeys(NAMES, ONE)
        self.sent = {key: {} for key in NAMES}
        self.heard = {key: {} for key in NAMES}
        self.under_way: list[tuple[bytes, bytes, int]] = []

    def send(self, sender: bytes, receiver: bytes, units: int) -> None:
        self.held[sender] -= units
        self.sent[sender][receiver] = self.sent[sender].get(receiver, 0) + units
        self.under_way.append((sender, receiver, units))

    def arrive(self, place: int) -> None:
        sender, receiver, units = self.under_way.pop(place % len(self.under_way))
        self.held[receiver] += units
        self.heard[receiver][sender] = self.heard[receiver].get(sender, 0) + units

    def read(self, key: bytes) -> Reading:
        waiting = {receiver for sender, receiver, _ in self.under_way if sender == key}
        return Reading(
            NAMES[key],
            self.now,
            Books(self.held[key], ONE, dict(self.sent[key]), dict(self.heard[key])),
            complete=set(self.sent[key]) - waiting,
        )


steps = st.one_of(
    st.tuples(
        st.just("send"), st.permutations(sorted(NAMES)).map(lambda p: p[:2]), st.integers(1, 99)
    ),
    st.tuples(st.just("arrive"), st.integers(0, 50)),
    st.tuples(st.just("read"), st.sampled_from(sorted(NAMES))),
    st.tuples(st.just("check")),
)


def live(schedule: list[tuple], live_audit: LiveAudit) -> tuple[World, dict[bytes, Reading]]:
    world, readings = World(), {}
    for step in schedule:
        world.now += 1.0
        match step:
            case ("send", (sender, receiver), units):
                world.send(sender, receiver, units)
            case ("arrive", place) if world.under_way:
                world.arrive(place)
            case ("read", key):
                readings[key] = world.read(key)
            case ("check",):
                found = live_audit.check(readings)
                assert found.is_exact, found.problems
                assert found.total == found.brought
    return world, readings


@settings(max_examples=200, deadline=None)
@given(st.lists(steps, max_size=60))
def test_true_books_are_exact_however_stale_the_readings(schedule):
    live(schedule, LiveAudit())


@settings(max_examples=200, deadline=None)
@given(st.lists(steps, max_size=40), st.data())
def test_any_one_wrong_number_is_seen(schedule, data):
    live_audit = LiveAudit()
    world, _ = live(schedule, live_audit)
    world.now += 1.0
    readings = {key: world.read(key) for key in NAMES}
    assert live_audit.check(readings).is_exact
    key = data.draw(st.sampled_from(sorted(NAMES)))
    books = readings[key].books
    places = [("held", None), ("brought", None)]
    places += [("sent", other) for other in books.sent]
    places += [("heard", other) for other in books.heard]
    field, other = data.draw(st.sampled_from(places))
    wrong = data.draw(st.integers(-50, 50).filter(bool))
    value = getattr(books, field)
    changed = value + wrong if other is None else {**value, other: value[other] + wrong}
    forged = replace(readings[key], books=replace(books, **{field: changed}))
    assert not live_audit.check(readings | {key: forged}).is_exact


@pytest.mark.parametrize("wrong", [-1, 1])
def test_a_lie_that_balances_is_seen_as_soon_as_everything_is_acknowledged(wrong):
    world = World()
    world.send(ANN, BOB, 50)
    world.arrive(0)
    readings = {key: world.read(key) for key in NAMES}
    bob = readings[BOB].books
    forged = replace(bob, held=bob.held + wrong, heard={ANN: 50 + wrong})
    found = LiveAudit().check(readings | {BOB: replace(readings[BOB], books=forged)})
    assert not found.is_exact
