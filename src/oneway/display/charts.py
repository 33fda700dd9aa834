"""Charts of losses and graphs, as text (SVG) or bytes (PNG)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from oneway.records import Ints, Matrix, Vector

Dashes: TypeAlias = str | tuple[int, tuple[int, ...]]
"""A line style: a name, or an offset with the lengths of strokes and gaps."""

_SCREEN_DPI = 72
_MOST_INSIDE = 5
"""A legend of more curves than this goes below the chart, where it hides none of them."""
_ONE_WAY, _MUTUAL = "#d55e00", "#0072b2"
_MOST_NAMES = 40


class Chart(Figure):
    """A figure that a notebook shows, without pyplot and without a window."""

    def _repr_png_(self) -> bytes:
        image = io.BytesIO()
        self.savefig(image, format="png", dpi=_SCREEN_DPI)
        return image.getvalue()


def axes_of(ax: Axes | None, size: tuple[float, float]) -> tuple[Figure, Axes]:
    """Where to draw: the axes given with their figure, or those of a new one."""
    if ax is None:
        chart = Chart(figsize=size, layout="constrained")
        return chart, chart.add_subplot()
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure, ax


@dataclass(frozen=True, eq=False)
class Curve:
    """One curve of a chart: the mean over seeds, and a band of one standard deviation.

    Attributes:
        title: What the legend says.
        rounds: Where the curve is known.
        losses: `losses[seed, point]`, the running average loss.
        color: None for a shade by the curve's place in the chart.
        dashes: Line style.
    """

    title: str
    rounds: Ints
    losses: Matrix
    color: str | None = None
    dashes: Dashes = "solid"

    @property
    def mean(self) -> Vector:
        """Mean over seeds."""
        mean: Vector = self.losses.mean(axis=0)
        return mean

    @property
    def deviation(self) -> Vector:
        """Standard deviation over seeds; NaN where one of them diverged."""
        with np.errstate(invalid="ignore", over="ignore"):
            deviation: Vector = self.losses.std(axis=0, ddof=1 if len(self.losses) > 1 else 0)
        return deviation


def loss_chart(
    curves: Sequence[Curve],
    title: str = "",
    size: tuple[float, float] = (7.2, 4.2),
    xlabel: str = "round",
    ax: Axes | None = None,
) -> Figure:
    """Running average loss against rounds, in a new figure or in the axes given.

    The first tenth of the rounds, where every method starts from nothing, sets no scale.
    """
    legend_below = ax is None and len(curves) > _MOST_INSIDE
    figure, axes = axes_of(ax, (size[0], size[1] + 0.7 * legend_below))
    shades = colormaps["viridis"](np.linspace(0.0, 0.85, max(2, len(curves))))
    lows, highs = [], []
    for curve, shade in zip(curves, shades, strict=False):
        mean, deviation = curve.mean, curve.deviation
        color = curve.color or shade
        axes.plot(curve.rounds, mean, label=curve.title, color=color, ls=curve.dashes)
        if len(curve.losses) > 1:
            low, high = mean - deviation, mean + deviation
            axes.fill_between(curve.rounds, low, high, color=color, alpha=0.18, lw=0)
        settled = mean[len(mean) // 10 :]
        settled = settled[~np.isnan(settled)]
        if settled.size and np.isfinite(settled).all():
            lows.append(settled.min())
            highs.append(settled.max())
    if lows:
        margin = 0.06 * (max(highs) - min(lows)) + 1e-9
        # A method far above the others must not flatten them.
        top = min(max(highs), min(lows) + 6 * (sorted(highs)[len(highs) // 2] - min(lows) + 1e-9))
        axes.set_ylim(min(lows) - margin, top + margin)
    axes.set(xlabel=xlabel, ylabel="running average loss", title=title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    _add_legend(figure, axes, legend_below)
    return figure


@dataclass(frozen=True, eq=False)
class Points:
    """One line of a chart over categories: at each a mean with its interval.

    Attributes:
        title: What the legend says.
        intervals: Mean, low and high at each category.
        color: Of line and bars.
        dashes: Line style.
    """

    title: str
    intervals: Sequence[tuple[float, float, float]]
    color: str
    dashes: Dashes = "solid"


def interval_chart(
    lines: Sequence[Points],
    ticks: Sequence[str],
    title: str = "",
    size: tuple[float, float] = (7.2, 4.2),
    xlabel: str = "",
    ax: Axes | None = None,
    ylabel: str = "average loss",
) -> Figure:
    """A measure with error bars over categories, at equal distances whatever they mean."""
    legend_below = ax is None and len(lines) > _MOST_INSIDE
    figure, axes = axes_of(ax, (size[0], size[1] + 0.7 * legend_below))
    places = np.arange(len(ticks))
    for line in lines:
        table = np.array(line.intervals)
        table[~np.isfinite(table).all(axis=1)] = np.nan  # diverged, or a single seed: not drawn
        mean, low, high = table.T
        axes.errorbar(
            places,
            mean,
            yerr=np.stack([mean - low, high - mean]),
            label=line.title,
            color=line.color,
            ls=line.dashes,
            marker="o",
            ms=3,
            capsize=3,
        )
    axes.set_xticks(places, ticks)
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    _add_legend(figure, axes, legend_below)
    return figure


def graph_chart(
    positions: Matrix, senders: Ints, receivers: Ints, names: Sequence[str], ax: Axes | None = None
) -> Figure:
    """Nodes and arrows; an arrow points where models go, mutual ones are thicker.

    Args:
        positions: x and y of each node, from 0 to 1, y downwards.
        senders: One for each edge.
        receivers: Likewise.
        names: What to write beside the nodes, unless there are many.
        ax: Where to draw; None for a new figure.
    """
    figure, axes = axes_of(ax, (4.6, 4.6))
    pairs = set(zip(senders.tolist(), receivers.tolist(), strict=True))
    for start, end in sorted(pairs):
        mutual = (end, start) in pairs
        style = {
            "arrowstyle": "-|>",
            "color": _MUTUAL if mutual else _ONE_WAY,
            "lw": 1.6 if mutual else 0.9,
            "alpha": 0.75,
            "shrinkA": 5,
            "shrinkB": 6,
        }
        axes.annotate("", positions[end], positions[start], arrowprops=style)
    axes.scatter(positions[:, 0], positions[:, 1], s=36, color="#333333", zorder=3)
    if len(names) <= _MOST_NAMES:
        for (x, y), name in zip(positions, names, strict=True):
            away = (1.09 * (x - 0.5) + 0.5, 1.09 * (y - 0.5) + 0.5)
            side = "center" if abs(x - 0.5) < 0.15 else "left" if x > 0.5 else "right"
            level = "bottom" if y < 0.35 else "top" if y > 0.65 else "center"
            # Not as markup: $ begins mathematics there.
            axes.text(*away, name, ha=side, va=level, fontsize="small", parse_math=False)
    handles = [
        Line2D([], [], color=colour, lw=width, label=label)
        for colour, width, label in ((_ONE_WAY, 0.9, "one-way"), (_MUTUAL, 1.6, "mutual"))
    ]
    axes.legend(handles=handles, loc="upper right", frameon=False, fontsize="small")
    axes.set(xlim=(-0.22, 1.22), ylim=(1.22, -0.22), aspect="equal")
    axes.axis("off")
    return figure


def _add_legend(figure: Figure, axes: Axes, below: bool) -> None:
    """Say which line is which, in the chart or below it."""
    if below:
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    else:
        axes.legend(frameon=False, fontsize="small")


def as_svg(figure: Figure) -> str:
    """The figure as an SVG element to put into a page; the same figure gives the same text."""
    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "oneway", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    _, start, rest = text.getvalue().partition("<svg")
    return start + rest


def as_png(figure: Figure) -> bytes:
    """The figure as a PNG file."""
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=150)
    return image.getvalue()
