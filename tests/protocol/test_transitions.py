"""What one peer allows another: the window, what is absorbed, the clip, joining and leaving."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from oneway.protocol.audit import discrepancy, expected_holding
from oneway.protocol.fixed_point import ONE, fixed, mass_of, zeros
from oneway.protocol.messages import Ack, Close, Closed, Data, Gone, Hello, Stale
from oneway.protocol.outgoing import answer, say
from oneway.protocol.rules import Rules
from oneway.protocol.state import OutPhase, PeerState
from oneway.protocol.tags import NO_TAG
from oneway.protocol.transitions import (
    MOST_EDGES,
    descend,
    distrust,
    leave,
    mint,
    presume_dead,
    push,
    receive_push,
    receive_reply,
    restart,
    trust,
)

EXAMPLES = settings(deadline=None, max_examples=80)
ALICE, BOB, CAROL = (bytes([letter]) * 32 for letter in b"abc")
RULES = Rules(secret=b"alice's own secret" * 2)
DIM = 2
EPOCH = 11
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
    for reply in answer(receiver, key, word):
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


# The window.


@EXAMPLES
@given(
    st.integers(1, 20),
    st.lists(st.floats(0.01, 0.9), min_size=1, max_size=40),
    models,
)
def test_a_receiver_that_never_answers_gets_no_more_than_the_window(window, shares, at):
    rules = replace(RULES, window=window)
    alice, _ = connected(peer(at=at), peer(2), rules)
    kept = 1.0
    for number, share in enumerate(shares):
        before, alice = alice, pushed(alice, share, rules)
        if number >= window:
            assert alice is before
        elif before.mass > rules.mass_floor:
            kept *= 1.0 - share
    assert alice.out[name(BOB)].in_flight <= window
    assert alice.mass >= kept - 1e-12
    assert alice.mass >= (1 - max(shares)) ** window - 1e-12
    assert books_balance(alice)


@EXAMPLES
@given(st.integers(0, 8), st.integers(0, 8), models)
def test_presumed_dead_a_receiver_gives_back_exactly_what_it_never_acknowledged(heard, lost, at):
    alice, bob = connected(peer(at=at), peer(2))
    for _ in range(heard):
        alice, bob = deliver(pushed(alice), ALICE, bob, BOB)
    before = alice
    for _ in range(lost):
        alice = pushed(alice)
    alice = presume_dead(alice, name(BOB))
    assert same(alice.holding, before.holding)
    assert books_balance(alice)
    assert presume_dead(alice, name(BOB)).holding.tolist() == alice.holding.tolist()
    assert pushed(alice) is alice


def test_the_dead_who_had_heard_more_after_all_cost_exactly_that():
    alice, bob = connected(peer(at=[1, 2]), peer(2, at=[0, 0]))
    alice = pushed(pushed(alice))
    word = say(alice, alice.out[name(BOB)], RULES)
    bob = receive_push(bob, ALICE, word, RULES).state  # and its answer is lost
    alice = presume_dead(alice, name(BOB))
    assert mass_of(discrepancy([alice, bob])) == mass_of(bob.in_[ALICE, EPOCH].heard) > 0

    alice, bob = deliver(alice, ALICE, bob, BOB)  # Close, answered by Closed
    assert not alice.out
    assert alice.settled.keys() == {name(BOB)}
    assert not discrepancy([alice, bob]).any()


def test_a_late_acknowledgement_of_the_dead_takes_what_had_arrived():
    alice, bob = connected(peer(at=[1, 2]), peer(2, at=[0, 0]))
    alice = pushed(alice)
    word = say(alice, alice.out[name(BOB)], RULES)
    bob = receive_push(bob, ALICE, word, RULES).state
    [ack] = answer(bob, ALICE, word)
    alice = presume_dead(alice, name(BOB))
    alice = receive_reply(alice, BOB, ack, RULES).state
    assert not discrepancy([alice, bob]).any()
    assert alice.out[name(BOB)].phase is OutPhase.DEAD


# What is absorbed.


def data(state, seq, total, epoch=EPOCH):
    """A push that agrees with what the receiver knows of the session."""
    edge = state.in_[ALICE, epoch]
    total = np.array(total, dtype=np.int64)
    return Data(epoch, state.ledger, edge.session, edge.granted, seq, total, NO_TAG)


def listening(at=(0.5, -0.5), rules=RULES, seq=3, total=(7, -9, ONE // 2)):
    """Bob, who has heard a first total from Alice."""
    bob = peer(2, at=at)
    bob = receive_push(bob, ALICE, Hello(EPOCH, 0, 5 << 20), rules).state
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
    "the highest mass": ("mass above the cap", 4, [7, -9, HIGHEST]),
    "a unit above the cap": ("mass above the cap", 4, [7, -9, ONE // 2 + 16 * ONE + 1]),
    "a unit above two caps": ("mass above the cap", 5, [7, -9, ONE // 2 + 32 * ONE + 1]),
    "mass that claims to be many pushes": ("mass above the cap", 2**61, [7, -9, HIGHEST]),
    "outside the radius": ("outside the radius", 4, [7 + 1001 * ONE, -9, ONE // 2 + ONE]),
    "outside on the other side": ("outside the radius", 4, [7, -9 - 1001 * ONE, ONE // 2 + ONE]),
    "a numerator without mass": ("outside the radius", 4, [7 + 2000, -9, ONE // 2]),
    "a numerator of many pushes": ("outside the radius", 2**61, [2**61, -9, ONE // 2]),
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


def test_the_objection_says_what_is_wrong_in_numbers():
    bob = listening()
    sentences = [
        receive_push(bob, ALICE, data(bob, seq, total), RULES).strike.sentence
        for _, seq, total in (
            REFUSED["too many numbers"],
            REFUSED["no mass at all"],
            REFUSED["a unit above the cap"],
            REFUSED["outside the radius"],
        )
    ]
    assert sentences == [
        "its model has 3 parameters instead of 2",
        "its mass shrinks by 0.5",
        "it hands over a mass of 16 in 1 pushes; the cap for one is 16",
        "its estimate lies outside the radius of 1000",
    ]


@EXAMPLES
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
    bob = receive_push(bob, ALICE, Hello(EPOCH, 0, 5 << 20), rules).state
    word = data(bob, seq, total)
    if close:
        word = Close(EPOCH, 2, seq, word.total, NO_TAG)
    done = receive_push(bob, ALICE, word, rules)
    assert books_balance(done.state)
    if done.state.estimate is not None:
        # What rounding leaves open is far below anything that matters.
        assert np.abs(done.state.estimate).max() <= 1000.0 * (1 + 1e-4)
    if done.strike is not None:
        assert done.state is bob


@EXAMPLES
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


@pytest.mark.parametrize("seq", [0, 1, 2, 3])
def test_repeated_and_reordered_totals_change_nothing(seq):
    bob = listening()
    done = receive_push(bob, ALICE, data(bob, seq, [1, 1, 9 * ONE]), RULES)
    assert done.state is bob
    assert done.strike is None


def test_totals_under_another_ledger_session_or_life_change_nothing():
    bob = listening()
    good = data(bob, 4, [7, -9, ONE])
    for change in (
        {"ledger": bob.ledger + 1},
        {"session": good.session + 1},
        {"session": good.session - 1},
        {"granted": good.granted + 1},
        {"granted": 0},
        {"epoch": EPOCH + 1},
    ):
        word = msgspec.structs.replace(good, **change)
        done = receive_push(bob, ALICE, word, RULES)
        assert done.state is bob, change
        kind = Gone if "ledger" in change else Stale
        assert [type(reply) for reply in answer(bob, ALICE, word)] == [kind], change
    # Another sender with the same words is another edge.
    assert receive_push(bob, CAROL, good, RULES).state is bob
    assert receive_push(bob, ALICE, good, RULES).state is not bob


def test_a_closed_edge_takes_nothing_more_and_says_what_it_ended_with():
    bob = listening()
    bob = receive_push(bob, ALICE, Close(EPOCH, 2, 3, zeros(DIM), NO_TAG), RULES).state
    word = data(bob, 4, [7, -9, ONE])
    assert receive_push(bob, ALICE, word, RULES).state is bob
    [reply] = answer(bob, ALICE, word)
    assert isinstance(reply, Closed)
    assert (reply.seq, reply.total.tolist()) == (3, [7, -9, ONE // 2])


# The clip.


@EXAMPLES
@given(
    models,
    models,
    st.floats(0.02, 16.0),
    st.floats(0.02, 100.0),
    st.floats(1e-3, 10.0),
)
def test_the_clip_bounds_what_one_push_can_do_to_ones_own_estimate(
    own, theirs, own_mass, mass, clip
):
    rules = replace(RULES, clip=clip, mass_cap=100.0)
    own = 0.999 * own  # who lies outside the radius itself is not protected by it
    bob = replace(peer(2, at=own), holding=fixed(own * own_mass, own_mass))
    before = bob.estimate
    bob = receive_push(bob, ALICE, Hello(EPOCH, 0, 5 << 20), rules).state
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


def test_with_clipping_the_audit_is_exact_and_the_sender_is_acknowledged():
    rules = replace(RULES, clip=0.1)
    alice, bob = connected(peer(at=[500, -3]), peer(2, at=[0, 1]), rules)
    for _ in range(5):
        alice = descend(alice, np.array([0.1, 0.2]))
        alice, bob = deliver(pushed(alice, rules=rules), ALICE, bob, BOB, rules)
    assert alice.out[name(BOB)].in_flight == 0
    assert bob.clipped.any()
    assert mass_of(bob.clipped) == 0
    assert not discrepancy([alice, bob]).any()
    assert books_balance(alice, bob)


# Joining, leaving, starting anew.


@EXAMPLES
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


def test_a_newcomer_mints_inside_the_radius_even_if_rounding_says_otherwise():
    bob = receive_push(peer(2), ALICE, Hello(EPOCH, 0, 5 << 20), RULES).state
    done = receive_push(bob, ALICE, data(bob, 1, [1999, -1999, 1]), RULES)
    assert done.strike is None
    assert done.state.minted.tolist() == [1000 * ONE, -1000 * ONE, ONE]


@EXAMPLES
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
            for reply in answer(done.state, ALICE, word):
                alice = receive_reply(alice, key, reply, RULES).state
    assert not alice.holding.any()
    heard = [other.in_[ALICE, EPOCH].heard for other in others.values()]
    assert same(sum(heard, start=zeros(DIM)), before)
    assert not any(edge.in_flight for edge in alice.out.values())


def test_who_leaves_takes_nothing_more_and_opens_nothing():
    bob = leave(listening())
    assert receive_push(bob, ALICE, data(bob, 4, [7, -9, ONE]), RULES).state is bob
    assert trust(bob, CAROL, 1) is bob
    bob = receive_push(bob, CAROL, Hello(EPOCH, 0, 5 << 20), RULES).state
    [reply] = answer(bob, CAROL, Hello(EPOCH, 0, 5 << 20))
    assert isinstance(reply, Closed)
    assert reply.seq == 0


def test_who_leaves_with_nobody_to_give_to_keeps_what_it_has():
    alice = leave(peer(at=[1, 2]))
    assert push(alice, {BOB: 1.0}, RULES) is alice


def test_distrust_returns_what_did_not_arrive_and_not_a_unit_more():
    alice, bob = connected(peer(at=[3, 4]), peer(2, at=[0, 0]))
    alice, bob = deliver(pushed(alice), ALICE, bob, BOB)
    alice = distrust(pushed(pushed(alice)), BOB)  # two that never leave
    assert pushed(alice) is alice
    alice, bob = deliver(alice, ALICE, bob, BOB)
    assert not alice.out
    assert same(alice.settled[name(BOB)].total, bob.in_[ALICE, EPOCH].heard)
    assert not discrepancy([alice, bob]).any()


def test_an_edge_that_was_never_used_is_closed_without_a_word():
    alice = distrust(trust(peer(at=[0, 0]), BOB, EPOCH), BOB)
    assert not alice.out
    assert not alice.settled


def test_trust_opens_one_edge_and_a_new_one_only_when_none_is_live():
    alice, _ = connected(peer(at=[0, 0]), peer(2))
    assert trust(alice, BOB, 12) is alice
    alice = presume_dead(pushed(alice), name(BOB))
    assert set(trust(alice, BOB, 12).out) == {name(BOB), name(BOB, 12)}


@EXAMPLES
@given(st.integers(0, 2**61), st.integers(0, 2**61))
def test_every_start_is_a_later_life_whatever_the_clock_says(before, clock):
    alice, bob = connected(replace(peer(at=[1, 1]), boot=before), peer(2))
    alice, bob = deliver(pushed(alice), ALICE, bob, BOB)
    again = restart(alice, clock)
    assert again.boot > alice.boot
    edge = again.out[name(BOB)]
    assert edge.phase is OutPhase.RESYNC
    assert edge.session > alice.out[name(BOB)].session
    assert pushed(again) is again  # nothing is handed over before the receiver has told
    again, bob = deliver(again, ALICE, bob, BOB)
    assert again.out[name(BOB)].phase is OutPhase.OPEN
    assert not discrepancy([again, bob]).any()
    assert books_balance(again, bob)


def test_a_start_leaves_closing_and_dead_edges_as_they_are():
    alice, _ = connected(peer(at=[1, 1]), peer(2))
    closing = distrust(pushed(alice), BOB)
    dead = presume_dead(pushed(alice), name(BOB))
    assert restart(closing, 9 << 20).out[name(BOB)].phase is OutPhase.CLOSING
    assert restart(dead, 9 << 20).out[name(BOB)].phase is OutPhase.DEAD


@pytest.mark.parametrize("step", [np.nan, np.inf, -np.inf, 1e300, 2.0**22])
def test_a_step_that_cannot_be_represented_is_refused(step):
    with pytest.raises(OverflowError):
        descend(peer(at=[0, 0]), np.array([0.0, step]))


def test_a_peer_at_the_floor_of_mass_or_outside_the_radius_keeps_what_it_has():
    alice, _ = connected(peer(at=[1, 1]), peer(2))
    thin = replace(alice, holding=fixed(np.array([0.0, 0.0]), 0.00999))
    assert pushed(thin) is thin
    wild = replace(alice, holding=fixed(np.array([1000.1, 0.0]), 1.0))
    assert pushed(wild) is wild


def test_an_acknowledgement_that_was_overtaken_changes_nothing():
    alice, bob = connected(peer(at=[1, 1]), peer(2))
    first, bob = deliver(pushed(alice), ALICE, bob, BOB)
    [early] = answer(bob, ALICE, say(first, first.out[name(BOB)], RULES))
    assert isinstance(early, Ack)
    second, bob = deliver(pushed(first), ALICE, bob, BOB)
    assert receive_reply(second, BOB, early, RULES).state is second


def test_an_acknowledgement_from_an_earlier_life_is_a_reason_to_ask():
    alice, bob = connected(peer(at=[1, 1]), peer(2))
    alice = pushed(alice)
    word = say(alice, alice.out[name(BOB)], RULES)
    bob = receive_push(bob, ALICE, word, RULES).state
    [early] = answer(bob, ALICE, word)
    [late] = answer(replace(bob, boot=bob.boot + 1), ALICE, word)
    alice = receive_reply(alice, BOB, late, RULES).state
    before = pushed(alice)
    after = receive_reply(before, BOB, early, RULES).state
    assert after.out[name(BOB)].phase is OutPhase.RESYNC
    assert after.out[name(BOB)].their_boot == late.boot
    assert same(after.holding, before.holding)


def test_a_sender_cannot_make_a_receiver_remember_edges_without_end():
    state, rules = PeerState.new(dim=2, ledger=7, boot=1), Rules(secret=bytes(32))
    for epoch in range(1, MOST_EDGES + 1):
        state = receive_push(state, b"a" * 32, Hello(epoch, 0, 5), rules).state
    refused = receive_push(state, b"a" * 32, Hello(MOST_EDGES + 1, 0, 5), rules)
    assert refused.state is state
    assert refused.strike is not None
    assert refused.strike.kind == "too many edges"
    assert receive_push(state, b"a" * 32, Hello(1, 0, 6), rules).strike is None
    assert receive_push(state, b"b" * 32, Hello(1, 0, 5), rules).strike is None


def test_a_close_with_another_dimension_is_a_strike_and_leaves_nothing_behind():
    state, rules = PeerState.new(dim=2, ledger=7, boot=1), Rules(secret=bytes(32))
    done = receive_push(state, b"a" * 32, Close(1, 0, 1, zeros(5), NO_TAG), rules)
    assert done.state is state
    assert done.strike is not None
    assert done.strike.kind == "dimension"
