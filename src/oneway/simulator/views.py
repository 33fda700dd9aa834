"""Views of a run: what is said of it everywhere, its HTML in a notebook, its chart, its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oneway import metrics
from oneway.display.html import Html, card, facts
from oneway.errors import ConfigError, needs_extra
from oneway.methods.base import label_of
from oneway.metrics.measure_rows import ALONE, BASE_RATE, base_answer, loss_number, measure_rows
from oneway.personal.personal import EXPERTS
from oneway.personal.words import believes
from oneway.simulator.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

YOURS, SHARED = "yours", "shared"
_COLUMNS = (YOURS, SHARED, ALONE, "adapted")
"""Of the losses of a `PersonalRecord`."""
_POINTS = 400
"""A curve is drawn with this many points, whatever the number of rounds."""


def run_facts(run: Run) -> dict[str, str]:
    """What people are told about a run, by name: on the command line and in a notebook."""
    own = run.personal
    told = {"average loss": f"{run.average_loss:.4f}"}
    if own is not None:
        told = {
            YOURS: f"{loss_number(own.average_loss)}, each node's own mixture: what answers",
            SHARED: f"{loss_number(own.shared_loss)}, the network's model",
        }
    knows_alone = own is not None or run.was_asked_for("alone_sums")
    if knows_alone and run.alone_loss is not None:
        told[ALONE] = f"{loss_number(run.alone_loss)}, the same nodes without each other"
    if run.base_loss is not None:
        answer = base_answer(classifies=run.accuracy is not None)
        told[BASE_RATE] = f"{loss_number(run.base_loss)}, of always answering {answer}"
    if own is not None:
        told["believes"] = f"{believes(own.mean_weights)}, on average over nodes"
    if knows_alone and run.verdict:
        told["verdict"] = run.verdict
    measures = run.measures if run.was_asked_for("measures") else None
    if measures is None and own is None and run.accuracy is not None:
        told["accuracy"] = f"{run.accuracy:.2%}"
    if measures is not None:
        told |= {row.name: row.text for row in measure_rows(measures)}
    told["disagreement"] = f"{run.disagreement[-1]:.3g} at the end"
    told["masses"] = f"{run.masses.min():.3g} to {run.masses.max():.3g}"
    told["nodes"] = f"{len(run.masses):,}"
    told["engine"] = f"{run.record.config['engine']}, {run.record.seconds:.2f} s"
    return told


def personal_numbers(run: Run) -> dict[str, Any]:
    """What is said of personal predictions, for programs."""
    own = run.personal
    return {
        "yours": run.personal_loss,
        "shared": None if own is None else own.shared_loss,
        "weights": None
        if own is None
        else dict(zip(EXPERTS, own.mean_weights.tolist(), strict=True)),
        "believes": None if own is None else believes(own.mean_weights),
        "verdict": run.verdict or None,
    }


def run_html(run: Run) -> Html:
    """The facts of a run."""
    record = run.record
    label = label_of(record.method)
    rounds = f"{record.num_rounds:,} rounds{'' if record.complete else ', interrupted'}"
    if not record.num_rounds:
        return card("Run", quiet=f"{label.title}, interrupted before the first round was done")
    rate = record.config.get("learning_rate")
    about = {"learning rate": rate} if rate is not None else {}
    return card("Run", facts({**run_facts(run), **about}), quiet=f"{label.title}, {rounds}")


def plot_run(run: Run, ax: Axes | None) -> Figure:
    """The running average loss, drawn as the method of the run is everywhere."""
    with needs_extra("a plot", "lab"):
        from oneway.display.charts import Curve, loss_chart
    label, losses = label_of(run.record.method), run.loss_curve
    at = metrics.evenly_spread(len(losses), _POINTS)
    curve = Curve(label.title, at + 1, losses[np.newaxis, at], label.color, label.dashes)
    return loss_chart([curve], ax=ax)


def run_columns(run: Run, of: str) -> dict[str, Any]:
    """The columns of `Run.to_frame`.

    Raises:
        ConfigError: If there are no such rows.
    """
    record = run.record
    if of == "rounds":
        columns: dict[str, Any] = {
            "round": np.arange(1, record.num_rounds + 1),
            "samples": record.sample_counts,
            "loss": run.losses,
            "running_loss": run.loss_curve,
        }
        if record.correct_counts is not None:
            counted = np.maximum(record.sample_counts, 1)
            share = record.correct_counts / counted
            columns["correct"] = np.where(record.sample_counts > 0, share, np.nan)
        if run.personal is not None:
            columns |= dict(zip(_COLUMNS, run.personal.losses.T, strict=True))
        return {**columns, "disagreement": run.disagreement}
    if of == "nodes":
        estimates, held = run.estimates, run.masses > 0  # who left has no model
        mean = estimates[held].mean(axis=0) if held.any() else np.nan
        away = np.linalg.norm(estimates - mean, axis=1)
        columns = {"node": np.arange(len(run.masses))}
        if run.stream is not None:
            dealt = run.stream.rows[: record.num_rounds] >= 0
            names = run.stream.node_names or tuple(map(str, columns["node"]))
            columns |= {"name": list(names), "samples": dealt.sum(axis=0)}
        if run.personal is not None:
            losses = dict(zip(_COLUMNS, run.personal.node_losses.T, strict=True))
            weights = {
                f"believes_{name}": it
                for name, it in zip(EXPERTS, run.personal.weights.T, strict=True)
            }
            columns |= losses | weights
        return {**columns, "mass": run.masses, "distance_from_mean": away}
    raise ConfigError(
        f"of is {of!r}; a frame of a run has a row for each of its 'rounds' or 'nodes'"
    )
