"""Mass is exact after any storm of faults: seeded schedules, then quiet, then the integer audit.

`make fuzz` runs ten thousand schedules. The last tests leave out one rule each, and show that the
audit notices.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import storm
from builders import replace
from hypothesis import given
from hypothesis import strategies as st
from storm import Broken, World
from tiers import schedules

from oneway.protocol import replies, transitions
from oneway.protocol.audit import Books, books_of, expected_holding, wrapped
from oneway.protocol.compact import packed_total, unpack
from oneway.protocol.fixed_point import Fixed, mass_of
from oneway.protocol.layout import Layout
from oneway.protocol.state import InEdge, OutEdge, OutPhase, PeerState, Settled

SCHEDULES = schedules(quick=60, thorough=500)
STEPS = 1_000
CHUNK = 20
FEW = 40
SOME = schedules(quick=12, thorough=40, per_fuzz=50)


@pytest.fixture
def no_resync(monkeypatch):
    """Nobody asks its receivers what they heard, neither after a restart nor when in doubt."""
    for module in (transitions, replies):
        monkeypatch.setattr(module, "resync", lambda _state, edge: edge)


def weathered(world):
    world.storm(STEPS)
    world.calm()
    return world


def is_caught(worlds, share, has_error=lambda world: world.error.any()):
    """Whether the audit notices a missing rule in this share of `FEW` worlds, made on demand."""
    caught, needed = 0, math.ceil(FEW * share)
    for world in worlds:
        caught += bool(has_error(world))
        if caught >= needed:
            return True
    return False


@pytest.mark.parametrize("first", range(0, SCHEDULES, CHUNK))
def test_no_storm_of_faults_loses_or_invents_a_unit_of_mass(first):
    for seed in range(first, min(first + CHUNK, SCHEDULES)):
        world = World(seed)
        world.storm(STEPS)
        assert world.books_balance, seed
        assert world.packed_agrees, seed
        world.calm()
        assert world.books_balance, seed
        assert world.packed_agrees, seed
        assert not world.stuck, (seed, world.stuck)
        assert not world.error.any(), (seed, world.error)
        assert not any(world.untracked), (seed, world.untracked)
        assert not world.strikes, (seed, world.strikes)


def test_after_lost_disks_every_edge_between_the_living_agrees():
    lost = 0
    for seed in range(SOME):
        world = weathered(World(seed, lost_disks=True))
        lost += world.num_lost_disks
        assert world.books_balance, seed
        assert not world.stuck, (seed, world.stuck)
        assert not world.disagreeing_edges, (seed, world.disagreeing_edges)
        assert not world.strikes, (seed, world.strikes)
    assert lost > SOME


@pytest.mark.usefixtures("no_resync")
def test_a_crash_is_only_a_delay_when_nothing_is_said_before_it_is_durable():
    for seed in range(SOME):
        world = weathered(World(seed, backups=False))
        assert not world.error.any(), (seed, world.error)
        assert not world.stuck, (seed, world.stuck)


@pytest.mark.usefixtures("no_resync")
def test_the_audit_catches_peers_that_speak_before_they_commit():
    broken = Broken(sends_before_commit=True)
    worlds = (weathered(World(seed, broken=broken, backups=False)) for seed in range(FEW))
    assert is_caught(worlds, 1 / 8)


@pytest.mark.usefixtures("no_resync")
def test_the_audit_catches_peers_that_do_not_ask_after_an_old_backup():
    worlds = (weathered(World(seed)) for seed in range(FEW))
    assert is_caught(worlds, 1 / 8)


def test_the_audit_catches_peers_whose_state_is_saved_in_two_halves():
    broken = Broken(saves_in_two_halves=True)
    worlds = (weathered(World(seed, broken=broken)) for seed in range(FEW))
    assert is_caught(worlds, 1 / 8)


def test_the_audit_catches_peers_that_book_what_is_only_copied(monkeypatch):
    monkeypatch.setattr(Layout, "booked", lambda _layout, amount: amount)
    worlds = (weathered(World(seed)) for seed in range(2, 2 + 3 * FEW, 3))
    assert is_caught(worlds, 1 / 8)


def test_the_audit_catches_peers_that_mint_and_burn_beside_the_books(monkeypatch):
    """As much too much or too little as was needed, at the peer's own estimate, and no entry."""

    def unbooked(state, bounds):
        after = transitions.keep_mass(state, bounds)
        return replace(after, minted=state.minted, clipped=state.clipped)

    monkeypatch.setattr(storm, "keep_mass", unbooked)
    worlds = (weathered(World(seed)) for seed in range(FEW))
    assert is_caught(worlds, 1 / 2)
    assert is_caught(worlds, 1 / 8, lambda world: not world.books_balance)


