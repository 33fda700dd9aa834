"""What others can do to a peer that they may send to: be counted, be clipped, be shut out."""

from __future__ import annotations

import json
import random

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from town import SAMPLE, TASK, Town, key_of, life

from oneway.peer import inbox as inbox_module
from oneway.peer.conduct import ANSWER_SECONDS, LOG_SECONDS, QUARANTINE_SECONDS
from oneway.peer.home.limits import Limits
from oneway.peer.telemetry import Activity, status_of
from oneway.protocol.audit import discrepancy, expected_holding
from oneway.protocol.fixed_point import ONE, mass_of, zeros
from oneway.protocol.messages import (
    NO_PROGRESS,
    Ack,
    Closed,
    Data,
    Gone,
    Stale,
    State,
)
from oneway.protocol.state import OutPhase
from oneway.protocol.tags import NO_TAG
from oneway.tables import Number
from oneway.task.task import Task
from oneway.transport.base import Arrival
from oneway.transport.wire import VERSION, Foreign, Versions, decode, encode

LATER = VERSION + 1
NO_LIMIT = Limits(pushes_per_second=1e6, clip="off")


def two(limits=NO_LIMIT, **options):
    """Alice sends to Bob; both have learned, and all is quiet."""
    town = Town({"alice": ["bob"], "bob": []}, limits=limits, **options)
    town.exchange()
    town.learn("bob", label="no")
    town.learn("alice")
    return town


def push_from(name, message, task=TASK):
    return Arrival(key_of(name), encode(message, task.fingerprint), "push")


def reply_from(name, message, task=TASK):
    return Arrival(key_of(name), encode(message, task.fingerprint), "reply")


def conduct(town, name, about):
    return town.nodes[name].guard.about(key_of(about))


def next_total(town, mass=0.0, numerator=(0.0, 0.0), **changes):
    """What Alice would push to Bob next, if she handed over this."""
    edge = town.state("bob").in_[key_of("alice"), town.edge("alice").epoch]
    total = edge.heard + (np.array([*numerator, mass]) * ONE).astype(np.int64)
    word = Data(
        edge.epoch, life(), 2, edge.session, edge.granted, edge.seq + 1, total, NO_TAG, NO_PROGRESS
    )
    return msgspec.structs.replace(word, **changes)


# Another task.

OTHER = Task(
    "logistic", "y", (Number("u"), Number("v")), ("no", "yes"), intercept=False, learning_rate=0.7
)


def test_a_peer_with_another_task_is_refused_and_both_sides_learn_which_field_differs():
    town = Town({"alice": ["bob"], "bob": []}, tasks={"bob": OTHER})
    town.learn("bob")
    town.learn("alice")
    before = town.state("alice"), town.state("bob")
    for _ in range(3):
        for name, node in town.nodes.items():
            town.send(name, node.overdue())
        town.receive()
        town.receive()
    assert (town.state("alice"), town.state("bob")) == before
    assert "learning_rate is 'auto' here and 0.7 there" in conduct(town, "alice", "bob").mismatch
    assert "learning_rate is 0.7 here and 'auto' there" in conduct(town, "bob", "alice").mismatch
    for name, other in (("alice", "bob"), ("bob", "alice")):
        assert conduct(town, name, other).rejected["another task"] > 0
        assert conduct(town, name, other).strikes == 0
    assert town.edge("alice").phase is OutPhase.RESYNC  # and nothing was handed over


def test_a_model_of_another_task_is_never_mixed_in_even_if_its_size_fits():
    town = two()
    before = town.state("bob")
    town.nodes["bob"].take(push_from("alice", next_total(town, 0.5), OTHER))
    assert town.state("bob") is before
    town.nodes["bob"].take(push_from("alice", next_total(town, 0.5)))
    assert town.state("bob") is not before


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from([*TASK.fields(), "name", "center"]) | st.text(max_size=5), inner
        )
    ),
    max_leaves=12,
)


