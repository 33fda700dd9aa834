"""A stored demo or reproduction: its report, and its runs or panels."""

from __future__ import annotations

import asyncio
import math
from urllib.parse import urlencode

from nicegui import ui

from oneway.dashboard.components.chart import Chart, Line
from oneway.dashboard.components.frame import card
from oneway.dashboard.components.tables import number_table
from oneway.dashboard.runs.cards import members_card
from oneway.dashboard.runs.facts import last, number
from oneway.dashboard.runs.measures import style
from oneway.dashboard.runs.shelf import Shelf
from oneway.errors import StoreError
from oneway.store.entry import Entry
from oneway.store.panels import PanelCurve, read_panel


async def show_report(shelf: Shelf, entry: Entry) -> None:
    """Show a demo or a reproduction; a panel that is damaged is said to be."""
    with card("Report"):
        for sentence in entry.sentences:
            ui.label(sentence)
        if entry.report is not None:
            ui.link(
                "Open the report, with every figure and number",
                f"/report?{urlencode({'name': entry.name})}",
                new_tab=True,
            ).classes("ow-link")
    if entry.kind == "demo":
        members_card(shelf, entry, "Its runs are not there any more.")
        return
    for panel in entry.panels:
        with card(panel):
            try:
                curves = await asyncio.to_thread(read_panel, entry, panel)
            except StoreError as error:
                ui.label(str(error)).classes("ow-bad")
                continue
            _panel(panel, curves)


def _panel(name: str, curves: list[PanelCurve]) -> None:
    chart = Chart(f"{name}: mean curves over seeds", x="round", y="average loss per sample so far")
    lines = []
    for slot, curve in enumerate(curves):
        colour, dash = style(slot)
        points = [
            (float(at), mean if math.isfinite(mean) else None)
            for at, mean in zip(curve.rounds, curve.means, strict=True)
        ]
        lines.append(Line(curve.name, points, colour, dash, width=2.2))
    chart.show(lines)
    number_table(
        ["Curve", "Average loss in the end, mean", "Rounds", "Seeds"],
        [
            [
                curve.name,
                number(last(curve.means), 4),
                f"{curve.rounds[-1]:,}",
                f"{curve.num_seeds:,}",
            ]
            for curve in curves
        ],
    )
