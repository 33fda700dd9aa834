"""Of several copies of a peer exactly one goes on, and a peer that runs once is never stopped."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from oneway.protocol.lives import MOST_FORMER, is_copied, life_of, lifted, meet
from oneway.protocol.messages import Hello, Life
from oneway.protocol.outgoing import supersede
from oneway.protocol.rules import Rules
from oneway.protocol.stamps import RANDOM_BITS, first_stamp
from oneway.protocol.state import PeerState
from oneway.protocol.tags import NO_TAG, SIZE, sign_life
from oneway.protocol.transitions import receive_push, restart

ALICE = b"a" * 32
RULES = Rules(secret=b"alice's own secret" * 2)
THEIRS = Rules(secret=b"what a neighbour keeps" * 2)

clocks = st.integers(0, 2**61)
indices = st.integers(0, 2**16)


class Copies:
    """Processes with Alice's key, what was ever saved of her, and those that hear her."""

    def __init__(self, num_neighbours):
        self.neighbours = [PeerState.new(1, 2, 1) for _ in range(num_neighbours)]
        self.saved = [PeerState.new(1, 1, 1)]
        self.running = []
        self.lives = 0
        self.stopped = 0
        self.lifts = 0
        self.late = []  # words of lives that may have ended, and answers to them

    def start(self, clock, saved):
        """A new process; no two have the same random bits."""
        self.lives += 1
        self.running.append(restart(saved, first_stamp(clock, self.lives)))

    def speak(self, index, where):
        """One word to one neighbour, and its answer; returns whether it was heard."""
        word = Hello(5, life_of(self.running[index], RULES), 0, 9)
        self.late.append((where, word))
        return self.hear(index, where, word)

    def hear(self, index, where, word):
        done = receive_push(self.neighbours[where], ALICE, word, THEIRS)
        self.neighbours[where] = done.state
        if not done.is_older_life:
            return True
        self.answer(index, supersede(done.state, ALICE, word.life, THEIRS).newer)
        return False

    def answer(self, index, newer):
        if is_copied(self.running[index], newer, RULES):
            del self.running[index]
            self.stopped += 1
            return
        before, after = self.running[index], lifted(self.running[index], newer, RULES)
        self.lifts += after is not before
        self.running[index] = after

    def save(self, index):
        self.saved.append(self.running[index])


# One life at a time.


@given(
    st.integers(1, 3),
    st.lists(
        st.tuples(
            st.sampled_from(["speak", "save", "crash", "restore", "late word"]), clocks, indices
        ),
        max_size=40,
    ),
    clocks,
)
def test_a_peer_that_runs_once_is_never_stopped_whatever_its_backups_and_clocks(
    num_neighbours, events, first_clock
):
    alice = Copies(num_neighbours)
    alice.start(first_clock, alice.saved[0])
    for event, clock, index in events:
        if event == "speak":
            alice.speak(0, index % num_neighbours)
        elif event == "save":
            alice.save(0)
        elif event == "late word" and alice.late:
            # From a life that may have ended; the answer reaches the one that runs now.
            alice.hear(0, *alice.late[index % len(alice.late)])
        elif event in ("crash", "restore"):
            now = alice.running.pop()
            alice.start(clock, now if event == "crash" else alice.saved[index % len(alice.saved)])
    assert alice.stopped == 0
    # It is lifted once by each neighbour at most, and then all hear it.
    before = alice.lifts
    for where in range(num_neighbours):
        alice.speak(0, where)
    assert alice.lifts - before <= num_neighbours
    assert all(alice.speak(0, where) for where in range(num_neighbours))


# Several copies.


def fair_rounds(alice, rng=None):
    """Everybody speaks to all, again and again: always in turn, or in any order."""
    names = [state.boot % 2**RANDOM_BITS for state in alice.running]
    pairs = [(name, where) for name in names for where in range(len(alice.neighbours))]
    for _ in range(60):
        if rng is not None:
            rng.shuffle(pairs)
        for name, where in pairs:
            running = [state.boot % 2**RANDOM_BITS for state in alice.running]
            if name in running and not alice.speak(running.index(name), where):
                running = [state.boot % 2**RANDOM_BITS for state in alice.running]
                if name in running:  # it was lifted, and says so at once
                    alice.speak(running.index(name), where)


