"""Comparison page: several methods on the same data and graph, one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from oneway import metrics
from oneway.display.charts import Curve, as_png, as_svg, loss_chart
from oneway.errors import StoreError
from oneway.files.atomic import write_atomically
from oneway.methods import Isolated
from oneway.methods.labels import label_of
from oneway.metrics.measure_rows import base_answer
from oneway.report.pages import loss_text, render
from oneway.simulator import Run
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
    def base_loss(self) -> float | None:
        """The mean loss of every node's running base rate, whatever the method."""
        return next(iter(self.results.values())).run.base_loss

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
        late=some.late_loss is not None,
        grid=sorted(some.tried),
        base_loss=comparison.base_loss,
        base_answer=base_answer(classifies=some.run.accuracy is not None),
        loss_text=loss_text,
        chart=as_svg(comparison_chart(comparison)),
        facts=comparison.facts,
        versions=some.run.record.versions,
        command=comparison.command,
    )


def is_comparison(folder: Path) -> bool:
    """Whether `write` has written into a folder, as far as its names tell."""
    return (folder / "report.html").is_file() and (folder / "runs").is_dir()


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
        _with_baselines(tuned.run, comparison).save(folder / "runs" / name)
    for path, content in contents.items():
        try:
            write_atomically(path, content)
        except OSError as error:
            raise StoreError(
                f"cannot write {path}: {error.strerror}; choose another folder"
            ) from error
    return report


def _with_baselines(run: Run, comparison: Comparison) -> Run:
    """A run with its base rate, and with learning alone at its own best rate."""
    alone = comparison.results.get(Isolated.name)
    sums = None if alone is None or alone.run is run else alone.run.record.loss_sums
    measures = run.measures if run.was_asked_for("measures") else None
    record = replace(run.record, base_sums=run.base_sums, alone_sums=sums, measures=measures)
    return replace(run, record=record)
