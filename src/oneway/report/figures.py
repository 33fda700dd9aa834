"""Charts of runs, as text (SVG) or bytes (PNG)."""

from __future__ import annotations

import io
from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from oneway import metrics
from oneway.records import RunRecord
from oneway.report.labels import LABELS

_POINTS = 400
"""A curve is drawn with this many points, whatever the number of rounds."""


def loss_chart(records: Mapping[str, RunRecord]) -> Figure:
    """Running average loss against rounds, one curve per method, keyed by short name.

    The first twentieth of the rounds, where every method starts from nothing, sets no scale.
    """
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    lows, highs = [], []
    for name, record in records.items():
        label = LABELS[name]
        curve = metrics.loss_curve(record)
        shown = np.unique(np.linspace(0, len(curve) - 1, _POINTS).astype(int))
        axes.plot(shown + 1, curve[shown], label=label.title, color=label.color, ls=label.dashes)
        settled = curve[len(curve) // 20 :]
        lows.append(np.nanmin(settled))
        highs.append(np.nanmax(settled))
    margin = 0.05 * (max(highs) - min(lows)) + 1e-9
    axes.set_ylim(min(lows) - margin, max(highs) + margin)
    axes.set(xlabel="round", ylabel="running average loss")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return figure


def as_svg(figure: Figure) -> str:
    """The figure as an SVG element to put into a page; the same figure gives the same text."""
    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "oneway", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue().partition("<svg")[1] + text.getvalue().partition("<svg")[2]


def as_png(figure: Figure) -> bytes:
    """The figure as a PNG image."""
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=150)
    return image.getvalue()
