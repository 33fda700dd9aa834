"""A peer's status for Prometheus: text format 0.0.4."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from oneway.records.status import ReceiverStatus, SenderStatus, Status

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_KEY_LENGTH = 16
"""Characters of a key in a label: enough that nobody can make a second key with the same."""

_Labels: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Family:
    """A metric with all its series."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    series: Mapping[_Labels, float]


def prometheus(status: Status) -> str:
    """Return the text that `GET /metrics` answers; metrics without a value are left out."""
    families = [*_of_the_peer(status), *_of_receivers(status), *_of_senders(status)]
    return "".join(_written(family) for family in families if family.series)


def _of_the_peer(status: Status) -> Iterator[_Family]:
    about = (("name", status.name), ("key", status.key[:_KEY_LENGTH]), ("task", status.task))
    yield _gauge("peer_info", "Who this peer is.", {about: 1})
    yield _gauge("start_time_seconds", "When the process started, since 1970.", status.started)
    yield _counter("samples_total", "Samples learned from.", status.samples)
    yield _counter("samples_skipped_total", "Samples that could not be used.", status.skipped)
    yield _gauge("average_loss", "Mean loss over all samples so far.", status.average_loss)
    yield _gauge("recent_loss", "Mean loss over the last samples.", status.recent_loss)
    yield _gauge("accuracy_ratio", "Share of right predictions so far.", status.accuracy)
    yield _gauge("mass", "Mass held, omega; a peer brings 1.", status.mass)
    yield _gauge("minted", "Whether the peer has brought its mass.", status.minted)
    yield _gauge("leaving", "Whether the peer hands over all it has.", status.leaving)
    yield _gauge("paused", "Whether the peer neither learns nor pushes.", status.paused)
    yield _gauge("stream_finished", "Whether the stream has ended.", status.finished)
    yield _counter("commits_total", "Durable commits of the state.", status.commits)
    yield _gauge("commit_seconds", "Time a commit takes, a recent mean.", status.commit_seconds)
    yield _gauge(
        "disk_failing", "Whether the state cannot be made durable.", bool(status.disk_problem)
    )
    yield _counter(
        "frames_refused_total", "Frames from keys that are not admitted.", status.refused
    )
    yield _counter(
        "frames_undecodable_total", "Frames that were too large or malformed.", status.undecodable
    )
    yield _counter("frames_received_total", "Frames received.", status.frames_in)
    yield _counter("frames_sent_total", "Frames sent.", status.frames_out)
    yield _counter("received_bytes_total", "Bytes received.", status.bytes_in)
    yield _counter("sent_bytes_total", "Bytes sent.", status.bytes_out)


def _of_receivers(status: Status) -> Iterator[_Family]:
    receivers = [(_labels("receiver", peer), peer) for peer in status.receivers]
    yield _gauge(
        "receiver_seq",
        "Number of the last total handed over.",
        {labels: peer.seq for labels, peer in receivers},
    )
    yield _gauge(
        "receiver_acked_seq",
        "Number of the last total the receiver is known to hold.",
        {labels: peer.acked for labels, peer in receivers},
    )
    yield _gauge(
        "receiver_ack_lag_seconds",
        "Time since something was last acknowledged; 0 if everything is.",
        {labels: peer.lag for labels, peer in receivers},
    )
    yield _gauge(
        "receiver_connected",
        "Whether the connection is up.",
        {labels: peer.link == "connected" for labels, peer in receivers},
    )


def _of_senders(status: Status) -> Iterator[_Family]:
    senders = [(_labels("sender", peer), peer) for peer in status.senders]
    yield _gauge(
        "sender_seq",
        "Number of the last total heard.",
        {labels: peer.seq for labels, peer in senders},
    )
    yield _gauge(
        "sender_staleness_seconds",
        "Time since the sender's last push; absent before the first.",
        {
            # A clock that is set back must not make the past lie ahead.
            labels: max(0.0, status.time - peer.last_push)
            for labels, peer in senders
            if peer.last_push
        },
    )
    yield _counter(
        "sender_rejected_messages_total",
        "Messages that were rejected, by reason.",
        {
            (*labels, ("reason", reason)): count
            for labels, peer in senders
            for reason, count in peer.rejected.items()
        },
    )
    yield _counter(
        "sender_clipped_pushes_total",
        "Pushes that would have moved this peer too far.",
        {labels: peer.clipped for labels, peer in senders},
    )
    yield _gauge(
        "sender_strikes",
        "Rejections that count against the sender.",
        {labels: peer.strikes for labels, peer in senders},
    )
    yield _gauge(
        "sender_quarantined",
        "Whether the sender is ignored for the time being.",
        {labels: peer.quarantined for labels, peer in senders},
    )


def _labels(role: str, peer: ReceiverStatus | SenderStatus) -> _Labels:
    return ((role, peer.name), ("key", peer.key[:_KEY_LENGTH]))


def _counter(name: str, meaning: str, value: float | Mapping[_Labels, float]) -> _Family:
    return _Family(f"oneway_{name}", "counter", meaning, _series(value))


def _gauge(name: str, meaning: str, value: float | Mapping[_Labels, float] | None) -> _Family:
    return _Family(f"oneway_{name}", "gauge", meaning, _series(value))


def _series(value: float | Mapping[_Labels, float] | None) -> Mapping[_Labels, float]:
    if isinstance(value, Mapping):
        return value
    return {} if value is None else {(): value}


def _written(family: _Family) -> str:
    lines = [
        f"# HELP {family.name} {family.help}",
        f"# TYPE {family.name} {family.kind}",
        *(
            f"{family.name}{_in_braces(labels)} {_number(value)}"
            for labels, value in sorted(family.series.items())
        ),
    ]
    return "\n".join([*lines, ""])


def _in_braces(labels: _Labels) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{inside}}}" if inside else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(int(value)) if isinstance(value, int) else repr(float(value))
