"""How far one sender may move a peer: the account of its moves, and what no sender can bring."""

from __future__ import annotations

import math

import numpy as np
import pytest
from builders import replace
from hypothesis import assume, given
from hypothesis import strategies as st

from oneway.methods import Relay
from oneway.methods.base import State
from oneway.peer import inflow
from oneway.peer.inflow import PART, SECONDS_PER_STEP, STEPS, TO_AND_FRO, Inflow
from oneway.protocol import incoming
from oneway.protocol.audit import expected_holding
from oneway.protocol.fixed_point import ONE, fixed, mass_of
from oneway.protocol.incoming import Allowance, Move, mint, objection
from oneway.protocol.layout import Layout
from oneway.protocol.messages import NO_PROGRESS, Data, Life
from oneway.protocol.rules import Rules
from oneway.protocol.state import InEdge, OutEdge, OutPhase, PeerState
from oneway.protocol.tags import NO_TAG
from oneway.protocol.transitions import push, receive_push

LIAR, OTHER = b"l" * 32, b"o" * 32
DIM, LONGEST = 2, 1.0
RELAY = Layout.of(Relay.payload, DIM)
RULES = Rules(b"s" * 32, longest_step=LONGEST)
BESIDE = 1e-6
"""What float32 leaves of an account."""

numbers = st.floats(-100.0, 100.0)
vectors = st.tuples(*[numbers] * DIM).map(np.array)
masses = st.floats(-5.0, 2.0).map(lambda power: 10.0**power)


# What of a move is within the limit.


@given(st.none() | vectors, vectors, st.floats(1e-3, 300.0))
def test_the_part_of_a_move_is_the_largest_that_stays_within_the_limit(moved, move, most):
    before = np.zeros(DIM) if moved is None else moved
    assume(np.linalg.norm(before) <= most)
    part = Allowance(None if moved is None else Move(moved), most).part_of(Move(move))
    assert 0.0 <= part <= 1.0
    assert np.linalg.norm(before + part * move) <= most * (1 + 1e-9)
    # A little more of it would be too much: along a tangent, of a millionth of it half a billionth.
    if part < 1.0:
        further = part + 1e-6 + 1e-3 * most / np.linalg.norm(move)
        assert np.linalg.norm(before + further * move) > most * (1 - 1e-12)


@given(vectors, vectors, st.floats(1e-3, 100.0))
def test_beyond_the_limit_a_sender_may_only_move_back(moved, move, most):
    """As when a peer's own steps have become shorter."""
    assume(np.linalg.norm(moved) > most)
    part = Allowance(Move(moved), most).part_of(Move(move))
    assert 0.0 <= part <= 1.0
    assert np.linalg.norm(moved + part * move) <= np.linalg.norm(moved) * (1 + 1e-9)
    if moved @ move >= 0.0 and np.linalg.norm(move) > 1e-6:
        assert part == 0.0


def test_nothing_that_does_not_move_is_cut():
    assert Allowance(Move(np.array([9.0, 9.0])), 1.0).part_of(Move(np.zeros(2))) == 1.0


@given(vectors, vectors, vectors, vectors, st.floats(1.0, 300.0), st.floats(0.01, 100.0))
def test_no_deposit_makes_more_of_what_waits_than_the_limit(now, steps, moved, waits, most, weight):
    """Whatever part of it that is, up to the largest."""
    before = Move(moved, waits)
    assume(all(np.linalg.norm(before.in_all(it)) <= most for it in (0.0, weight)))
    part = Allowance(before, most).part_of(Move(now, steps), weight)
    for deposited in np.linspace(0.0, weight, 7):
        in_all = before.in_all(deposited) + part * Move(now, steps).in_all(deposited)
        assert np.linalg.norm(in_all) <= most * (1 + 1e-9)


# The account, against a list of all that ever happened.


