"""A chart of lines: ECharts in the colours of the page, with units on its axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from nicegui.element import Element
from nicegui.elements.echart import EChart

Points: TypeAlias = Sequence[tuple[float, float | None]]
Dash: TypeAlias = Literal["solid", "dashed", "dotted"]
_MOST_AT_ONCE = 12

XKind: TypeAlias = Literal["value", "time"]


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    Attributes:
        name: In the legend and at the pointer.
        points: Pairs of x and y, x growing.
        colour: As CSS says it; "ink" for that of the text, which is light on dark pages.
        dash: So that lines can be told apart without colours too.
        width: In pixels.
        opacity: From 0 to 1.
        behind: Whether other lines are drawn over it.
        in_legend: Whether it has an entry of its own.
    """

    name: str
    points: Points
    colour: str
    dash: Dash = "solid"
    width: float = 1.5
    opacity: float = 1.0
    behind: bool = False
    in_legend: bool = True


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
            "xAxis": {
                "type": "value",
                "name": x,
                "nameLocation": "middle",
                "nameGap": 28,
            },
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

    def set_x(self, name: str, kind: XKind) -> None:
        """Change what the x axis is; `show` draws it.

        Args:
            name: What it is, with its unit.
            kind: Its type; times are milliseconds since 1970, shown in the browser's time zone.
        """
        self._axes["xAxis"] |= {"name": name, "type": kind}

    def show(self, lines: Sequence[Line]) -> None:
        """Replace what is shown."""
        self._props["options"] = self._options(lines)
        self._update_method = "draw"
        self.update()

    def save(self, file_name: str) -> None:
        """Let the browser save the chart as a PNG."""
        self.run_method("save", file_name)

    def _options(self, lines: Sequence[Line]) -> dict[str, Any]:
        named = [line.name for line in lines if line.in_legend]
        with_legend = self._legend and bool(named)
        return {
            **self._axes,
            "grid": {"left": 52, "right": 18, "top": 34, "bottom": 84 if with_legend else 46},
            # Beyond a dozen, the values at one place would cover the chart.
            "tooltip": {"trigger": "axis" if len(lines) <= _MOST_AT_ONCE else "item"},
            **(
                {
                    "legend": {
                        "type": "scroll",
                        "bottom": 2,
                        "data": named,
                        "itemWidth": 30,
                        "itemStyle": {"opacity": 0},  # only the line: it has no marks either
                    }
                }
                if with_legend
                else {}
            ),
            "series": [_series(line) for line in lines],
        }


def _series(line: Line) -> dict[str, Any]:
    return {
        "type": "line",
        "name": line.name,
        "data": [list(point) for point in line.points],
        "showSymbol": False,
        "symbolSize": 5,
        "z": 1 if line.behind else 2,
        "color": line.colour,
        "lineStyle": {"width": line.width, "type": line.dash, "opacity": line.opacity},
        "emphasis": {"focus": "series"},
    }
