"""Mass is exact after any storm of faults: seeded schedules, then quiet, then the integer audit.

`make fuzz` runs ten thousand schedules. The last tests leave out one rule each, and show that the
audit notices.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from oneway.protocol import replies, transitions
from oneway.protocol.compact import pack, unpack
from oneway.protocol.layout import Layout

SCHEDULES = int(os.environ.get("ONEWAY_FUZZ_SCHEDULES", "500"))
STEPS = 1_000
CHUNK = 50
FEW = 40


@pytest.fixture
def no_resync(monkeypatch):
    """Nobody asks its receivers what they heard, neither after a restart nor when in doubt."""
    for module in (transitions, replies):
        monkeypatch.setattr(module, "resync", lambda _state, edge: edge)


def weathered(world):
    world.storm(STEPS)
    world.calm()
    return world


@pytest.mark.parametrize("first", range(0, SCHEDULES, CHUNK))
def test_no_storm_of_faults_loses_or_invents_a_unit_of_mass(fuzz_world, first):
    for seed in range(first, min(first + CHUNK, SCHEDULES)):
        world = fuzz_world(seed)
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


def test_after_lost_disks_every_edge_between_the_living_agrees(fuzz_world):
    lost = 0
    for seed in range(FEW):
        world = weathered(fuzz_world(seed, lost_disks=True))
        lost += world.num_lost_disks
        assert world.books_balance, seed
        assert not world.stuck, (seed, world.stuck)
        assert not world.disagreeing_edges, (seed, world.disagreeing_edges)
        assert not world.strikes, (seed, world.strikes)
    assert lost > FEW


@pytest.mark.usefixtures("no_resync")
def test_a_crash_is_only_a_delay_when_nothing_is_said_before_it_is_durable(fuzz_world):
    for seed in range(FEW):
        world = weathered(fuzz_world(seed, backups=False))
        assert not world.error.any(), (seed, world.error)
        assert not world.stuck, (seed, world.stuck)


@pytest.mark.usefixtures("no_resync")
def test_the_audit_catches_peers_that_speak_before_they_commit(fuzz_world, broken_rule):
    broken = broken_rule(sends_before_commit=True)
    worlds = [weathered(fuzz_world(seed, broken=broken, backups=False)) for seed in range(FEW)]
    assert sum(world.error.any() for world in worlds) >= FEW // 8


@pytest.mark.usefixtures("no_resync")
def test_the_audit_catches_peers_that_do_not_ask_after_an_old_backup(fuzz_world):
    worlds = [weathered(fuzz_world(seed)) for seed in range(FEW)]
    assert sum(world.error.any() for world in worlds) >= FEW // 8


def test_the_audit_catches_peers_whose_state_is_saved_in_two_halves(fuzz_world, broken_rule):
    broken = broken_rule(saves_in_two_halves=True)
    worlds = [weathered(fuzz_world(seed, broken=broken)) for seed in range(FEW)]
    assert sum(world.error.any() for world in worlds) >= FEW // 8


def test_the_audit_catches_peers_that_book_what_is_only_copied(fuzz_world, monkeypatch):
    monkeypatch.setattr(Layout, "booked", lambda _layout, amount: amount)
    worlds = [weathered(fuzz_world(seed)) for seed in range(2, 2 + 3 * FEW, 3)]
    assert sum(world.error.any() for world in worlds) >= FEW // 8


def with_farewells(world):
    """Two peers leave after the storm, for good."""
    world.storm(STEPS)
    for node in world.nodes[:2]:
        world.farewell(node)
    world.calm()
    return world


def test_the_trackers_of_those_who_stay_add_up_to_their_momenta(fuzz_world):
    for seed in range(2, 2 + 3 * FEW, 3):
        world = with_farewells(fuzz_world(seed))
        assert world.books_balance, seed
        assert not any(world.untracked), (seed, world.untracked)


def test_the_audit_catches_peers_that_leave_with_their_momenta(fuzz_world, monkeypatch):
    """The trackers' sum would keep for ever what nobody adds to or takes back."""
    monkeypatch.setattr(transitions, "_without_momenta", lambda state: state)
    worlds = [with_farewells(fuzz_world(seed)) for seed in range(2, 2 + 3 * FEW, 3)]
    assert sum(any(world.untracked) for world in worlds) >= FEW // 2


def test_to_forget_what_was_said_is_healed_like_an_old_backup(fuzz_world, broken_rule):
    """The two rules back each other up: with resync alone, a crash costs time but no mass."""
    broken = broken_rule(sends_before_commit=True)
    for seed in range(FEW):
        world = weathered(fuzz_world(seed, broken=broken))
        assert not world.error.any(), (seed, world.error)


# Compact pushes: the odd seeds.


def test_a_share_of_the_schedules_has_compact_pushes_of_every_payload(fuzz_world):
    for payload in (1, 3, 5):
        kinds = Counter()
        for seed in range(payload, 30, 6):
            world = weathered(fuzz_world(seed))
            kinds += sum((node.kinds for node in world.nodes), start=Counter())
        assert kinds["Compact"] > 100
        assert kinds["Data"] > 100


def test_the_audit_catches_peers_that_drop_what_codes_cannot_say(fuzz_world, monkeypatch):
    coded = transitions._coded

    def rounded_off(state, edge, part, code, rules):
        return *coded(state, edge, part, code, rules)[:2], part

    monkeypatch.setattr(transitions, "_coded", rounded_off)
    worlds = [weathered(fuzz_world(seed)) for seed in range(1, 2 * FEW, 2)]
    assert sum(world.error.any() for world in worlds) >= FEW // 2


def against_what_was_sent(state, edge, part, code, rules):
    wanted = state.layout.with_copies(part, state.holding)
    packed = pack(state.layout, wanted, edge.seq, edge.sent, code, rules.radius)
    total = unpack(state.layout, edge.sent, packed)
    return packed, total, state.layout.booked(total - edge.sent)


def test_it_is_caught_when_codes_build_on_what_was_only_sent(fuzz_world, monkeypatch):
    """A lost push then makes all later ones worthless until its receiver is asked."""
    monkeypatch.setattr(transitions, "_window", lambda _edge, rules: rules.window)
    monkeypatch.setattr(transitions, "_coded", against_what_was_sent)
    caught = 0
    for seed in range(1, 2 * FEW, 2):
        world = fuzz_world(seed)
        world.storm(STEPS)
        caught += not world.packed_agrees
    assert caught >= FEW // 2
