"""Edges that ended, and that both ends know of, become one sum on each side: the same one."""

from __future__ import annotations

import numpy as np

from oneway.protocol.audit import books_of, discrepancy, expected_holding
from oneway.protocol.bookkeeping import RETIRED, is_retired
from oneway.protocol.incoming import mint
from oneway.protocol.outgoing import answer, remind, report, say
from oneway.protocol.replies import receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import OutPhase, PeerState
from oneway.protocol.transitions import distrust, push, receive_push, restart, trust

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
