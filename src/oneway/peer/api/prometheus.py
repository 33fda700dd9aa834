"""Prometheus exposition of a peer's status: text format 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector

from oneway.metrics.measure_rows import baseline_rows, measure_rows
from oneway.metrics.tally import MOST_CLASSES
from oneway.records.measures import Measures
from oneway.records.status import ReceiverStatus, SenderStatus, Status

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_KEY_LENGTH = 16
"""Characters of a key in a label: enough that nobody can make a second key with the same."""

_Labels: TypeAlias = dict[str, str]

# A metric's name (a counter's ends with _total), the field of the status, and what it means.
_OF_THE_PEER = (
    ("start_time_seconds", "started", "When the process started, since 1970."),
    ("samples_total", "samples", "Samples learned from."),
    ("samples_skipped_total", "skipped", "Samples that could not be used."),
    ("average_loss", "average_loss", "Mean loss over all samples so far."),
    ("recent_loss", "recent_loss", "Mean loss over the last samples."),
    ("accuracy_ratio", "accuracy", "Share of right predictions so far."),
    ("mass", "mass", "Mass held, omega; a peer brings 1."),
    ("mass_owed", "owed", "Mass of a life that the peer forgot, paid back from what comes in."),
    ("minted", "minted", "Whether the peer has brought its mass."),
    ("leaving", "leaving", "Whether the peer hands over all it has."),
    ("receipts", "receipts", "Receipts of peers that left, kept for others."),
    ("paused", "paused", "Whether the peer neither learns nor pushes."),
    ("stream_finished", "finished", "Whether the stream has ended."),
    ("commits_total", "commits", "Durable commits of the state."),
    ("commit_seconds", "commit_seconds", "Time a commit takes, a recent mean."),
    ("frames_refused_total", "refused", "Frames from keys that are not admitted."),
    ("frames_undecodable_total", "undecodable", "Frames that were too large or malformed."),
    ("frames_received_total", "frames_in", "Frames received."),
    ("frames_sent_total", "frames_out", "Frames sent."),
    ("received_bytes_total", "bytes_in", "Bytes received."),
    ("sent_bytes_total", "bytes_out", "Bytes sent."),
)
_OF_PRIVACY = (
    ("privacy_epsilon", "epsilon", "Epsilon in force for its samples; absent if there is none."),
    ("privacy_delta", "delta", "Delta in force for its samples; absent if there is none."),
    ("privacy_floor_epsilon", "floor_epsilon", "Epsilon of the task; absent if there is none."),
    ("privacy_none", "is_none", "Whether samples can be read from what is sent."),
    ("privacy_needs_restart", "needs_restart", "Whether peer.toml asks for another privacy."),
    ("samples_per_push", "samples_per_push", "Samples that each of its pushes carries steps of."),
    ("samples_waiting", "waiting", "Samples in the batch that is not full yet."),
)
_OF_RECEIVERS = (
    ("receiver_seq", "seq", "Number of the last total handed over."),
    ("receiver_acked_seq", "acked", "Number of the last total the receiver is known to hold."),
    (
        "receiver_ack_lag_seconds",
        "lag",
        "Time since something was last acknowledged; 0 if everything is.",
    ),
    ("receiver_in_flight_mass", "in_flight_mass", "Mass that is not acknowledged yet."),
    ("receiver_claims_total", "claims", "Claims to have been restored from a backup."),
    ("receiver_left", "left", "Whether the receiver said that it leaves or has left."),
)
_OF_SENDERS = (
    ("sender_seq", "seq", "Number of the last total heard."),
    ("sender_clipped_pushes_total", "clipped", "Pushes that would have moved this peer too far."),
    ("sender_strikes", "strikes", "Rejections that count against the sender."),
    ("sender_quarantined", "quarantined", "Whether the sender is ignored for the time being."),
    ("sender_left", "left", "Whether the sender said that it leaves or has left."),
)


def prometheus(status: Status) -> bytes:
    """Return the text that `GET /metrics` answers; metrics without a value are left out."""
    registry = CollectorRegistry()
    registry.register(_StatusCollector(status))
    return generate_latest(registry)


class _StatusCollector(Collector):
    """Turns one status into metrics."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics that have a value."""
        for name, meaning, series in _families(self._status):
            # Of equal labels, the last one counts.
            values = {tuple(labels.items()): value for labels, value in series if value is not None}
            if values:
                kind = "counter" if name.endswith("_total") else "gauge"
                metric = Metric(f"oneway_{name.removesuffix('_total')}", meaning, kind)
                for labels, value in values.items():
                    metric.add_sample(f"oneway_{name}", dict(labels), float(value))
                yield metric