@given(anything.map(json.dumps).map(str.encode) | st.binary(max_size=100))
def test_whatever_a_foreigner_says_about_its_task_is_shown_in_one_short_line(said):
    bob = two().nodes["bob"]
    bob.take(push_from("mallory", Foreign(said), OTHER))
    shown = bob.guard.about(key_of("mallory")).mismatch
    assert shown.isprintable()
    assert len(shown) < 4000


# Another release.


def newer_frame(name, via="push"):
    """What a release sends that speaks a later version only, of which nothing is known here."""
    body = ["whatever", {"version": [LATER]}]
    return Arrival(key_of(name), msgspec.msgpack.encode([LATER, TASK.fingerprint, body]), via)


def problems(town, name):
    """What a peer's status says is wrong, by the other peer's name."""
    status = status_of(
        town.nodes[name],
        town.ends[name],
        Activity(),
    )
    return {edge.name: edge.problem for edge in (*status.receivers, *status.senders)}


def test_a_newer_release_is_answered_and_never_punished_however_much_it_sends():
    town = two()
    bob, before = town.nodes["bob"], town.state("bob")
    answers = []
    for _ in range(1000):
        town.time += 0.05
        bob.take(newer_frame("alice"))
        words = [(frame.peer, frame.via, decode(frame.content)[1]) for frame in bob.words()]
        answers += [word for word in words if isinstance(word[2], Versions)]
    expected = (key_of("alice"), "reply", Versions((VERSION,)))
    assert answers == [expected] * int(1000 * 0.05 / ANSWER_SECONDS)
    record = conduct(town, "bob", "alice")
    assert record.rejected == {"another version": 1000}
    assert record.strikes == 0
    assert not bob.guard.is_quarantined(key_of("alice"))
    assert town.state("bob") is before
    [problem] = problems(town, "bob").values()
    assert f"version {LATER}" in problem
    assert "release" in problem


def test_who_is_told_that_its_version_is_unknown_says_so_and_does_not_answer_the_answer():
    town = two()
    alice = town.nodes["alice"]
    told = Arrival(key_of("bob"), encode(Versions((LATER, LATER + 1)), TASK.fingerprint), "reply")
    alice.take(told)
    assert not alice.has_words
    assert conduct(town, "alice", "bob").strikes == 0
    assert f"version {LATER}, {LATER + 1}" in problems(town, "alice")["bob"]
    assert not any(problems(town, "bob").values())


# What cannot be decoded, and quarantine.


def shut_out(town, name="mallory"):
    bob = town.nodes["bob"]
    for _ in range(bob.config.limits.max_strikes):
        bob.take(Arrival(key_of(name), b"rubbish", "push"))


def test_after_too_many_strikes_nothing_of_a_sender_is_even_decoded(monkeypatch):
    town = two()
    bob = town.nodes["bob"]
    shut_out(town, "alice")
    record = conduct(town, "bob", "alice")
    assert record.rejected["undecodable"] == record.strikes == bob.config.limits.max_strikes
    assert record.quarantined_until == town.time + QUARANTINE_SECONDS
    before, word = town.state("bob"), push_from("alice", next_total(town, 0.5))

    def never(frame):
        raise AssertionError(f"decoded {frame!r}")

    monkeypatch.setattr(inbox_module, "decode", never)
    for arrival in (word, Arrival(key_of("alice"), b"more rubbish", "reply")):
        bob.take(arrival)
    assert town.state("bob") is before
    assert record.rejected["quarantined"] == 2
    assert bob.begin() is None  # and it gets no answer


