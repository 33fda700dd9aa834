"""Presentation of a run record: final figures, curves to compare and to export, and its config."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np

from oneway import metrics
from oneway.dashboard.components.chart import Points
from oneway.dashboard.components.colours import method_style
from oneway.dashboard.components.elements import Figure
from oneway.dashboard.components.numbers import number
from oneway.methods import METHODS
from oneway.metrics.measure_rows import ALONE, BASE_RATE
from oneway.records import RunRecord, Vector
from oneway.task.privacy import NO_PRIVACY

Facts: TypeAlias = list[tuple[str, str]]
"""Names and values."""

_SECTIONS = {
    "model": "Model",
    "stream": "Samples",
    "table": "Data",
    "graph": "Graph",
    "task": "Task",
    "batches": "Batches, and noise on each",
    "of": "Made from",
}
_WORDS = {
    "algorithm": "method",
    "l2": "l2, weight of the squared norm in the loss",
    "num_nodes": "nodes",
    "num_rounds": "rounds",
    "adversarial": "adversarial share asked for",
    "head": "rounds used",
    "bytes": "size in bytes",
    "kill_every": "seconds between two kills",
    "rate": "samples per second of each peer",
    "noise": "standard deviation of the noise, times the clip",
    "band": "batches over which noise is taken back",
    "loss": "share of messages lost, at the start",
}
_FEW = 6
_LONGEST = 300
_DEEPEST = 6


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

    @property
    def file_name(self) -> str:
        """What an export is called, without its ending."""
        return f"oneway-{self.title.lower().replace(' ', '-')}"


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


def as_csv(measure: Measure, records: Mapping[str, RunRecord]) -> str:
    """One row per round, one column per run; empty where a run has no value."""
    curves = {name: measure.curve(record) for name, record in records.items()}
    known = {name: curve * measure.factor for name, curve in curves.items() if curve is not None}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["round", *known])
    rows = zip_longest(*(curve.tolist() for curve in known.values()), fillvalue=math.nan)
    for rounds, row in enumerate(rows, start=1):
        cells = (repr(value) if math.isfinite(value) else "" for value in row)
        writer.writerow([rounds, *cells])
    return text.getvalue()


def config_sections(config: Mapping[str, Any]) -> list[tuple[str, Facts]]:
    """What determined a run's numbers, in parts with a heading.

    >>> for title, facts in config_sections({"algorithm": "ops", "graph": {"num_nodes": 3}}):
    ...     print(title, facts)
    Method [('method', 'ops, Online Push-Sum'), ('privacy', 'none: samples can be read from what \
is sent')]
    Graph [('nodes', '3')]
    """
    return _sections("Method", {**config, **_privacy(config)}, 0)


def _privacy(config: Mapping[str, Any]) -> dict[str, str]:
    """Whether there was noise; nothing about a method that sends nothing, or is not known."""
    method = str(config.get("algorithm"))
    if method not in METHODS or not METHODS[method].payload:
        return {}
    batches, task = config.get("batches"), config.get("task")
    # A run of real peers has its task, and no method of its own.
    is_noised = isinstance(task, Mapping) and isinstance(task.get("privacy"), Mapping)
    if isinstance(batches, Mapping):
        is_noised = bool(batches.get("noise"))
    return {"privacy": "noise on each batch" if is_noised else NO_PRIVACY.brief}


def _sections(title: str, table: Mapping[str, Any], depth: int) -> list[tuple[str, Facts]]:
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    own = [(_named(key), _said(key, value)) for key, value in table.items() if key not in inner]
    found = [(title, own)] if own else []
    if depth < _DEEPEST:
        for key, value in inner.items():
            found += _sections(_SECTIONS.get(key, _named(key).capitalize()), value, depth + 1)
    return found


def _named(key: object) -> str:
    return _WORDS.get(str(key), str(key).replace("_", " "))[:80]


def _said(key: object, value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        if len(value) > _FEW or any(isinstance(item, list | Mapping) for item in value):
            return f"{len(value):,} values; see the stored file below"
        return ", ".join(_said("", item) for item in value) or "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int) and key != "seed":
        return f"{value:,}"
    text = str(value)
    if key == "algorithm":
        label, _ = method_style(text)
        text = text if label == text else f"{text}, {label}"
    if key == "graph":
        text = text.replace("_", " ")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
