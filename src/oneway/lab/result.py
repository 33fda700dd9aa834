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
from collections.abc import Mapping, Sequence
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
from oneway.lab.simulations import ALONE_METHOD, samples_of, simulate_all
from oneway.methods import OnlinePushSum
from oneway.metrics import average_loss, base_loss, disagreement_of_holders
from oneway.metrics.learning_curve import spread_correct, spread_known, spread_losses
from oneway.metrics.measure_rows import measure_rows
from oneway.metrics.measured import measures_of
from oneway.metrics.tally import merged
from oneway.peer.learner import Learner
from oneway.peer.measuring import tally_in
from oneway.peer.store.snapshot import Journal, Snapshot
from oneway.peer.store.store import read_curve
from oneway.protocol.fixed_point import ONE, mass_of
from oneway.records import Ints, NetworkState, RunRecord, Vector
from oneway.records.curve import Curve
from oneway.records.measures import Measures
from oneway.store import RESULT, RUNS

MOST_FRESH = 5_000
"""Rows on which last models are tried."""

Points = Sequence[tuple[float, float]]
"""Disagreement as it was measured: after how many samples on average, and how much."""


@dataclass(frozen=True)
class PeerResult:
    """One peer in the end; losses are None if it learned from nothing, or was always alone.

    Accuracies are those of its last model, and of the one it would have had alone, on rows of the
    table that no peer has learned from; None where there are none, or numbers are predicted.
    """

    name: str
    samples: int
    average_loss: float | None
    mass_units: int
    restarts: int
    base_loss: float | None = None
    alone_loss: float | None = None
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
        records: By the name of their folder: "peers", the real ones as a run, and every method's
            simulation on the samples they learned from.
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
        """Of the peers together, of the same simulated, and of each alone; None if one is missing.

        And of every peer's base rate, if they measured it. Over all samples of the founders, each
        suffered before it was learned from.
        """
        method = self.config.get("task", {}).get("method", OnlinePushSum.name)
        compared = {"together": "peers", "simulated": method, "alone": ALONE_METHOD}
        if not self.records.keys() >= set(compared.values()):
            return None
        losses = {said: average_loss(self.records[name]) for said, name in compared.items()}
        base = base_loss(self.records["peers"])
        return losses if base is None else losses | {"base_rate": base}

    @property
    def sentences(self) -> list[str]:
        """The audit, the comparison, and what was promised."""
        said = list(self.audit.sentences)
        losses = self.average_losses
        if losses is not None:
            together, simulated, alone = (
                losses[name] for name in ("together", "simulated", "alone")
            )
            base = f"; base rate {losses['base_rate']:.4f}" if "base_rate" in losses else ""
            more = together / simulated - 1.0 if simulated else 0.0
            same = (
                "with the trust and the peers of the start, same samples and order"
                if self.is_rewired
                else "same graph, samples and order"
            )
            said.append(
                f"average loss {together:.4f}; in the simulator, {same}, {simulated:.4f} "
                f"({more:+.1%}); each alone {alone:.4f}{base}"
            )
        compared = [
            (peer.accuracy, peer.alone_accuracy)
            for peer in self.peers
            if peer.accuracy is not None and peer.alone_accuracy is not None
        ]
        if compared:
            mine, alone_ones = zip(*compared, strict=True)
            said.append(
                f"on {self.num_fresh:,} rows that no peer has learned from, the last models are "
                f"right in {min(mine):.1%} to {max(mine):.1%}; each alone would be in "
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
                "numerator_discrepancy": audit.discrepancy[:-1].tolist(),
                "segment_discrepancy": {
                    name: audit.discrepancy[:-1][place].tolist()
                    for name, place in audit.segments.items()
                },
                "tracking_discrepancy": {
                    name: wrong.tolist() for name, wrong in audit.untracked.items()
                },
                "unsettled_edges": audit.unsettled,
                "verdict": audit.sentences,
            },
            "average_loss": self.average_losses,
            "measures": None if self.measures is None else msgspec.to_builtins(self.measures),
            "privacy": self.config.get("task", {}).get("privacy"),
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
    lab: Lab, conditions: Mapping[str, Any], points: Points, *, seconds: float, complete: bool
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
    measured = [measures_of(tally, problem.task.classes) for tally in tallies]
    pooled = measures_of(reduce(merged, tallies, {}), problem.task.classes)
    stream = samples_of(problem, journals)
    runs = {} if stream is None else simulate_all(problem, stream, lab.note)
    alone = runs[ALONE_METHOD].record.loss_sums if ALONE_METHOD in runs else None
    records = {
        name: replace(
            run.record,
            base_sums=run.base_sums,
            alone_sums=None if name == ALONE_METHOD else alone,
        )
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
    fresh = fresh_rows(problem)
    learner = Learner(problem.task)
    last = [learner.stored_estimate(snapshot) if snapshot else None for snapshot in found]
    accuracies = [_accuracy(problem, params, fresh) for params in last]
    lonely = list(runs[ALONE_METHOD].estimates) if ALONE_METHOD in runs else []
    lonely += [None] * (len(found) - len(lonely))  # who joined later
    return Result(
        peers=[
            PeerResult(
                name=peer.name,
                samples=journal.samples,
                average_loss=journal.loss_sum / journal.samples if journal.samples else None,
                mass_units=mass_of(snapshot.state.holding) if snapshot else 0,
                restarts=peer.restarts,
                base_loss=own.so_far.base_loss if own else None,
                alone_loss=own.so_far.alone_loss if own else None,
                accuracy=accuracy,
                alone_accuracy=_accuracy(problem, alone_model, fresh),
            )
            for peer, snapshot, journal, own, accuracy, alone_model in zip(
                lab.observe(), found, journals, measured, accuracies, lonely, strict=True
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


def fresh_rows(problem: Problem) -> Ints:
    """Rows of the table that no peer was dealt, some thousands at most."""
    dealt = problem.stream.rows[problem.stream.rows >= 0]
    rows: Ints = np.setdiff1d(np.arange(len(problem.table)), dealt)
    return rows[:: -(-len(rows) // MOST_FRESH) or 1]


def _accuracy(problem: Problem, params: Vector | None, rows: Ints) -> float | None:
    """How often a model is right; None without one, or where that has no meaning."""
    model = problem.task.build_model()
    if params is None or not (len(rows) and model.classifies):
        return None
    said = model.predict(params, problem.table.features[rows])
    return float(np.mean(said == problem.table.labels[rows]))


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
    loss_sums, counts = np.zeros(num_rounds), np.zeros(num_rounds, dtype=np.int64)
    correct = np.zeros(num_rounds, dtype=np.int64)
    for curve in curves:
        own = slice(curve.before, curve.before + curve.samples)
        loss_sums[own] += spread_losses(curve)
        counts[own] += 1
        correct[own] += spread_correct(curve)
    state = NetworkState(
        numerators=np.array([learner.numerator(snapshot) for snapshot in snapshots]),
        masses=np.array([snapshot.state.mass for snapshot in snapshots]),
    )
    mean_samples = float(np.mean([curve.samples for curve in curves]))
    last = disagreement_of_holders(state) or 0.0
    measured = sorted({0.0: 0.0, **dict(points), mean_samples: last}.items())
    return RunRecord(
        algorithm=config["task"]["method"],
        loss_sums=loss_sums,
        sample_counts=counts,
        correct_counts=None if like.correct_counts is None else correct,
        disagreement=np.interp(np.arange(1, num_rounds + 1), *np.array(measured).T),
        numerators=state.numerators,
        masses=state.masses,
        base_sums=_summed([spread_known(curve, "base") for curve in curves], curves),
        alone_sums=_summed([spread_known(curve, "alone") for curve in curves], curves),
        **facts,
        config={
            "kind": "lab",
            "algorithm": config["task"]["method"],
            **config,
            "model": like.config["model"],
            "stream": like.config["stream"],
            "num_nodes": len(curves),
            "num_rounds": num_rounds,
        },
        versions=dict(like.versions),
    )


def _summed(parts: Sequence[Vector | None], curves: Sequence[Curve]) -> Vector | None:
    """The sum over all peers, round by round; None if a part is not known."""
    sums = np.zeros(max(curve.before + curve.samples for curve in curves))
    for curve, part in zip(curves, parts, strict=True):
        if part is None:
            return None
        sums[curve.before : curve.before + curve.samples] += part
    return sums
