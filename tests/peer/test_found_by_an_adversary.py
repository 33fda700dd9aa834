"""What one peer could do to others once: starve, fill, storm, crash."""

from __future__ import annotations

import numpy as np
from town import BOOT, TASK, Town, key_of, life, quiet

from oneway.peer.home.limits import Limits
from oneway.peer.inbox import MOST_STRANGERS
from oneway.peer.inflow import HELLOS, HELLOS_PER_SECOND
from oneway.protocol.audit import expected_holding
from oneway.protocol.compact import nothing
from oneway.protocol.fixed_point import mass_of, zeros
from oneway.protocol.incoming import averaged, mint
from oneway.protocol.layout import Layout
from oneway.protocol.messages import (
    NO_PROGRESS,
    Ack,
    Compact,
    Data,
    Gone,
    Hello,
    Receipt,
    Retired,
    State,
)
from oneway.protocol.rules import Rules
from oneway.protocol.state import OutPhase, PeerState
from oneway.protocol.tags import NO_TAG, digest_of
from oneway.protocol.transitions import receive_push
from oneway.records import Segment
from oneway.transport.base import Arrival
from oneway.transport.wire import decode, encode

MALLORY = key_of("mallory")


def said(message, via="push", key=MALLORY):
    return Arrival(key, encode(message, TASK.fingerprint), via)


def heard_from(town, name, sender):
    edges = town.state(name).in_.values()
    return sum(mass_of(edge.heard) for edge in edges if edge.sender == key_of(sender))


def receipt(number, teller=MALLORY):
    return Receipt(number + 1, life(), teller, number.to_bytes(32, "big"), 1, NO_TAG, NO_TAG)


def test_who_has_too_many_edges_takes_nobody_elses_turn():
    town = quiet(limits=Limits(pushes_per_second=10.0), alice=["bob"], bob=["alice"])
    bob = town.nodes["bob"]
    town.learn("alice", 5)
    for epoch in range(1000, 980, -1):  # an older edge without a push is forgotten, a newer not
        bob.take(said(Hello(epoch, life(), 0, 1)))
        town.pass_time(0.3)
    before = heard_from(town, "bob", "alice")
    for _ in range(60):
        town.learn("alice")
        town.learn("bob")
        bob.take(said(Hello(900, life(), 0, 1)))
        town.pass_time(1.0)
    assert heard_from(town, "bob", "alice") > before
    assert bob.guard.about(key_of("alice")).rejected["has to wait"] == 0


def ended_edges(rounds, last_word):
    """Alice, after a receiver has ended every edge at once with a word."""
    town = Town({"alice": ["mallory"]})
    alice = town.nodes["alice"]
    alice.ensure_minted()
    for number in range(2 * rounds):
        batch = alice.begin()
        frames = [*(alice.committed(batch) if batch else []), *alice.overdue()]
        for frame in frames:
            word = decode(frame.content)[1]
            if isinstance(word, Hello):
                state = State(
                    word.epoch,
                    life(),
                    number + 1,
                    word.session,
                    1,
                    0,
                    zeros(TASK.dim),
                    NO_TAG,
                    NO_PROGRESS,
                )
                alice.take(said(state, "reply"))
            elif isinstance(word, Data):
                ack = Ack(word.epoch, life(), word.seq, digest_of(word.total), word.tag)
                alice.take(said(ack, "reply"))
                alice.take(said(last_word(word), "reply"))
        town.time += 0.1
        alice.tick()
        town.check_books()
    return town


def test_a_receiver_that_ends_edges_for_ever_does_not_fill_its_senders_store():
    town = ended_edges(300, lambda word: Gone(word.epoch, life(), word.ledger, NO_PROGRESS))
    assert len(town.state("alice").settled) <= 4 * 16 + 2
    # Whatever is said of the retired afterwards changes nothing.
    alice = town.nodes["alice"]
    for epoch in range(1, 320):
        alice.take(said(Retired(epoch, life(), epoch, NO_PROGRESS), "reply"))
        town.check_books()
    assert np.array_equal(town.state("alice").holding, expected_holding(town.state("alice")))


def test_false_receipts_do_not_go_round_for_ever():
    names = "abcdef"
    town = quiet(**{name: [other for other in names if other != name] for name in names})
    for turn in range(15):
        for number in range(64):
            town.nodes["b"].take(said(receipt(64 * turn + number)))
        town.pass_time(3.5)
    town.pass_time(31.0)
    before = [state.receipts for state in town.states()]
    for _ in range(10):
        town.pass_time(3.5)
    after = [state.receipts for state in town.states()]
    assert all(one is other for one, other in zip(before, after, strict=True))


