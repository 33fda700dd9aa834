"""A status as people read it: one line, facts, tables of edges, and what is still owed."""

from __future__ import annotations

import pytest

from oneway.peer.status_text import (
    how_it_ended,
    receiver_table,
    sender_table,
    status_facts,
    status_line,
    what_is_owed,
)
from oneway.records.status import ReceiverStatus, SenderStatus, Status
from oneway.testing.records import make_receiver, make_sender, make_status


def receiver(name: str, seq: int, acked: int, phase: str = "open") -> ReceiverStatus:
    return make_receiver(
        name=name, phase=phase, weight=2.0, seq=seq, acked=acked, lag=90.0, last_answer=940.0
    )


def sender(name: str, **more: object) -> SenderStatus:
    rejected = {"repeated": 7, "forged": 2}
    blank = {"seq": 5, "last_push": 0.0, "rejected": rejected, "clipped": 3, "strikes": 1}
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
        *("bob", "open", "connected", "2", "9", "7", "1 min", "1 min ago"),
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
    assert "nobody" in what_is_owed(status())


def test_an_end_is_summed_up():
    assert how_it_ended("alice", None) == "alice has stopped."
    assert "1,200 samples in all, average loss 0.2500, 2 skipped" in how_it_ended(
        "alice", status(skipped=2)
    )
    assert "handed over everything" in how_it_ended("alice", status(drained=True))
