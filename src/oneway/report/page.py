"""One self-contained HTML page about a comparison of methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oneway import metrics
from oneway.records import RunRecord
from oneway.report.figures import as_svg, loss_chart
from oneway.report.labels import LABELS
from oneway.report.template import render


@dataclass(frozen=True)
class Comparison:
    """What a page about several methods on the same data and graph shows.

    Attributes:
        title: Heading of the page.
        story: Paragraphs above the results, for somebody who has never heard of push-sum.
        records: One run per method, by short name.
        rates: The learning rate each method ran at, by short name.
        tried: Average loss by short name and learning rate; infinite where a run diverged.
        facts: What it ran on: name and value, in order.
        command: How to get this page again.
    """

    title: str
    story: Sequence[str]
    records: Mapping[str, RunRecord]
    rates: Mapping[str, float]
    tried: Mapping[str, Mapping[float, float]]
    facts: Mapping[str, str]
    command: str


@dataclass(frozen=True)
class Row:
    """One line of the table of results."""

    name: str
    title: str
    meaning: str
    learning_rate: float
    at_edge: bool
    average_loss: float
    accuracy: float | None
    disagreement: float
    seconds: float


def rows(comparison: Comparison) -> list[Row]:
    """The table of results, smallest loss first."""
    table = [
        Row(
            name=name,
            title=LABELS[name].title,
            meaning=LABELS[name].meaning,
            learning_rate=comparison.rates[name],
            at_edge=comparison.rates[name]
            in (min(comparison.tried[name]), max(comparison.tried[name])),
            average_loss=metrics.average_loss(record),
            accuracy=metrics.accuracy(record),
            disagreement=float(record.disagreement[-1]),
            seconds=record.seconds,
        )
        for name, record in comparison.records.items()
    ]
    return sorted(table, key=lambda row: row.average_loss)


def page(comparison: Comparison) -> str:
    """The whole page as text: no script, nothing loaded from elsewhere."""
    some_record = next(iter(comparison.records.values()))
    return render(
        "comparison.html",
        comparison=comparison,
        rows=rows(comparison),
        grid=sorted(next(iter(comparison.tried.values()))),
        chart=as_svg(loss_chart(comparison.records)),
        versions=some_record.versions,
        infinite=math.inf,
    )
