"""What a restored peer no longer has is owed: mass is never negative, and the books are exact."""

from __future__ import annotations

import numpy as np
import pytest
from builders import replace
from hypothesis import example, given
from hypothesis import strategies as st

from oneway.protocol.audit import books_of, discrepancy, expected_holding
from oneway.protocol.bookkeeping import booked, paid, taken_in
from oneway.protocol.fixed_point import ONE, mass_of, zeros
from oneway.protocol.incoming import mint
from oneway.protocol.layout import Layout
from oneway.protocol.outgoing import answer, say
from oneway.protocol.replies import receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import PeerState
from oneway.protocol.transitions import leave, push, receive_push, restart, trust
from oneway.records import Segment

ALICE, BOB, CAROL = (bytes([letter]) * 32 for letter in b"abc")
DIM, BOOT, EPOCH = 2, 7 << 20, 11
COPIED = Layout.of([Segment("model", "copied"), Segment("sum", "split", is_vector=False)], dim=1)

numbers = st.integers(-(2**58), 2**58)
masses = st.integers(0, 2**48) | st.integers(0, 5)
layouts = st.sampled_from([Layout(), COPIED])


def units(one, two, mass):
    return np.array([one, two, mass], dtype=np.int64)


def holding(amount, layout=None):
    return replace(PeerState.new(DIM, 1, BOOT, layout), holding=amount, minted=amount)


def net(state):
    """What a peer would hold if it could be less than nothing, and if nothing were burned."""
    return state.layout.booked(state.holding - state.owed + state.clipped)


def check(state):
    assert mass_of(state.holding) >= 0
    assert mass_of(state.owed) >= 0
    assert mass_of(state.owed) > 0 or not state.owed.any()
    assert np.array_equal(state.layout.booked(state.owed), state.owed)


happenings = st.lists(
    st.tuples(st.sampled_from(["gain", "loss", "inflow"]), numbers, numbers, masses), max_size=20
)


@given(numbers, numbers, masses, happenings, layouts)
@example(0, 0, 1, [("loss", 5, 5, 1), ("loss", 5, 5, 1), ("inflow", 1, 1, 1)], Layout())
def test_whatever_comes_and_goes_the_books_are_exact_and_mass_is_never_negative(
    one, two, mass, events, layout
):
    state = holding(units(one, two, mass), layout)
    copies = state.holding
    for event, z, w, moved in events:
        amount = layout.booked(units(z, w, moved))
        before = state
        if event == "inflow":
            state, sign = taken_in(state, amount), 1
        else:
            sign = 1 if event == "gain" else -1
            state = booked(state, sign * units(z, w, moved))
        check(state)
        assert np.array_equal(net(state) - net(before), sign * amount)
        # What is copied is in no books.
        assert np.array_equal(layout.with_copies(state.holding, copies), state.holding)


