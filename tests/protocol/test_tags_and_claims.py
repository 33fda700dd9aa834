"""What a receiver claims to have heard is believed if its sender remembers or once signed it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.protocol.audit import expected_holding
from oneway.protocol.fixed_point import mass_of, zeros
from oneway.protocol.incoming import mint
from oneway.protocol.messages import (
    NO_PROGRESS,
    Ack,
    Closed,
    Data,
    Life,
    State,
)
from oneway.protocol.outgoing import answer, remind, say
from oneway.protocol.replies import receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import PeerState
from oneway.protocol.tags import NO_TAG, SIZE, digest_of, is_mine, sign
from oneway.protocol.transitions import (
    distrust,
    presume_dead,
    push,
    receive_push,
    restart,
    trust,
)

ALICE, BOB, CAROL = (bytes([letter]) * 32 for letter in b"abc")
RULES = Rules(secret=b"alice's own secret" * 2)
BOBS = Rules(secret=b"what bob keeps for himself" * 2)
DIM, EPOCH, BOOT = 2, 11, 7 << 20

numbers = st.integers(0, 2**62 - 1)
totals = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3).map(
    lambda units: np.array(units, dtype=np.int64)
)


def life(boot=BOOT):
    return Life(boot, 0, False, NO_TAG)


class Signed(NamedTuple):
    seq: int
    total: np.ndarray
    tag: bytes


class Pair:
    """Alice, who sends to Bob, with everything she ever said."""

    def __init__(self, pushes=4):
        self.said, self.claims = [], 0
        self.alice = mint(PeerState.new(DIM, 1, BOOT), np.array([2.0, -3.0]))
        self.bob = mint(PeerState.new(DIM, 2, BOOT), np.zeros(DIM))
        self.alice = trust(self.alice, BOB, EPOCH)
        self.exchange()
        for _ in range(pushes):
            self.alice = push(self.alice, {BOB: 0.5}, RULES)
            self.exchange()

    @property
    def edge(self):
        return self.alice.out[BOB, EPOCH]

    def exchange(self):
        word = say(self.alice, self.edge, RULES)
        self.said.append(word)
        self.bob = receive_push(self.bob, ALICE, word, BOBS).state
        for reply in answer(self.bob, ALICE, word, BOBS):
            self.tell(reply)

    def tell(self, reply, by=BOB):
        done = receive_reply(self.alice, by, reply, RULES)
        self.alice = done.state
        self.claims += done.is_claim
        return done.strike

    def settle(self):
        """Alice closes the edge, and both come to know how it ended."""
        self.alice = distrust(self.alice, BOB)
        self.exchange()
        self.remind()

    def remind(self):
        word = remind(self.alice, self.alice.settled[BOB, EPOCH], RULES)
        self.bob = receive_push(self.bob, ALICE, word, BOBS).state

    def signed(self, index):
        """The `index`-th total that Alice sent, with her tag."""
        word = [word for word in self.said if isinstance(word, Data)][index]
        return Signed(word.seq, word.total, word.tag)


def claim(kind, pair, seq, total, tag, boot=BOOT):
    """Bob's statement that he heard this."""
    total = np.asarray(total)
    if kind is State:
        edge = pair.edge
        return State(EPOCH, life(boot), 2, edge.session, BOOT, seq, total, tag, NO_PROGRESS)
    if kind is Closed:
        return Closed(EPOCH, life(boot), seq, total, tag, NO_PROGRESS)
    return Ack(EPOCH, life(boot), seq, digest_of(total), tag)


def resyncing(pushes=4):
    pair = Pair(pushes)
    pair.alice = restart(pair.alice, 9 << 20)
    return pair


# Tags.


@given(numbers, numbers, numbers, totals, st.binary(min_size=32, max_size=32))
def test_a_tag_is_mine_for_what_i_signed_and_for_nothing_else(ledger, epoch, seq, total, receiver):
    digest = digest_of(total)
    tag = sign(RULES.secret, ledger, receiver, epoch, seq, digest)
    assert len(tag) == len(digest) == SIZE
    assert is_mine(tag, RULES.secret, ledger, receiver, epoch, seq, digest)
    other = digest_of(total ^ 1)
    for forged in (
        (bytes([tag[0] ^ 1]) + tag[1:], RULES.secret, ledger, receiver, epoch, seq, digest),
        (tag, BOBS.secret, ledger, receiver, epoch, seq, digest),
        (tag, RULES.secret, ledger ^ 1, receiver, epoch, seq, digest),
        (tag, RULES.secret, ledger, CAROL, epoch, seq, digest),
        (tag, RULES.secret, ledger, receiver, epoch ^ 1, seq, digest),
        (tag, RULES.secret, ledger, receiver, epoch, seq ^ 1, digest),
        (tag, RULES.secret, ledger, receiver, epoch, seq, other),
        (tag[:-1], RULES.secret, ledger, receiver, epoch, seq, digest),
    ):
        assert not is_mine(*forged)


# Claims about an edge that the sender knows.

A_UNIT_OF_MASS, ANOTHER_MODEL = np.array([0, 0, 1]), np.array([1, -1, 0])


