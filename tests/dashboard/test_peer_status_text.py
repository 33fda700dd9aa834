"""What the page of a peer says about it, and about whom it sends to and hears from."""

from __future__ import annotations

import msgspec
import pytest

from oneway.dashboard.components.numbers import number_problem
from oneway.dashboard.peer.predict import values_problem
from oneway.dashboard.peer.status_figures import (
    SILENT_SECONDS,
    complaints,
    figures,
    privacy_of,
    receiver_rows,
    sender_rows,
    state_of,
)
from oneway.records.measures import Baselines, Measures
from oneway.records.status import REPEATED, PrivacyStatus
from oneway.task.privacy import NO_PRIVACY
from oneway.task.task import Feature, Task
from oneway.testing.records import make_receiver, make_sender, make_status, replace
from oneway.web.peer_page import PeerLook, ToldEdge

NOW = 10_000.0

STATUS = make_status(
    time=NOW - 1,
    samples=3,
    average_loss=0.5,
    recent_loss=0.4,
    accuracy=0.9,
    last_sample=NOW - 2,
    commits=5,
    commit_seconds=0.002,
)
BOB = make_receiver(
    weight=2.0, link_since=NOW - 60, seq=12, acked=10, lag=0.34, last_answer=NOW - 4
)
CAROL = make_sender(seq=1234, last_push=NOW - 200, last_heard=NOW - 30)
LOOK = PeerLook("alice", "/home/of alice", process=7, status=STATUS, time=NOW)


def with_status(look: PeerLook = LOOK, **changes: object) -> PeerLook:
    return replace(look, status=msgspec.structs.replace(STATUS, **changes))


def test_a_peer_that_learns_needs_no_words():
    state = state_of(LOOK)
    assert (state.word, state.mood, state.sentence) == ("running", "good", "")


@pytest.mark.parametrize(
    ("look", "word", "sentence", "command"),
    [
        (replace(LOOK, process=None, status=None), "never started", "has never run", "peer run"),
        (
            replace(LOOK, process=None, time=NOW + 200),
            "stopped",
            "What you see is what it left, 3 min ago",
            "oneway peer run --data FILE --home '/home/of alice'",
        ),
        (
            replace(with_status(leaving=True, drained=True), process=None),
            "left",
            "has handed over everything",
            "oneway peer init",
        ),
        (
            replace(with_status(leaving=True), process=None),
            "stopped",
            "not handed over everything",
            "oneway peer leave",
        ),
        (replace(LOOK, status=None), "starting", "not said anything yet", ""),
        (replace(LOOK, process=8), "starting", "not said anything yet", ""),
        (
            with_status(time=NOW - SILENT_SECONDS - 5),
            "silent",
            "process 7, but has said nothing for 10 s",
            "",
        ),
        (with_status(leaving=True), "leaving", "hands over", ""),
        (with_status(leaving=True, unheard=["carol"]), "leaving", "carol has not heard", ""),
        (
            replace(with_status(leaving=True, drained=True, unheard=["bob"]), process=None),
            "left",
            "bob has not heard that it leaves",
            "oneway peer init",
        ),
        (
            replace(with_status(stopped="another copy of it runs"), process=None),
            "stopped",
            "alice stopped itself: another copy of it runs.",
            "",
        ),
        (with_status(paused=True), "paused", "paused = false", ""),
        (with_status(finished=True), "running", "The stream has ended", ""),
    ],
)
def test_what_a_peer_does_is_said_with_what_to_do_about_it(look, word, sentence, command):
    state = state_of(look)
    assert state.word == word
    assert sentence in state.sentence
    assert command in state.command
    assert bool(state.command) == bool(command)


def test_headline_figures_are_those_of_the_status_and_none_before_there_is_one():
    assert figures(replace(LOOK, status=None)) == []
    shown = {figure.key: figure for figure in figures(LOOK)}
    assert shown["samples"].value == "3"
    assert (shown["average-loss"].value, shown["recent-loss"].value) == ("0.5000", "0.4000")
    assert (shown["accuracy"].value, shown["accuracy"].unit) == ("90.0", "%")
    assert f"{1 << 40:,} units" in shown["mass"].note
    assert shown["commit"].value == "2.0"


def test_headline_figures_mark_what_is_bad():
    quarantined = msgspec.structs.replace(CAROL, quarantined=True, rejected={"stale": 2})
    changes = {"senders": [quarantined], "undecodable": 1, "disk_problem": "the disk is full"}
    shown = {figure.key: figure for figure in figures(with_status(accuracy=None, **changes))}
    assert (shown["rejected"].value, shown["rejected"].mood) == ("3", "bad")
    assert (shown["commit"].note, shown["commit"].mood) == ("the disk is full", "bad")
    assert (shown["accuracy"].value, shown["accuracy"].unit) == ("-", "")


def test_a_receiver_is_shown_with_its_freshness_and_lag():
    look = replace(with_status(receivers=[BOB]), receivers=(ToldEdge("bob", BOB.key, 2.0),))
    [row] = receiver_rows(look)
    assert (row.name, row.state, row.mood, row.can_end) == ("bob", "connected", "good", True)
    assert dict(row.facts) == {
        "weight": "2",
        "heard": "4 s ago",
        "acknowledged": "10 of 12 pushes",
        "lag": "0.3 s",
    }