@given(numbers, masses, masses, masses)
def test_a_loss_takes_half_of_what_is_held_at_most_and_the_rest_is_owed(z, held, lost, owed):
    state = replace(holding(units(z, 0, held)), owed=units(0, 0, owed))
    after = booked(state, -units(z, z, lost))
    assert mass_of(after.holding) >= held - held // 2
    if lost <= held // 2:
        assert mass_of(after.holding) == held - lost
        assert mass_of(after.owed) == owed
    else:
        assert mass_of(after.owed) == owed + lost - min(held // 2, owed + lost)
    check(after)


@given(numbers, masses, masses, masses)
def test_of_an_inflow_half_pays_for_debts_and_all_above_one_unit_but_half_a_unit_is_kept(
    z, held, came, owed
):
    state = replace(holding(units(z, 0, held)), owed=units(z, 7, owed) if owed else zeros(DIM))
    after = taken_in(state, units(0, z, came))
    part = min(owed, max(0, min(came // 2, held + came - ONE // 2), held + came - ONE))
    assert mass_of(after.owed) == owed - part
    assert mass_of(after.holding) == held + came - part
    check(after)


@given(masses, numbers, st.integers(0, 2**50))
def test_a_payment_is_of_mass_and_leaves_the_estimate_as_it_is(owed, z, most):
    held = units(2**52, -(2**52), 2**50)
    state = replace(holding(held), owed=units(z, -z, owed) if owed else zeros(DIM))
    after = paid(state, most)
    assert mass_of(state.owed - after.owed) == min(most, owed)
    left = 2**50 - min(most, owed)
    assert mass_of(after.holding) == left
    assert np.abs(after.holding[:-1] - np.array([4 * left, -4 * left])).max() <= 8
    assert np.array_equal(net(after), net(state))
    check(after)


@given(masses, masses, masses)
def test_what_was_burned_pays_for_what_turns_out_to_be_owed(owed, burned, held):
    lost = units(0, 0, burned)
    state = holding(units(0, 0, held))
    state = replace(state, clipped=lost, minted=state.minted + lost)
    after = booked(state, -units(3, 5, owed))
    if owed > held // 2:
        assert mass_of(after.owed) == max(0, owed - burned - held // 2)
        assert mass_of(after.clipped) == max(0, burned - owed)
        assert owed > burned or np.array_equal(after.holding, state.holding)
    assert np.array_equal(net(after) - net(state), -units(3, 5, owed))
    check(after)


@given(st.integers(1, 2**44), numbers, st.integers(2, 2**44))
def test_a_debt_is_paid_after_finitely_many_inflows(owed, z, came):
    state = replace(holding(zeros(DIM)), owed=units(z, z, owed))
    for _ in range(60):
        before = mass_of(state.owed)
        state = taken_in(state, units(0, 0, came))
        check(state)
        to_spare = max(0, mass_of(state.holding) + before - mass_of(state.owed) - ONE // 2)
        assert before - mass_of(state.owed) >= min(before, came // 2, to_spare)
        came *= 2  # only so that the test ends soon
        if not state.owed.any():
            break
    assert not state.owed.any()


@pytest.mark.parametrize("owed", [ONE // 2, ONE + 1, 3 * ONE])
def test_who_leaves_pays_with_all_it_has_and_then_has_nothing(owed):
    """Also if that is not enough: a numerator without mass would stay for ever."""
    rules = Rules(secret=b"s" * 32)
    alice = trust(mint(PeerState.new(DIM, 1, BOOT), np.array([2.0, -3.0])), BOB, EPOCH)
    bob = PeerState.new(DIM, 2, BOOT)
    alice = replace(alice, owed=units(5 * owed, owed, owed))
    alice = leave(replace(alice, minted=alice.minted - alice.owed))
    for _ in range(3):
        alice = push(alice, {BOB: 1.0}, rules)
        check(alice)
        assert np.array_equal(alice.holding, expected_holding(alice))
        word = say(alice, alice.out[BOB, EPOCH], rules)
        bob = receive_push(bob, ALICE, word, rules).state
        for reply in answer(bob, ALICE, word, rules):
            alice = receive_reply(alice, BOB, reply, rules).state
    assert not alice.holding.any()
    assert mass_of(alice.owed) == max(0, owed - ONE)
    assert mass_of(bob.in_[ALICE, EPOCH].heard) == max(0, ONE - owed)


# In a network: a backup from before several pushes.


class Trio:
    """Alice pushes to Bob and Carol, who push back to her."""

    def __init__(self):
        self.rules = {key: Rules(secret=key * 2) for key in (ALICE, BOB, CAROL)}
        self.peers = {
            key: mint(PeerState.new(DIM, index + 1, BOOT), np.array([index, -2.0]))
            for index, key in enumerate(self.rules)
        }
        self.exchange()

    def exchange(self):
        for key in self.peers:
            for other in self.peers:
                if key != other and ALICE in (key, other):
                    self.peers[key] = trust(self.peers[key], other, EPOCH)
                    self.deliver(key, other)

    def deliver(self, key, other):
        for edge in [edge for edge in self.peers[key].out.values() if edge.receiver == other]:
            word = say(self.peers[key], edge, self.rules[key])
            done = receive_push(self.peers[other], key, word, self.rules[other])
            assert done.strike is None
            self.peers[other] = done.state
            for reply in answer(self.peers[other], key, word, self.rules[other]):
                done = receive_reply(self.peers[key], other, reply, self.rules[key])
                assert done.strike is None
                self.peers[key] = done.state
        for state in self.peers.values():
            check(state)
            assert np.array_equal(state.holding, expected_holding(state))
            assert books_of(state).balances

    def push(self, key, share):
        shares = {other: share for other in self.peers if other != key}
        self.peers[key] = push(self.peers[key], shares, self.rules[key])
        for other in shares:
            self.deliver(key, other)


@given(
    st.lists(st.tuples(st.sampled_from([ALICE, BOB, CAROL]), st.floats(0.05, 0.45)), max_size=25),
    st.lists(st.integers(0, 24), min_size=1, max_size=3),
)
def test_after_any_old_backup_no_mass_is_negative_and_in_the_end_none_is_owed(pushes, restored):
    trio, backups = Trio(), []
    for number, (key, share) in enumerate(pushes):
        backups.append(trio.peers[ALICE])
        trio.push(key, share)
        if number in restored:
            old = backups[number // 2]
            boot = trio.peers[ALICE].boot + (1 << 20)
            trio.peers[ALICE] = restart(old, boot)
            trio.exchange()
    for _ in range(3):
        trio.exchange()
    assert not discrepancy(trio.peers.values()).any()
    for _ in range(60):
        for key in (BOB, CAROL):
            trio.push(key, 0.4)
    assert not trio.peers[ALICE].owed.any()
    assert not discrepancy(trio.peers.values()).any()
    assert sum(mass_of(state.holding) for state in trio.peers.values()) == 3 * ONE