def test_strangers_without_end_are_neither_kept_nor_remembered():
    town = quiet(alice=["bob"], bob=[])
    bob = town.nodes["bob"]
    for number in range(2 * MOST_STRANGERS):
        key = key_of(f"s{number}")
        bob.take(said(receipt(number, key), key=key))
        bob.take(Arrival(key_of(f"t{number}"), b"rubbish", "push"))
    assert len(town.state("bob").receipts) <= MOST_STRANGERS + 2
    assert len(bob.inbox.heard) <= MOST_STRANGERS + 2


def test_while_the_disk_fails_what_is_owed_to_one_peer_is_bounded():
    town = quiet(alice=["bob"], bob=[])
    bob = town.nodes["bob"]
    batch = None
    for number in range(1000):
        if number % 10 == 0:
            if batch is not None:
                bob.failed(batch, "the disk is full")
            batch = bob.begin()
        data = Data(2000 - number, life(), 0, 9, 9, 1, zeros(TASK.dim), NO_TAG, NO_PROGRESS)
        bob.take(said(data))
        bob.take(said(receipt(1)))
    bob.failed(batch, "the disk is full")
    answers = bob.begin().answers
    assert len(answers.questions) <= 64
    assert len(answers.receipts) <= 64


def test_a_copied_value_beside_the_model_is_one_value_however_many_pushes_were_lost():
    layout = Layout.of(
        [
            Segment("numerator", "split"),
            Segment("mass", "split", is_vector=False),
            Segment("aux", "copied"),
        ],
        dim=1,
    )
    rules = Rules(secret=b"bob")
    bob = mint(PeerState.new(2, 1, BOOT, layout), np.zeros(2))
    bob = receive_push(bob, MALLORY, Hello(1, life(), 0, 1), rules).state
    far = np.array([0, 2**63 - 1, 1])
    done = receive_push(
        bob, MALLORY, Data(1, life(), 1, 1, BOOT, 2**21, far, NO_TAG, NO_PROGRESS), rules
    )
    averaged(done.state, rules)
    assert done.strike is not None


def test_pushes_without_mass_do_not_move_a_model():
    """Each may carry what roundings explain, and nothing limits how many there are."""
    town = quiet(limits=Limits(clip=0.5), bob=[])
    bob = town.nodes["bob"]
    bob.take(said(Hello(1, life(), 0, 1)))
    before = town.state("bob").holding[0]
    total = zeros(TASK.dim)
    for number in range(1, 1001):
        total = total + np.array([64_000, 0, 0])
        bob.take(said(Data(1, life(), 1, 1, BOOT, 64 * number, total, NO_TAG, NO_PROGRESS)))
    assert mass_of(town.state("bob").in_[MALLORY, 1].heard) == 0
    assert abs(town.state("bob").holding[0] - before) <= 64_000
    town.check_books()


def test_small_pushes_that_lead_nowhere_cost_no_more_digests_than_a_few():
    town = Town({"bob": []}, limits=Limits())
    bob = town.nodes["bob"]
    bob.take(said(Hello(9, life(), 0, 1)))
    bob.committed(bob.begin())
    [edge] = town.state("bob").in_.values()
    packed = nothing(town.state("bob").layout, edge.heard, 0)
    about = (9, life(), town.state("bob").ledger, 1, edge.granted)
    for seq in range(1, 101):
        bob.take(said(Compact(*about, seq, packed, b"x" * 16, NO_TAG, NO_PROGRESS)))
    counted = bob.guard.about(MALLORY)
    assert counted.rejected["asked too often"] == 100 - (HELLOS - 1)
    assert counted.strikes == 0
    town.time += 1.0
    true = digest_of(edge.heard)
    bob.take(said(Compact(*about, 101, packed, true, NO_TAG, NO_PROGRESS)))
    assert town.state("bob").in_[MALLORY, 9].seq == 101


def test_a_receiver_cannot_make_a_sender_ask_without_end():
    """A false acknowledgement makes it ask, which costs a commit and a model: 320 a second once."""
    town = Town({"alice": ["mallory"]})
    alice, heard = town.nodes["alice"], (0, zeros(TASK.dim), NO_TAG)
    alice.ensure_minted()
    hellos = 0
    for _ in range(1000):
        batch = alice.begin()
        for frame in [*(alice.committed(batch) if batch else []), *alice.overdue()]:
            word = decode(frame.content)[1]
            if isinstance(word, Hello):
                hellos += 1
                about = (word.epoch, life(), 1, word.session, 1)
                alice.take(said(State(*about, *heard, NO_PROGRESS), "reply"))
            elif isinstance(word, Data):
                heard = word.seq, word.total, word.tag
                false = Ack(word.epoch, life(), word.seq, bytes(16), NO_TAG)
                alice.take(said(false, "reply"))
        town.time += 0.002
        alice.tick()
    [edge] = town.state("alice").out.values()
    assert hellos <= 1 + HELLOS + HELLOS_PER_SECOND * 2.0
    assert edge.phase is OutPhase.OPEN
    assert alice.guard.about(MALLORY).rejected["made to ask too often"] > 0
    town.check_books()