def with_farewells(world):
    """Two peers leave after the storm, for good."""
    world.storm(STEPS)
    for node in world.nodes[:2]:
        world.farewell(node)
    world.calm()
    return world


def test_the_trackers_of_those_who_stay_add_up_to_their_momenta():
    for seed in range(2, 2 + 3 * SOME, 3):
        world = with_farewells(World(seed))
        assert world.books_balance, seed
        assert not any(world.untracked), (seed, world.untracked)


def test_the_audit_catches_peers_that_leave_with_their_momenta(monkeypatch):
    """The trackers' sum would keep for ever what nobody adds to or takes back."""
    monkeypatch.setattr(transitions, "_without_momenta", lambda state: state)
    worlds = (with_farewells(World(seed)) for seed in range(2, 2 + 3 * FEW, 3))
    assert is_caught(worlds, 1 / 2, lambda world: any(world.untracked))


def test_to_forget_what_was_said_is_healed_like_an_old_backup():
    """The two rules back each other up: with resync alone, a crash costs time but no mass."""
    broken = Broken(sends_before_commit=True)
    for seed in range(SOME):
        world = weathered(World(seed, broken=broken))
        assert not world.error.any(), (seed, world.error)


# Compact pushes: the odd seeds.


def test_a_share_of_the_schedules_has_compact_pushes_of_every_payload():
    for payload in (1, 3, 5):
        kinds = Counter()
        for seed in range(payload, 30, 6):
            world = weathered(World(seed))
            kinds += sum((node.kinds for node in world.nodes), start=Counter())
        assert kinds["Compact"] > 100
        assert kinds["Data"] > 100


def test_the_audit_catches_peers_that_drop_what_codes_cannot_say(monkeypatch):
    coded = transitions._coded

    def rounded_off(state, edge, part, rules):
        return *coded(state, edge, part, rules)[:2], part

    monkeypatch.setattr(transitions, "_coded", rounded_off)
    worlds = (weathered(World(seed)) for seed in range(1, 2 * FEW, 2))
    assert is_caught(worlds, 1 / 2)


def against_what_was_sent(state, edge, part, rules):
    wanted = state.layout.with_copies(part, state.holding)
    packed = packed_total(state.layout, wanted, edge.seq, edge.sent, rules.radius)[0]
    total = unpack(state.layout, edge.sent, packed)
    return packed, total, state.layout.booked(total - edge.sent)


def test_it_is_caught_when_codes_build_on_what_was_only_sent(monkeypatch):
    """A lost push then makes all later ones worthless until its receiver is asked."""
    monkeypatch.setattr(transitions, "_window", lambda rules: rules.window)
    monkeypatch.setattr(transitions, "_coded", against_what_was_sent)
    worlds = (World(seed) for seed in range(1, 2 * FEW, 2))

    def disagrees(world):
        world.storm(STEPS)
        return not world.packed_agrees

    assert is_caught(worlds, 1 / 2, disagrees)


# Books: what each peer says about mass is enough for an exact audit from outside.