@pytest.mark.parametrize(
    ("changes", "state", "remedy"),
    [
        ({"link": "refused", "phase": "resync"}, "does not admit", "bob has to admit this peer"),
        ({"link": "stranger"}, "a stranger answers", "ask bob for its new card"),
        ({"link": "connecting"}, "nobody answers", "bob is not running, or 127.0.0.1:7702"),
        ({"link": "connecting", "link_since": NOW - 1}, "connecting", ""),
        ({"phase": "resync"}, "catching up", ""),
        ({"phase": "closing"}, "closing", ""),
        ({"link": "refused", "problem": "bob's task differs"}, "admit", "bob's task differs"),
    ],
)
def test_a_link_that_is_down_is_said_with_a_remedy(changes, state, remedy):
    [row] = receiver_rows(with_status(receivers=[msgspec.structs.replace(BOB, **changes)]))
    assert state in row.state
    assert remedy in row.problem
    assert bool(row.problem) == bool(remedy)


def test_an_edge_that_is_closing_cannot_be_ended_again():
    [row] = receiver_rows(with_status(receivers=[BOB]))
    assert not row.can_end


def test_who_is_trusted_a_moment_ago_is_listed_at_once():
    look = replace(LOOK, receivers=(ToldEdge("dave", "d" * 52, 1.0),))
    assert receiver_rows(look)[0].state == "begins within a second"
    stopped = replace(look, process=None)
    assert receiver_rows(stopped)[0].state == "begins when the peer runs"


@pytest.mark.parametrize(
    ("changes", "state", "mood"),
    [
        ({}, "sends", "good"),
        ({"last_push": 0.0}, "admitted", "quiet"),
        ({"last_heard": 0.0}, "silent", "bad"),
        ({"last_heard": 0.0, "left": True}, "has left", "quiet"),
        ({"quarantined": True}, "in quarantine", "bad"),
        ({"admitted": False}, "not admitted", "quiet"),
        ({"closed": True}, "has ended it", "quiet"),
    ],
)
def test_a_sender_is_shown_with_what_it_may(changes, state, mood):
    [row] = sender_rows(with_status(senders=[msgspec.structs.replace(CAROL, **changes)]))
    assert (row.state, row.mood) == (state, mood)


def test_a_sender_is_shown_with_its_freshness_and_what_was_rejected():
    sender = msgspec.structs.replace(CAROL, rejected={"stale": 2, REPEATED: 9}, strikes=2)
    look = replace(with_status(senders=[sender]), senders=(ToldEdge("carol", CAROL.key),))
    [row] = sender_rows(look)
    assert dict(row.facts) == {
        "heard": "30 s ago",
        "taken in": "1,234 pushes",
        "rejected": "2 messages",
        "clipped": "0 pushes",
        "strikes": "2",
    }
    assert row.can_end


def test_a_receiver_that_left_is_not_looked_for():
    gone = msgspec.structs.replace(BOB, left=True, link="connecting", held_back="it left")
    look = replace(with_status(receivers=[gone]), receivers=(ToldEdge("bob", BOB.key, 2.0),))
    [row] = receiver_rows(look)
    assert (row.state, row.mood) == ("has left", "quiet")
    assert row.problem == "bob has left the network, as it said: distrust it."
    assert "held back" not in dict(row.facts)


def test_what_is_under_way_and_what_waits_is_shown():
    bob = msgspec.structs.replace(BOB, in_flight_mass=0.125, held_back="it is full", claims=2)
    carol = msgspec.structs.replace(CAROL, waiting=1.5)
    look = with_status(receivers=[bob], senders=[carol])
    facts = dict(receiver_rows(look)[0].facts)
    assert (facts["in flight"], facts["held back"]) == ("0.125 of mass", "it is full")
    assert dict(sender_rows(look)[0].facts)["waiting"] == "1.5 of mass"
    assert look.status is not None
    assert complaints(look.status) == ["bob claimed 2 times to have been restored from a backup."]


def test_a_silent_sender_is_said_with_what_may_be_wrong():
    quiet = msgspec.structs.replace(CAROL, last_heard=0.0)
    [row] = sender_rows(with_status(senders=[quiet]))
    assert row.problem == "carol is not running, or cannot reach this peer."
    halted = replace(with_status(senders=[CAROL]), time=NOW + 1000)
    assert sender_rows(halted)[0].state == "sends"
    stopped = replace(with_status(senders=[quiet]), process=None)
    assert sender_rows(stopped)[0].state == "not connected"


@pytest.mark.parametrize(("mass", "limit"), [(-0.5, 0.0), (-0.5, 256.0), (257.0, 256.0)])
def test_a_mass_that_cannot_be_is_marked(mass, limit):
    shown = {it.key: it for it in figures(with_status(mass=mass, mass_limit=limit))}
    assert (shown["mass"].mood, "cannot be" in shown["mass"].note) == ("bad", True)
    well = {it.key: it for it in figures(with_status(mass=3.0, mass_limit=limit, owed=0.25))}
    assert (well["mass"].mood, "owes 0.25" in well["mass"].note) == ("", True)