class Diary:
    """Remembers every step and every move with the moment it happened at."""

    def __init__(self, longest, steps, now):
        self.first = longest / math.sqrt(max(steps, 1))
        self.own = []
        self.moves = []
        self.began = now

    def steps_until(self, now):
        """Own steps, and one for every ten seconds since the last one."""
        last, clock = self.began, 0.0
        for _, at in self.own:
            clock += max(0.0, at - last) / SECONDS_PER_STEP + 1.0
            last = at
        return clock + max(0.0, now - last) / SECONDS_PER_STEP

    def own_step(self):
        if not self.own:
            return self.first
        ages = range(len(self.own) - 1, -1, -1)
        weights = [(1 - 1 / STEPS) ** age for age in ages]
        squares = [
            length**2 * weight for (length, _), weight in zip(self.own, weights, strict=True)
        ]
        return math.sqrt(sum(squares) / sum(weights))

    def moved(self, sender, now):
        total = np.zeros(DIM)
        for who, move, at in self.moves:
            if who == sender:
                total += move * (1 - 1 / STEPS) ** (self.steps_until(now) - at)
        return total


happenings = st.lists(
    st.tuples(st.sampled_from(["step", "move", "nothing"]), st.floats(0.0, 40.0), vectors),
    max_size=25,
)


@given(happenings, st.floats(1e-3, 10.0), st.integers(0, 1000))
def test_an_account_is_the_decaying_sum_of_all_moves_in_own_steps(events, longest, steps):
    now = 7.0
    diary, inflow = Diary(longest, steps, now), Inflow(longest, steps, now)
    for number, (event, seconds, vector) in enumerate(events):
        now += seconds
        sender = (LIAR, OTHER)[number % 2]
        if event == "step":
            length = float(np.linalg.norm(vector))
            diary.own.append((length, now))
            inflow.stepped(length, now)
        elif event == "move":
            diary.moves.append((sender, vector, diary.steps_until(now)))
            inflow.moved(sender, Move(vector), now)
        for who in (LIAR, OTHER):
            allowance = inflow.allowance(who, now)
            found = np.zeros(DIM) if allowance.moved is None else allowance.moved.now
            np.testing.assert_allclose(found, diary.moved(who, now), rtol=1e-4, atol=1e-3)
            assert allowance.most == pytest.approx(PART * STEPS * diary.own_step())
        inflow.moved(sender, None, now)


# Attacks: any sequence of pushes.


class Victim:
    """A peer, and a sender that may say anything."""

    def __init__(self, layout, mass=1.0, own=0.05):
        self.layout, dim = layout, layout.width or DIM
        held = fixed(np.zeros(dim), mass)
        edge = InEdge(LIAR, 7, 0 * held, session=1)
        state = PeerState.new(dim, 1, 1, layout)
        self.state = replace(state, holding=held, minted=held, in_={(LIAR, 7): edge})
        self.inflow = Inflow(LONGEST, 400, 0.0)
        self.own = own
        self.step()
        self.cut = 0

    def step(self):
        """A step of one's own; where it leads is of no interest here."""
        self.inflow.stepped(self.own, 0.0)

    @property
    def most(self):
        return PART * STEPS * self.own

    @property
    def account(self):
        moved = self.inflow.allowance(LIAR, 0.0).moved
        return np.zeros(DIM) if moved is None else moved.now

    def hear(self, model, mass, parcel=None, count=0.0):
        before = self.state.in_[LIAR, 7]
        beside = () if parcel is None else (*parcel, count)
        delta = fixed(np.array([*(np.array(model) * mass), *beside]), mass)
        word = Data(
            7,
            Life(1, 0, False, NO_TAG),
            1,
            1,
            0,
            before.seq + 1,
            before.heard + delta,
            NO_TAG,
            NO_PROGRESS,
        )
        done = receive_push(self.state, LIAR, word, RULES, self.inflow.allowance(LIAR, 0.0))
        assert done.strike is None
        self.inflow.moved(LIAR, done.moved, 0.0)
        self.state, self.cut = done.state, self.cut + (done.clipped > 0)
        assert np.array_equal(self.state.holding, expected_holding(self.state))

    def deposit(self):
        """As Relay does right before a push; all that is left of the parcel is handed on."""
        held = self.state.holding / ONE
        places = {**self.layout.places, "mass": slice(-1, None)}
        row = State({name: held[None, place] for name, place in places.items()}, {})
        part = float(Relay(learning_rate=0.1).fractions(row)[0, 0])
        self.inflow.deposited(part, self.state.mass, 0.0)
        self.inflow.handed_on(1.0)
        after = Relay(learning_rate=0.1).before_push(row, np.random.default_rng(0)).segments
        held = fixed(np.array([*after["numerator"][0], *[0.0] * (DIM + 1)]), held[-1])
        self.state = replace(
            self.state, holding=held, minted=self.state.minted + held - self.state.holding
        )


