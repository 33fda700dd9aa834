from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.peer.api import prometheus as exposition
from oneway.records.measures import Baselines, ClassMeasure, Measures
from oneway.records.status import PrivacyStatus, Status
from oneway.testing.records import make_receiver, make_sender, make_status

BOB = make_receiver(seq=41, acked=39, lag=0.25)
CAROL = make_sender(seq=17, rejected={"repeated": 4, "mass shrinks": 2}, clipped=3, strikes=2)
ALICE = make_status(
    pid=1,
    started=100.5,
    samples=300,
    average_loss=0.5,
    recent_loss=0.25,
    accuracy=0.9,
    skipped=7,
    mass=0.75,
    mass_units=3 << 38,
    commits=50,
    commit_seconds=0.002,
    refused=5,
    undecodable=6,
    frames_in=10,
    frames_out=20,
    bytes_in=1000,
    bytes_out=2000,
    receivers=[BOB],
    senders=[CAROL],
)

# --- a strict reader of text format 0.0.4, for what a peer writes ---

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
SERIES = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)\Z", re.DOTALL)
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|\Z)')

Labels = frozenset[tuple[str, str]]


@dataclass
class Metric:
    kind: str
    help: str
    series: dict[Labels, float] = field(default_factory=dict)


def read(text: str) -> dict[str, Metric]:
    assert text.endswith("\n")
    metrics: dict[str, Metric] = {}
    current, meaning = "", None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            assert meaning is None
            current, meaning = line.removeprefix("# HELP ").split(" ", 1)
            assert NAME.match(current)
            assert current not in metrics
        elif line.startswith("# TYPE "):
            name, kind = line.removeprefix("# TYPE ").split(" ")
            assert name == current
            assert meaning
            metrics[name] = Metric(kind, meaning)
            meaning = None
        else:
            found = SERIES.match(line)
            assert found, line
            assert found[1] == current
            labels = read_labels(found[2] or "")
            assert labels not in metrics[current].series
            metrics[current].series[labels] = float(found[3])
    return metrics


def read_labels(text: str) -> Labels:
    labels: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        found = LABEL.match(text, at)
        assert found, text[at:]
        value = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], found[2])
        labels.append((found[1], value))
        at = found.end()
    assert len({name for name, _ in labels}) == len(labels)
    return frozenset(labels)


def labelled(**labels: str) -> Labels:
    return frozenset(labels.items())


def value(metrics: Mapping[str, Metric], name: str, **labels: str) -> float:
    return metrics[f"oneway_{name}"].series[labelled(**labels)]


def prometheus(status: Status) -> str:
    return exposition.prometheus(status).decode()


# --- the facts ---


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("samples_total", 300),
        ("samples_skipped_total", 7),
        ("average_loss", 0.5),
        ("recent_loss", 0.25),
        ("accuracy_ratio", 0.9),
        ("mass", 0.75),
        ("minted", 1),
        ("leaving", 0),
        ("paused", 0),
        ("stream_finished", 0),
        ("start_time_seconds", 100.5),
        ("commits_total", 50),
        ("commit_seconds", 0.002),
        ("disk_failing", 0),
        ("frames_refused_total", 5),
        ("frames_undecodable_total", 6),
        ("frames_received_total", 10),
        ("frames_sent_total", 20),
        ("received_bytes_total", 1000),
        ("sent_bytes_total", 2000),
    ],
)
def test_a_number_of_the_status_is_a_metric(name, expected):
    assert value(read(prometheus(ALICE)), name) == expected


def test_every_receiver_has_its_sequence_numbers_and_its_lag():
    metrics = read(prometheus(ALICE))
    bob = {"receiver": "bob", "key": "b" * 16}
    assert value(metrics, "receiver_seq", **bob) == 41
    assert value(metrics, "receiver_acked_seq", **bob) == 39
    assert value(metrics, "receiver_ack_lag_seconds", **bob) == 0.25
    assert value(metrics, "receiver_connected", **bob) == 1


def test_every_sender_has_its_staleness_and_its_record():
    metrics = read(prometheus(ALICE))
    carol = {"sender": "carol", "key": "c" * 16}
    assert value(metrics, "sender_seq", **carol) == 17
    assert value(metrics, "sender_staleness_seconds", **carol) == 10.0
    assert value(metrics, "sender_clipped_pushes_total", **carol) == 3
    assert value(metrics, "sender_strikes", **carol) == 2
    assert value(metrics, "sender_quarantined", **carol) == 0
    rejected = "sender_rejected_messages_total"
    assert value(metrics, rejected, **carol, reason="repeated") == 4
    assert value(metrics, rejected, **carol, reason="mass shrinks") == 2


def test_names_follow_the_conventions():
    for name, metric in read(prometheus(ALICE)).items():
        assert name.startswith("oneway_")
        assert metric.kind in ("counter", "gauge")
        assert (metric.kind == "counter") == name.endswith("_total")
        assert metric.help.endswith(".")


def test_what_has_no_value_yet_is_left_out_whole():
    new = msgspec.structs.replace(
        ALICE, average_loss=None, recent_loss=None, accuracy=None, receivers=[], senders=[]
    )
    metrics = read(prometheus(new))
    assert "oneway_average_loss" not in metrics
    assert "oneway_accuracy_ratio" not in metrics
    assert not any("receiver" in name or "sender" in name for name in metrics)


def test_a_sender_that_never_pushed_has_no_staleness():
    silent = msgspec.structs.replace(CAROL, last_push=0.0)
    metrics = read(prometheus(msgspec.structs.replace(ALICE, senders=[silent])))
    assert "oneway_sender_staleness_seconds" not in metrics
    assert "oneway_sender_seq" in metrics


