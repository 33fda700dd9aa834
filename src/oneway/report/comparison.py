"""Comparison page: several methods on the same data and graph, one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from oneway import metrics
from oneway.display.charts import Curve, as_png, as_svg, loss_chart
from oneway.errors import StoreError
from oneway.files.atomic import write_atomically
from oneway.files.output_folder import mark
from oneway.methods import DEFAULT_METHOD, Centralised, Isolated, MutualGossip
from oneway.methods.base import label_of
from oneway.metrics.measure_rows import BASE_RATE, base_answer
from oneway.personal.words import believes
from oneway.records.values import ALONE, YOURS
from oneway.report.pages import loss_text, render
from oneway.simulator import Run
from oneway.simulator.sweep import Tuned
from oneway.store import FILES as STORED
from oneway.store import RUNS

USER = "yours"
"""Folder of the run with the defaults of a new task."""
COMMAND = "demo"
"""What the marker of a demo's folder says, see `oneway.files.output_folder`."""
_FILES = ("report.html", "loss.png", *(f"{RUNS}/*/{name}" for name in STORED))
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
        user: What a user gets: a run with the defaults of a new task and personal predictions, if
            there is one.
        command: How to get this page again.
    """

    title: str
    story: Sequence[str]
    results: Mapping[str, Tuned]
    facts: Mapping[str, str]
    command: str
    user: Run | None = None

    @property
    def user_rows(self) -> list[tuple[str, float, str]]:
        """What a user gets: name, loss and meaning, in the order in which it is said everywhere."""
        if self.user is None or self.user.personal is None:
            return []
        own = self.user.personal
        answer = base_answer(classifies=self.user.accuracy is not None)
        rows = [
            ("yours", own.average_loss, "each node's own mixture: what answers"),
            ("shared", own.shared_loss, "the network's model"),
            ("alone", own.alone_loss, "each node without the others, at rates of its own"),
            (BASE_RATE, self.base_loss, f"always answers {answer} at this node"),
        ]
        return [(name, loss, meaning) for name, loss, meaning in rows if loss is not None]

    @property
    def user_result(self) -> str:
        """What a user gets, in a few sentences; empty without such a run."""
        if self.user is None or self.user.personal is None:
            return ""
        own = self.user.personal
        there = own.node_counts > 0
        losses = own.node_losses[there]
        more = 100.0 * (losses[:, YOURS] / losses[:, ALONE] - 1.0)
        better = int((more < 0.0).sum())
        where = (
            f"{better} of {len(losses)} nodes, and at most {more.max():.1f} % above it elsewhere"
        )
        if better == len(losses):
            where = "every node"
        return (
            f"With the defaults of a new task, {self.user.verdict}; yours is below alone at "
            f"{where}. The mixtures believe {believes(own.mean_weights)}."
        )

    @property
    def base_loss(self) -> float | None:
        """The mean loss of every node's running base rate, whatever the method."""
        return next(iter(self.results.values())).run.base_loss

    @property
    def result(self) -> str:
        """The result in one sentence: the default method beside its alternatives."""
        ours = self.results[DEFAULT_METHOD].run.average_loss
        others = {
            Isolated.name: "learning alone",
            MutualGossip.name: "using mutual trust only",
            Centralised.name: "a server that everybody would have to trust",
        }
        said = [
            f"{_difference(ours, self.results[name].run.average_loss)} than {words}"
            for name, words in others.items()
            if name in self.results
        ]
        title = label_of(DEFAULT_METHOD).title
        compared = ", and ".join([", ".join(said[:-1]), said[-1]]) if said[1:] else "".join(said)
        return f"{title} has an average loss of {ours:.4f}: {compared}."

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
        result=comparison.result,
        user_rows=comparison.user_rows,
        user_result=comparison.user_result,
        introduction=comparison.story,
        default=DEFAULT_METHOD,
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


def write(folder: Path, comparison: Comparison) -> Path:
    """Write runs, chart and report into a folder; returns the report's path.

    Each appears whole or not at all, the report last; those of an earlier comparison are replaced.

    Raises:
        StoreError: If the folder cannot be written.
    """
    report = folder / "report.html"
    _written(lambda: folder.mkdir(parents=True, exist_ok=True), folder)
    _written(lambda: mark(folder, COMMAND, _FILES), folder)
    contents = {
        folder / "loss.png": as_png(comparison_chart(comparison)),
        report: comparison_page(comparison).encode(),
    }
    for name, tuned in comparison.results.items():
        _with_baselines(tuned.run, comparison).save(folder / RUNS / name)
    if comparison.user is not None:
        comparison.user.save(folder / RUNS / USER)
    for path, content in contents.items():
        _written(partial(write_atomically, path, content), path)
    return report


def _written(write: Callable[[], None], path: Path) -> None:
    try:
        write()
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}; choose another folder") from error


def _difference(ours: float, other: float) -> str:
    """How far a loss is below another one, in per cent.

    >>> _difference(0.475, 0.5), _difference(0.51, 0.5)
    ('5.0% less', '2.0% more')
    """
    change = ours / other - 1.0
    return f"{abs(change):.1%} {'less' if change < 0 else 'more'}"


def _with_baselines(run: Run, comparison: Comparison) -> Run:
    """A run with its base rate, and with learning alone at rates of its own."""
    own = None if comparison.user is None else comparison.user.personal
    sums = None if own is None or run.is_alone else own.sums[:, ALONE]
    measures = run.measures if run.was_asked_for("measures") else None
    record = replace(run.record, base_sums=run.base_sums, alone_sums=sums, measures=measures)
    return replace(run, record=record)