@given(
    st.integers(1, 3),
    st.lists(st.tuples(clocks, indices), min_size=2, max_size=5),
    st.lists(st.tuples(st.sampled_from(["speak", "save", "crash"]), clocks, indices), max_size=30),
    st.integers(0, 2**32),
)
def test_of_any_number_of_copies_exactly_one_goes_on(num_neighbours, starts, events, seed):
    alice = Copies(num_neighbours)
    for clock, index in starts:
        alice.start(clock, alice.saved[index % len(alice.saved)])
        alice.save(-1)  # the next one may be a copy of this one as it runs, or of a backup
    for event, clock, index in events:
        number = index % len(alice.running)
        if event == "speak":
            alice.speak(number, clock % num_neighbours)
        elif event == "save":
            alice.save(number)
        else:
            alice.start(clock, alice.running.pop(number))
        assert alice.running
    fair_rounds(alice, random.Random(seed))
    assert len(alice.running) == 1
    assert all(alice.speak(0, where) for where in range(num_neighbours))


# Those without the key.

lives = st.builds(
    Life,
    st.integers(0, 2**62 - 1),
    st.integers(0, 2**62 - 1),
    st.booleans(),
    st.binary(min_size=SIZE, max_size=SIZE),
)


@given(lives, st.booleans(), st.booleans(), clocks)
def test_nobody_without_the_key_can_stop_or_lift_a_peer(forged, is_over, is_above, clock):
    state = restart(PeerState.new(1, 1, 1), clock)
    if is_over:
        forged = msgspec.structs.replace(forged, over=state.boot)
    if is_above:
        forged = msgspec.structs.replace(forged, boot=state.boot + 1 + forged.boot % 2**40)
    assert not is_copied(state, forged, RULES)
    assert lifted(state, forged, RULES) is state


@given(st.lists(clocks, min_size=1, max_size=6), st.data())
def test_no_true_proof_works_for_another_life_nor_another_key(boots, data):
    """A neighbour knows all proofs that a peer ever made, and may show any, in any words."""
    alice = Copies(1)
    proofs = []
    for clock in boots:
        saved = alice.running.pop() if alice.running else alice.saved[0]
        alice.start(clock, saved)
        proofs.append(life_of(alice.running[0], RULES))
    [now] = alice.running
    proof = data.draw(st.sampled_from(proofs)).proof
    for life in (
        Life(now.boot + 1, now.boot, False, proof),
        Life(now.boot + (1 << 30), now.boot, False, proof),
        Life(now.boot + 1, now.boot, False, sign_life(THEIRS.secret, now.boot + 1, now.boot)),
    ):
        assert not is_copied(now, life, RULES)
        assert lifted(now, life, RULES) is now
    for life in proofs:
        assert not is_copied(now, life, RULES)
        assert lifted(now, life, RULES) is now
    # It is the proof that decides.
    true = Life(now.boot + 1, now.boot, False, sign_life(RULES.secret, now.boot + 1, now.boot))
    assert is_copied(now, true, RULES)
    apart = Life(now.boot + 1, 3, False, sign_life(RULES.secret, now.boot + 1, 3))
    assert not is_copied(now, apart, RULES)
    assert lifted(now, apart, RULES).over == now.boot + 1


# What is remembered of the lives of others.


def test_no_more_former_lives_are_remembered_than_needed():
    state = PeerState.new(1, 2, 1)
    for boot in range(1, 100):
        state = meet(state, ALICE, Life(boot, boot - 1, False, NO_TAG))
    assert state.lives[ALICE].boot == 99
    assert [life.boot for life in state.former_lives[ALICE]] == list(
        range(98, 98 - MOST_FORMER, -1)
    )
    assert meet(state, ALICE, Life(98, 0, False, NO_TAG)) is None