pushes = st.lists(st.tuples(vectors, masses), min_size=1, max_size=12)


@given(pushes, masses)
def test_between_two_steps_of_a_peer_a_sender_moves_it_no_further_than_the_limit(said, own_mass):
    victim = Victim(Layout(), own_mass)
    before = victim.state.estimate
    for model, mass in said:
        victim.hear(model, mass)
        moved = victim.state.estimate - before
        assert np.linalg.norm(moved) <= victim.most * (1 + BESIDE) + 1e-6
        np.testing.assert_allclose(moved, victim.account, rtol=1e-5, atol=1e-5)


@given(
    st.lists(st.tuples(vectors, masses) | st.none(), min_size=1, max_size=30),
)
def test_with_steps_in_between_the_account_never_exceeds_the_limit(said):
    """So between two steps a sender with an account moves a peer from one side to the other."""
    victim = Victim(Layout())
    since = victim.state.estimate
    for word in said:
        if word is None:
            victim.step()
            since = victim.state.estimate
        else:
            victim.hear(*word)
        assert np.linalg.norm(victim.account) <= victim.most * (1 + BESIDE)
        moved = np.linalg.norm(victim.state.estimate - since)
        assert moved <= 2 * victim.most * (1 + BESIDE) + 1e-6


@pytest.mark.parametrize("limit", [TO_AND_FRO, 1e9])
def test_who_pulls_to_either_side_in_turn_swings_a_peer_by_a_step_of_its_own(limit, monkeypatch):
    """Without a limit to and fro, by twice the limit with every step."""
    monkeypatch.setattr(inflow, "TO_AND_FRO", limit)
    victim, swings = Victim(Layout()), []
    for turn in range(10 * STEPS):
        before = victim.state.estimate
        victim.hear([100.0 * (-1) ** turn, 0.0], 50.0)
        swings.append(np.linalg.norm(victim.state.estimate - before))
        victim.state = replace(victim.state, holding=fixed(victim.state.estimate, 1.0))
        victim.state = replace(victim.state, minted=expected_minted(victim.state))
        victim.step()
    swing = np.sqrt(np.mean(np.square(swings[-5 * STEPS :])))
    if limit == TO_AND_FRO:
        assert swing == pytest.approx(limit * victim.own, rel=0.1)
    else:
        assert swing > 1.8 * victim.most


parcels = st.tuples(
    st.floats(0.0, 2 * math.pi),
    st.floats(-4.0, 1.0).map(lambda power: 10.0**power),
    st.floats(0.0, 2.0),
)


@given(st.lists(parcels, min_size=1, max_size=20), st.booleans(), masses)
def test_steps_that_a_sender_forges_move_a_peer_no_further_either(said, deposits, own_mass):
    """However few it says they are, and however light the peer is that deposits them."""
    victim = Victim(RELAY, own_mass)
    for angle, count, length in said:
        parcel = length * count * LONGEST * np.array([math.cos(angle), math.sin(angle)])
        victim.hear(np.zeros(DIM), 0.0, parcel, count)
        if deposits:
            victim.deposit()
            # Each is of the size of the limit; what is said of models is of the size of a unit.
            assert np.linalg.norm(victim.state.estimate) <= victim.most * (1 + 1e-4) + 1e-5
    victim.deposit()
    assert np.linalg.norm(victim.state.estimate) <= victim.most * (1 + 1e-4) + 1e-5