def _families(
    status: Status,
) -> Iterator[tuple[str, str, Iterable[tuple[_Labels, float | None]]]]:
    about = {"name": status.name, "key": status.key[:_KEY_LENGTH], "task": status.task}
    yield "peer_info", "Who this peer is.", [(about, 1)]
    failing = bool(status.disk_problem)
    yield "disk_failing", "Whether the state or the status cannot be written.", [({}, failing)]
    yield (
        "mass_limit",
        "More mass than this a peer of the task cannot come to hold.",
        [({}, status.mass_limit or None)],
    )
    yield (
        "mass_impossible",
        "Whether the mass is one that no peer can come to hold.",
        [({}, not status.has_possible_mass)],
    )
    yield (
        "leave_unheard",
        "Senders that do not know yet that it leaves.",
        [({}, len(status.unheard))],
    )
    receivers = [(_labels("receiver", peer), peer) for peer in status.receivers]
    senders = [(_labels("sender", peer), peer) for peer in status.senders]
    rows: list[tuple[Any, Any]] = [
        (_OF_THE_PEER, [({}, status)]),
        (_OF_PRIVACY, [({}, status.privacy)] if status.privacy else []),
        (_OF_RECEIVERS, receivers),
        (_OF_SENDERS, senders),
    ]
    for table, sources in rows:
        for name, field, meaning in table:
            yield name, meaning, [(labels, getattr(it, field)) for labels, it in sources]
    if status.measures is not None:
        yield from _measures(status.measures)
    yield (
        "receiver_connected",
        "Whether the connection is up.",
        [(labels, peer.link == "connected") for labels, peer in receivers],
    )
    yield (
        "receiver_held_back",
        "Whether nothing is handed over at the moment.",
        [(labels, bool(peer.held_back)) for labels, peer in receivers],
    )
    yield (
        "sender_silent",
        "Whether nothing at all was heard from a sender for too long.",
        [(labels, status.silent_since(peer) is not None) for labels, peer in senders],
    )
    yield (
        "sender_staleness_seconds",
        "Time since the sender's last push; absent before the first.",
        # A clock that is set back must not make the past lie ahead.
        [
            (labels, max(0.0, status.time - peer.last_push) if peer.last_push else None)
            for labels, peer in senders
        ],
    )
    yield (
        "sender_rejected_messages_total",
        "Messages that were rejected, by reason.",
        [
            (labels | {"reason": reason}, count)
            for labels, peer in senders
            for reason, count in peer.rejected.items()
        ],
    )


def _measures(
    measures: Measures,
) -> Iterator[tuple[str, str, Iterable[tuple[_Labels, float | None]]]]:
    for row in (*baseline_rows(measures)[1:], *measure_rows(measures)):
        if row.key != "accuracy":
            yield row.key, f"{row.name}: {row.meaning}.", [({}, row.value)]
    yield (
        "expert_weight_ratio",
        "How much the personal predictions believe each expert.",
        [({"expert": name}, weight) for name, weight in measures.weights.items()],
    )
    yield (
        "expert_left_out_total",
        "Predictions that an expert was left out of for want of a finite answer.",
        [({"expert": name}, measures.left_out.get(name, 0)) for name in measures.weights],
    )
    for name, meaning in (
        ("recall", "Share of a class's samples that were recognised."),
        ("precision", "Share of what was said to be of a class that is."),
    ):
        shares = [({"class": it.name}, getattr(it, name)) for it in measures.classes[:MOST_CLASSES]]
        yield f"class_{name}_ratio", meaning, shares


def _labels(role: str, peer: ReceiverStatus | SenderStatus) -> _Labels:
    return {role: peer.name, "key": peer.key[:_KEY_LENGTH]}
