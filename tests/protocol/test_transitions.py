"""What one peer allows another: the window, what is absorbed, the clip, joining and leaving."""

from __future__ import annotations

import numpy as np
import pytest
from builders import replace
from hypothesis import assume, example, given
from hypothesis import strategies as st

from oneway.methods import OnlinePushSum
from oneway.methods.base import State
from oneway.protocol.audit import expected_holding
from oneway.protocol.fixed_point import ONE, fixed, mass_of, zeros
from oneway.protocol.incoming import mint
from oneway.protocol.messages import NO_PROGRESS, Close, Data, Gone, Hello, Life
from oneway.protocol.outgoing import answer, say
from oneway.protocol.pace import LEAST
from oneway.protocol.replies import receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import OutEdge, OutPhase, PeerState
from oneway.protocol.tags import NO_TAG
from oneway.protocol.transitions import (
    TOO_MANY,
    descend,
    keep_mass,
    leave,
    presume_dead,
    push,
    receive_push,
    trust,
)

ALICE, BOB, CAROL = (bytes([letter]) * 32 for letter in b"abc")
RULES = Rules(secret=b"alice's own secret" * 2)
DIM = 2
EPOCH = 11
LIFE = Life(1 << 20, 0, False, NO_TAG)
LOWEST, HIGHEST = -(2**63), 2**63 - 1

int64s = st.integers(LOWEST, HIGHEST) | st.sampled_from([LOWEST, -1, 0, 1, HIGHEST])
models = st.tuples(*[st.floats(-1000, 1000)] * DIM).map(np.array)


def peer(ledger=1, at=None):
    state = PeerState.new(DIM, ledger, boot=1 << 20)
    return state if at is None else mint(state, np.array(at, dtype=float))


def name(receiver, epoch=EPOCH):
    return receiver, epoch


def deliver(sender, key, receiver, own_key, rules=RULES, epoch=EPOCH):
    """Say once what there is to say about an edge; return both peers after question and answer."""
    word = say(sender, sender.out[own_key, epoch], rules)
    receiver = receive_push(receiver, key, word, rules).state
    for reply in answer(receiver, key, word, rules):
        sender = receive_reply(sender, own_key, reply, rules).state
    return sender, receiver


def connected(sender, receiver, rules=RULES):
    """Alice's edge to Bob, open."""
    return deliver(trust(sender, BOB, EPOCH), ALICE, receiver, BOB, rules)


def pushed(sender, share=0.5, rules=RULES):
    return push(sender, {BOB: share}, rules)


def same(one, other):
    return np.array_equal(one, other)


def books_balance(*states):
    return all(same(state.holding, expected_holding(state)) for state in states)


# What is under way.


def open_edges(holding, edges, boot=1 << 20):
    """Alice with this holding, and open edges of which this mass was sent and acknowledged."""
    out = {
        (key, EPOCH): OutEdge(
            key, EPOCH, boot, OutPhase.OPEN, {3: amount(acked), 4: amount(sent)}, seq=4, acked=3
        )
        for key, (acked, sent) in edges.items()
    }
    return replace(peer(at=[0, 0]), holding=holding, out=out)


def amount(mass):
    return np.array([0] * DIM + [mass])


def under_way(state):
    return {edge.receiver: edge.mass_in_flight for edge in state.out.values()}


parties = st.lists(
    st.tuples(st.floats(0.01, 0.9), st.integers(0, 2**44), st.integers(0, 2**45)),
    min_size=1,
    max_size=5,
)