def forging(victim, count=1.0):
    """Parcels with almost no mass, in one direction, and as many of them as it takes."""
    for _ in range(200):
        parcel = 1.99 * count * LONGEST * np.array([-1.0, 0.0])
        victim.hear(victim.state.estimate, 1e-6, parcel, count)
        victim.deposit()
    return np.linalg.norm(victim.state.estimate) / victim.most


def forging_parts_of_steps(victim):
    """Of a hundredth of a step, a receiver that has passed on all else deposits all."""
    return forging(victim, 1e-2)


def high_and_low_counts(victim):
    """Of a step that is said to be a thousand, a light peer deposits less than of one in parts."""
    for _ in range(30):
        for count, side in ((1e-4, 1.0), (10.0, -1.0)):
            for _ in range(10):
                parcel = 1.99 * count * LONGEST * np.array([side, 0.0])
                victim.hear(victim.state.estimate, 0.0, parcel, count)
        victim.deposit()
    return np.linalg.norm(victim.state.estimate) / victim.most


def minting(victim):
    for _ in range(200):
        victim.hear(victim.state.estimate + np.array([1.0, 0.0]), 1.0, np.zeros(DIM), 0.0)
    return np.linalg.norm(victim.state.estimate) / victim.most


def test_high_and_low_counts_in_turn_move_a_peer_no_further():
    assert high_and_low_counts(Victim(RELAY, 0.1)) <= 1 + 1e-4


@pytest.mark.parametrize("attack", [forging, forging_parts_of_steps, minting])
def test_a_sender_that_pulls_in_one_direction_for_ever_gets_as_far_as_the_limit(attack):
    victim = Victim(RELAY)
    assert 0.7 < attack(victim) <= 1 + 1e-4
    assert victim.cut > 100


def of_length(moves):
    """Honest ones, who pull to and fro, would soon use up what is counted as a length."""
    return Allowance(Move(np.array([sum(np.linalg.norm(move) for move in moves), 0.0])), 1.0)


def test_who_pulls_to_and_fro_is_never_cut():
    victim, rng = Victim(Layout()), np.random.default_rng(7)
    moves = []
    for _ in range(500):
        before = victim.state.estimate
        step = rng.normal(size=DIM)
        victim.hear(-before + 0.9 * victim.own * step / np.linalg.norm(step), 1.0)
        moves.append(victim.state.estimate - before)
        victim.state = replace(victim.state, holding=fixed(victim.state.estimate, 1.0))
        victim.state = replace(victim.state, minted=expected_minted(victim.state))
        victim.step()
    assert victim.cut == 0
    assert of_length(moves).part_of(Move(moves[0])) == 0.0


def expected_minted(state):
    return state.minted + state.holding - expected_holding(state)


incoming_within = incoming._within


def counts_models_only(state, delta, allowance):
    """What comes in parcels moves nobody yet."""
    kept, moved, beyond = incoming_within(state, delta * of_model(state.layout), allowance)
    return kept + delta * (1 - of_model(state.layout)), moved, beyond


def of_model(layout):
    mask = np.zeros(layout.width + 1, dtype=np.int64)
    mask[layout.model] = mask[-1] = 1
    return mask


def counts_nothing(_state, delta, _allowance):
    return delta, None, 0.0


def starts_anew_with_every_push(state, delta, allowance):
    return incoming_within(state, delta, Allowance(None, allowance.most))


def charges_once(state, delta, allowance):
    """What steps will move the peer by is charged as they come, and never settled."""
    kept, move, beyond = incoming_within(state, delta, allowance)
    if move is not None and move.steps is not None:
        move = Move(move.in_all(incoming._deposited(state, kept, math.inf)))
    return kept, move, beyond


def counts_whole_counts_only(_state, _delta, _heaviest):
    """As if every parcel had at least one step in it."""
    return incoming.DEPOSITED


