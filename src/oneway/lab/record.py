"""A lab as a run, like any simulation: so that the same pages and reports can show both.

Round k is the k-th sample of every peer, whenever that was. Losses are those that the peers wrote
down: sample by sample for the first thousand, then in groups, whose loss is spread evenly over
their samples, so that sums are exact where a group ends, the last one included. Disagreement was
measured now and then, and lies on straight lines in between; it begins with 0, as all peers start
from the same model.

Peers that joined later have another first sample than the others, and the simulations know nothing
of them. So the losses are those of the founders, as in the comparison; masses and numerators in the
end are of everybody, the founders first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oneway.metrics import disagreement_of_holders
from oneway.metrics.learning_curve import spread_correct, spread_losses
from oneway.peer.store.snapshot import Snapshot
from oneway.protocol.fixed_point import ONE, mass_of, numerator_of
from oneway.records import NetworkState, RunRecord, Vector
from oneway.records.curve import Curve


def peers_record(
    curves: Sequence[Curve],
    snapshots: Sequence[Snapshot],
    measured: Sequence[tuple[float, float]],
    *,
    classifies: bool,
    complete: bool,
    seconds: float,
    config: Mapping[str, Any],
    versions: Mapping[str, str],
) -> RunRecord:
    """The run that the peers of a lab made.

    Args:
        curves: Of the founders, some of them not empty.
        snapshots: Of all peers that have a store, the founders first.
        measured: Disagreement as it was measured: after how many samples on average, and how much.
        classifies: Whether "right" has a meaning for the model.
        complete: Whether the peers came to the end of their samples.
        seconds: How long they learned.
        config: What determines the numbers.
        versions: Of this package and of what it computes with.
    """
    num_rounds = max(curve.before + curve.samples for curve in curves)
    loss_sums, counts = np.zeros(num_rounds), np.zeros(num_rounds, dtype=np.int64)
    correct = np.zeros(num_rounds, dtype=np.int64)
    for curve in curves:
        own = slice(curve.before, curve.before + curve.samples)
        loss_sums[own] += spread_losses(curve)
        counts[own] += 1
        correct[own] += spread_correct(curve)
    holdings = [snapshot.state.holding for snapshot in snapshots]
    state = NetworkState(
        numerators=np.array([numerator_of(holding) for holding in holdings]),
        masses=np.array([mass_of(holding) / ONE for holding in holdings]),
    )
    mean_samples = float(np.mean([curve.samples for curve in curves]))
    last = disagreement_of_holders(state) or 0.0
    points = {0.0: 0.0, **dict(measured), mean_samples: last}
    return RunRecord(
        algorithm="ops",
        loss_sums=loss_sums,
        sample_counts=counts,
        correct_counts=correct if classifies else None,
        disagreement=_between(points, num_rounds),
        numerators=state.numerators,
        masses=state.masses,
        complete=complete,
        seconds=seconds,
        config={
            "kind": "lab",
            "algorithm": "ops",
            **config,
            "num_nodes": len(curves),
            "num_rounds": num_rounds,
        },
        versions=dict(versions),
    )


def _between(points: Mapping[float, float], num_rounds: int) -> Vector:
    places = sorted(points)
    values = [points[place] for place in places]
    found: Vector = np.interp(np.arange(1, num_rounds + 1), places, values)
    return found