@given(models, st.floats(0.02, 60.0), parties)
def test_no_push_leaves_more_unacknowledged_than_the_receivers_share_of_all_there_is(
    at, mass, drawn
):
    keys = [bytes([200 + index]) * 32 for index in range(len(drawn))]
    most = sum(share for share, _, _ in drawn)
    shares = {
        key: 0.95 * share / max(most, 1.0) for key, (share, _, _) in zip(keys, drawn, strict=True)
    }
    edges = {
        key: (acked, acked + flying) for key, (_, acked, flying) in zip(keys, drawn, strict=True)
    }
    alice = open_edges(fixed(0.99 * at * mass, mass), edges)
    before, held = under_way(alice), mass_of(alice.holding)
    after = push(alice, shares, RULES)
    gone = 0
    for key, share in shares.items():
        part = under_way(after)[key] - before[key]
        gone += part
        assert 0 <= part <= RULES.mass_cap * ONE
        if part:
            # A unit for the floor, and what float64 leaves of numbers of this size.
            assert under_way(after)[key] <= share * (held + before[key]) * (1 + 1e-12) + 1
            # A receiver that lost everything since must be able to take it in at once.
            assert under_way(after)[key] <= RULES.mass_cap * ONE
        elif after.out[key, EPOCH].seq == 4:
            # It has its share already, or all that one push may carry: up to a part that is not
            # worth a push.
            wanted = share * (held + before[key]) - before[key]
            room = RULES.mass_cap * ONE - before[key]
            has_share = wanted <= LEAST * share * held * (1 + 1e-9) + 1
            assert has_share or room <= LEAST * RULES.mass_cap * ONE
    assert held - mass_of(after.holding) == gone


@given(models, st.floats(0.02, 60.0), parties)
def test_to_receivers_that_owe_no_answer_goes_the_floor_of_their_share_of_what_is_held(
    at, mass, drawn
):
    """To the bit: what bounds the others does not touch them."""
    keys = [bytes([200 + index]) * 32 for index in range(len(drawn))]
    shares = {
        key: 0.95 * share / len(drawn) for key, (share, _, _) in zip(keys, drawn, strict=True)
    }
    edges = {key: (acked, acked) for key, (_, acked, _) in zip(keys, drawn, strict=True)}
    busy = CAROL
    shares[busy], edges[busy] = 0.01, (0, 2**50)
    alice = open_edges(fixed(0.99 * at * mass, mass), edges)
    after = push(alice, shares, RULES)
    for key in keys:
        share = min(shares[key], 16 * ONE / mass_of(alice.holding))
        part = np.array([np.floor(float(units) * share) for units in alice.holding.tolist()])
        edge = after.out[key, EPOCH]
        assert edge.seq == 5
        assert same(edge.sent - alice.out[key, EPOCH].sent, part.astype(np.int64))
    assert after.out[busy, EPOCH] is alice.out[busy, EPOCH]


# What is absorbed.


def data(state, seq, total, epoch=EPOCH):
    """A push that agrees with what the receiver knows of the session."""
    edge = state.in_[ALICE, epoch]
    total = np.array(total, dtype=np.int64)
    return Data(
        epoch, LIFE, state.ledger, edge.session, edge.granted, seq, total, NO_TAG, NO_PROGRESS
    )


