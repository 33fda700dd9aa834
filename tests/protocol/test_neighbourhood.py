"""No bad neighbour harms an honest peer; and without any one of the rules, one does.

`make fuzz` runs thousands of schedules. A schedule has minutes of virtual time, and among its
peers silent, leaving and byzantine ones and live copies (see `weather`).
"""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from pathlib import Path

import neighbourhood
import pytest
from bad_neighbours import ByzantineSender, ForgingSender, MintingSender, SilentReceiver
from builders import replace
from neighbourhood import Neighbourhood
from residents import Resident
from tiers import schedules
from weather import Weather

from oneway.peer.inflow import Inflow
from oneway.protocol import bookkeeping, incoming, lives, replies, transitions
from oneway.protocol.fixed_point import ONE, mass_of
from oneway.protocol.incoming import Absorbed, Objection

FEW = 40
SCHEDULES = schedules(quick=12, thorough=50, per_fuzz=10)
CHUNK = 6


@pytest.mark.parametrize("first", range(0, SCHEDULES, CHUNK))
def test_no_bad_neighbour_and_no_copy_harms_an_honest_peer(first):
    for seed in range(first, min(first + CHUNK, SCHEDULES)):
        assert not Neighbourhood(seed).run().violations, seed


def is_found(where=lambda _: True):
    """Whether the fuzzer notices, by itself, that a rule is missing, where that may matter."""
    found, matter = 0, (seed for seed in itertools.count() if where(Weather(seed)))
    for seed in itertools.islice(matter, FEW):
        found += bool(Neighbourhood(seed).run().violations)
        if found >= FEW // 8:
            return True
    return False


def has(*kinds):
    """Whether such neighbours are about, and peers keep accounts of them."""
    return lambda weather: not math.isinf(weather.clip) and not {*kinds}.isdisjoint(weather.bad)


def in_good_weather(where):
    return lambda weather: where(weather) and not weather.is_rough


def is_one_way(weather):
    """And nobody mints instead of those that the street drains."""
    senders = {ByzantineSender, ForgingSender, MintingSender}
    return [] in weather.trusted and not senders & {*weather.bad}


def relays(weather):
    return weather.payload == 1 and has(ForgingSender)(weather)


def test_it_is_found_when_a_peer_may_hold_any_mass(monkeypatch):
    """D2: what comes beyond the limit is not burned, whoever minted it."""
    monkeypatch.setattr(neighbourhood, "ALLOWED_MASS", 2.0**32)
    assert is_found(lambda weather: ByzantineSender in weather.bad)


@pytest.mark.parametrize("kind", [ForgingSender, MintingSender])
def test_it_is_found_when_there_is_no_account_of_moves(kind, monkeypatch):
    """S2, S4: of a sender that forges steps, and of one that mints mass."""
    monkeypatch.setattr(Inflow, "allowance", lambda *_: None)
    assert is_found(in_good_weather(has(kind)))


def test_it_is_found_when_steps_may_be_of_any_length(monkeypatch):
    """S2: a parcel is not held against the count of its steps."""
    monkeypatch.setattr(neighbourhood, "LONGEST_ALLOWED", math.inf)
    assert is_found(relays)


def test_it_is_found_when_masses_have_no_bounds(monkeypatch):
    """S1: where somebody only receives, the mass of all others drains."""
    monkeypatch.setattr(Resident, "keeps_mass", False)
    assert is_found(in_good_weather(is_one_way))


def test_it_is_found_when_mass_under_way_is_not_bounded(monkeypatch):
    """D4: only the number of pushes is, and death is presumed after a day."""

    def capped(state, _edge, share, rules):
        return min(share, rules.mass_cap * ONE / max(mass_of(state.holding), 1))

    monkeypatch.setattr(transitions, "_fraction", capped)
    monkeypatch.setattr(Resident, "presume_dead_after", 86_400.0)
    assert is_found(in_good_weather(lambda weather: SilentReceiver in weather.bad))


def test_it_is_found_when_a_leaver_does_not_care_who_has_heard(monkeypatch):
    """D5: it neither waits for its senders nor gives receipts."""
    monkeypatch.setattr(Resident, "gives_receipts", False)
    assert is_found(lambda weather: weather.chances["leave"] > 0.0)


def test_it_is_found_when_old_claims_are_taken_back_and_nothing_is_owed(monkeypatch):
    """D7: a receiver's older claim brings its sender what was acknowledged."""

    def added(state, gained):
        return replace(state, holding=state.holding + state.layout.booked(gained))

    monkeypatch.setattr(replies, "_is_behind", lambda *_: False)
    for module in (bookkeeping, replies):
        monkeypatch.setattr(module, "booked", added)
    assert is_found()


def test_it_is_found_when_closed_edges_count(monkeypatch):
    """D8: edges are never retired, and too many of them are a strike."""
    receive_push = transitions.receive_push

    def strict(state, sender, message, rules, allowance=None):
        known = [name for name in state.in_ if name[0] == sender]
        if (sender, message.epoch) not in known and len(known) >= rules.most_edges:
            return Absorbed(state, Objection("too many edges", "it opened too many edges"))
        return receive_push(state, sender, message, rules, allowance)

    monkeypatch.setattr(transitions, "receive_push", strict)
    monkeypatch.setattr(transitions, "retire_in", lambda state, *_: state)
    assert is_found(lambda weather: weather.chances["quarrel"] > 0.0)


def test_it_is_found_when_much_mass_at_once_is_a_strike(monkeypatch):
    """D9: as it was beyond sixty-four pushes; here beyond one, since a schedule is short."""
    objection = incoming.objection

    def strict(delta, pushes, rules, layout=None):
        if mass_of(delta) > rules.mass_cap * ONE * min(pushes, 1):
            return Objection("mass above the cap", "it hands over too much mass")
        return objection(delta, pushes, rules, layout)

    monkeypatch.setattr(incoming, "objection", strict)
    assert is_found(lambda weather: weather.mass_cap == 1.0 and weather.is_rough)


def test_it_is_found_when_all_lives_of_a_key_are_accepted(monkeypatch):
    """D10: nobody tells copies of each other, and none of them stops."""

    def meet(state, peer, life):
        return replace(state, lives={**state.lives, peer: life})

    for module in (transitions, replies):
        monkeypatch.setattr(module, "meet", meet)
    monkeypatch.setattr(lives, "is_copied", lambda *_: False)
    monkeypatch.setattr(lives, "lifted", lambda state, *_: state)
    assert is_found()


def test_a_seed_repeats_whatever_the_seed_of_hashes_is():
    def digests(hash_seed):
        done = subprocess.run(
            [sys.executable, str(Path(neighbourhood.__file__)), "0", "8", "13"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        return done.stdout.split()

    first = digests("1")
    assert len(set(first)) == 3
    assert digests("2") == first
