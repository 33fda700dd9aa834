"""Edges that ended, and that both ends know of, become one sum on each side: the same one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.protocol.audit import books_of, discrepancy, expected_holding
from oneway.protocol.bookkeeping import RETIRED, is_retired, retire_in
from oneway.protocol.compact import FORMATS
from oneway.protocol.fixed_point import ONE, mass_of
from oneway.protocol.incoming import mint
from oneway.protocol.lives import life_of
from oneway.protocol.messages import NO_PROGRESS, Ack, Close, Closed, Data, Hello, Retired, State
from oneway.protocol.outgoing import answer, remind, report, say
from oneway.protocol.replies import receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import InEdge, OutPhase, PeerState, Settled, Told
from oneway.protocol.tags import NO_TAG, digest_of, sign
from oneway.protocol.transitions import distrust, push, receive_push, restart, trust
from oneway.testing.records import replace

EXAMPLES = settings(max_examples=100)
ALICE, BOB = b"a" * 32, b"b" * 32
MOST = 3
RULES = Rules(secret=b"alice's own secret" * 2, most_edges=MOST)
THEIRS = Rules(secret=b"what bob keeps for himself" * 2, most_edges=MOST)
DIM, BOOT = 2, 7 << 20


class Pair:
    """Alice, who sends to Bob, over one edge after the other."""

    def __init__(self):
        self.alice = mint(PeerState.new(DIM, 1, BOOT), np.array([2.0, -3.0]))
        self.bob = mint(PeerState.new(DIM, 2, BOOT), np.zeros(DIM))

    @property
    def edges(self):
        return sorted(self.alice.out)

    def tell(self, word, is_lost=False):
        """A push to Bob, and his answers to Alice."""
        done = receive_push(self.bob, ALICE, word, THEIRS)
        assert (done.strike, done.waits) == (None, "")
        self.bob = done.state
        if not is_lost:
            for reply in answer(self.bob, ALICE, word, THEIRS):
                self.reply(reply)

    def reply(self, reply):
        done = receive_reply(self.alice, BOB, reply, RULES)
        assert done.strike is None
        self.alice = done.state

    def speak(self):
        """What Alice has to say of all her edges, live and ended, and what Bob reports."""
        for name in self.edges:
            if name in self.alice.out:
                self.tell(say(self.alice, self.alice.out[name], RULES))
        for name, end in list(self.alice.settled.items()):
            if name[1] and name in self.alice.settled:
                self.tell(remind(self.alice, end, RULES))
        for name, edge in list(self.bob.in_.items()):
            if name[1]:
                self.reply(report(self.bob, edge, THEIRS))

    def cycle(self, share=0.2, pushes=2, epoch=1 << 20):
        """An edge from its beginning to its end."""
        self.alice = trust(self.alice, BOB, epoch)
        for _ in range(pushes):
            self.speak()
            self.alice = push(self.alice, {BOB: share}, RULES)
        self.speak()  # without a push: hello
        self.speak()  # and a first total, of nothing
        self.alice = distrust(self.alice, BOB)
        self.speak()
        self.speak()

    def check(self):
        for state in (self.alice, self.bob):
            assert np.array_equal(state.holding, expected_holding(state))
        assert not discrepancy([self.alice, self.bob]).any()
        assert books_of(self.alice).sent.get(BOB, 0) == books_of(self.bob).heard.get(ALICE, 0)

    def retired(self):
        return self.alice.settled.get((BOB, RETIRED)), self.bob.in_.get((ALICE, RETIRED))


def test_an_honest_sender_may_be_trusted_anew_without_end():
    pair = Pair()
    for number in range(100):
        pair.cycle()
        pair.check()
        assert len(pair.bob.in_) <= MOST + 1
        assert len(pair.alice.settled) <= MOST + 1
        # Give some back, so that there is always something to push.
        pair.alice = replace(pair.alice, holding=pair.alice.holding + ONE // 10)
        pair.alice = replace(pair.alice, minted=pair.alice.minted + ONE // 10)
        assert (pair.retired()[0] is None) == (number < MOST)
    ours, theirs = pair.retired()
    assert np.array_equal(ours.total, theirs.heard)
    assert ours.seq == theirs.seq == min(epoch for _, epoch in pair.bob.in_ if epoch) - (1 << 20)


steps = st.lists(
    st.sampled_from(
        ["trust", "push", "distrust", "say", "lose", "speak", "report", "crash", "late", "settle"]
    ),
    max_size=80,
)


@EXAMPLES
@given(steps, st.integers(0, 2**32))
def test_in_any_order_of_words_both_ends_keep_the_same_sum(events, seed):
    pair, late = Pair(), []
    rng = np.random.default_rng(seed)
    for event in events * 3:
        names = pair.edges
        word = None
        if names:
            word = say(pair.alice, pair.alice.out[names[rng.integers(len(names))]], RULES)
            late.append(word)
        if event == "trust":
            pair.alice = trust(pair.alice, BOB, int(rng.integers(2**40)))
        elif event == "push":
            pair.alice = push(pair.alice, {BOB: 0.3}, RULES)
        elif event == "distrust":
            pair.alice = distrust(pair.alice, BOB)
        elif event == "say" and word is not None:
            pair.tell(word)
        elif event == "lose" and word is not None:
            pair.tell(word, is_lost=True)
        elif event == "report" and pair.bob.in_:
            edges = [edge for edge in pair.bob.in_.values() if edge.epoch]
            if edges:
                pair.reply(report(pair.bob, edges[rng.integers(len(edges))], THEIRS))
        elif event == "crash":
            pair.alice = restart(pair.alice, pair.alice.boot)
        elif event == "late" and late:
            word = late[rng.integers(len(late))]
            if word.life.boot == pair.alice.boot:
                pair.tell(word, is_lost=bool(rng.integers(2)))
        elif event == "speak":
            pair.speak()
        elif event == "settle":
            pair.cycle(epoch=int(rng.integers(2**40)))
        for state in (pair.alice, pair.bob):
            assert np.array_equal(state.holding, expected_holding(state))
        in_, settled = len(pair.bob.in_), len(pair.alice.settled)
        assert in_ <= 2 * MOST + 1
        assert settled <= 2 * MOST + 2
    for _ in range(4):
        pair.speak()
    pair.check()


def ended(num_edges):
    pair = Pair()
    for _ in range(num_edges):
        pair.cycle()
    return pair


@pytest.mark.parametrize("kind", [Data, Hello, Close])
def test_late_words_about_a_retired_edge_change_nothing_and_are_answered(kind):
    pair = ended(MOST + 2)
    epoch = pair.retired()[1].seq
    total, before = np.array([1, 1, ONE]), pair.bob
    life = life_of(pair.alice, RULES)
    word = {
        Data: Data(epoch, life, 2, 2**60, 2**60, 2**60, total, NO_TAG, NO_PROGRESS),
        Hello: Hello(epoch, life, 2, 2**60),
        Close: Close(epoch, life, 2, 2**60, total, NO_TAG, NO_PROGRESS),
    }[kind]
    assert receive_push(pair.bob, ALICE, word, THEIRS).state is before
    [reply] = answer(pair.bob, ALICE, word, THEIRS)
    assert isinstance(reply, Retired)
    assert (reply.epoch, reply.until) == (epoch, epoch)
    alice = pair.alice
    pair.reply(reply)
    assert pair.alice is alice


@pytest.mark.parametrize("kind", [Data, Hello, Close])
def test_no_edge_has_the_epoch_of_the_retired(kind):
    for pair in (Pair(), ended(MOST + 2)):
        life, total = life_of(pair.alice, RULES), np.array([1, 1, ONE])
        word = {
            Data: Data(RETIRED, life, 2, 0, 0, 5 << 40, total, NO_TAG, NO_PROGRESS),
            Hello: Hello(RETIRED, life, 2, 5),
            Close: Close(RETIRED, life, 2, 5 << 40, total, NO_TAG, NO_PROGRESS),
        }[kind]
        done = receive_push(pair.bob, ALICE, word, THEIRS)
        assert done.strike is None
        assert done.state.in_ is pair.bob.in_
        assert done.state.holding is pair.bob.holding


@pytest.mark.parametrize("kind", [Ack, State, Closed, Retired])
def test_claims_about_retired_edges_change_nothing(kind):
    pair = ended(MOST + 2)
    end, _ = pair.retired()
    life, total = life_of(pair.bob, THEIRS), 0 * end.total
    for epoch in (RETIRED, end.seq):
        tag = sign(RULES.secret, 1, BOB, epoch, 5, digest_of(total))  # even with a proof
        word = {
            Ack: Ack(epoch, life, 5, digest_of(total), tag),
            State: State(epoch, life, 2, 5, 5, 5, total, tag, NO_PROGRESS, FORMATS),
            Closed: Closed(epoch, life, 5, total, tag, NO_PROGRESS),
            Retired: Retired(epoch, life, 2**50, NO_PROGRESS),
        }[kind]
        done = receive_reply(pair.alice, BOB, word, RULES)
        assert done.strike is None
        assert done.state is pair.alice


def test_an_edge_is_retired_only_after_all_that_are_older():
    """Its sender takes all up to the last retired one for retired, also those it has forgotten."""
    bob = PeerState.new(DIM, 2, BOOT)
    tolds = [Told.NOBODY] + [Told.SENDER] * (MOST + 1)
    edges = {
        (ALICE, epoch): InEdge(ALICE, epoch, np.array([0, 0, epoch]), 1, closed=True, told=told)
        for epoch, told in enumerate(tolds, start=1)
    }
    assert retire_in(replace(bob, in_=edges), ALICE, THEIRS).in_ == edges
    del edges[ALICE, 1]
    retired = retire_in(replace(bob, in_=edges), ALICE, THEIRS).in_
    assert retired.keys() == {(ALICE, epoch) for epoch in (RETIRED, 3, 4, 5)}
    assert (retired[ALICE, RETIRED].seq, mass_of(retired[ALICE, RETIRED].heard)) == (2, 2)
    assert is_retired(retired, ALICE, 2)
    assert not is_retired(retired, ALICE, 3)
    assert not is_retired(retired, BOB, 2)


def test_a_sender_that_lost_its_disk_may_be_trusted_anew_without_end():
    """It never says how the edge ended that it had before: there is nobody who knows."""
    pair = Pair()
    pair.alice = trust(pair.alice, BOB, 1 << 20)
    for _ in range(2):
        pair.speak()
        pair.alice = push(pair.alice, {BOB: 0.2}, RULES)
    pair.speak()
    lost, boot = pair.bob.in_[ALICE, 1 << 20], pair.alice.boot
    fresh = mint(PeerState.new(DIM, 77, BOOT), np.zeros(DIM))
    pair.alice = restart(fresh, boot + (1 << 20))
    for _ in range(10 * MOST):
        pair.cycle(pushes=1, share=0.01, epoch=pair.alice.boot)
        assert len(pair.bob.in_) <= 2 * MOST + 1
    assert pair.bob.in_[ALICE, 1 << 20] is lost
    # Younger ones are retired, this one is not; and their sum is no edge that is told of.
    assert not is_retired(pair.bob.in_, ALICE, 1 << 20)
    hello = Hello(1 << 20, life_of(pair.alice, RULES), 2, 5)
    told = [reply.epoch for reply in answer(pair.bob, ALICE, hello, THEIRS)]
    assert sorted(told) == sorted(epoch for _, epoch in pair.bob.in_ if epoch)
    sent, heard = books_of(pair.alice).sent[BOB], books_of(pair.bob).heard[ALICE]
    assert heard - sent == mass_of(lost.heard)


def test_a_sender_restored_from_before_the_end_of_a_retired_edge_hears_that_it_ended():
    """Exact as long as all that was handed over on that edge was acknowledged in the backup."""
    pair = Pair()
    pair.alice = trust(pair.alice, BOB, 1 << 20)
    for _ in range(3):
        pair.speak()
        pair.alice = push(pair.alice, {BOB: 0.2}, RULES)
    pair.speak()
    backup = pair.alice
    pair.alice = distrust(pair.alice, BOB)
    pair.speak()
    pair.speak()
    for _ in range(MOST + 1):
        pair.cycle(pushes=0)
    pair.check()
    assert is_retired(pair.bob.in_, ALICE, 1 << 20)
    pair.alice = restart(backup, 9 << 20)
    [name] = pair.edges
    assert pair.alice.out[name].phase is OutPhase.RESYNC
    for _ in range(3):
        pair.speak()
    assert not pair.alice.out
    pair.check()
    pair.cycle()  # the next epoch is beyond what is retired
    pair.check()
    assert pair.retired()[0].seq == pair.retired()[1].seq


@pytest.mark.parametrize("until", [1 << 20, 9 << 20])
def test_a_live_edge_that_its_receiver_has_retired_ends_with_what_was_acknowledged(until):
    pair = Pair()
    pair.alice = trust(pair.alice, BOB, 1 << 20)
    for share in (0.1, 0.2, 0.3):
        pair.speak()
        pair.alice = push(pair.alice, {BOB: share}, RULES)
    before, edge = pair.alice, pair.alice.out[BOB, 1 << 20]
    assert edge.mass_in_flight > 0
    pair.reply(Retired(1 << 20, life_of(pair.bob, THEIRS), until, NO_PROGRESS))
    assert not pair.alice.out
    [(name, end)] = pair.alice.settled.items()
    assert name == (BOB, RETIRED)
    assert end.seq == until
    assert np.array_equal(end.total, edge.confirmed)
    assert np.array_equal(pair.alice.holding - before.holding, edge.sent - edge.confirmed)
    assert np.array_equal(pair.alice.holding, expected_holding(pair.alice))


def test_no_new_edge_is_older_than_what_is_retired():
    sum_ = Settled(BOB, RETIRED, 2, 9 << 20, np.array([0, 0, 5]))
    alice = replace(Pair().alice, settled={(BOB, RETIRED): sum_})
    [(_, epoch)] = trust(alice, BOB, 5 << 20).out
    assert epoch == 10 << 20
    [(_, epoch)] = trust(alice, BOB, 11 << 20).out
    assert epoch == 11 << 20


def test_epochs_after_a_backup_are_beyond_what_the_receiver_has_retired():
    pair = Pair()
    young = pair.alice
    for _ in range(MOST + 2):
        pair.cycle(pushes=0, epoch=9 << 40)
    pair.check()
    pair.alice = restart(young, 9 << 20)
    for _ in range(4):
        pair.alice = trust(pair.alice, BOB, 5 << 20)
        pair.speak()
    [(_, epoch)] = pair.edges
    assert epoch > pair.retired()[1].seq
    assert pair.alice.out[BOB, epoch].phase is OutPhase.OPEN