def test_while_one_sender_is_quarantined_the_others_go_on():
    town = Town({"alice": ["bob"], "carol": ["bob"], "bob": []})
    town.exchange()
    shut_out(town, "alice")
    for name in ("bob", "alice", "carol"):
        town.learn(name)
    heard = {edge.sender: mass_of(edge.heard) for edge in town.state("bob").in_.values()}
    assert heard == {key_of("alice"): 0, key_of("carol"): ONE // 2}


def test_quarantine_ends_and_what_was_handed_over_meanwhile_arrives():
    town = two()
    shut_out(town, "alice")
    town.learn("alice")
    assert town.edge("alice").in_flight == 1
    town.time += QUARANTINE_SECONDS
    town.send("alice", town.nodes["alice"].overdue())
    town.exchange()
    assert town.edge("alice").in_flight == 0
    assert conduct(town, "bob", "alice").strikes == 0
    assert not discrepancy([town.state("alice"), town.state("bob")]).any()


def mutated(frame, rng):
    damaged = bytearray(frame)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(damaged))
        damaged[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(4))
        damaged = damaged or bytearray(b"\x00")
    return bytes(damaged)


def test_thousands_of_random_and_mutated_frames_crash_nothing_and_break_no_books():
    town = two(Limits(max_strikes=2**30, clip=1.0, pushes_per_second=1e6))
    for label in ("no", "yes"):
        town.learn("alice", label=label)
    rng = random.Random(7)
    recorded = [frame.content for _, frame in town.sent]
    senders = ("alice", "bob", "mallory")
    for _ in range(3000):
        frame = mutated(rng.choice(recorded), rng) if rng.random() < 0.8 else rng.randbytes(40)
        for node in town.nodes.values():
            via = rng.choice(["push", "reply"])
            node.take(Arrival(key_of(rng.choice(senders)), frame, via))
    for name, node in town.nodes.items():
        state = town.state(name)
        assert np.array_equal(state.holding, expected_holding(state))
        assert node.learner.fitted(node.estimate).predict_one(SAMPLE) in ("no", "yes")
    undecodable = conduct(town, "bob", "mallory").rejected["undecodable"]
    assert undecodable > 300


# What no honest peer sends.

REFUSED = {
    "wrong dimension": ("dimension", {"total": np.array([0, ONE])}),
    "shrinking mass": ("shrinking mass", {"total": np.array([0, 0, 0])}),
    "outside the radius": ("outside the radius", {"mass": 0.1, "numerator": (200.0, 0.0)}),
    "a numerator without mass": ("outside the radius", {"numerator": (1.0, 0.0), "seq": 2**61}),
    "the highest integer": ("outside the radius", {"total": np.array([2**63 - 1, 0, 2 * ONE])}),
    "the lowest integer": ("outside the radius", {"total": np.array([-(2**63), 0, 2 * ONE])}),
}


@pytest.mark.parametrize(("kind", "lie"), REFUSED.values(), ids=REFUSED)
def test_a_push_that_no_honest_peer_sends_is_rejected_counted_and_a_strike(kind, lie):
    town = two()
    before = town.state("bob")
    town.nodes["bob"].take(push_from("alice", next_total(town, **lie)))
    assert town.state("bob") is before
    assert conduct(town, "bob", "alice").rejected == {kind: 1}
    assert conduct(town, "bob", "alice").strikes == 1
    # The sender is told what is held, so that an honest one would find out.
    batch = town.nodes["bob"].begin()
    [frame] = town.nodes["bob"].committed(batch)
    assert isinstance(decode(frame.content)[1], Ack)


@pytest.mark.parametrize("mass", [17.0, 2.0**18])
def test_mass_beyond_what_a_peer_may_hold_is_burned_with_its_part_of_the_model(mass):
    """It may be what a backup forgot: so it is no strike, and what comes next is taken in."""
    town = two()
    before, limit = town.state("bob"), TASK.mass_limit
    lie = next_total(town, mass, (0.5 * mass, 0.0), seq=2**61)
    town.nodes["bob"].take(push_from("alice", lie))
    state = town.state("bob")
    assert state.mass == min(before.mass + mass, limit)
    brought = state.holding - before.holding
    np.testing.assert_allclose(brought[0] / brought[-1], 0.5, rtol=0, atol=1e-9)
    assert mass_of(state.clipped) == max(0, round((before.mass + mass - limit) * ONE))
    assert conduct(town, "bob", "alice").strikes == 0
    [frame] = town.nodes["bob"].committed(town.nodes["bob"].begin())
    assert decode(frame.content)[1].seq == 2**61
    town.check_books()


