"""Where the segments of a payload lie in an amount, and what a push does to each kind."""

from __future__ import annotations

import numpy as np
import pytest
from builders import replace

from oneway.protocol.audit import expected_holding
from oneway.protocol.fixed_point import ONE, fixed, mass_of
from oneway.protocol.incoming import CARRIED, averaged, mint, objection
from oneway.protocol.layout import Layout
from oneway.protocol.messages import NO_PROGRESS, Data, Life
from oneway.protocol.outgoing import say
from oneway.protocol.rules import Rules
from oneway.protocol.state import InEdge, OutEdge, OutPhase, PeerState
from oneway.protocol.tags import NO_TAG
from oneway.protocol.transitions import push, receive_push
from oneway.records import Segment

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


def relayed(parcel: np.ndarray, count: float) -> tuple[PeerState, OutEdge]:
    """A peer with a parcel, and its edge to a receiver."""
    held = fixed(np.array([0.1, 0.1, *parcel, count]), 1.0)
    edge = OutEdge(b"b" * 32, 7, 1, OutPhase.OPEN, {0: 0 * held})
    state = mint(PeerState.new(5, 1, 1, RELAY), np.zeros(5))
    return replace(state, holding=held, out={(edge.receiver, 7): edge}), edge


def test_a_long_parcel_goes_in_parts_with_its_count_and_no_part_is_clipped():
    alice, edge = relayed(np.array([30.0, -40.0]), 12.0)
    alice = push(alice, {edge.receiver: 0.5}, RULES)
    sent = alice.out[edge.receiver, 7].sent[:-1] / ONE
    longest = CARRIED / 2 * RULES.clip
    assert np.linalg.norm(sent[2:4]) == pytest.approx(longest, rel=1e-9)
    assert sent[4] / 12.0 == pytest.approx(longest / 50.0, rel=1e-9)
    bob, sender = PeerState.new(5, 2, 1, RELAY), b"a" * 32
    bob = replace(bob, in_={(sender, 7): InEdge(sender, 7, 0 * bob.holding, session=1)})
    word = say(alice, alice.out[edge.receiver, 7], RULES)
    assert receive_push(bob, sender, word, RULES).clipped == 0.0


@pytest.mark.parametrize("pushes", [1, 2, 10**6])
def test_a_sender_cannot_fill_a_parcel_beyond_all_bounds(pushes):
    """Neither with one push nor by claiming that it is one of many."""
    bob, sender = mint(PeerState.new(5, 2, 1, RELAY), np.zeros(5)), b"a" * 32
    bob = replace(bob, in_={(sender, 7): InEdge(sender, 7, 0 * bob.holding)})
    total = fixed(np.array([0.0, 0.0, 900.0, 0.0, 1e-6]), 0.5)
    word = Data(7, Life(1, 0, False, NO_TAG), 2, 0, 0, pushes, total, NO_TAG, NO_PROGRESS)
    done = receive_push(bob, sender, word, RULES)
    kept = done.state.holding[2] / ONE
    assert kept == pytest.approx(min(900.0, min(pushes, 64) * CARRIED * RULES.clip), rel=1e-9)
    assert (done.clipped > 0) == (kept < 900.0)
    assert np.array_equal(done.state.holding, expected_holding(done.state))


def test_more_beside_the_model_than_a_peer_may_hold_is_dropped_and_booked():
    """Were it to wait, so would the mass that comes with it, also an honest sender's."""
    rules = replace(RULES, radius=10.0, mass_limit=2.0)
    bob, sender = PeerState.new(5, 2, 1, RELAY), b"a" * 32
    full = fixed(np.array([0.0, 0.0, 15.0, 0.0, 0.0]), 1.0)
    bob = replace(bob, in_={(sender, 7): InEdge(sender, 7, 0 * full)}, holding=full, minted=full)
    life = Life(1, 0, False, NO_TAG)
    for more, kept in ((4.0, 4.0), (6.0, 5.0), (-6.0, -6.0)):
        total = fixed(np.array([0.0, 0.0, more, 0.0, 0.0]), 0.5)
        word = Data(7, life, 2, 0, 0, 1, total, NO_TAG, NO_PROGRESS)
        done = receive_push(bob, sender, word, rules)
        assert (done.strike, done.waits) == (None, "")
        assert mass_of(done.state.in_[sender, 7].heard) == ONE // 2
        assert done.state.holding[2] == round((15.0 + kept) * ONE)
        assert np.array_equal(done.state.holding, expected_holding(done.state))


def test_what_travels_beside_the_model_is_bounded_too():
    fine = fixed(np.array([0.1, 0.1, 5.0, -5.0, 3.0]), 1.0)
    assert objection(fine, 1, RULES, RELAY) is None
    assert objection(fixed(np.array([0, 0, 1001.0, 0, 0]), 1.0), 1, RULES, RELAY) is not None
    assert objection(fixed(np.array([1001.0, 0, 0, 0, 0]), 1.0), 1, RULES, RELAY) is not None
    assert objection(fixed(np.array([999.0, 0]), 1e-6), 1, RULES, PULL) is None
    assert objection(fixed(np.array([1001.0, 0]), 1.0), 1, RULES, PULL) is not None
