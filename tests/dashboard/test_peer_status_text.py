"""What the page of a peer says about it, and about whom it sends to and hears from."""

from __future__ import annotations

import msgspec
import pytest
from builders import make_receiver, make_status, replace

from oneway.dashboard.peer.predict import values_problem
from oneway.dashboard.peer.status_figures import (
    SILENT_SECONDS,
    privacy_of,
    receiver_rows,
    state_of,
)
from oneway.records.status import REST_SECONDS, PrivacyStatus
from oneway.tables import Number
from oneway.web.peer_page import PeerLook

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
LOOK = PeerLook("alice", "/home/of alice", process=7, status=STATUS, time=NOW)


def with_status(look: PeerLook = LOOK, **changes: object) -> PeerLook:
    return replace(look, status=msgspec.structs.replace(STATUS, **changes))


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
            "process 7, but has said nothing for 17 s",
            "",
        ),
        # At rest a status is written every four seconds, on a busy machine a little later.
        (with_status(time=NOW - 1.5 * REST_SECONDS), "running", "", ""),
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
    assert values_problem(text, list(map(Number, ["light", "co2", "noise"]))) == said


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
