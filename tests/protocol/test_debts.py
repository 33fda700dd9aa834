"""What a restored peer no longer has is owed: mass is never negative, and the books are exact."""

from __future__ import annotations

import numpy as np
import pytest
from builders import replace
from hypothesis import example, given
from hypothesis import strategies as st

from oneway.protocol.audit import expected_holding
from oneway.protocol.bookkeeping import booked, taken_in
from oneway.protocol.fixed_point import ONE, mass_of, zeros
from oneway.protocol.incoming import mint
from oneway.protocol.layout import Layout
from oneway.protocol.outgoing import answer, say
from oneway.protocol.replies import receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import PeerState
from oneway.protocol.transitions import leave, push, receive_push, trust
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
