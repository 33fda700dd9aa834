"""What a lab leaves behind: every peer, the audit, the comparison, and runs like any simulation's.

The real peers are a run too, so that the same pages and reports can show both. Round k is the k-th
sample of every peer, whenever that was. Losses are those that the peers wrote down: sample by
sample for the first thousand, then in groups, whose loss is spread evenly over their samples, so
that sums are exact where a group ends, the last one included. Disagreement was measured now and
then, and lies on straight lines in between; it begins with 0, as all peers start from the same
model.

Peers that joined later have another first sample than the others, and the simulations know nothing
of them. So the losses are those of the founders, as in the comparison; masses and numerators in the
end are of everybody, the founders first.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from oneway import store
from oneway.errors import StoreError
from oneway.lab.audit import Audit
from oneway.lab.lab import Lab
from oneway.lab.problem import Problem
from oneway.lab.simulations import References, samples_of
from oneway.metrics import average_loss, base_loss, disagreement_of_holders
from oneway.metrics.baselines import difference_interval
from oneway.metrics.learning_curve import spread_correct, spread_known, spread_losses
from oneway.metrics.measure_rows import ALONE, SHARED, YOURS, measure_rows
from oneway.metrics.tally import measures_of, merged
from oneway.peer.learner import Learner
from oneway.peer.measuring import measures_in, tally_in, weights_in
from oneway.peer.store.snapshot import Journal, Snapshot
from oneway.peer.store.store import read_curve
from oneway.personal.links import answers_to
from oneway.personal.personal import PRIOR
from oneway.personal.words import believes, verdict
from oneway.protocol.fixed_point import ONE, mass_of
from oneway.records import Ints, Matrix, NetworkState, PersonalRecord, RunRecord, Vector
from oneway.records.curve import Curve
from oneway.records.measures import Measures
from oneway.records.values import ALONE as ALONE_COLUMN
from oneway.records.values import YOURS as YOURS_COLUMN
from oneway.store import RESULT, RUNS

MOST_FRESH = 1_000
"""Rows on which last models are tried."""

Points = Sequence[tuple[float, float]]
"""Disagreement as it was measured: after how many samples on average, and how much."""


@dataclass(frozen=True)
class PeerResult:
    """One peer in the end; losses are None if it learned from nothing, or shares nothing.

    Attributes:
        average_loss: Of its own answers: its personal predictions.
        shared_loss, alone_loss, base_loss: Beside it, as in `Baselines`.
        weights, believes, verdict: As in `Measures`.
        accuracy: Of what answers in the end, on rows of the table that no peer has learned from;
            None where there are none, or numbers are predicted.
        alone_accuracy: Of what it would have had alone.
    """

    name: str
    samples: int
    average_loss: float | None
    mass_units: int
    restarts: int
    shared_loss: float | None = None
    alone_loss: float | None = None
    base_loss: float | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    believes: str = ""
    verdict: str = ""
    accuracy: float | None = None
    alone_accuracy: float | None = None

    @property
    def mass(self) -> float:
        """omega, as an ordinary number."""
        return self.mass_units / ONE


@dataclass(frozen=True, eq=False)
class Result:
    """A lab in the end.

    Attributes:
        seconds: How long the peers learned.
        complete: False if the learning ended before the samples did.
        events: What was done to the peers.
        config: What determines the samples, the graph and the faults.
        records: By the name of their folder: "peers", the real ones as a run, and simulations on
            the samples they learned from: the same method, and with mutual trust only.
        is_rewired: Whether the peers' trust is no longer that of the simulations.
        privacy: What the task promises about samples, in a few words.
        measures: How good the predictions of all peers were, together.
        num_fresh: How many rows that no peer has learned from the accuracies are of.
    """

    peers: Sequence[PeerResult]
    audit: Audit
    seconds: float
    complete: bool
    events: Sequence[str]
    config: Mapping[str, Any] = field(default_factory=dict)
    records: Mapping[str, RunRecord] = field(default_factory=dict)
    is_rewired: bool = False
    privacy: str = ""
    measures: Measures | None = None
    num_fresh: int = 0

    @property
    def average_losses(self) -> dict[str, float] | None:
        """Yours, shared, alone and base rate, as far as known, and yours of the same simulated.

        Over all samples of the founders, each suffered before it was learned from; None without
        any, or without the simulation.
        """
        method = self.config["task"]["method"]
        if not self.records.keys() >= {"peers", method}:
            return None
        peers, simulated = self.records["peers"], self.records[method]
        losses = {YOURS: _own_loss(peers)}
        if peers.personal is not None:
            losses |= {SHARED: peers.personal.shared_loss, ALONE: peers.personal.alone_loss}
        base = base_loss(peers)
        losses |= {} if base is None else {"base_rate": base}
        return losses | {"simulated": _own_loss(simulated)}

    @property
    def verdict(self) -> str:
        """Whether the peers together lost less than each alone, as a sentence; empty if unknown."""
        peers = self.records.get("peers")
        own = None if peers is None else peers.personal
        if own is None:
            return ""
        apart = own.sums[:, YOURS_COLUMN] - own.sums[:, ALONE_COLUMN]
        return verdict(*difference_interval(apart, own.counts), own.alone_loss)

    @property
    def sentences(self) -> list[str]:
        """The audit, the comparison, and what was promised."""
        said = list(self.audit.sentences)
        losses = self.average_losses
        if losses is not None:
            simulated = losses.pop("simulated")
            more = losses[YOURS] / simulated - 1.0 if simulated else 0.0
            each = [f"{name.replace('_', ' ')} {loss:.4f}" for name, loss in losses.items()]
            same = (
                "with the trust and the peers of the start, same samples and order"
                if self.is_rewired
                else "same graph, samples and order"
            )
            said.append(
                f"average loss: {', '.join(each)}; in the simulator, {same}, {YOURS} "
                f"{simulated:.4f} ({more:+.1%})"
            )
        own = self.records["peers"].personal if "peers" in self.records else None
        if own is not None:
            believed = believes(own.mean_weights).replace(" your own", " their own")
            said.append(f"on average the peers believe {believed.replace(' you', ' them')}")
            said.append(self.verdict)
        compared = [
            (peer.accuracy, peer.alone_accuracy)
            for peer in self.peers
            if peer.accuracy is not None and peer.alone_accuracy is not None
        ]
        if compared:
            mine, alone_ones = zip(*compared, strict=True)
            said.append(
                f"on {self.num_fresh:,} rows that no peer has learned from, the last answers "
                f"are right in {min(mine):.1%} to {max(mine):.1%}; each alone would be in "
                f"{min(alone_ones):.1%} to {max(alone_ones):.1%}"
            )
        if self.measures is not None:
            rows = measure_rows(self.measures)
            said.append(", ".join(f"{row.name} {row.text}" for row in rows))
        return [*said, f"privacy: {self.privacy}"] if self.privacy else said

    def as_dict(self) -> dict[str, Any]:
        """Everything in terms JSON can hold."""
        audit = self.audit
        return {
            "complete": self.complete,
            "seconds": self.seconds,
            "sentences": self.sentences,
            "audit": {
                "exact": audit.is_exact,
                "minted_units": audit.minted_units,
                "held_units": audit.held_units,
                "stranded_units": mass_of(audit.stranded),
                "mass_discrepancy": mass_of(audit.discrepancy),
                "wrong_numbers": {
                    name: int(np.count_nonzero(audit.discrepancy[:-1][place]))
                    for name, place in audit.segments.items()
                },
                "wrong_tracking_numbers": {
                    name: int(np.count_nonzero(wrong)) for name, wrong in audit.untracked.items()
                },
                "unsettled_edges": audit.unsettled,
                "verdict": audit.sentences,
            },
            "average_loss": self.average_losses,
            "verdict": self.verdict,
            "measures": None if self.measures is None else msgspec.to_builtins(self.measures),
            "privacy": self.config["task"]["privacy"],
            "peers": [asdict(peer) | {"mass": peer.mass} for peer in self.peers],
            "events": list(self.events),
            "config": dict(self.config),
        }

    def write(self, folder: Path) -> Path:
        """Write it as JSON beside the peers' folders, and its records as stored runs.

        Raises:
            StoreError: If it cannot be written.
        """
        path = folder / RESULT
        try:
            path.write_text(json.dumps(self.as_dict(), indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror}") from error
        for name, record in self.records.items():
            store.save(record, folder / RUNS / name)
        return path


def result_of(
    lab: Lab,
    conditions: Mapping[str, Any],
    points: Points,
    references: References,
    *,
    seconds: float,
    complete: bool,
) -> Result:
    """Audit a lab that was drained and stopped, and simulate the samples that its peers learned.

    Raises:
        OnewayError: If there is nothing to audit, or a store is damaged.
    """
    problem, snapshots = lab.problem, lab.snapshots()
    found = [snapshots.get(peer.key) for peer in lab.peers]
    journals = [snapshot.journal if snapshot else Journal() for snapshot in found]
    config = {
        **conditions,
        "task": problem.task.fields(),
        "stream": problem.stream.description,
        "graph": problem.graph.description,
    }
    tallies = [tally_in(snapshot.measures) if snapshot else {} for snapshot in found]
    measured = [
        measures_in(it.measures, problem.task, it.history.curve()) if it else None for it in found
    ]
    pooled = measures_of(reduce(merged, tallies, {}), problem.task.classes)
    stream = samples_of(problem, journals)
    runs = {} if stream is None else references.runs_on(stream)
    records = {
        name: replace(run.record, base_sums=run.base_sums, alone_sums=run.alone_sums)
        for name, run in runs.items()
    }
    if records:
        founders = lab.peers[: problem.graph.num_nodes]
        curves = [
            read_curve(peer.home.store_path) if peer.key in snapshots else Curve()
            for peer in founders
        ]
        about = {
            **config,
            "peers": [peer.name for peer in lab.peers],
            "edges": np.stack(problem.graph.edges(), axis=1).tolist(),
            "events": list(lab.events),
        }
        like = next(iter(records.values()))
        peers = peers_record(
            curves,
            list(snapshots.values()),
            Learner(problem.task),
            points,
            like,
            config=about,
            seconds=seconds,
            complete=complete,
            measures=pooled,
        )
        records = {"peers": peers, **records}
    fresh = fresh_rows(problem, lab.dealt)
    learner = Learner(problem.task)
    accuracies = [_accuracies(problem, learner, snapshot, fresh) for snapshot in found]
    return Result(
        peers=[
            PeerResult(
                name=peer.name,
                samples=journal.samples,
                average_loss=journal.loss_sum / journal.samples if journal.samples else None,
                mass_units=mass_of(snapshot.state.holding) if snapshot else 0,
                restarts=peer.restarts,
                shared_loss=own.so_far.shared_loss if own else None,
                alone_loss=own.so_far.alone_loss if own else None,
                base_loss=own.so_far.base_loss if own else None,
                weights=own.weights if own else {},
                believes=own.believes if own else "",
                verdict=own.verdict if own else "",
                accuracy=right[0],
                alone_accuracy=right[1],
            )
            for peer, snapshot, journal, own, right in zip(
                lab.observe(), found, journals, measured, accuracies, strict=True
            )
        ],
        audit=lab.audit(),
        seconds=seconds,
        complete=complete,
        events=list(lab.events),
        config=config,
        records=records,
        is_rewired=lab.is_rewired,
        privacy=problem.task.privacy_in_words,
        measures=pooled,
        num_fresh=len(fresh),
    )


def fresh_rows(problem: Problem, dealt: Collection[int]) -> Ints:
    """Rows of the table that no peer got, newcomers included; some thousands at most."""
    rows: Ints = np.setdiff1d(np.arange(len(problem.table)), list(dealt))
    return rows[:: -(-len(rows) // MOST_FRESH) or 1]


def _own_loss(record: RunRecord) -> float:
    """The mean loss of what answers: personal predictions, or the model without them."""
    return average_loss(record) if record.personal is None else record.personal.average_loss


def _accuracies(
    problem: Problem, learner: Learner, snapshot: Snapshot | None, rows: Ints
) -> tuple[float | None, float | None]:
    """How often a peer is right, and would be alone; None where that has no meaning."""
    params = None if snapshot is None else learner.stored_estimate(snapshot)
    if snapshot is None or params is None or not (len(rows) and problem.task.classifies):
        return None, None
    features, labels = problem.table.features[rows], problem.table.labels[rows]
    own = learner.personal(params, snapshot.measures)
    if own is None:
        said = problem.task.build_model().predict(params, features)
        return float(np.mean(said == labels)), None
    link, found = own.personal.link, [own.forecast(row) for row in features]
    said, alone = (
        answers_to(link, np.concatenate(part)).predicted
        for part in ([it.answer for it in found], [it.experts[:, 1] for it in found])
    )
    return float(np.mean(said == labels)), float(np.mean(alone == labels))


def peers_record(
    curves: Sequence[Curve],
    snapshots: Sequence[Snapshot],
    learner: Learner,
    points: Points,
    like: RunRecord,
    *,
    config: Mapping[str, Any],
    **facts: Any,
) -> RunRecord:
    """The run that the peers of a lab made.

    Args:
        curves: Of the founders, some of them not empty.
        snapshots: Of all peers that have a store, the founders first.
        learner: By which they learned.
        points: What was measured of the disagreement.
        like: A simulation of the same samples.
        config: What determines the numbers.
        facts: How many seconds they learned, whether the run is complete, and its measures.
    """
    num_rounds = max(curve.before + curve.samples for curve in curves)
    yours, counts = np.zeros(num_rounds), np.zeros(num_rounds, dtype=np.int64)
    correct = np.zeros(num_rounds, dtype=np.int64)
    for curve in curves:
        own = slice(curve.before, curve.before + curve.samples)
        yours[own] += spread_losses(curve)
        counts[own] += 1
        correct[own] += spread_correct(curve)
    state = NetworkState(
        numerators=np.array([learner.numerator(snapshot) for snapshot in snapshots]),
        masses=np.array([snapshot.state.mass for snapshot in snapshots]),
    )
    shared, alone, base = (
        _summed([spread_known(curve, name) for curve in curves], curves)
        for name in ("shared", "alone", "base")
    )
    personal = None
    if shared is not None and alone is not None:
        columns = np.column_stack([yours, shared, alone, np.full(num_rounds, np.nan)])
        personal = _personal_record(columns, counts, curves, snapshots)
    mean_samples = float(np.mean([curve.samples for curve in curves]))
    last = disagreement_of_holders(state) or 0.0
    measured = sorted({0.0: 0.0, **dict(points), mean_samples: last}.items())
    return RunRecord(
        method=config["task"]["method"],
        loss_sums=yours if shared is None else shared,
        sample_counts=counts,
        correct_counts=None if like.correct_counts is None else correct,
        disagreement=np.interp(np.arange(1, num_rounds + 1), *np.array(measured).T),
        numerators=state.numerators,
        masses=state.masses,
        base_sums=base,
        alone_sums=alone,
        personal=personal,
        **facts,
        config={
            "kind": "lab",
            "method": config["task"]["method"],
            **config,
            "model": like.config["model"],
            "stream": like.config["stream"],
            "num_nodes": len(curves),
            "num_rounds": num_rounds,
        },
        versions=dict(like.versions),
    )


def _personal_record(
    sums: Matrix, counts: Ints, curves: Sequence[Curve], snapshots: Sequence[Snapshot]
) -> PersonalRecord:
    """What the personal predictions of the founders lost; peers do not sum up *adapted*."""
    found = [weights_in(snapshot.measures) for snapshot in snapshots[: len(curves)]]
    weights = [PRIOR if it is None else it for it in found]
    weights += [PRIOR] * (len(curves) - len(weights))
    totals = [(it.loss_sums, it.shared_sums, it.alone_sums, (math.nan,)) for it in curves]
    return PersonalRecord(
        sums=sums,
        counts=counts,
        node_sums=np.array([[sum(map(float, part)) for part in own] for own in totals]),  # type: ignore[arg-type]
        node_counts=np.array([curve.samples for curve in curves]),
        weights=np.array(weights),
    )


def _summed(parts: Sequence[Vector | None], curves: Sequence[Curve]) -> Vector | None:
    """The sum over all peers, round by round; None if a part is not known."""
    sums = np.zeros(max(curve.before + curve.samples for curve in curves))
    for curve, part in zip(curves, parts, strict=True):
        if part is None:
            return None
        sums[curve.before : curve.before + curve.samples] += part
    return sums