def listening(at=(0.5, -0.5), rules=RULES, seq=3, total=(7, -9, ONE // 2)):
    """Bob, who has heard a first total from Alice."""
    bob = peer(2, at=at)
    bob = receive_push(bob, ALICE, Hello(EPOCH, LIFE, 0, 5 << 20), rules).state
    first = receive_push(bob, ALICE, data(bob, seq, total), replace(rules, clip=np.inf))
    assert first.strike is None
    return first.state


REFUSED = {
    "too few numbers": ("dimension", 4, [7, ONE]),
    "too many numbers": ("dimension", 4, [7, -9, 0, ONE]),
    "one number only": ("dimension", 4, [ONE]),
    "less mass": ("shrinking mass", 4, [7, -9, ONE // 2 - 1]),
    "no mass at all": ("shrinking mass", 4, [7, -9, 0]),
    "negative mass": ("shrinking mass", 4, [7, -9, -ONE]),
    "the lowest mass": ("shrinking mass", 4, [7, -9, LOWEST + ONE // 2]),
    "outside the radius": ("outside the radius", 4, [7 + 1001 * ONE, -9, ONE // 2 + ONE]),
    "outside on the other side": ("outside the radius", 4, [7, -9 - 1001 * ONE, ONE // 2 + ONE]),
    "a numerator without mass": ("outside the radius", 4, [7 + 2000, -9, ONE // 2]),
    "a numerator of many pushes": ("outside the radius", 2**61, [2**61, -9, ONE // 2]),
    "the rounding of many pushes": ("outside the radius", 1000, [7 + 64 * 1002 + 1, -9, ONE // 2]),
    "the lowest numerator": ("outside the radius", 4, [LOWEST, -9, ONE // 2 + ONE]),
    "the highest numerator": ("outside the radius", 4, [HIGHEST, -9, ONE // 2 + ONE]),
    "the lowest difference": ("outside the radius", 4, [LOWEST + 7, -9, ONE // 2 + ONE]),
}


@pytest.mark.parametrize(("kind", "seq", "total"), REFUSED.values(), ids=REFUSED)
def test_what_no_honest_peer_hands_over_changes_nothing_and_is_a_strike(kind, seq, total):
    bob = listening()
    done = receive_push(bob, ALICE, data(bob, seq, total), RULES)
    assert done.state is bob
    assert done.strike.kind == kind
    assert done.clipped == 0.0


BEYOND = {
    "a unit above the limit": (4, [7, -9, 256 * ONE - ONE + 1]),
    "the highest mass": (4, [7, -9, HIGHEST]),
    "the highest mass, in many pushes": (2**61, [7, -9, HIGHEST]),
    "the highest mass at a model": (4, [2**55, -(2**55), HIGHEST]),
}


@pytest.mark.parametrize(("seq", "total"), BEYOND.values(), ids=BEYOND)
@pytest.mark.parametrize("close", [False, True])
def test_more_than_a_peer_may_hold_is_heard_and_burned_with_its_part_of_the_model(
    seq, total, close
):
    bob = listening()
    word = data(bob, seq, total)
    if close:
        word = Close(EPOCH, LIFE, 2, seq, word.total, NO_TAG, NO_PROGRESS)
    done = receive_push(bob, ALICE, word, RULES)
    assert (done.strike, done.waits) == (None, "")
    assert same(done.state.in_[ALICE, EPOCH].heard, total)
    assert mass_of(done.state.holding) == 256 * ONE
    assert books_balance(done.state)
    came = np.array(total) - bob.in_[ALICE, EPOCH].heard
    taken = done.state.holding - bob.holding
    # A floor takes a unit of a numerator; at 100 of mass that moves no model.
    np.testing.assert_allclose(taken[:-1] / taken[-1], came[:-1] / came[-1], rtol=0, atol=1e-13)


@given(
    st.lists(int64s, min_size=DIM + 1, max_size=DIM + 1),
    st.integers(0, 2**62 - 1),
    st.booleans(),
    st.booleans(),
    st.sampled_from([np.inf, 1.0]),
)
@example([2**61, 0, 0], 2**61, True, False, 1.0)
@example([2**61, 0, 1], 2**61, False, False, 1.0)
@example([HIGHEST, 0, 2**62], 2**61, True, False, 1.0)
@example([LOWEST, LOWEST, ONE], 4, True, True, 1.0)
@example([0, 0, 2**54], 2**61, True, True, 1.0)
def test_no_total_whatsoever_breaks_the_books_or_the_radius(total, seq, minted, close, clip):
    """Also not by overflow: a message from the network must never raise."""
    rules = replace(RULES, clip=clip)
    bob = peer(2, at=(999.0, -999.0) if minted else None)
    bob = receive_push(bob, ALICE, Hello(EPOCH, LIFE, 0, 5 << 20), rules).state
    word = data(bob, seq, total)
    if close:
        word = Close(EPOCH, LIFE, 2, seq, word.total, NO_TAG, NO_PROGRESS)
    done = receive_push(bob, ALICE, word, rules)
    assert books_balance(done.state)
    if done.state.estimate is not None:
        # What rounding leaves open is far below anything that matters.
        assert np.abs(done.state.estimate).max() <= 1000.0 * (1 + 1e-4)
    assert 0 <= mass_of(done.state.holding) <= 256 * ONE + ONE  # at the limit it still mints
    if done.strike is not None or done.waits:
        assert done.state is bob


@given(
    st.floats(1.0, 1000.0),
    st.tuples(*[st.sampled_from([-1.0, 1.0])] * DIM),
    st.lists(st.floats(1e-3, 0.9), min_size=1, max_size=16),
)
def test_an_honest_estimate_that_lies_exactly_on_the_radius_is_no_strike(radius, signs, shares):
    """The floor of a share takes up to a unit of mass, and with it a radius of numerator."""
    rules = replace(RULES, radius=radius)
    alice, bob = connected(peer(at=radius * np.array(signs)), peer(2), rules)
    for share in shares:
        alice = pushed(alice, share, rules)
    word = say(alice, alice.out[name(BOB)], rules)
    assert receive_push(bob, ALICE, word, rules).strike is None


# The clip.


@given(
    models,
    models,
    st.floats(0.0001, 16.0),
    st.floats(0.02, 100.0),
    st.floats(1e-3, 10.0),
)
def test_the_clip_bounds_what_one_push_can_do_to_ones_own_estimate(
    own, theirs, own_mass, mass, clip
):
    rules = replace(RULES, clip=clip)
    own = 0.999 * own  # who lies outside the radius itself is not protected by it
    bob = replace(peer(2, at=own), holding=fixed(own * own_mass, own_mass))
    before = bob.estimate
    bob = receive_push(bob, ALICE, Hello(EPOCH, LIFE, 0, 5 << 20), rules).state
    delta = fixed(theirs * mass, mass)
    done = receive_push(bob, ALICE, data(bob, 1, delta), rules)
    assume(done.strike is None)

    taken = done.state.holding - bob.holding
    limit = clip * (1 + np.linalg.norm(before))
    distance = float(np.linalg.norm(bob.layout.model_in(delta) - before))
    assert np.linalg.norm(bob.layout.model_in(taken) - before) <= limit * (1 + 1e-9) + 1e-9
    moved = np.linalg.norm(done.state.estimate - before)
    assert moved <= limit * mass / (mass + own_mass) * (1 + 1e-9) + 1e-9
    # Mass is never clipped, and what was dropped is in the books to the unit.
    assert mass_of(taken) == mass_of(delta)
    assert same(taken + (done.state.clipped - bob.clipped), delta)
    assert same(done.state.in_[ALICE, EPOCH].heard, delta)
    assert done.clipped == pytest.approx(max(0.0, distance - limit), abs=1e-6)
    if distance <= limit * (1 - 1e-9):
        assert same(taken, delta)


@given(models, st.floats(1e-6, 100.0), st.floats(1e-3, 10.0))
def test_a_newcomer_is_moved_no_further_than_the_clip_from_zero(theirs, mass, clip):
    rules = replace(RULES, clip=clip)
    bob = receive_push(peer(2), ALICE, Hello(EPOCH, LIFE, 0, 5 << 20), rules).state
    delta = fixed(0.999 * theirs * mass, mass)
    done = receive_push(bob, ALICE, data(bob, 1, delta), rules)
    assume(done.strike is None)
    assert np.linalg.norm(done.state.estimate) <= clip * (1 + 1e-9) + 1e-5
    far = float(np.linalg.norm(bob.layout.model_in(delta)))
    assert done.clipped == pytest.approx(max(0.0, far - clip), abs=1e-6)
    assert books_balance(done.state)


@pytest.mark.parametrize("thin", [0.0, 1e-12, 0.01])
def test_the_clip_holds_at_the_smallest_mass(thin):
    rules = replace(RULES, clip=0.5)
    bob = replace(peer(2, at=[0, 0]), holding=fixed(np.zeros(2), thin))
    bob = receive_push(bob, ALICE, Hello(EPOCH, LIFE, 0, 5 << 20), rules).state
    done = receive_push(bob, ALICE, data(bob, 1, fixed(np.array([900.0, 0.0]), 1.0)), rules)
    assert np.linalg.norm(done.state.estimate) <= 0.5 + 1e-9
    assert done.clipped == pytest.approx(899.5)


# Joining, leaving, starting anew.


@given(models, st.floats(0.001, 0.9))
def test_a_newcomer_mints_once_at_the_model_it_receives(at, share):
    alice, bob = connected(peer(at=at), peer(2))
    assert bob.estimate is None
    alice, bob = deliver(pushed(alice, share), ALICE, bob, BOB)
    received = bob.in_[ALICE, EPOCH].heard
    assert mass_of(bob.minted) == ONE
    assert mass_of(bob.holding) == ONE + mass_of(received)
    # A unit of mass lost to the floor moves the model by as much as it weighs in what came.
    np.testing.assert_allclose(bob.estimate, at, rtol=0, atol=1001 / mass_of(received))
    minted = bob.minted
    _, bob = deliver(pushed(descend(alice, np.array([1.0, 1.0]))), ALICE, bob, BOB)
    assert bob.minted is minted
    assert books_balance(bob)


@given(
    st.lists(st.floats(0.1, 5.0), min_size=1, max_size=4),
    models,
    st.floats(0.5, 60.0),
)
def test_who_leaves_hands_over_every_unit_in_parts_below_the_cap(weights, at, mass):
    at = 0.999 * at
    alice = replace(peer(at=at), holding=fixed(at * mass, mass))
    keys = [bytes([200 + index]) * 32 for index in range(len(weights))]
    shares = dict(zip(keys, weights, strict=True))
    others = {key: peer(2 + index) for index, key in enumerate(keys)}
    before = alice.holding
    for key in keys:
        alice, others[key] = deliver(trust(alice, key, EPOCH), ALICE, others[key], key)
    alice = leave(alice)
    for _ in range(8):
        alice = push(alice, shares, RULES)
        for key in keys:
            word = say(alice, alice.out[key, EPOCH], RULES)
            done = receive_push(others[key], ALICE, word, RULES)
            assert done.strike is None
            others[key] = done.state
            for reply in answer(done.state, ALICE, word, RULES):
                alice = receive_reply(alice, key, reply, RULES).state
    assert not alice.holding.any()
    heard = [other.in_[ALICE, EPOCH].heard for other in others.values()]
    assert same(sum(heard, start=zeros(DIM)), before)
    assert not any(edge.in_flight for edge in alice.out.values())


@given(st.lists(st.floats(0.1, 5.0), min_size=1, max_size=4), st.floats(0.5, 60.0))
def test_who_leaves_has_no_more_under_way_to_one_receiver_than_one_push_may_carry(weights, mass):
    keys = [bytes([200 + index]) * 32 for index in range(len(weights))]
    alice = leave(open_edges(fixed(np.zeros(DIM), mass), dict.fromkeys(keys, (0, 0))))
    shares = dict(zip(keys, weights, strict=True))
    for _ in range(5):  # nobody answers
        alice = push(alice, shares, RULES)
        assert max(under_way(alice).values()) <= RULES.mass_cap * ONE
    going = sum(under_way(alice).values())
    assert going + mass_of(alice.holding) == mass_of(fixed(np.zeros(DIM), mass))


@given(st.lists(st.integers(0, 2**61), min_size=1, max_size=8), st.booleans())
def test_epochs_to_a_receiver_grow_whatever_the_clock_says(clocks, are_dead):
    alice, last = peer(at=[1, 1]), 0
    for clock in clocks:
        alice = trust(alice, BOB, clock)
        epoch = max(epoch for _, epoch in alice.out)
        assert epoch > last
        assert epoch == clock or clock <= last
        last, bob = epoch, peer(2)
        for _ in range(2):
            alice, bob = deliver(pushed(alice, 0.1), ALICE, bob, BOB, epoch=epoch)
        if are_dead:
            alice = presume_dead(alice, (BOB, epoch))
        else:
            alice = receive_reply(alice, BOB, Gone(epoch, LIFE, 2, NO_PROGRESS), RULES).state
            assert not alice.out


def test_steps_that_lead_too_far_are_refused_before_anything_wraps():
    alice, step = peer(at=[0, 0]), np.array([0.0, -(2.0**21)])
    alice = descend(alice, 1.5 * step)
    with pytest.raises(OverflowError, match="63 bits"):
        descend(alice, step)
    assert descend(alice, -step).holding[1] == 2**60


def test_a_peer_outside_the_radius_keeps_what_it_has():
    alice, _ = connected(peer(at=[1, 1]), peer(2))
    wild = replace(alice, holding=fixed(np.array([1000.1, 0.0]), 1.0))
    assert pushed(wild) is wild


@given(st.integers(1, ONE))
def test_however_little_mass_is_left_pushes_go_on(units):
    alice, _ = connected(peer(at=[1, 1]), peer(2))
    thin = replace(alice, holding=amount(units))
    assert pushed(thin).out[name(BOB)].seq == alice.out[name(BOB)].seq + 1


# Masses within bounds.

bounds = st.tuples(st.floats(1e-4, 1.0), st.floats(1.0, 100.0))
holdings = st.tuples(models, st.floats(-11.0, 2.4).map(lambda power: 10.0**power))


@given(holdings, bounds)
def test_a_mass_kept_within_bounds_moves_no_estimate_and_is_in_the_books(held, kept_within):
    at, mass = held
    alice = replace(peer(at=[0, 0]), holding=(fixed(at * mass, mass)))
    alice = replace(alice, minted=alice.holding)
    after = keep_mass(alice, kept_within)
    lowest, highest = (round(bound * ONE) for bound in kept_within)
    assert mass_of(after.holding) == min(max(mass_of(alice.holding), lowest), highest)
    gained = after.holding - alice.holding
    # Half a unit of the new numerator, and what float64 leaves of numbers of this size.
    rounding = (0.5 + 2.0**-51 * np.abs(gained[:-1])) / mass_of(after.holding)
    rounding += 2.0**-51 * np.abs(alice.estimate)
    assert (np.abs(after.estimate - alice.estimate) <= rounding).all()
    assert books_balance(after)
    is_light = mass_of(gained) > 0
    assert same(after.minted - alice.minted, gained if is_light else 0 * gained)
    assert same(after.clipped - alice.clipped, 0 * gained if is_light else -gained)
    assert keep_mass(after, kept_within) is after


@given(holdings, bounds)
def test_a_peer_keeps_its_mass_as_a_node_of_a_simulation_does(held, kept_within):
    at, mass = held
    alice = replace(peer(at=[0, 0]), holding=fixed(at * mass, mass))
    method = OnlinePushSum(learning_rate=0.1, bounds=kept_within)
    numbers = alice.holding / ONE
    row = State({"numerator": numbers[None, :-1], "mass": numbers[None, -1:]}, {})
    wanted = method.bounded(row).segments
    found = keep_mass(alice, kept_within).holding / ONE
    # The bound itself is a whole number of units of mass, and each weighs as much as the model.
    close = {"rtol": 1e-12, "atol": (1 + np.abs(at).max()) / ONE}
    np.testing.assert_allclose(found[:-1], wanted["numerator"][0], **close)
    np.testing.assert_allclose(found[-1:], wanted["mass"][0], **close)


# How many edges one sender has.


def few_edges(most=4):
    return replace(RULES, most_edges=most)


def test_a_sender_cannot_make_a_receiver_remember_edges_without_end():
    state, rules = peer(2), few_edges()
    for epoch in range(100, 0, -1):  # downwards: the newest is the one in use
        done = receive_push(state, ALICE, Hello(epoch, LIFE, 0, 5), rules)
        assert done.strike is None
        assert done.waits == (TOO_MANY if epoch <= 96 else "")
        state = done.state
    assert len(state.in_) == 4
    assert not list(answer(state, ALICE, Hello(1, LIFE, 0, 5), rules))[4:]
    # The known ones go on, and so do those of others.
    assert receive_push(state, ALICE, Hello(100, LIFE, 0, 6), rules).waits == ""
    assert receive_push(state, CAROL, Hello(1, LIFE, 0, 5), rules).waits == ""
