"""What the lines of a chart mean: all of it at once, where a chart's own legend would scroll."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from oneway.dashboard.components.chart import Dash, Line

_DASHES: dict[Dash, str] = {"solid": "", "dashed": "8 4", "dotted": "2 4"}


def legend_html(lines: Sequence[Line]) -> str:
    """A legend for lines, each with its colour and dashes, as HTML."""
    entries = "".join(
        f'<span><svg class="swatch" viewBox="0 0 34 10"><path d="M1 5h32" '
        f'stroke="{_css(line.colour)}" stroke-width="{min(line.width, 3.5)}" '
        f'stroke-dasharray="{_DASHES[line.dash]}" fill="none"/></svg>{escape(line.name)}</span>'
        for line in lines
        if line.in_legend
    )
    return f'<div class="ow-legend">{entries}</div>'


def _css(colour: str) -> str:
    return "var(--ow-ink)" if colour == "ink" else colour
