"""A status as people read it: one line, facts, tables of edges, and what is still owed."""

from __future__ import annotations

import msgspec
import pytest
from builders import make_receiver, make_sender, make_status

from oneway.peer.status_text import (
    receiver_table,
    sender_table,
    status_facts,
    status_line,
)
from oneway.records.status import PrivacyStatus, ReceiverStatus, SenderStatus, Status


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


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"leaving": True, "paused": True}, "leaving"),
        ({"paused": True, "finished": True}, "paused"),
        ({"finished": True}, "no stream"),
        ({"disk_problem": "full"}, "CANNOT WRITE TO ITS DISK"),
        ({"skipped": 3}, "3 skipped"),
        ({"mass": -1.0}, "IMPOSSIBLE"),
    ],
)
def test_the_line_says_what_is_unusual(changes, word):
    assert word in status_line(status(**changes))
    assert word not in status_line(status())


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
