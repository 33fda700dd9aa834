"""Line charts: Apache ECharts in the colours of the page, with units on its axes and legends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, TypeAlias

from nicegui.element import Element
from nicegui.elements.echart import EChart

from oneway.dashboard.components.colours import SERIES, Colour

Points: TypeAlias = Sequence[tuple[float, float | None]]
Dash: TypeAlias = Literal["solid", "dashed", "dotted"]

DASHES: dict[Dash, str] = {"solid": "", "dashed": "8 4", "dotted": "2 4"}
"""With the `stroke-dasharray` of each."""

MOST_LINES = len(SERIES) * len(DASHES)
"""More lines could not be told apart: so many pairs of a colour and a dash there are."""

_MOST_AT_ONCE = 12
"""Beyond a dozen, the values at one place would cover the chart."""


@dataclass(frozen=True)
class Line:
    """One line of a chart: pairs of x and y, x growing; told apart without colours by its dash."""

    name: str
    points: Points
    colour: Colour
    dash: Dash = "solid"
    width: float = 1.5
    opacity: float = 1.0
    behind: bool = False
    in_legend: bool = True


def line_style(slot: int) -> tuple[Colour, Dash]:
    """Colour and dash of a line: different for any two slots below `MOST_LINES`.

    >>> line_style(0), line_style(1)
    ((('#0072b2', '#4fa8e0'), 'solid'), (('#d55e00', '#f08a45'), 'dashed'))
    """
    turn, colour = divmod(slot % MOST_LINES, len(SERIES))
    return SERIES[colour], list(DASHES)[(colour + turn) % len(DASHES)]


class Chart(Element, component="chart.js", esm=None, default_classes="ow-chart"):
    """Lines over a common axis; `show` replaces them."""

    # The library that the component imports comes with NiceGUI's own chart.
    exposed_libraries = EChart.exposed_libraries

    def __init__(
        self,
        label: str,
        *,
        x: str,
        y: str,
        log_y: bool = False,
        legend: bool = True,
        most_y: float | None = None,
    ) -> None:
        """Make an empty chart.

        Args:
            label: What it shows, for those who cannot see it.
            x: What the x axis is, with its unit.
            y: What the y axis is, with its unit.
            log_y: Whether the y axis is logarithmic.
            legend: Whether there is a legend.
            most_y: Where the y axis ends at the latest, such as 100 for %; None if anywhere.
        """
        super().__init__()
        self._legend = legend
        self._axes: dict[str, dict[str, Any]] = {
            "xAxis": {"type": "value", "name": x, "nameLocation": "middle", "nameGap": 28},
            "yAxis": {
                "type": "log" if log_y else "value",
                "name": y,
                "nameLocation": "end",
                "nameTextStyle": {"align": "left", "padding": [0, 0, 4, -36]},
                "scale": True,
                **({} if most_y is None else {"max": most_y}),
            },
        }
        self._props["label"] = label
        self.show([])

    def show(self, lines: Sequence[Line]) -> None:
        """Replace what is shown."""
        named = [line.name for line in lines if line.in_legend] if self._legend else []
        legend = {
            "type": "scroll",
            "bottom": 2,
            "data": named,
            "itemWidth": 30,
            "itemStyle": {"opacity": 0},  # only the line: it has no marks either
        }
        self._props["options"] = {
            **self._axes,
            "grid": {"left": 52, "right": 18, "top": 34, "bottom": 84 if named else 46},
            "tooltip": {"trigger": "axis" if len(lines) <= _MOST_AT_ONCE else "item"},
            **({"legend": legend} if named else {}),
            "series": [_series(line) for line in lines],
        }
        self._update_method = "draw"
        self.update()


def _series(line: Line) -> dict[str, Any]:
    return {
        "type": "line",
        "name": line.name,
        "data": [list(point) for point in line.points],
        "showSymbol": False,
        "symbolSize": 5,
        "z": 1 if line.behind else 2,
        "color": list(line.colour),
        "lineStyle": {"width": line.width, "type": line.dash, "opacity": line.opacity},
        "emphasis": {"focus": "series"},
    }


def swatch_html(colour: Colour, dash: Dash, width: float = 3.0) -> str:
    """A piece of a line as the chart draws it; arguments as of a `Line`, never of a stranger."""
    light, dark = colour
    return (
        f'<svg class="ow-swatch" style="--light: {light}; --dark: {dark}" viewBox="0 0 34 10" '
        f'aria-hidden="true"><path d="M1 5h32" stroke-width="{width}" '
        f'stroke-dasharray="{DASHES[dash]}"/></svg>'
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