WRONG = {
    "no account": ("_within", counts_nothing, (forging, minting)),
    "no memory": ("_within", starts_anew_with_every_push, (forging, minting)),
    "charged once": ("_within", charges_once, (high_and_low_counts,)),
    "models only": ("_within", counts_models_only, (forging,)),
    "whole counts": ("_deposited", counts_whole_counts_only, (forging_parts_of_steps,)),
}


@pytest.mark.parametrize(("name", "wrong", "attacks"), WRONG.values(), ids=WRONG)
def test_without_any_part_of_the_account_a_sender_moves_a_peer_further(
    name, wrong, attacks, monkeypatch
):
    monkeypatch.setattr(incoming, name, wrong)
    for attack in attacks:
        assert attack(Victim(RELAY, 0.1)) > 1.1, attack.__name__


# Parcels.


def relayed(steps, count, mass=0.5):
    return fixed(np.array([0.1, 0.1, *steps, count]), mass)


IMPOSSIBLE = {
    "less than no steps": ([0.0, 0.0], -1e-6),
    "a parcel without a count": ([1e-6, 0.0], 0.0),
    "more than twice the longest": ([2.0 + 1e-6, 0.0], 1.0),
    "one long step of many pushes": ([-9.0, 9.0], 6.0),
}


@pytest.mark.parametrize("pushes", [1, 10**6])
@pytest.mark.parametrize(("steps", "count"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_steps_that_nobody_takes_are_a_strike(steps, count, pushes):
    found = objection(relayed(steps, count), pushes, RULES, RELAY)
    assert found is not None
    assert found.kind == "impossible parcel"
    anything = replace(RULES, longest_step=math.inf)
    assert (objection(relayed(steps, count), pushes, anything, RELAY) is None) == (count >= 0)


steps_of_peers = st.lists(
    st.tuples(st.floats(0.0, 2 * math.pi), st.floats(0.0, LONGEST)), min_size=1, max_size=30
)


@given(steps_of_peers, st.lists(st.floats(0.01, 0.9), min_size=1, max_size=8), st.integers(-3, 2))
def test_no_honest_parcel_is_impossible_however_it_is_shared_out(steps, shares, lacks):
    """Also where a peer that was restored from a backup lacks some of its count."""
    taken = [
        length * np.array([math.cos(angle), math.sin(angle)]) * (1 - 1e-12)
        for angle, length in steps
    ]
    held = relayed(sum(taken), len(taken) + min(0, lacks), 1.0)
    edge = OutEdge(OTHER, 7, 1, OutPhase.OPEN, {0: 0 * held})
    alice = mint(PeerState.new(RELAY.width, 1, 1, RELAY), np.zeros(RELAY.width))
    alice, totals = replace(alice, holding=held, out={(OTHER, 7): edge}), [edge.sent]
    for share in shares:
        alice = push(alice, {OTHER: share, LIAR: 0.1}, RULES)
        edge = alice.out[OTHER, 7]
        for pushes, before in enumerate(reversed(totals), start=1):
            assert objection(edge.sent - before, pushes, RULES, RELAY) is None
        totals.append(edge.sent)
        known = replace(edge, acked=edge.seq, totals={edge.seq: edge.sent})
        alice = replace(alice, out={(OTHER, 7): known})
    assert edge.seq == len(shares)


def test_who_leaves_hands_over_no_steps_without_a_count_and_books_them():
    """Nobody would take them, and it would wait for ever."""
    held = fixed(np.array([0.1, 0.1, 0.5, 0.5, -2.0]), 1.0)
    edge = OutEdge(OTHER, 7, 1, OutPhase.OPEN, {0: 0 * held})
    alice = PeerState.new(RELAY.width, 1, 1, RELAY)
    alice = replace(alice, holding=held, minted=held, out={(OTHER, 7): edge}, leaving=True)
    after = push(alice, {OTHER: 1.0}, RULES)
    assert not after.holding.any()
    assert np.array_equal(after.holding, expected_holding(after))
    assert mass_of(after.out[OTHER, 7].sent) == ONE
    assert after.clipped[2:5].tolist() == held[2:5].tolist()