def test_messages_that_came_twice_are_no_complaint():
    sender = msgspec.structs.replace(CAROL, rejected={REPEATED: 9})
    assert sender.num_rejected == 0
    assert complaints(msgspec.structs.replace(STATUS, senders=[sender])) == []


def test_everything_that_was_not_taken_in_is_told():
    sender = msgspec.structs.replace(
        CAROL, rejected={"stale": 2, "too large": 1}, clipped=1, quarantined=True
    )
    status = msgspec.structs.replace(
        STATUS, senders=[sender], refused=1, undecodable=2, skipped=3, last_skipped="no Light"
    )
    assert complaints(status) == [
        "carol is in quarantine: what it sends is ignored for a while.",
        "Rejected from carol: 2 stale, 1 too large.",
        "1 push of carol clipped.",
        "1 message refused, from keys that are not admitted.",
        "2 messages dropped, too large or not whole.",
        "3 samples of the stream skipped. The last: no Light",
    ]


@pytest.mark.parametrize("text", ["21.5", " -3 ", "1e3", "0"])
def test_a_number_is_a_number(text):
    assert number_problem(text) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("abc", "abc is not a number"),
        ("", "a number is needed"),
        (None, "a number is needed"),
        ("1_000", "1_000 is not a number"),
        ("21,5", "write 21.5, with a point"),
        ("nan", "nan is not finite"),
        ("1e999", "1e999 is not finite"),
        ("x" * 100, f"{'x' * 77}... is not a number"),
    ],
)
def test_what_is_no_number_is_told(text, said):
    assert number_problem(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1, 2\n3", None),
        ("1,2,3,\n", None),
        ("1, x, 3", "co2: x is not a number"),
        ("1,,3", "co2: a number is needed"),
        ("1, 2", "there are 2 values, and 3 are needed"),
        ("1, 2, 3, 4", "there are 4 values, and 3 are needed"),
        (None, "there are 0 values, and 3 are needed"),
    ],
)
def test_values_in_one_field_are_looked_at_one_by_one(text, said):
    assert values_problem(text, list(map(Feature, ["light", "co2", "noise"]))) == said


NO_PRIVACY_SAID = "none: samples can be read from what is sent"
TASK = Task("logistic", "late", (Feature("rain"),), ("no", "yes"))
PRIVACY = PrivacyStatus(
    brief="epsilon 1",
    sentence="epsilon 1, in full",
    epsilon=1.0,
    floor="epsilon 8",
    samples_per_push=16,
    waiting=7,
)


def test_the_page_says_the_guarantee_in_full_and_how_full_the_batch_is():
    said = privacy_of(with_status(privacy=PRIVACY))
    assert (said.sentence, said.is_bad) == ("epsilon 1, in full.", False)
    assert dict(said.facts) == {
        "all peers of the task": "epsilon 8",
        "not yet sent": "7 of 16 samples for the next push",
    }
    alike = replace(PRIVACY, floor="epsilon 1")
    assert dict(privacy_of(with_status(privacy=alike)).facts).keys() == {"not yet sent"}


def test_the_page_marks_that_there_is_no_privacy_or_that_another_is_asked_for():
    none = replace(PRIVACY, brief=NO_PRIVACY_SAID, sentence=NO_PRIVACY_SAID, epsilon=None)
    said = privacy_of(with_status(privacy=none))
    assert (said.sentence, said.is_bad) == (f"{NO_PRIVACY_SAID}.", True)
    said = privacy_of(with_status(privacy=replace(PRIVACY, needs_restart=True)))
    assert said.is_bad
    assert said.sentence.endswith("start the peer again.")


def test_a_peer_that_has_never_run_shows_what_its_task_promises():
    new = replace(LOOK, process=None, status=None, task=TASK)
    said = privacy_of(new)
    assert said.sentence.startswith("epsilon 8, delta 1e-05 for each sample")
    assert not said.is_bad
    said = privacy_of(replace(new, task=replace(TASK, privacy=NO_PRIVACY)))
    assert (said.sentence, said.is_bad) == (f"{NO_PRIVACY_SAID}.", True)
    said = privacy_of(replace(new, task=replace(TASK, privacy=NO_PRIVACY, method="local")))
    assert (said.sentence, said.is_bad) == ("nothing is sent.", False)
    assert "not known" in privacy_of(replace(new, task=None)).sentence


def test_the_average_loss_stands_beside_its_baselines_and_is_marked_if_worse():
    losses = Baselines(samples=900, loss=0.9, base_loss=0.6, alone_loss=0.5, base_error=0.01)

    def shown(**changes):
        measures = replace(Measures(so_far=losses), **changes)
        [it] = [it for it in figures(with_status(measures=measures)) if it.key == "average-loss"]
        return it.note, it.mood

    assert shown() == ("base rate 0.6000, alone 0.5000", "")
    assert shown(lately=losses)[1] == "bad"
    assert shown(lately=replace(losses, base_error=0.1))[1] == ""
