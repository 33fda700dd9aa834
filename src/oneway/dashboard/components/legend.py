"""What the lines of a chart and the arrows of a trust picture mean, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from oneway.dashboard.components.chart import Dash, Line

_DASHES: dict[Dash, str] = {"solid": "", "dashed": "8 4", "dotted": "2 4"}

_ARROWS = """<span><svg viewBox="0 0 40 14" aria-hidden="true"><path d="M2 7h28"
 stroke="var(--ow-oneway)" stroke-width="2.5"/><path d="M28 2l10 5-10 5z"
 fill="var(--ow-oneway)"/></svg>one-way trust</span><span><svg viewBox="0 0 40 14"
 aria-hidden="true"><path d="M10 7h20" stroke="var(--ow-mutual)" stroke-width="5"/><path
 d="M28 1l10 6-10 6zM12 1L2 7l10 6z" fill="var(--ow-mutual)"/></svg>mutual trust</span>"""


def swatch_html(colour: str, dash: Dash, width: float = 3.0) -> str:
    """A piece of a line as the chart draws it, on light and on dark pages.

    Args:
        colour: As of a `Line`; a value of ours, never one of others.
        dash: As of a `Line`.
        width: In pixels.
    """
    return (
        '<svg class="ow-swatch" viewBox="0 0 34 10" aria-hidden="true"><path d="M1 5h32" '
        f'fill="none" stroke="{_css(colour)}" stroke-width="{width}" '
        f'stroke-dasharray="{_DASHES[dash]}"/></svg>'
    )


def legend_html(lines: Sequence[Line]) -> str:
    """All lines at once, where a chart's own legend would scroll."""
    entries = "".join(
        f"<span>{swatch_html(line.colour, line.dash, min(line.width, 3.5))}"
        f"{escape(line.name)}</span>"
        for line in lines
        if line.in_legend
    )
    return f'<div class="ow-legend">{entries}</div>'


def trust_legend_html(more: str = "") -> str:
    """The arrows of a trust picture.

    Args:
        more: What else is in the picture, as HTML of ours.
    """
    return f'<div class="ow-legend">{_ARROWS}{more}</div>'


def _css(colour: str) -> str:
    """What `chart.js` makes of a colour: on dark pages some are brighter, as `page.css` says.

    >>> _css("#0072b2")
    'var(--ow-as-0072b2, #0072b2)'
    """
    return "var(--ow-ink)" if colour == "ink" else f"var(--ow-as-{colour[1:]}, {colour})"