def test_staleness_is_never_negative_though_the_clock_was_set_back():
    ahead = msgspec.structs.replace(CAROL, last_push=2000.0)
    metrics = read(prometheus(msgspec.structs.replace(ALICE, senders=[ahead])))
    assert list(metrics["oneway_sender_staleness_seconds"].series.values()) == [0.0]


def test_a_full_disk_can_be_alerted_on():
    full = msgspec.structs.replace(ALICE, disk_problem="the disk is full")
    assert value(read(prometheus(full)), "disk_failing") == 1


def test_numbers_keep_every_digit():
    exact = msgspec.structs.replace(ALICE, mass=1 / 3, bytes_out=2**53 - 1)
    assert value(read(prometheus(exact)), "mass") == 1 / 3
    assert value(read(prometheus(exact)), "sent_bytes_total") == 2**53 - 1


def test_a_loss_that_is_not_finite_is_written_as_the_format_says():
    broken = msgspec.structs.replace(ALICE, average_loss=float("inf"), recent_loss=float("nan"))
    assert "oneway_average_loss +Inf\n" in prometheus(broken)
    assert "oneway_recent_loss NaN\n" in prometheus(broken)


@given(st.lists(st.tuples(st.text(), st.text(min_size=20), st.text()), max_size=4))
@settings(deadline=None)
def test_labels_of_any_text_are_read_back_as_they_were(peers):
    senders = [
        msgspec.structs.replace(CAROL, name=name, key=key, rejected={reason: 1})
        for name, key, reason in peers
    ]
    metrics = read(prometheus(msgspec.structs.replace(ALICE, senders=senders)))
    expected = {labelled(sender=name, key=key[:16]) for name, key, _ in peers}
    assert set(getattr(metrics.get("oneway_sender_seq"), "series", {})) == expected


def test_what_cannot_be_and_who_left_or_fell_silent_is_measured():
    bob = msgspec.structs.replace(BOB, left=True, in_flight_mass=0.25, held_back="full", claims=4)
    carol = msgspec.structs.replace(CAROL, last_push=900.0, waiting=1.5, left=False)
    strange = msgspec.structs.replace(
        ALICE, mass=-2.0, mass_limit=256.0, owed=0.5, unheard=["carol"], receipts=3
    )
    metrics = read(prometheus(msgspec.structs.replace(strange, receivers=[bob], senders=[carol])))
    who = {"receiver": "bob", "key": BOB.key[:16]}
    assert value(metrics, "receiver_left", **who) == 1
    assert value(metrics, "receiver_in_flight_mass", **who) == 0.25
    assert value(metrics, "receiver_held_back", **who) == 1
    assert value(metrics, "receiver_claims_total", **who) == 4
    who = {"sender": "carol", "key": CAROL.key[:16]}
    assert value(metrics, "sender_waiting_mass", **who) == 1.5
    assert (value(metrics, "sender_silent", **who), value(metrics, "sender_left", **who)) == (1, 0)
    assert (value(metrics, "mass_impossible"), value(metrics, "mass_limit")) == (1, 256)
    assert (value(metrics, "mass_owed"), value(metrics, "receipts")) == (0.5, 3)
    assert value(metrics, "leave_unheard") == 1
    well = read(prometheus(ALICE))
    assert "oneway_mass_limit" not in well
    assert value(well, "mass_impossible") == 0


def test_the_guarantee_is_measured_and_what_is_not_promised_is_left_out():
    none = PrivacyStatus(brief="none", sentence="none", floor="none", samples_per_push=16)
    some = msgspec.structs.replace(
        none, epsilon=1.0, delta=1e-5, floor_epsilon=8.0, waiting=7, needs_restart=True
    )
    metrics = read(prometheus(msgspec.structs.replace(ALICE, privacy=some)))
    assert value(metrics, "privacy_epsilon") == 1.0
    assert value(metrics, "privacy_delta") == 1e-5
    assert value(metrics, "privacy_floor_epsilon") == 8.0
    assert (value(metrics, "privacy_none"), value(metrics, "privacy_needs_restart")) == (0, 1)
    assert (value(metrics, "samples_per_push"), value(metrics, "samples_waiting")) == (16, 7)
    bare = read(prometheus(msgspec.structs.replace(ALICE, privacy=none)))
    assert value(bare, "privacy_none") == 1
    missing = {"privacy_epsilon", "privacy_delta", "privacy_floor_epsilon"}
    assert not {f"oneway_{name}" for name in missing} & bare.keys()
    assert not any("privacy" in name for name in read(prometheus(ALICE)))


def test_the_loss_stands_beside_its_baselines_and_the_measures_people_accept():
    classes = [
        ClassMeasure(name='say "no"', samples=3, predicted=0, recall=0.0, precision=None),
        ClassMeasure(name="yes", samples=1, predicted=4, recall=1.0, precision=0.25),
    ]
    measures = Measures(
        so_far=Baselines(samples=4, loss=0.5, base_loss=0.7),
        roc_auc=0.8,
        brier=0.2,
        classes=classes,
    )
    metrics = read(prometheus(msgspec.structs.replace(ALICE, measures=measures)))
    assert (value(metrics, "base_loss"), value(metrics, "roc_auc")) == (0.7, 0.8)
    assert value(metrics, "class_recall_ratio", **{"class": 'say "no"'}) == 0.0
    assert value(metrics, "class_precision_ratio", **{"class": "yes"}) == 0.25
    assert not {"oneway_alone_loss", "oneway_rmse", "oneway_log_loss"} & metrics.keys()
    assert len(metrics["oneway_class_precision_ratio"].series) == 1