BOOKS = schedules(quick=8, thorough=30, per_fuzz=100)
units = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**41), 2**41))
keys = st.sampled_from([b"a" * 32, b"b" * 32, b"c" * 32])
edge_ids = st.tuples(keys, st.integers(1, 3))


def amount(mass: int) -> Fixed:
    return np.array([7, mass])


def out_edge(key: bytes, epoch: int, phase: OutPhase, sent: int, confirmed: int) -> OutEdge:
    return OutEdge(key, epoch, 1, phase, {0: amount(confirmed), 1: amount(sent)}, seq=1)


out_edges = st.dictionaries(edge_ids, st.tuples(st.sampled_from(OutPhase), units, units))
totals = st.dictionaries(edge_ids, units)


@given(st.tuples(units, units, units, units), out_edges, totals, totals)
def test_the_books_of_any_ledger_say_what_must_be_held(own, out, heard, settled):
    minted, steps, clipped, owed = map(amount, own)
    state = PeerState(
        ledger=1,
        boot=1,
        holding=amount(0),
        minted=minted,
        gradient_steps=steps,
        clipped=clipped,
        owed=owed,
        out={name: out_edge(*name, *facts) for name, facts in out.items()},
        in_={name: InEdge(*name, amount(mass)) for name, mass in heard.items()},
        settled={name: Settled(*name, 1, 1, amount(mass)) for name, mass in settled.items()},
    )
    books = books_of(state)
    assert books.owed == mass_of(expected_holding(state))
    assert books.balances == (books.owed == 0)
    assert books.sent.keys() == {key for key, _ in [*out, *settled]}
    assert books.heard.keys() == {key for key, _ in heard}
    for number in [books.brought, *books.sent.values(), *books.heard.values()]:
        assert -(2**63) <= number < 2**63


def in_flight(books: dict[bytes, Books]) -> dict[tuple[bytes, bytes], int]:
    """What each peer handed over and the other has not taken in."""
    return {
        (one, other): wrapped(books[one].sent.get(other, 0) - books[other].heard.get(one, 0))
        for one in books
        for other in books
        if one != other
    }


def all_books(world) -> dict[bytes, Books]:
    return {node.key: books_of(node.current) for node in world.nodes}


def test_in_any_storm_all_books_balance_and_when_it_is_over_nothing_is_in_flight():
    for seed in range(BOOKS):
        world = World(seed)
        for _ in range(10):
            world.storm(STEPS // 10)
            assert all(books.balances for books in all_books(world).values()), seed
        world.calm()
        books = all_books(world)
        assert all(book.balances for book in books.values()), seed
        assert not any(in_flight(books).values()), seed
        assert sum(book.held for book in books.values()) == sum(
            book.brought for book in books.values()
        )


def test_after_every_single_event_of_a_storm_what_is_held_is_what_the_books_say():
    """A large model's store does not hold it: it is computed from the books."""
    for seed in range(4):
        world = World(seed)
        for _ in range(400):
            world.storm(1)
            assert world.books_balance, seed


def test_without_verdicts_and_backups_nobody_ever_holds_more_than_it_was_sent():
    seen = 0
    for seed in range(BOOKS):
        world = World(seed, backups=False)
        world.weather[world.verdict_of_death] = 0.0
        for _ in range(20):
            world.storm(STEPS // 20)
            books = all_books(world)
            under_way = in_flight(books)
            assert min(under_way.values()) >= 0, seed
            held = sum(book.held for book in books.values())
            assert held + sum(under_way.values()) == sum(b.brought for b in books.values()), seed
            seen += any(under_way.values())
    assert seen > BOOKS


def test_a_peer_whose_numbers_were_tampered_with_does_not_balance():
    assert Books(held=5, brought=3, sent={b"b": 1}, heard={b"a": 3}).balances
    assert not Books(held=6, brought=3, sent={b"b": 1}, heard={b"a": 3}).balances