def test_words_that_come_over_the_wrong_connection_are_strikes_and_change_nothing():
    town = two()
    edge = town.edge("alice")
    replies = (
        Ack(edge.epoch, life(), 1, bytes(16), NO_TAG),
        State(edge.epoch, life(), 2, edge.session, 1, 0, zeros(2), NO_TAG, NO_PROGRESS),
        Closed(edge.epoch, life(), 0, zeros(2), NO_TAG, NO_PROGRESS),
        Stale(edge.epoch, life()),
        Gone(edge.epoch, life(), 2, NO_PROGRESS),
    )
    before = town.state("alice"), town.state("bob")
    for word in replies:
        town.nodes["alice"].take(push_from("bob", word))
    town.nodes["bob"].take(reply_from("alice", next_total(town, 0.5)))
    assert (town.state("alice"), town.state("bob")) == before
    assert conduct(town, "alice", "bob").rejected == {"out of place": len(replies)}
    assert conduct(town, "bob", "alice").rejected == {"out of place": 1}


@pytest.mark.parametrize("kind", [State, Closed])
def test_a_receiver_that_claims_what_was_never_sent_gets_strikes_and_nothing_else(kind):
    town = two()
    alice = town.nodes["alice"]
    alice.take(reply_from("bob", Stale(town.edge("alice").epoch, life(5 << 20))))  # ask again
    before, edge = town.state("alice"), town.edge("alice")
    assert edge.phase is OutPhase.RESYNC
    loot = edge.sent + mass_of(before.holding)
    lie = (
        State(edge.epoch, life(5 << 20), 2, edge.session, 1, 99, loot, NO_TAG, NO_PROGRESS)
        if kind is State
        else Closed(edge.epoch, life(5 << 20), 99, loot, bytes(16), NO_PROGRESS)
    )
    for _ in range(alice.config.limits.max_strikes):
        alice.take(reply_from("bob", lie))
    assert town.state("alice") is before
    assert conduct(town, "alice", "bob").rejected["false claim"] == 10
    assert alice.guard.is_quarantined(key_of("bob"))


def test_captured_frames_change_nothing_whenever_and_to_whom_they_are_repeated():
    """As if from their own sender: nobody else can say them, which the transport proves."""
    town = Town({"alice": ["bob"], "bob": [], "carol": []})
    town.exchange()
    for name in ("bob", "carol", "alice", "alice", "alice"):
        town.learn(name)
    before = {name: town.state(name).holding for name in town.nodes}
    captured = list(town.sent)
    assert sum(frame.via == "push" for _, frame in captured) >= 4
    for _ in range(2):
        for sender, frame in captured:
            for node in town.nodes.values():
                node.take(Arrival(key_of(sender), frame.content, frame.via))
        town.exchange()
    for name in town.nodes:
        assert np.array_equal(town.state(name).holding, before[name]), name
        assert conduct(town, name, "alice").strikes == 0
    assert conduct(town, "bob", "alice").rejected["repeated"] >= 6


# How far others can move a peer, and drain it.


def test_a_push_from_far_away_is_clipped_counted_and_pulls_no_further():
    limit = 0.5
    town = two(Limits(clip=limit, pushes_per_second=1e6))
    bob = town.nodes["bob"]
    before, already = bob.estimate, conduct(town, "bob", "alice").clipped
    bob.take(push_from("alice", next_total(town, 0.5, (250.0, -250.0))))
    allowed = limit * (1 + np.linalg.norm(before))
    assert 0 < np.linalg.norm(bob.estimate - before) <= allowed
    assert conduct(town, "bob", "alice").clipped == already + 1
    assert conduct(town, "bob", "alice").strikes == 0
    state = town.state("bob")
    assert np.array_equal(state.holding, expected_holding(state))


