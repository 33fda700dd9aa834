"""A status as people read it: one line, facts, tables of edges, and what is still owed."""

from __future__ import annotations

import msgspec
import pytest

from oneway.peer.status_text import (
    edge_notes,
    how_it_ended,
    receiver_table,
    sender_table,
    status_facts,
    status_line,
    what_is_owed,
)
from oneway.records.status import PrivacyStatus, ReceiverStatus, SenderStatus, Status
from oneway.testing.records import make_receiver, make_sender, make_status


def receiver(name: str, seq: int, acked: int, phase: str = "open") -> ReceiverStatus:
    return make_receiver(
        name=name, phase=phase, weight=2.0, seq=seq, acked=acked, lag=90.0, last_answer=940.0
    )


def sender(name: str, **more: object) -> SenderStatus:
    rejected = {"repeated": 7, "forged": 2}
    heard = {"seq": 5, "last_push": 0.0, "last_heard": 990.0}
    blank = heard | {"rejected": rejected, "clipped": 3, "strikes": 1}
    return make_sender(name=name, **blank | more)


def status(**more: object) -> Status:
    """Alice in the middle of her life, unless said otherwise."""
    losses = {"average_loss": 0.25, "recent_loss": 0.125, "accuracy": 0.5}
    return make_status(**{"samples": 1200, "mass": 0.75} | losses | more)


def test_the_line_counts_what_it_cannot_name():
    line = status_line(status(receivers=[receiver(name, 9, 7) for name in "abcde"]))
    assert line.startswith("alice: 1,200 samples, loss 0.2500 (lately 0.1250), mass 0.75")
    assert line.endswith("to a 7/9, b 7/9, c 7/9 and 2 more")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"leaving": True, "paused": True}, "leaving"),
        ({"paused": True, "finished": True}, "paused"),
        ({"finished": True}, "no stream"),
        ({"disk_problem": "full"}, "THE STATE CANNOT BE SAVED"),
        ({"skipped": 3}, "3 skipped"),
        ({"mass": -1.0}, "CANNOT BE"),
    ],
)
def test_the_line_says_what_is_unusual(changes, word):
    assert word in status_line(status(**changes))
    assert word not in status_line(status())


def test_facts_leave_out_what_does_not_apply():
    assert list(status_facts(status())) == ["card", "samples", "loss", "accuracy", "mass"]
    before = status(average_loss=None, recent_loss=None, accuracy=None, minted=False, refused=4)
    facts = status_facts(before)
    assert list(facts) == ["card", "samples", "mass", "refused"]
    assert "not in it yet" in facts["mass"]


def test_edges_are_rows_with_ages_seen_from_the_status():
    now = status(
        receivers=[receiver("bob", 9, 7)],
        senders=[sender("carol"), sender("dora", quarantined=True), sender("eve", admitted=False)],
    )
    (row,) = receiver_table(now)
    assert list(row.values()) == [
        *("bob", "open", "connected", "2", "9", "2", "1 min", "1 min ago"),
    ]
    states = [row["state"] for row in sender_table(now)]
    assert states == ["admitted", "quarantined", "not admitted"]
    assert sender_table(now)[0]["rejected"] == "2"
    assert sender_table(now)[0]["last push"] == "never"


def test_what_is_owed_names_those_who_have_to_answer():
    owing = [receiver("bob", 9, 7), receiver("carol", 9, 9), receiver("dora", 9, 9, "resync")]
    assert what_is_owed(status(receivers=owing)).startswith("bob, dora have not acknowledged")
    assert "carol" not in what_is_owed(status(receivers=owing))
    assert "0.75" in what_is_owed(status(receivers=[receiver("carol", 9, 9)]))
    for receivers in ([], [make_receiver(left=True)]):
        assert "nobody" in what_is_owed(status(receivers=receivers))
        assert "--discard" in what_is_owed(status(receivers=receivers))


def test_an_end_is_summed_up():
    assert how_it_ended("alice", None) == "alice has stopped."
    assert "1,200 samples in all, average loss 0.2500, 2 skipped" in how_it_ended(
        "alice", status(skipped=2)
    )
    assert "handed over everything" in how_it_ended("alice", status(drained=True))


def test_what_happens_seldom_is_a_fact_when_it_does():
    facts = status_facts(
        status(
            mass=300.0,
            mass_limit=256.0,
            owed=0.5,
            stopped="another copy of alice runs",
            leaving=True,
            unheard=["carol", "dora"],
            receipts=2,
        )
    )
    assert "cannot be" in facts["mass"]
    assert facts["owed"].startswith("0.500000")
    assert facts["stopped"] == "another copy of alice runs"
    assert facts["leaving"] == "hands over; carol, dora have not heard that you leave"
    assert facts["receipts"].startswith("2 ")
    assert not {"owed", "stopped", "leaving", "receipts"} & status_facts(status()).keys()


