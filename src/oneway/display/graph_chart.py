"""Charts of a graph: its arrows if it is small, its degrees if it is large."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from oneway.display.charts import axes_of
from oneway.records import Ints, Matrix

_ONE_WAY, _MUTUAL = "#d55e00", "#0072b2"
_MOST_NAMES = 40


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


def degree_chart(num_receivers: Ints, num_senders: Ints, ax: Axes | None = None) -> Figure:
    """How many nodes have how many receivers, and senders, on logarithmic axes.

    Args:
        num_receivers: Of each node.
        num_senders: Likewise.
        ax: Where to draw; None for a new figure.
    """
    figure, axes = axes_of(ax, (6.0, 4.0))
    for degrees, name, colour in (
        (num_receivers, "receivers", _ONE_WAY),
        (num_senders, "senders", _MUTUAL),
    ):
        counts = np.bincount(degrees)
        known = np.flatnonzero(counts)
        axes.plot(known, counts[known], "o", ms=3, color=colour, label=name)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_yscale("log")
    axes.set(xlabel="receivers, or senders, of a node", ylabel="nodes")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize="small")
    return figure