@pytest.mark.parametrize("kind", [State, Closed])
@pytest.mark.parametrize("foreign", ["receiver", "epoch", "ledger", "secret", "number"])
def test_a_tag_made_for_something_else_is_no_proof(kind, foreign):
    pair = resyncing()
    before = pair.alice
    total = pair.signed(-1).total + 5 * A_UNIT_OF_MASS
    digest = digest_of(total)
    made = {
        "receiver": sign(RULES.secret, 1, CAROL, EPOCH, 99, digest),
        "epoch": sign(RULES.secret, 1, BOB, EPOCH + 1, 99, digest),
        "ledger": sign(RULES.secret, 5, BOB, EPOCH, 99, digest),
        "secret": sign(BOBS.secret, 1, BOB, EPOCH, 99, digest),
        "number": sign(RULES.secret, 1, BOB, EPOCH, 98, digest),
    }
    strike = pair.tell(claim(kind, pair, 99, total, made[foreign]))
    assert pair.alice is before
    assert strike is not None
    # The same claim with the right tag is believed: it is the tag that decides.
    right = sign(RULES.secret, 1, BOB, EPOCH, 99, digest)
    assert pair.tell(claim(kind, pair, 99, total, right)) is None
    assert pair.alice is not before


@given(
    st.sampled_from([State, Closed, Ack]),
    numbers,
    totals,
    st.binary(min_size=SIZE, max_size=SIZE),
    st.sampled_from(["open", "resync", "closing", "dead", "settled", "forgotten"]),
    st.sampled_from([0, BOOT, 2**61]),
)
def test_no_claim_without_a_tag_ever_takes_a_unit_from_a_sender(
    kind, seq, total, tag, situation, boot
):
    pair = Pair()
    if situation == "resync":
        pair.alice = restart(pair.alice, 9 << 20)
    elif situation == "closing":
        pair.alice = distrust(pair.alice, BOB)
    elif situation == "dead":
        pair.alice = presume_dead(push(pair.alice, {BOB: 0.5}, RULES), (BOB, EPOCH))
    word = claim(kind, pair, seq, total, tag, boot)
    if situation == "settled":
        pair.alice = distrust(pair.alice, BOB)
        pair.exchange()
        assert pair.alice.settled
    elif situation == "forgotten":
        pair.alice = mint(PeerState.new(DIM, 1, BOOT), np.zeros(DIM))
    before = pair.alice
    pair.tell(word)
    assert pair.alice.holding[-1] >= before.holding[-1]
    if seq != 0 or total.any():
        assert np.array_equal(pair.alice.holding, before.holding)
    assert np.array_equal(pair.alice.holding, expected_holding(pair.alice))


def unacknowledged():
    """A pair of which Bob never acknowledged the last push."""
    pair = Pair()
    pair.alice = push(pair.alice, {BOB: 0.5}, RULES)
    return pair


@given(st.lists(st.tuples(st.sampled_from([State, Closed, Ack]), st.integers(-1, 6)), max_size=12))
def test_no_order_of_true_old_claims_brings_or_costs_a_sender_anything(claims):
    """Alice never forgot anything: whatever Bob shows again, she knows what he acknowledged."""
    pair = unacknowledged()
    acknowledged = pair.edge.confirmed
    everything = pair.alice.holding + pair.edge.sent
    signed = [pair.signed(index) for index in range(4)]
    signed += [signed[-1]] * 3
    for kind, index in claims:
        if (BOB, EPOCH) not in pair.alice.out:
            break
        if kind is State:
            pair.alice = restart(pair.alice, 9 << 20)
        true = (0, zeros(DIM), NO_TAG) if index < 0 else signed[index]
        assert pair.tell(claim(kind, pair, *true)) is None
        held = pair.alice.holding
        assert 0 <= mass_of(held) <= mass_of(everything - acknowledged)
        assert not pair.alice.owed.any()
        assert np.array_equal(held, expected_holding(pair.alice))


# Claims about edges that are settled, or that the sender has forgotten.


@pytest.mark.parametrize("kind", [Ack, State, Closed])
@pytest.mark.parametrize("wrong", ["tag", "receiver", "ledger", "epoch", "number", "zero"])
def test_nobody_makes_a_peer_remember_an_edge_that_it_never_had(kind, wrong):
    """It is no strike either: a peer that lost its disk is told so by honest receivers."""
    pair = Pair()
    seq, total, tag = pair.signed(-1)
    word = claim(kind, pair, seq, total, tag)
    ledger = 5 if wrong == "ledger" else 1
    pair.alice = before = mint(PeerState.new(DIM, ledger, BOOT + 5), np.zeros(DIM))
    change = {
        "tag": {"tag": NO_TAG},
        "epoch": {"epoch": EPOCH + 1},
        "number": {"seq": seq + 1},
        "zero": {"seq": 0},
    }.get(wrong, {})
    strike = pair.tell(
        msgspec.structs.replace(word, **change), by=CAROL if wrong == "receiver" else BOB
    )
    assert strike is None
    assert (pair.alice.out, pair.alice.settled) == (before.out, before.settled)
    assert pair.alice.holding is before.holding