def test_by_default_no_push_moves_a_peer_far():
    town = two(Limits(pushes_per_second=1e6))
    bob = town.nodes["bob"]
    assert 0 < bob.rules.clip < np.inf
    before = bob.estimate
    bob.take(push_from("alice", next_total(town, 0.5, (490.0, 0.0))))
    moved = np.linalg.norm(bob.estimate - before)
    assert 0 < moved <= bob.rules.clip * (1 + np.linalg.norm(before))


def test_a_receiver_that_never_answers_gets_its_share_once_and_gives_it_all_back():
    limits = Limits(window=4, pushes_per_second=1e6, presume_dead_after=3600.0, clip="off")
    town = two(limits)
    alice = town.nodes["alice"]
    before = town.state("alice")
    steps = before.gradient_steps
    for _ in range(50):
        town.time += 1.0
        alice.learn(SAMPLE, "yes")
        batch = alice.begin()
        alice.committed(batch)  # and every frame is lost
    edge = town.edge("alice")
    assert edge.in_flight == 1
    assert town.state("alice").mass >= before.mass * 0.5
    alice.tick()
    assert town.edge("alice").phase is OutPhase.OPEN
    town.time += 3600.0
    alice.tick()
    state = town.state("alice")
    learned = state.gradient_steps - steps
    assert np.array_equal(state.holding, before.holding - learned)
    assert np.array_equal(state.holding, expected_holding(state))
    # A fresh edge waits for a word of the receiver; nothing is handed over blindly.
    assert sorted(edge.phase for edge in state.out.values()) == ["dead", "resync"]
    alice.learn(SAMPLE, "yes")
    assert mass_of(town.state("alice").holding) == mass_of(state.holding)


def test_a_receiver_that_was_only_asleep_is_found_again_and_nothing_is_lost():
    limits = Limits(window=4, pushes_per_second=1e6, presume_dead_after=3600.0, clip="off")
    town = two(limits)
    alice = town.nodes["alice"]
    alice.learn(SAMPLE, "yes")
    lost = alice.committed(alice.begin())
    town.time += 3601.0
    alice.tick()
    for frame in lost:  # it had only been delayed, until after the verdict
        town.nodes["bob"].take(Arrival(key_of("alice"), frame.content, "push"))
    town.exchange()
    for name, node in town.nodes.items():
        town.send(name, node.overdue())
    town.receive()
    town.exchange()
    assert town.edge("alice").phase is OutPhase.OPEN
    assert not discrepancy([town.state("alice"), town.state("bob")]).any()


# Logs.


def lines(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "oneway.peer"]


def test_a_flood_of_rubbish_makes_one_line_at_a_time(caplog):
    town = two(Limits(max_strikes=2**30, clip="off"))
    bob = town.nodes["bob"]
    for _ in range(1000):
        bob.take(Arrival(key_of("mallory"), b"rubbish", "push"))
    assert len(lines(caplog)) == 1
    town.time += LOG_SECONDS
    bob.take(Arrival(key_of("mallory"), b"rubbish", "push"))
    assert len(lines(caplog)) == 2
    assert lines(caplog)[1].endswith("(999 more like it)")


def test_a_flood_of_pushes_from_far_away_makes_few_lines(caplog):
    town = two(Limits(clip=0.01, pushes_per_second=1e6))
    caplog.clear()
    town.time += LOG_SECONDS
    for _ in range(200):
        word = next_total(town, 0.001, (0.9, 0.9))
        town.nodes["bob"].take(push_from("alice", word))
    assert conduct(town, "bob", "alice").clipped > 100
    assert len(lines(caplog)) == 1
    assert "clipped a push of" in lines(caplog)[0]


def test_what_is_logged_is_one_short_printable_line(caplog):
    town = two()
    rubbish = msgspec.msgpack.encode([VERSION, b"", ["\x1b[2J\n" * 50_000, 1]])
    town.nodes["bob"].take(Arrival(key_of("mallory"), rubbish, "push"))
    [line] = lines(caplog)
    assert line.isprintable()
    assert len(line) < 500
