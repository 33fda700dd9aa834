"""How an edge to a peer that left has ended: kept by its neighbours, believed by its tag alone."""

from __future__ import annotations

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oneway.protocol.audit import discrepancy, expected_holding
from oneway.protocol.fixed_point import ONE
from oneway.protocol.incoming import mint
from oneway.protocol.outgoing import answer, receipts, say
from oneway.protocol.replies import receive_receipt, receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import OutPhase, PeerState, Told
from oneway.protocol.tags import SIZE, digest_of, sign
from oneway.protocol.transitions import (
    distrust,
    leave,
    presume_dead,
    push,
    receive_push,
    restart,
    trust,
)

ALICE, BOB, CAROL, DAVE = (bytes([letter]) * 32 for letter in b"abcd")
RULES = {key: Rules(secret=key * 2) for key in (ALICE, BOB, CAROL, DAVE)}
DIM, EPOCH, BOOT = 2, 11, 7 << 20


class Scene:
    """Alice sends to Bob and hears no acknowledgement of her last pushes; then Bob leaves."""

    def __init__(self, lost=2):
        self.peers = {
            key: mint(PeerState.new(DIM, index + 1, BOOT), np.array([index, -3.0]))
            for index, key in enumerate(RULES)
        }
        self.peers[ALICE] = trust(self.peers[ALICE], BOB, EPOCH)
        for number in range(3 + lost):
            word = say(self.peers[ALICE], self.peers[ALICE].out[BOB, EPOCH], RULES[ALICE])
            bob = receive_push(self.peers[BOB], ALICE, word, RULES[BOB]).state
            for reply in answer(bob, ALICE, word, RULES[BOB]):
                if number < 3:
                    done = receive_reply(self.peers[ALICE], BOB, reply, RULES[ALICE])
                    self.peers[ALICE] = done.state
            self.peers[BOB] = bob
            if number < 2 + lost:
                shares = {BOB: 0.1 + 0.1 * number}
                self.peers[ALICE] = push(self.peers[ALICE], shares, RULES[ALICE])
        self.peers[BOB] = leave(bob)

    def receipts_of(self, key):
        return list(receipts(self.peers[key], key, RULES[key]))

    def tell(self, teller, key, receipt):
        before = self.peers[key]
        self.peers[key] = receive_receipt(before, key, teller, receipt, RULES[key])
        return self.peers[key] is not before

    @property
    def pair(self):
        return [self.peers[ALICE], self.peers[BOB]]

    def is_exact(self):
        books = all(np.array_equal(one.holding, expected_holding(one)) for one in self.pair)
        return books and not discrepancy(self.pair).any()


def in_phase(phase):
    scene = Scene()
    alice = scene.peers[ALICE]
    if phase is OutPhase.DEAD:
        alice = presume_dead(alice, (BOB, EPOCH))
    elif phase is OutPhase.CLOSING:
        alice = distrust(alice, BOB)
    elif phase is OutPhase.RESYNC:
        alice = restart(alice, 9 << 20)
    scene.peers[ALICE] = alice
    return scene


changes = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"digest": st.binary(min_size=SIZE, max_size=SIZE)}),
    st.fixed_dictionaries({"tag": st.binary(min_size=SIZE, max_size=SIZE)}),
    st.fixed_dictionaries({"seq": st.integers(0, 2**62 - 1) | st.integers(0, 8)}),
    st.fixed_dictionaries({"epoch": st.integers(0, 2**62 - 1)}),
    st.fixed_dictionaries({"receiver": st.sampled_from([CAROL, DAVE])}),
    st.fixed_dictionaries({"sender": st.sampled_from([CAROL, DAVE])}),
    st.sampled_from(["other total", "other receiver's tag", "other ledger's tag"]).map(
        lambda lie: {"lie": lie}
    ),
)


def changed(receipt, change, scene):
    lie = change.get("lie")
    if lie is None:
        return msgspec.structs.replace(receipt, **change)
    other = digest_of(np.array([1, 2, ONE]))
    known = digest_of(scene.peers[BOB].in_[ALICE, EPOCH].heard)
    tag = {
        # As Alice may have said in a life that she forgot with a restored backup.
        "other total": (other, sign(ALICE * 2, 1, BOB, EPOCH, receipt.seq, other)),
        "other receiver's tag": (known, sign(ALICE * 2, 1, CAROL, EPOCH, receipt.seq, known)),
        "other ledger's tag": (known, sign(ALICE * 2, 5, BOB, EPOCH, receipt.seq, known)),
    }[lie]
    return msgspec.structs.replace(receipt, digest=tag[0], tag=tag[1])


@given(
    st.sampled_from(OutPhase),
    st.lists(st.tuples(st.sampled_from([BOB, CAROL, DAVE]), changes), max_size=8),
)
def test_whoever_presents_what_the_books_change_once_and_for_the_truth_only(phase, presented):
    scene = in_phase(phase)
    [true] = scene.receipts_of(BOB)
    settled = 0
    for teller, change in presented:
        receipt = changed(true, change, scene)
        before = scene.peers[ALICE]
        scene.tell(teller, ALICE, receipt)
        after = scene.peers[ALICE]
        if after.out is not before.out:
            assert parts(receipt) == parts(true)
            settled += 1
            assert scene.is_exact()
        else:
            assert after.holding is before.holding
            assert after.settled is before.settled
        assert np.array_equal(after.holding, expected_holding(after))
    assert settled <= 1
    shown = [changed(true, change, scene) for _, change in presented]
    assert settled == any(parts(receipt) == parts(true) for receipt in shown)


@given(st.lists(st.tuples(st.sampled_from([ALICE, CAROL, DAVE]), changes), max_size=8))
def test_the_one_who_leaves_believes_in_a_witness_of_the_truth_only(echoes):
    scene = Scene()
    [true] = scene.receipts_of(BOB)
    for teller, change in echoes:
        receipt = changed(true, change, scene)
        before = scene.peers[BOB]
        scene.tell(teller, BOB, receipt)
        told = scene.peers[BOB].in_[ALICE, EPOCH].told
        if told is not before.in_[ALICE, EPOCH].told:
            assert parts(receipt) == parts(true)
            assert told is Told.WITNESS
        assert scene.peers[BOB].holding is before.holding
    is_known = any(parts(changed(true, change, scene)) == parts(true) for _, change in echoes)
    assert len(scene.receipts_of(BOB)) - len(scene.peers[BOB].receipts) == (not is_known)


def parts(receipt):
    return [getattr(receipt, name) for name in receipt.__struct_fields__]
