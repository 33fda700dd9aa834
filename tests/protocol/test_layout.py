"""Where the segments of a payload lie in an amount, and what a push does to each kind."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.protocol.fixed_point import ONE, fixed, mass_of
from oneway.protocol.incoming import FULL, averaged, mint, objection
from oneway.protocol.layout import Layout
from oneway.protocol.messages import NO_PROGRESS, Data, Life
from oneway.protocol.outgoing import answer, say
from oneway.protocol.replies import receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import InEdge, OutEdge, OutPhase, PeerState
from oneway.protocol.tags import NO_TAG
from oneway.protocol.transitions import push, receive_push
from oneway.records import Segment
from oneway.testing.records import replace

RELAY = Layout.of(
    [
        Segment("numerator", "split"),
        Segment("mass", "split", is_vector=False),
        Segment("parcel", "forwarded"),
        Segment("count", "forwarded", is_vector=False),
    ],
    dim=2,
)
PULL = Layout.of([Segment("model", "copied")], dim=2)
RULES = Rules(secret=b"s" * 32, clip=0.5)
units = st.integers(-(2**60), 2**60)


def test_the_mass_is_last_whatever_its_place_in_the_payload():
    assert RELAY.width == 5
    assert RELAY.places == {
        "numerator": slice(0, 2),
        "parcel": slice(2, 4),
        "count": slice(4, 5),
    }
    assert RELAY.forwarded == (slice(2, 4), slice(4, 5))
    assert not RELAY.copies_model
    assert PULL.copies_model


@settings(deadline=None)
@given(
    st.lists(units, min_size=6, max_size=6),
    st.lists(st.floats(0.01, 1.0), min_size=1, max_size=5),
    st.floats(0.05, 0.95),
)
def test_a_split_keeps_its_share_and_a_forwarded_segment_goes_out_whole(
    amount, weights, given_away
):
    held = np.array(amount, dtype=np.int64)
    shares = [given_away * weight / sum(weights) for weight in weights]
    parts = [RELAY.portion(held, share, sum(shares)) for share in shares]
    kept = held - sum(parts)
    rounding = 2.0**-40 * np.abs(held) + len(shares)
    assert (
        np.abs(kept[[0, 1, 5]] - (1 - given_away) * held[[0, 1, 5]]) <= rounding[[0, 1, 5]]
    ).all()
    assert (np.abs(kept[2:5]) <= rounding[2:5]).all()


def test_copied_segments_are_in_no_books_and_travel_as_they_are():
    held = np.array([7, -8, 2**40])
    assert PULL.portion(held, 0.5, 0.5).tolist() == [0, 0, 2**39]
    assert PULL.booked(held).tolist() == [0, 0, 2**40]
    assert PULL.with_copies(np.array([1, 1, 9]), held).tolist() == [7, -8, 9]
    assert RELAY.booked(held) is held


def test_copies_are_averaged_with_ones_own_and_far_ones_are_moved_to_the_limit():
    state = mint(PeerState.new(2, 1, 1, PULL), np.array([1.0, 0.0]))
    near, far = fixed(np.array([1.2, 0.0])), fixed(np.array([101.0, 0.0]))
    edges = {
        (bytes([n]), 1): InEdge(bytes([n]), 1, heard, seq=1) for n, heard in enumerate((near, far))
    }
    closed = InEdge(b"c", 1, fixed(np.array([9.0, 9.0])), seq=1, closed=True)
    unheard = InEdge(b"d", 1, fixed(np.array([9.0, 9.0])))
    state = replace(state, in_={**edges, (b"c", 1): closed, (b"d", 1): unheard})
    # The limit is clip * (1 + |own|) = 1 away from 1.
    expected = (1.0 + 1.2 + 2.0) / 3
    np.testing.assert_allclose(averaged(state, RULES)[:2] / ONE, [expected, 0.0], atol=1e-11)
    assert averaged(state, RULES)[-1] == ONE


def test_what_one_push_may_not_carry_beside_the_model_goes_with_the_next():
    parcel, sender = 2.5 * RULES.radius, b"a" * 32
    alice = mint(PeerState.new(5, 1, 1, RELAY), np.zeros(5))
    held = fixed(np.array([0.1, 0.1, parcel, -parcel, 3.0]), 1.0)
    edge = OutEdge(b"b" * 32, 7, 1, OutPhase.OPEN, {0: 0 * held})
    alice = replace(alice, holding=held, out={(edge.receiver, 7): edge})
    bob = PeerState.new(5, 2, 1, RELAY)
    bob = replace(bob, in_={(sender, 7): InEdge(sender, 7, 0 * held, session=1)})
    for pushes in range(1, 5):
        alice = push(alice, {edge.receiver: 0.1}, RULES)
        sent = alice.out[edge.receiver, 7].sent
        assert abs(sent[2]) == abs(sent[3]) == min(pushes, 2.5) * RULES.radius * ONE
        assert np.array_equal(alice.holding + sent, held)
        word = say(alice, alice.out[edge.receiver, 7], RULES)
        done = receive_push(bob, sender, word, RULES)
        assert (done.strike, done.waits) == (None, "")
        bob = done.state
        [ack] = answer(bob, sender, word, RULES)
        alice = receive_reply(alice, edge.receiver, ack, RULES).state
    assert np.array_equal(bob.in_[sender, 7].heard, sent)


def test_more_beside_the_model_than_a_peer_may_hold_waits():
    rules = replace(RULES, radius=10.0, mass_limit=2.0)
    bob, sender = PeerState.new(5, 2, 1, RELAY), b"a" * 32
    full = fixed(np.array([0.0, 0.0, 15.0, 0.0, 0.0]), 1.0)
    bob = replace(bob, in_={(sender, 7): InEdge(sender, 7, 0 * full)}, holding=full, minted=full)
    life = Life(1, 0, False, NO_TAG)
    for more, waits in ((4.0, ""), (6.0, FULL), (-6.0, "")):
        total = fixed(np.array([0.0, 0.0, more, 0.0, 0.0]), 0.5)
        word = Data(7, life, 2, 0, 0, 1, total, NO_TAG, NO_PROGRESS)
        done = receive_push(bob, sender, word, rules)
        assert (done.strike, done.waits) == (None, waits)
        assert mass_of(done.state.in_[sender, 7].heard) == (0 if waits else ONE // 2)


def test_what_travels_beside_the_model_is_bounded_too():
    fine = fixed(np.array([0.1, 0.1, 5.0, -5.0, 3.0]), 1.0)
    assert objection(fine, 1, RULES, RELAY) is None
    assert objection(fixed(np.array([0, 0, 1001.0, 0, 0]), 1.0), 1, RULES, RELAY) is not None
    assert objection(fixed(np.array([1001.0, 0, 0, 0, 0]), 1.0), 1, RULES, RELAY) is not None
    assert objection(fixed(np.array([999.0, 0]), 1e-6), 1, RULES, PULL) is None
    assert objection(fixed(np.array([1001.0, 0]), 1.0), 1, RULES, PULL) is not None
