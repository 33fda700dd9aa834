"""What a receiver claims to have heard is believed if its sender remembers or once signed it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.protocol.audit import discrepancy, expected_holding
from oneway.protocol.compact import FORMATS
from oneway.protocol.fixed_point import ONE, mass_of, zeros
from oneway.protocol.incoming import mint
from oneway.protocol.messages import (
    NO_PROGRESS,
    Ack,
    Close,
    Closed,
    Data,
    Gone,
    Hello,
    Life,
    Stale,
    State,
)
from oneway.protocol.outgoing import answer, remind, report, say
from oneway.protocol.replies import receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import OutPhase, PeerState, Told
from oneway.protocol.tags import NO_TAG, SIZE, digest_of, is_mine, sign
from oneway.protocol.transitions import (
    distrust,
    leave,
    presume_dead,
    push,
    receive_push,
    restart,
    trust,
)
from oneway.testing.records import replace

EXAMPLES = settings(deadline=None, max_examples=80)
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
        return State(
            EPOCH, life(boot), 2, edge.session, BOOT, seq, total, tag, NO_PROGRESS, FORMATS
        )
    if kind is Closed:
        return Closed(EPOCH, life(boot), seq, total, tag, NO_PROGRESS)
    return Ack(EPOCH, life(boot), seq, digest_of(total), tag)


def resyncing(pushes=4):
    pair = Pair(pushes)
    pair.alice = restart(pair.alice, 9 << 20)
    return pair


# Tags.


@EXAMPLES
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


def test_numbers_do_not_run_into_each_other_in_a_tag():
    """Moving a byte from one field to its neighbour gives another statement."""
    digest = digest_of(zeros(2))
    one = sign(RULES.secret, 1, ALICE, 2, 3, digest)
    assert one != sign(RULES.secret, 2, ALICE, 1, 3, digest)
    assert one != sign(RULES.secret, 1, ALICE, 3, 2, digest)


def test_a_digest_is_of_the_bytes_little_endian_and_of_a_view_too():
    total = np.array([1, -2, 3])
    assert digest_of(total) == digest_of(total.astype(">i8"))
    assert digest_of(total) == digest_of(np.frombuffer(total.tobytes(), dtype=np.int64))
    assert digest_of(total) != digest_of(np.array([1, -2, 4]))


# Claims about an edge that the sender knows.

A_UNIT_OF_MASS, ANOTHER_MODEL = np.array([0, 0, 1]), np.array([1, -1, 0])

FALSE = {
    "more than was ever sent": lambda true: (true.seq + 1, true.total + ONE, true.tag),
    "more mass under the same number": lambda true: (
        true.seq,
        true.total + A_UNIT_OF_MASS,
        true.tag,
    ),
    "less mass under the same number": lambda true: (
        true.seq,
        true.total - A_UNIT_OF_MASS,
        true.tag,
    ),
    "another model": lambda true: (true.seq, true.total + ANOTHER_MODEL, true.tag),
    "the right total under another number": lambda true: (true.seq + 5, true.total, true.tag),
    "a number beyond all, without a tag": lambda true: (2**62 - 1, true.total, NO_TAG),
    "something under the number zero": lambda true: (0, true.total, true.tag),
    "a total of another size": lambda true: (true.seq, true.total[:-1], true.tag),
    "a larger model": lambda true: (true.seq, np.append(true.total, 0), true.tag),
    "nothing, in another size": lambda true: (0, zeros(7), true.tag),
}


@pytest.mark.parametrize("kind", [State, Closed])
@pytest.mark.parametrize("lie", FALSE.values(), ids=FALSE)
def test_a_claim_that_was_never_signed_changes_nothing_and_is_a_strike(kind, lie):
    pair = resyncing()
    before = pair.alice
    strike = pair.tell(claim(kind, pair, *lie(pair.signed(-1))))
    assert pair.alice is before
    assert strike.kind == "false claim"
    assert strike.sentence == "it claims to have heard what was never sent"


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


@EXAMPLES
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


def claimed_less(kind, seq, total, tag):
    """A pair in which Bob claims that this is all that he heard."""
    pair = unacknowledged()
    if kind is State:
        pair.alice = restart(pair.alice, 9 << 20)
    before = pair.alice
    assert pair.tell(claim(kind, pair, seq, total, tag)) is None
    assert np.array_equal(pair.alice.holding, expected_holding(pair.alice))
    return pair, before


def a_claim_of_less(which):
    """To have heard nothing needs no tag: nobody is robbed by it."""
    return (0, zeros(DIM), NO_TAG) if which is None else Pair().signed(which)


@pytest.mark.parametrize("which", [None, 0, 1, 2])
def test_who_claims_to_have_heard_less_gets_it_again_and_its_sender_gains_nothing(which):
    """A receiver that was restored from a backup holds no more than that; or it lies."""
    seq, total, tag = a_claim_of_less(which)
    pair, before = claimed_less(State, seq, total, tag)
    assert pair.claims == 1
    assert np.array_equal(pair.alice.holding, before.holding)
    edge, old = pair.edge, before.out[BOB, EPOCH]
    assert (edge.phase, edge.seq) == (OutPhase.OPEN, old.seq + 1)
    assert np.array_equal(edge.sent, old.sent)
    # What was acknowledged stays acknowledged, whatever comes next.
    assert np.array_equal(edge.confirmed, old.confirmed)
    again = claim(Ack, pair, seq, total, tag)
    assert pair.tell(again) is None
    assert pair.edge is edge
    for end in (
        presume_dead(pair.alice, (BOB, EPOCH)),
        receive_reply(pair.alice, BOB, claim(Closed, pair, seq, total, tag), RULES).state,
        receive_reply(pair.alice, BOB, Gone(EPOCH, life(), 2, NO_PROGRESS), RULES).state,
    ):
        assert np.array_equal(end.holding - before.holding, old.sent - old.confirmed)


@pytest.mark.parametrize("which", [None, 0, 1, 2])
def test_an_edge_that_ends_with_a_claim_of_less_returns_what_was_not_acknowledged(which):
    pair, before = claimed_less(Closed, *a_claim_of_less(which))
    assert pair.claims == 1
    old = before.out[BOB, EPOCH]
    assert np.array_equal(pair.alice.holding - before.holding, old.sent - old.confirmed)
    assert np.array_equal(pair.alice.settled[BOB, EPOCH].total, old.confirmed)


def test_a_claim_of_less_under_a_later_number_leaves_what_was_acknowledged_too():
    """Alice said it in a life that she forgot with a restored backup."""
    pair = resyncing()
    before, total = pair.alice, pair.signed(1).total
    tag = sign(RULES.secret, 1, BOB, EPOCH, 99, digest_of(total))
    assert pair.tell(claim(State, pair, 99, total, tag)) is None
    edge = pair.edge
    assert (edge.acked, edge.seq) == (100, 101)
    assert np.array_equal(edge.confirmed, before.out[BOB, EPOCH].confirmed)
    assert np.array_equal(pair.alice.holding, before.holding)
    # What Bob holds is no news, and no reason to ask again.
    assert pair.tell(claim(Ack, pair, 99, total, tag)) is None
    assert pair.edge is edge


def test_an_edge_over_which_nothing_arrived_leaves_nothing_to_remember():
    pair = Pair(0)
    pair.alice = distrust(push(pair.alice, {BOB: 0.5}, RULES), BOB)
    assert pair.tell(claim(Closed, pair, 0, zeros(DIM), NO_TAG)) is None
    assert (pair.alice.out, pair.alice.settled) == ({}, {})
    assert pair.alice.mass == 1.0


@EXAMPLES
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


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("lost", [1, 2, 3, 4])
def test_what_a_restored_receiver_forgot_is_given_again_to_the_unit(ends, lost):
    pair, backups = Pair(0), []
    for _ in range(4):
        backups.append(pair.bob)
        pair.alice = push(pair.alice, {BOB: 0.5}, RULES)
        pair.exchange()
    total = pair.edge.sent
    pair.bob = restart(backups[-lost], 9 << 20)
    if ends:
        pair.bob = leave(pair.bob)
    pair.exchange()
    for _ in range(3):
        if pair.alice.out:
            pair.exchange()
    if ends:
        pair.remind()
        assert pair.bob.in_[ALICE, EPOCH].told is Told.SENDER
    assert np.array_equal(pair.bob.in_[ALICE, EPOCH].heard, total)
    assert pair.claims == ends
    assert not discrepancy([pair.alice, pair.bob]).any()
    for one in (pair.alice, pair.bob):
        assert np.array_equal(one.holding, expected_holding(one))


@pytest.mark.parametrize("kind", [State, Closed])
def test_a_sender_that_forgot_what_it_sent_believes_its_own_tag(kind):
    """Restored from a backup, Alice hears how much more she had handed over, and counts it."""
    pair = Pair(pushes=1)
    backup = pair.alice
    for _ in range(3):
        pair.alice = push(pair.alice, {BOB: 0.5}, RULES)
        pair.exchange()
    pair.alice = restart(backup, 9 << 20)
    pair.tell(claim(kind, pair, *pair.signed(-1)))
    assert pair.claims == 1
    assert not discrepancy([pair.alice, pair.bob]).any()
    assert np.array_equal(pair.alice.holding, expected_holding(pair.alice))
    # She remembers to hold half a unit, and hears that 7/16 of one are Bob's: half she owes.
    assert mass_of(pair.alice.holding) == ONE // 4
    assert mass_of(pair.alice.owed) == ONE // 4 - ONE // 16


def test_an_acknowledgement_of_what_was_not_sent_is_a_reason_to_ask_and_moves_nothing():
    for seq, total in ((99, np.array([1, 2, 3])), (5, np.array([1, 2, 3]))):
        pair = Pair()
        before = pair.alice
        assert pair.tell(Ack(EPOCH, life(), seq, digest_of(total), NO_TAG)) is None
        assert pair.edge.phase is OutPhase.RESYNC
        assert np.array_equal(pair.alice.holding, before.holding)
        pair.exchange()
        assert pair.edge.phase is OutPhase.OPEN


def test_answers_from_an_older_session_or_another_ledger_change_nothing():
    pair = resyncing()
    good = claim(State, pair, *pair.signed(-1))
    before = pair.alice
    for change in ({"session": good.session - 1}, {"session": 0}, {"ledger": 77}):
        assert pair.tell(msgspec.structs.replace(good, **change)) is None
        assert pair.alice is before, change
    # A session that is still to come: my clock was set back, so I ask with a later one.
    pair.tell(msgspec.structs.replace(good, session=good.session + (5 << 20)))
    assert pair.edge.phase is OutPhase.RESYNC
    assert pair.edge.session > good.session + (5 << 20)
    assert np.array_equal(pair.alice.holding, before.holding)


def test_a_state_nobody_asked_for_changes_nothing():
    pair = Pair()
    before = pair.alice
    assert pair.tell(claim(State, pair, 0, zeros(DIM), NO_TAG)) is None
    assert pair.alice is before


# Claims about edges that are settled, or that the sender has forgotten.


def settled():
    pair = Pair()
    last = pair.signed(-1)
    pair.settle()
    assert not pair.alice.out
    return pair, last


def test_a_false_claim_about_a_settled_edge_changes_nothing_and_is_a_strike():
    pair, (seq, total, tag) = settled()
    before = pair.alice
    assert (
        pair.tell(Closed(EPOCH, life(), seq + 1, total + 1, tag, NO_PROGRESS)).kind == "false claim"
    )
    assert pair.tell(Closed(EPOCH, life(), 0, total, tag, NO_PROGRESS)).kind == "false claim"
    assert pair.alice is before


@pytest.mark.parametrize("boot", [BOOT, BOOT + 1])
def test_no_old_claim_about_a_settled_edge_brings_its_sender_anything(boot):
    """Neither in the same life nor in a newer one: the receiver hears how the edge ended."""
    pair, _ = settled()
    before = pair.alice
    assert pair.tell(Closed(EPOCH, life(boot), *pair.signed(1), NO_PROGRESS)) is None
    assert pair.tell(Closed(EPOCH, life(boot), 0, zeros(DIM), NO_TAG, NO_PROGRESS)) is None
    assert pair.alice.holding is before.holding
    assert pair.alice.settled is before.settled
    assert pair.claims == 0


def test_a_settled_edge_whose_sender_forgot_a_push_is_settled_anew():
    pair = Pair(3)
    pair.alice = push(pair.alice, {BOB: 0.5}, RULES)
    word = say(pair.alice, pair.edge, RULES)
    backup = pair.alice
    pair.settle()  # it is settled with what Bob acknowledged, and Bob closes
    before = pair.alice
    # A copy of Bob from another life had heard the last push.
    assert pair.tell(Closed(EPOCH, life(), word.seq, word.total, word.tag, NO_PROGRESS)) is None
    assert pair.claims == 1
    lost = backup.out[BOB, EPOCH].sent - backup.out[BOB, EPOCH].confirmed
    assert np.array_equal(before.holding - pair.alice.holding, lost)
    assert np.array_equal(pair.alice.settled[BOB, EPOCH].total, word.total)
    assert np.array_equal(pair.alice.holding, expected_holding(pair.alice))


def test_a_receiver_restored_from_before_the_end_hears_how_it_ended():
    pair = Pair(2)
    backup = pair.bob
    pair.alice = push(pair.alice, {BOB: 0.5}, RULES)
    pair.exchange()
    pair.settle()
    assert not discrepancy([pair.alice, pair.bob]).any()
    pair.bob = restart(backup, 9 << 20)
    assert discrepancy([pair.alice, pair.bob]).any()
    pair.remind()
    assert not discrepancy([pair.alice, pair.bob]).any()
    assert pair.bob.in_[ALICE, EPOCH].told is Told.SENDER


def test_words_other_than_closed_about_a_settled_edge_change_nothing():
    pair, (seq, total, tag) = settled()
    before = pair.alice
    for word in (
        Ack(EPOCH, life(), seq, digest_of(total), tag),
        State(EPOCH, life(), 2, 2**61, BOOT, seq, total, tag, NO_PROGRESS, FORMATS),
        Closed(EPOCH, life(), seq, total, tag, NO_PROGRESS),
        Stale(EPOCH, life()),
        Gone(EPOCH, life(), 2, NO_PROGRESS),
    ):
        assert pair.tell(word) is None
        assert pair.alice is before


@pytest.mark.parametrize("kind", [Ack, State, Closed])
def test_an_edge_older_than_the_backup_comes_back_by_its_tag_and_is_closed(kind):
    pair = Pair()
    word = claim(kind, pair, *pair.signed(-1))
    sent = pair.edge.sent
    pair.alice = mint(PeerState.new(DIM, 1, BOOT + 5), np.array([2.0, -3.0]))
    assert pair.tell(word) is None
    assert pair.edge.phase is OutPhase.CLOSING
    before = pair.alice.holding
    pair.exchange()  # Close, answered with what was heard
    assert np.array_equal(before - pair.alice.holding + pair.alice.owed, sent)
    assert pair.alice.mass == 0.5
    assert pair.claims == 2
    assert not discrepancy([pair.alice, pair.bob]).any()


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


# Lost disks, and what receivers report by themselves.


def test_a_lost_disk_returns_what_was_not_confirmed_and_only_to_who_named_that_ledger():
    pair = Pair()
    confirmed = pair.edge.confirmed
    pair.alice = push(pair.alice, {BOB: 0.5}, RULES)
    before = pair.alice
    assert pair.tell(Gone(EPOCH, life(), 77, NO_PROGRESS)) is None
    assert pair.alice is before
    unconfirmed = pair.edge.sent - confirmed
    assert pair.tell(Gone(EPOCH, life(), 2, NO_PROGRESS)) is None
    assert np.array_equal(pair.alice.holding - before.holding, unconfirmed)
    assert np.array_equal(pair.alice.settled[BOB, EPOCH].total, confirmed)
    assert np.array_equal(pair.alice.holding, expected_holding(pair.alice))


def test_a_new_edge_whose_receivers_ledger_is_unknown_cannot_be_declared_gone():
    alice = trust(mint(PeerState.new(DIM, 1, BOOT), np.zeros(DIM)), BOB, EPOCH)
    assert (
        receive_reply(alice, BOB, Gone(EPOCH, life(), 0, NO_PROGRESS), RULES).state.out is alice.out
    )


def test_a_hello_is_answered_for_every_edge_of_its_sender_and_of_nobody_else():
    bob = mint(PeerState.new(DIM, 2, BOOT), np.zeros(DIM))
    for sender, epoch in ((ALICE, 1), (ALICE, 2), (CAROL, 3)):
        bob = receive_push(bob, sender, Hello(epoch, life(), 0, 5 << 20), BOBS).state
        edge = bob.in_[sender, epoch]
        total = np.array([0, 0, 1])
        word = Data(epoch, life(), 0, edge.session, edge.granted, 1, total, NO_TAG, NO_PROGRESS)
        bob = receive_push(bob, sender, word, BOBS).state
    replies = answer(bob, ALICE, Hello(2, life(), 0, 5 << 20), BOBS)
    assert sorted(reply.epoch for reply in replies) == [1, 2]


def test_a_receiver_returns_the_senders_tag_with_all_it_says():
    pair = Pair()
    _, total, tag = pair.signed(-1)
    heard = pair.bob.in_[ALICE, EPOCH]
    told = report(pair.bob, heard, BOBS)
    assert isinstance(told, Ack)
    assert (told.tag, told.digest) == (tag, digest_of(total))
    closed = report(leave(pair.bob), replace(heard, closed=True), BOBS)
    assert isinstance(closed, Closed)
    assert closed.tag == tag
    # Once the sender knows how it ended, the total need not travel any more.
    known = report(pair.bob, replace(heard, closed=True, told=Told.SENDER), BOBS)
    assert isinstance(known, Ack)
    [state] = answer(pair.bob, ALICE, Hello(EPOCH, life(), 2, heard.session), BOBS)
    assert isinstance(state, State)
    assert state.tag == tag


@pytest.mark.parametrize("told", ["same", "other seq", "other total"])
def test_the_sender_is_known_to_know_when_it_says_itself_how_the_edge_ended(told):
    pair = Pair()
    heard = pair.bob.in_[ALICE, EPOCH]
    seq, total = heard.seq, heard.heard
    if told == "other seq":
        seq -= 1
    elif told == "other total":
        total = total + 1
    word = Close(EPOCH, life(), 2, seq, total, NO_TAG, NO_PROGRESS)
    edge = receive_push(pair.bob, ALICE, word, BOBS).state.in_[ALICE, EPOCH]
    assert edge.closed
    assert edge.told is (Told.SENDER if told == "same" else Told.NOBODY)
