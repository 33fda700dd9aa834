"""Presentation of a run record: final figures, and curves to compare."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oneway import metrics
from oneway.dashboard.components.chart import Points
from oneway.dashboard.components.elements import Figure
from oneway.dashboard.components.numbers import number
from oneway.metrics.measure_rows import ALONE, BASE_RATE
from oneway.records import RunRecord, Vector


def figures(record: RunRecord) -> list[Figure]:
    """The final numbers of a run; what has no meaning for it is "-"."""
    regret = None if record.comparator_sums is None else last(metrics.regret(record))
    masses, apart = record.masses, number(last(record.disagreement))
    spread = f"mass at the end: {masses.min():.3g} to {masses.max():.3g}" if len(masses) else ""
    return [
        Figure("loss", "Average loss", number(metrics.average_loss(record), ".4f"), "per sample"),
        Figure("base-loss", "Base rate", number(metrics.base_loss(record), ".4f"), "per sample"),
        Figure("alone-loss", "Alone", number(metrics.alone_loss(record), ".4f"), "per sample"),
        Figure("accuracy", "Accuracy", number(metrics.accuracy(record), ".2f", 100), "%"),
        Figure("disagreement", "Disagreement at the end", apart, "squared distance"),
        Figure("regret", "Regret", number(regret), "sum of losses"),
        Figure("rounds", "Rounds", f"{record.num_rounds:,}"),
        Figure("nodes", "Nodes", f"{len(masses):,}", note=spread),
        Figure("samples", "Samples", f"{int(record.sample_counts.sum()):,}"),
        Figure("seconds", "Time", number(record.seconds, ".2f"), "s"),
    ]


def last(curve: Any) -> float:
    """The last value of a curve; NaN if there is none."""
    return float(curve[-1]) if len(curve) else math.nan


@dataclass(frozen=True)
class Measure:
    """Something that has a value after each round.

    Attributes:
        title: What it is called.
        axis: The same with its unit.
        curve: From a run; None if it has no meaning for it.
        factor: From the curve to the unit of the axis.
        log: Whether it is drawn on a logarithmic axis.
    """

    title: str
    axis: str
    curve: Callable[[RunRecord], Vector | None]
    factor: float = 1.0
    log: bool = False


MEASURES = {
    measure.title: measure
    for measure in (
        Measure("Average loss", "average loss per sample so far", metrics.loss_curve),
        Measure(
            "Disagreement",
            "mean squared distance of the nodes' models from their mean",
            lambda record: record.disagreement,
            log=True,
        ),
        Measure("Accuracy", "right predictions so far (%)", metrics.accuracy_curve, factor=100.0),
    )
}
"""What can be compared, by title."""


BASELINES = tuple(
    Measure(title, "average loss per sample so far", curve)
    for title, curve in (
        (BASE_RATE, lambda record: metrics.baseline_curve(record.base_sums, record)),
        (ALONE, lambda record: metrics.baseline_curve(record.alone_sums, record)),
    )
)
"""What stands beside the average loss of a single run."""


def points(measure: Measure, record: RunRecord) -> Points:
    """Some hundred points of a curve: rounds counted from 1, None where there is no value."""
    curve = measure.curve(record)
    if curve is None:
        return []
    places = metrics.evenly_spread(len(curve))
    shown = curve[places] * measure.factor
    drawable = np.isfinite(shown) & (shown > 0 if measure.log else True)
    return [
        (place + 1, value if fine else None)
        for place, value, fine in zip(
            places.tolist(), shown.tolist(), drawable.tolist(), strict=True
        )
    ]
