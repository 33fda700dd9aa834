"""When a peer says what: from durable state, again if unanswered; how it comes and goes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from builders import replace
from plain import PLAIN
from town import BOOT, LIMITS, SAMPLE, TASK, Town, config, key_of, kinds, quiet, words

from oneway.errors import DataError
from oneway.peer.identity.keys import key_text
from oneway.peer.inbox import REOPEN_SECONDS
from oneway.peer.learner import Learner
from oneway.peer.send_schedule import HEARTBEAT
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.telemetry import Activity, status_of
from oneway.protocol.audit import discrepancy
from oneway.protocol.fixed_point import ONE, mass_of
from oneway.protocol.incoming import mint
from oneway.protocol.messages import Ack, Close, Closed, Data, Hello
from oneway.protocol.pace import FIRST_RETRY, IDLE_SECONDS, LONGEST_RETRY, SHORTEST_RETRY
from oneway.protocol.rules import Rules
from oneway.protocol.state import OutPhase, PeerState, Told
from oneway.protocol.transitions import restart
from oneway.tables import Number
from oneway.task.task import Task
from oneway.transport.base import Arrival

# Nothing is said that is not durable.


def test_a_push_is_said_after_its_commit_and_as_it_was_committed():
    town = quiet(alice=["bob"], bob=[], carol=["alice"])
    alice, carol = town.nodes["alice"], town.nodes["carol"]
    town.time += 1
    alice.learn(SAMPLE, "yes")
    carol.learn(SAMPLE, "yes")
    batch = alice.begin()
    committed = batch.snapshot.state
    # While the first is being written, more comes in and is pushed on.
    [frame] = carol.committed(carol.begin())
    alice.take(Arrival(key_of("carol"), frame.content, frame.via))
    town.time += 1
    alice.learn(SAMPLE, "yes")
    [word] = words(alice.committed(batch))
    [edge] = committed.out.values()
    assert word.seq == edge.seq
    assert word.total.tolist() == edge.sent.tolist()
    [later] = alice.snapshot.state.out.values()
    assert later.seq == edge.seq + 1
    word, _ = words(alice.committed(alice.begin()))
    assert word.seq == later.seq


def test_without_a_commit_nothing_new_is_ever_said():
    town = quiet(alice=["bob"], bob=[])
    alice = town.nodes["alice"]
    [durable] = alice.snapshot.state.out.values()
    for _ in range(5):
        town.time += 100.0
        alice.learn(SAMPLE, "yes")
        alice.tick()
        for word in words(alice.overdue()):
            assert isinstance(word, Data)
            assert word.seq == durable.seq


def test_an_answer_waits_until_what_it_is_about_is_durable():
    town = quiet(alice=["bob"], bob=[])
    town.time += 1
    alice, bob = town.nodes["alice"], town.nodes["bob"]
    alice.learn(SAMPLE, "yes")
    [frame] = alice.committed(alice.begin())
    bob.take(Arrival(key_of("alice"), frame.content, "push"))
    assert bob.overdue() == []
    batch = bob.begin()
    assert not bob.is_durable(batch)
    [reply] = words(bob.committed(batch))
    assert isinstance(reply, Ack)
    assert reply.seq == words([frame])[0].seq
    assert bob.begin() is None


def test_a_question_that_changes_nothing_needs_no_commit():
    town = quiet(alice=["bob"], bob=[])
    town.learn("alice")
    bob = town.nodes["bob"]
    town.time += HEARTBEAT
    for frame in town.nodes["alice"].overdue():
        bob.take(Arrival(key_of("alice"), frame.content, frame.via))
    batch = bob.begin()
    assert bob.is_durable(batch)
    assert kinds(bob.committed(batch)) == [Ack]


# A full disk.


def test_with_a_full_disk_nothing_is_pushed_or_answered_and_predictions_go_on():
    town = quiet(alice=["bob"], bob=["alice"])
    town.learn("alice")
    town.learn("bob")
    alice, bob = town.nodes["alice"], town.nodes["bob"]
    town.time += 1
    bob.learn(SAMPLE, "yes")
    for frame in bob.committed(bob.begin()):
        alice.take(Arrival(key_of("bob"), frame.content, frame.via))
    for _ in range(5):
        town.time += 1
        alice.learn(SAMPLE, "yes")
        before = mass_of(town.state("alice").holding)
        alice.failed(alice.begin(), "the disk is full")
        town.time += 1
        alice.learn(SAMPLE, "yes")
        alice.tick()
        assert mass_of(town.state("alice").holding) == before  # learned, but not pushed
        assert alice.learner.fitted(alice.estimate).predict_one(SAMPLE) == "yes"
        assert sum(
            alice.learner.fitted(alice.estimate).predict_proba_one(SAMPLE).values()
        ) == pytest.approx(1.0)
    assert alice.disk_problem == "the disk is full"

    # It recovers by itself: what waited is answered, what was learned is pushed.
    frames = alice.committed(alice.begin())
    assert not alice.disk_problem
    assert Ack in kinds(frames)
    town.send("alice", frames)
    town.time += 1
    alice.tick()
    town.exchange()
    assert [edge.in_flight for edge in town.state("alice").out.values()] == [0]
    assert [edge.in_flight for edge in town.state("bob").out.values()] == [0]
    assert not discrepancy(town.states()).any()


# Saying it again.


def spoken(town, name, seconds, step=0.05):
    """The times at which a peer with nobody to hear it says something, and what."""
    start, said = town.time, []
    for index in range(1, round(seconds / step) + 1):
        town.time = start + index * step
        said += [(round(index * step, 6), kind) for kind in kinds(town.nodes[name].overdue())]
    return said


def test_what_is_unanswered_is_said_again_each_time_later():
    town = Town({"alice": ["bob"], "bob": []})
    alice = town.nodes["alice"]
    assert kinds(alice.committed(alice.begin())) == [Hello]
    said = spoken(town, "alice", 29.0)
    assert {kind for _, kind in said} == {Hello}
    gaps = np.diff([0.0, *(at for at, _ in said)])
    expected = [min(FIRST_RETRY * 2**doubled, LONGEST_RETRY) for doubled in range(len(gaps))]
    np.testing.assert_allclose(gaps, expected, atol=0.051)


def test_a_sign_of_life_makes_the_unanswered_worth_saying_soon_again():
    town = quiet(alice=["bob"], bob=[])
    alice = town.nodes["alice"]
    town.time += 1
    alice.learn(SAMPLE, "yes")
    alice.committed(alice.begin())  # lost
    spoken(town, "alice", 15.0)
    bob = town.nodes["bob"]
    [edge] = bob.snapshot.state.in_.values()
    town.time += HEARTBEAT
    [beat] = bob.overdue()
    alice.take(Arrival(key_of("bob"), beat.content, beat.via))
    [(first, _), *_] = spoken(town, "alice", 1.0, step=0.01)
    assert first == pytest.approx(SHORTEST_RETRY, abs=0.011)
    assert edge.seq == 1


def test_a_quiet_edge_is_spoken_of_at_every_heartbeat_and_not_in_between():
    for name, kind in (("alice", Data), ("bob", Ack)):
        town = quiet(alice=["bob"], bob=[])
        town.pass_time(HEARTBEAT)
        said = spoken(town, name, 2 * HEARTBEAT + 1.0)
        assert [what for _, what in said] == [kind, kind], name


def test_after_a_start_an_idle_peer_asks_its_receivers_by_itself():
    """It learns nothing and hears nothing: only time makes it speak."""
    town = quiet(alice=["bob"], bob=[])
    saved = town.nodes["alice"].snapshot
    again = replace(saved, state=restart(saved.state, 9 << 20))
    town.start("alice", again, config("alice", ["bob"]))
    [edge] = town.state("alice").out.values()
    assert edge.phase is OutPhase.RESYNC
    town.pass_time(0.05)
    [edge] = town.state("alice").out.values()
    assert edge.phase is OutPhase.OPEN


# Trust changes while running.


def test_distrust_closes_the_edge_and_trust_opens_the_next_one_at_once():
    town = quiet(alice=["bob"], bob=[])
    town.learn("alice", 3)
    alice = town.nodes["alice"]
    alice.follow(config("alice"))
    town.exchange()
    assert not town.state("alice").out
    assert len(town.state("alice").settled) == 1
    alice.follow(config("alice", ["bob"]))
    town.exchange()
    [edge] = town.state("alice").out.values()
    assert edge.phase is OutPhase.OPEN
    town.learn("alice")
    assert edge.seq < next(iter(town.state("alice").out.values())).seq
    assert not discrepancy(town.states()).any()


def test_who_closed_an_edge_itself_is_asked_again_only_after_a_while():
    town = quiet(alice=["bob"], bob=[])
    town.learn("alice")
    town.nodes["bob"].follow(config("bob", leaving=True))
    town.learn("alice")
    assert not town.state("alice").out
    assert town.state("alice").settled
    town.pass_time(REOPEN_SECONDS - 1.0)
    assert not town.state("alice").out
    town.nodes["alice"].tick()
    town.time += 1.0
    town.nodes["alice"].tick()
    assert len(town.state("alice").out) == 1


# Joining and leaving.


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ({"u": 1.0}, "yes"),
        ({"u": 1.0, "v": "many"}, "yes"),
        ({"u": math.inf, "v": 0.0}, "yes"),
        (SAMPLE, "perhaps"),
        (SAMPLE, None),
    ],
)
def test_a_sample_that_cannot_be_used_changes_nothing_not_even_before_the_first(x, y):
    town = Town({"alice": []})
    alice = town.nodes["alice"]
    for _ in range(2):
        before = alice.snapshot
        with pytest.raises(DataError):
            alice.learn(x, y)
        assert alice.snapshot is before
        town.learn("alice")


def test_a_peer_that_leaves_is_not_done_before_its_receiver_has_acknowledged():
    town = quiet(alice=["bob"], bob=[])
    alice = town.nodes["alice"]
    alice.follow(config("alice", ["bob"], leaving=True))
    town.time += 1
    alice.tick()
    lost = alice.committed(alice.begin())
    assert Data in kinds(lost)
    assert not town.state("alice").holding.any()
    assert not alice.is_drained
    town.pass_time(1.0)
    assert alice.is_drained


# When to push.


def test_no_more_is_pushed_than_the_limit_allows_and_what_was_learned_travels_with_the_next():
    town = quiet(alice=["bob"], bob=[])
    alice = town.nodes["alice"]
    alice.follow(config("alice", ["bob"], limits=replace(LIMITS, pushes_per_second=10.0)))
    [before] = town.state("alice").out.values()
    town.time += 0.1
    for _ in range(50):
        alice.learn(SAMPLE, "yes")
        town.exchange()
        town.time += 0.01
    [after] = town.state("alice").out.values()
    assert after.seq - before.seq == 5
    town.pass_time(0.1)
    [last] = town.state("alice").out.values()
    assert last.seq == after.seq + 1


def test_a_peer_without_samples_passes_on_what_it_receives_now_and_then():
    town = quiet(alice=["bob"], bob=["carol"], carol=[])
    town.learn("alice")
    assert not town.nodes["carol"].estimate.any()
    town.pass_time(IDLE_SECONDS)
    assert town.nodes["carol"].estimate.any()
    [edge] = town.state("bob").out.values()
    for _ in range(5):  # and then there is nothing new
        town.pass_time(IDLE_SECONDS)
    assert next(iter(town.state("bob").out.values())).seq == edge.seq


def test_a_peer_without_samples_keeps_its_mass_within_bounds_before_it_passes_on():
    town = quiet(alice=["bob"], bob=["carol"], carol=[])
    bob = town.nodes["bob"]
    bob.learner.mass_bounds = (0.9, 4.0)
    for _ in range(4):
        town.learn("alice")
        seq = town.edge("bob").seq
        town.pass_time(IDLE_SECONDS)
        assert town.edge("bob").seq == seq + 1
        assert town.state("bob").mass > 0.449
    town.check_exact()


def test_a_paused_peer_hands_nothing_over_and_still_takes_and_answers():
    town = quiet(alice=["bob"], bob=["alice"])
    alice = town.nodes["alice"]
    alice.follow(config("alice", ["bob"], paused=True))
    mass = town.state("alice").mass
    town.learn("bob")
    town.pass_time(10.0)
    assert town.state("alice").mass > mass
    assert [edge.in_flight for edge in town.state("bob").out.values()] == [0]
    assert mass_of(next(iter(town.state("alice").out.values())).sent) == 0


def test_an_end_is_confirmed_to_who_told_it_and_then_no_more_is_said_of_it():
    """A Closed is answered with a Close, and that with a Closed: there it ends."""
    town = quiet(alice=["bob"], bob=["carol"], carol=[])
    town.learn("alice")
    alice, bob = town.nodes["alice"], town.nodes["bob"]
    bob.follow(config("bob", ["carol"], leaving=True))
    bob.committed(bob.begin())
    town.time += 1.0
    [closed] = [frame for frame in bob.overdue() if kinds([frame]) == [Closed]]
    arrival = Arrival(key_of("bob"), closed.content, closed.via)
    for told in (1, 0, 1, 0):  # every other one: what is lost is made up for
        alice.take(arrival)
        batch = alice.begin()
        said = [] if batch is None else kinds(alice.committed(batch))
        assert said.count(Close) == told
    town.send("bob", [closed])
    assert town.exchange() < 10
    assert [edge.told for edge in town.state("bob").in_.values()] == [Told.SENDER]


# One sample.


@pytest.mark.parametrize("model", ["logistic", "ridge", "hinge", "softmax"])
@pytest.mark.parametrize("step", ["curvature", "capped", "mass", "paper"])
@pytest.mark.parametrize("size", [1e10, 1e150, 1e200, 1e308])
def test_a_sample_of_any_size_is_learned_from_or_refused_with_a_sentence(model, step, size):
    classes = {"ridge": (), "softmax": ("a", "b", "c")}.get(model, ("a", "b"))
    task = Task(
        model, "y", (Number("u"), Number("v")), classes, step=step, learning_rate=20.0, **PLAIN
    )
    state = mint(
        PeerState.new(task.dim, 1, BOOT, Learner(task).layout), np.linspace(-1.0, 1.0, task.dim)
    )
    label = 3.0 if model == "ridge" else classes[-1]
    try:
        lesson = Learner(task).learn(
            state,
            Snapshot(state),
            state.estimate,
            {"u": size, "v": -size},
            label,
            Rules(secret=b""),
        )
    except DataError as error:
        refusal = str(error)
        assert "far too large" in refusal
    else:
        assert math.isfinite(lesson.measured.loss)
        assert mass_of(lesson.state.holding) == ONE


def test_an_estimate_that_is_not_sound_is_not_used_for_predictions():
    town = quiet(alice=[])
    town.learn("alice", 5)
    alice = town.nodes["alice"]
    before = alice.estimate.copy()
    broken = replace(town.state("alice"), holding=np.array([2**60, 0, 5]))
    alice._set(broken)  # as while a restored peer has heard back from some of its edges only
    assert alice.estimate.tolist() == before.tolist()
    assert alice.learner.fitted(alice.estimate).predict_one(SAMPLE) == "yes"


# What it says about itself.


def status(town, name):
    return status_of(
        town.nodes[name],
        town.ends[name],
        Activity(),
    )


def adds_up(said):
    owed = said.brought_units + sum(said.heard_units.values()) - sum(said.sent_units.values())
    return said.mass_units == owed


def test_the_mass_in_a_status_is_what_was_brought_and_heard_minus_what_was_sent():
    town = quiet(alice=["bob", "carol"], bob=["alice"], carol=[])
    alice, bob = key_text(key_of("alice")), key_text(key_of("bob"))
    for _ in range(5):
        town.learn("alice")
        town.learn("bob")
        town.nodes["alice"].learn(SAMPLE, "yes")  # known, and not yet said
        said = {name: status(town, name) for name in town.nodes}
        assert all(map(adds_up, said.values()))
        assert said["alice"].sent_units[bob] > said["bob"].heard_units[alice] > 0
        # More goes to carol than ever comes back.
        assert said["alice"].brought_units == ONE + round(said["alice"].replenished * ONE)
        town.exchange()
    assert said["alice"].replenished > 0.0
    assert said["bob"].replenished == said["carol"].replenished == 0.0
    assert status(town, "alice").sent_units[bob] == status(town, "bob").heard_units[alice]


# It rests when there is nothing under way.


def test_a_peer_rests_once_all_is_answered_and_nothing_moves_it():
    town = quiet(alice=["bob"], bob=[])
    alice = town.nodes["alice"]
    town.learn("alice")
    while alice.is_restless:
        town.pass_time(IDLE_SECONDS)
        assert town.time < 200.0
    before = town.state("alice")
    town.pass_time(IDLE_SECONDS)
    assert town.state("alice") is before
    assert not alice.has_work


def test_a_peer_that_hears_from_nobody_pushes_every_step_for_ever():
    """It mints the mass that it lacks, at its own estimate, and no more than that."""
    town = quiet(alice=["bob"], bob=[])
    alice = town.nodes["alice"]
    lowest, highest = alice.learner.mass_bounds
    for _ in range(200):
        before, seq = alice.estimate, town.edge("alice").seq
        alice._set(alice._minted())
        np.testing.assert_allclose(alice.estimate, before, rtol=0, atol=1e-10)
        town.learn("alice")
        assert town.edge("alice").seq == seq + 1
        assert lowest / 2 <= town.state("alice").mass <= 1.0
    assert town.state("bob").mass > highest
    town.learn("bob")
    assert town.state("bob").mass == highest
    town.check_exact()


def test_who_keeps_a_receipt_confirms_it_in_its_own_life():
    """Told of its own, newer life, the teller would take the keeper's next words for old ones."""
    town = quiet(sam=["rita"], rita=["tom"], tom=["sam"])
    settings = config("rita", ["tom"])
    town.power_on("rita", town.power_off("rita"), settings)  # a later boot than tom's
    town.exchange()
    town.learn("sam")
    town.learn("rita")
    town.power_off("sam")
    rita = town.nodes["rita"]
    rita.follow(replace(settings, leaving=True))
    for _ in range(20):
        town.pass_time(1.0)
    assert not rita.snapshot.state.lives[key_of("tom")].leaving
    assert rita.snapshot.state.lives[key_of("tom")].boot == town.state("tom").boot
    assert rita.is_drained


def test_a_changed_clip_changes_the_estimate_of_copies_at_once():
    """An estimate is remembered only for the rules it was computed by."""
    town = Town({"bob": ["alice"], "alice": ["bob"]}, replace(TASK, method="pull"))
    town.exchange()
    for _ in range(5):
        town.learn("bob")
    alice = town.nodes["alice"]
    before = alice.estimate
    alice.follow(config("alice", ["bob"], limits=replace(LIMITS, clip=1e-9)))
    assert np.linalg.norm(alice.estimate - before) > 0.0


def test_who_asks_about_a_peer_makes_no_record_of_it():
    town = Town({"bob": []})
    node = town.nodes["bob"]
    assert node.guard.about(b"?" * 32).strikes == 0
    status_of(node, town.ends["bob"], Activity())
    assert not node.guard.known
