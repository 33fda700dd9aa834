"""Curves with a band over seeds, in the form of the paper's figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from oneway.records import Matrix, Vector
from oneway.report.labels import LABELS

_MOST_INSIDE = 5
"""A legend of more curves than this goes below the panel, where it hides none of them."""


@dataclass(frozen=True)
class Band:
    """One curve of a panel.

    Attributes:
        key: A method's short name, or any label.
        rounds: Where the curve is known.
        curves: `curves[seed, point]`, the running average loss.
    """

    key: str
    rounds: Vector
    curves: Matrix

    @property
    def title(self) -> str:
        """What the legend says."""
        return LABELS[self.key].title if self.key in LABELS else self.key

    @property
    def mean(self) -> Vector:
        """Mean over seeds."""
        mean: Vector = self.curves.mean(axis=0)
        return mean

    @property
    def deviation(self) -> Vector:
        """Standard deviation over seeds."""
        deviation: Vector = self.curves.std(axis=0, ddof=1 if len(self.curves) > 1 else 0)
        return deviation


def band_chart(bands: Sequence[Band], title: str) -> Figure:
    """Running average loss against iterations: mean over seeds, band of one standard deviation."""
    height = 3.7 if len(bands) <= _MOST_INSIDE else 4.4
    figure = Figure(figsize=(5.2, height), layout="constrained")
    axes = figure.add_subplot()
    shades = colormaps["viridis"](np.linspace(0.0, 0.85, max(2, len(bands))))
    lows, highs = [], []
    for band, shade in zip(bands, shades, strict=False):
        label = LABELS.get(band.key)
        color = label.color if label else shade
        with np.errstate(invalid="ignore"):
            mean, deviation = band.mean, band.deviation
        axes.plot(
            band.rounds, mean, label=band.title, color=color, ls=label.dashes if label else "solid"
        )
        axes.fill_between(
            band.rounds, mean - deviation, mean + deviation, color=color, alpha=0.18, lw=0
        )
        settled = mean[len(mean) // 10 :]
        if np.isfinite(settled).all():
            lows.append(settled.min())
            highs.append(settled.max())
    if lows:
        margin = 0.06 * (max(highs) - min(lows)) + 1e-9
        # A method far above the others must not flatten them.
        top = min(max(highs), min(lows) + 6 * (sorted(highs)[len(highs) // 2] - min(lows) + 1e-9))
        axes.set_ylim(min(lows) - margin, top + margin)
    axes.set(xlabel="iteration", ylabel="average loss", title=title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    if len(bands) > _MOST_INSIDE:
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    else:
        axes.legend(frameon=False, fontsize="small")
    return figure


def as_csv(bands: Sequence[Band]) -> str:
    """The numbers of a panel: one line per curve and point."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["curve", "iteration", "mean", "standard_deviation", "seeds"])
    for band in bands:
        for point, mean, deviation in zip(band.rounds, band.mean, band.deviation, strict=True):
            writer.writerow(
                [band.key, int(point), f"{mean:.8g}", f"{deviation:.8g}", len(band.curves)]
            )
    return text.getvalue()
