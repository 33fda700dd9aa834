"""The curves of runs that can be compared, how they are drawn, and how they are exported."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from oneway import metrics
from oneway.dashboard.components.colours import SERIES
from oneway.records import RunRecord, Vector

if TYPE_CHECKING:
    from oneway.dashboard.components.chart import Dash, Points

MOST_LINES = 18
"""More lines could not be told apart: so many pairs of a colour and a dash there are."""
_DASHES: tuple[Dash, ...] = ("solid", "dashed", "dotted")


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


def style(slot: int) -> tuple[str, Dash]:
    """Colour and dash of a line: different for any two slots below `MOST_LINES`.

    >>> style(0), style(1)
    (('#0072b2', 'solid'), ('#d55e00', 'dashed'))
    """
    turn, colour = divmod(slot % MOST_LINES, len(SERIES))
    return SERIES[colour], _DASHES[(colour + turn) % len(_DASHES)]


def as_csv(measure: Measure, records: Mapping[str, RunRecord]) -> str:
    """One row per round, one column per run; empty where a run has no value."""
    curves = {name: measure.curve(record) for name, record in records.items()}
    known = {name: curve * measure.factor for name, curve in curves.items() if curve is not None}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["round", *known])
    for index in range(max(map(len, known.values()), default=0)):
        writer.writerow([index + 1, *(_cell(curve, index) for curve in known.values())])
    return text.getvalue()


def _cell(curve: Vector, index: int) -> str:
    return repr(float(curve[index])) if index < len(curve) and np.isfinite(curve[index]) else ""