def test_a_receiver_is_shown_with_what_is_under_way_and_why_nothing_more_is():
    bob = make_receiver(in_flight_mass=0.125, held_back="the link is down", link="connecting")
    now = status(receivers=[bob, make_receiver(name="dora", left=True, held_back="it left")])
    first, second = receiver_table(now)
    assert (first["in flight"], first["link"]) == ("0 (0.12)", "connecting")
    assert (second["in flight"], second["link"]) == ("0", "left")
    assert edge_notes(now) == ["Nothing is handed over to bob at the moment: the link is down."]


def test_a_fault_of_somebody_who_is_both_is_said_once():
    two = "two copies of bob run"
    both = status(receivers=[make_receiver(problem=two)], senders=[make_sender(problem=two)])
    assert edge_notes(both) == [two]


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"last_push": 900.0}, "silent"),
        ({"last_push": 900.0, "last_heard": 960.0}, "admitted"),
        ({"last_push": 900.0, "left": True}, "left"),
        ({"last_push": 900.0, "closed": True}, "closed"),
        ({"last_push": 0.0}, "silent"),
        ({"last_push": 0.0, "seq": 0}, "admitted"),
    ],
)
def test_a_sender_of_which_nothing_at_all_is_heard_is_silent(changes, state):
    assert sender_table(status(senders=[make_sender(**changes)]))[0]["state"] == state


def test_what_waits_to_be_taken_in_is_shown():
    senders = [make_sender(waiting=1.5), make_sender(name="dora")]
    assert [row["waits"] for row in sender_table(status(senders=senders))] == ["1.5", "-"]


def test_who_does_not_know_that_a_peer_leaves_is_named():
    unheard = status(receivers=[receiver("bob", 9, 9)], leaving=True, unheard=["carol"])
    assert what_is_owed(unheard) == "it holds mass 0.75; carol has not heard that you leave"
    drained = status(leaving=True, drained=True, unheard=["carol", "dora"])
    assert what_is_owed(drained) == (
        "everything is handed over; carol, dora have not heard that you leave"
    )
    assert "carol, dora have not heard that you leave" in how_it_ended("alice", drained)


def test_a_status_of_an_older_release_can_be_read():
    old = msgspec.to_builtins(status(receivers=[make_receiver()], senders=[make_sender()]))
    for new in ("mass_limit", "owed", "stopped", "unheard", "receipts"):
        del old[new]
    for new in ("left", "in_flight_mass", "held_back", "claims"):
        del old["receivers"][0][new]
    for new in ("left", "last_heard", "waiting"):
        del old["senders"][0][new]
    read = msgspec.convert(old, Status)
    assert read == status(receivers=[make_receiver()], senders=[make_sender()])


PRIVACY = PrivacyStatus(
    brief="epsilon 1, delta 1e-05 per sample",
    sentence="epsilon 1, in full",
    epsilon=1.0,
    delta=1e-5,
    floor="epsilon 8, delta 1e-05 per sample",
    floor_epsilon=8.0,
    samples_per_push=16,
    waiting=7,
)


def test_the_guarantee_in_force_is_a_fact_with_the_floor_and_the_unfinished_batch():
    facts = status_facts(status(privacy=PRIVACY))
    assert facts["privacy"] == (
        "epsilon 1, delta 1e-05 per sample; all peers of the task: epsilon 8, delta 1e-05 per "
        "sample"
    )
    assert facts["batch"] == "7 of 16 samples for the next push"
    alike = msgspec.structs.replace(PRIVACY, floor=PRIVACY.brief)
    assert status_facts(status(privacy=alike))["privacy"] == PRIVACY.brief


def test_that_there_is_no_privacy_or_another_is_asked_for_is_a_fact_too():
    none = "none: samples can be read from what is sent"
    said = PrivacyStatus(brief=none, sentence=none, floor=none, samples_per_push=1)
    assert status_facts(status(privacy=said))["privacy"] == none
    other = msgspec.structs.replace(said, needs_restart=True)
    assert "start the peer again" in status_facts(status(privacy=other))["privacy"]


def test_nothing_waits_where_nothing_is_sent_and_nothing_is_known_of_an_older_release():
    alone = PrivacyStatus(
        brief="nothing is sent", sentence="nothing is sent", floor="", samples_per_push=0
    )
    assert "batch" not in status_facts(status(privacy=alone))
    assert not {"privacy", "batch"} & status_facts(status()).keys()


def test_a_status_with_privacy_is_read_back_as_it_was():
    known = status(privacy=PRIVACY)
    assert msgspec.json.decode(msgspec.json.encode(known), type=Status) == known


def test_restarts_of_the_learning_rate_are_a_fact():
    assert "restarts" not in status_facts(status())
    fact = status_facts(status(restarts=[320, 1104]))["restarts"]
    assert fact.startswith("2 ")
    assert "1,104" in fact
