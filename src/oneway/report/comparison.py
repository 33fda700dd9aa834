"""Comparison page: several methods on the same data and graph, one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from oneway import metrics, store
from oneway.errors import StoreError
from oneway.files.atomic import write_atomically
from oneway.report.charts import Curve, as_png, as_svg, loss_chart
from oneway.report.labels import label_of
from oneway.report.pages import loss_text, render
from oneway.simulator.comparison import Tuned

_POINTS = 400
"""A curve is drawn with this many points, whatever the number of rounds."""


@dataclass(frozen=True)
class Comparison:
    """What a page about several methods on the same data and graph shows.

    Attributes:
        title: Heading of the page.
        story: Paragraphs above the results, for readers who have never heard of push-sum.
        results: Each method at its best learning rate, by short name.
        facts: What it ran on: name and value, in order.
        command: How to get this page again.
    """

    title: str
    story: Sequence[str]
    results: Mapping[str, Tuned]
    facts: Mapping[str, str]
    command: str

    @property
    def ranked(self) -> dict[str, Tuned]:
        """The results, smallest loss first."""
        return dict(sorted(self.results.items(), key=lambda item: item[1].run.average_loss))


def comparison_chart(comparison: Comparison) -> Figure:
    """Running average loss against rounds, one curve per method."""
    curves = []
    for name, tuned in comparison.results.items():
        label, losses = label_of(name), tuned.run.loss_curve
        shown = metrics.evenly_spread(len(losses), _POINTS)
        curves.append(
            Curve(label.title, shown + 1, losses[np.newaxis, shown], label.color, label.dashes)
        )
    return loss_chart(curves)


def comparison_page(comparison: Comparison) -> str:
    """The whole page as text."""
    some = next(iter(comparison.results.values()))
    return render(
        __package__,
        "comparison.html",
        title=comparison.title,
        introduction=comparison.story,
        rows=[
            {"name": name, "label": label_of(name), "tried": tuned.tried, **tuned.numbers}
            for name, tuned in comparison.ranked.items()
        ],
        grid=sorted(some.tried),
        loss_text=loss_text,
        chart=as_svg(comparison_chart(comparison)),
        facts=comparison.facts,
        versions=some.run.record.versions,
        command=comparison.command,
    )


def write(folder: Path, comparison: Comparison) -> Path:
    """Write runs, chart and report into a folder; returns the report's path.

    Each appears whole or not at all, the report last; those of an earlier comparison are replaced.

    Raises:
        StoreError: If the folder cannot be written.
    """
    report = folder / "report.html"
    contents = {
        folder / "loss.png": as_png(comparison_chart(comparison)),
        report: comparison_page(comparison).encode(),
    }
    for name, tuned in comparison.results.items():
        store.save(tuned.run.record, folder / "runs" / name)
    for path, content in contents.items():
        try:
            write_atomically(path, content)
        except OSError as error:
            raise StoreError(
                f"cannot write {path}: {error.strerror}; choose another folder"
            ) from error
    return report
