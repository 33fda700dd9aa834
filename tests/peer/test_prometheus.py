from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
from builders import make_receiver, make_sender, make_status
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from oneway.peer.api import prometheus as exposition
from oneway.records.measures import Baselines, ClassMeasure, Measures
from oneway.records.status import PrivacyStatus, Status

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

Labels = frozenset[tuple[str, str]]


@dataclass
class Metric:
    kind: str
    help: str
    series: dict[Labels, float] = field(default_factory=dict)


def read(text: str) -> dict[str, Metric]:
    metrics: dict[str, Metric] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            metric = metrics.setdefault(sample.name, Metric(family.type, family.documentation))
            metric.series[frozenset(sample.labels.items())] = sample.value
    return metrics


def labelled(**labels: str) -> Labels:
    return frozenset(labels.items())


def value(metrics: Mapping[str, Metric], name: str, **labels: str) -> float:
    return metrics[f"oneway_{name}"].series[labelled(**labels)]


def prometheus(status: Status) -> str:
    return exposition.prometheus(status).decode()


# --- the facts ---


@given(st.lists(st.tuples(st.text(), st.text(min_size=20), st.text()), max_size=4))
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
    carol = msgspec.structs.replace(CAROL, last_push=900.0, left=False)
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
