"""The page of one stored entry: a run, a lab, or a report with its panels."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec
from nicegui import ui

from oneway.dashboard.components.chart import Chart, Line, line_style
from oneway.dashboard.components.dialogs import mistake
from oneway.dashboard.components.elements import (
    FactList,
    Figures,
    card,
    empty,
    number_table,
    page_frame,
    sentences,
)
from oneway.dashboard.components.measures_card import MeasuresCard
from oneway.dashboard.components.numbers import number
from oneway.dashboard.runs.catalogue_cache import CatalogueCache
from oneway.dashboard.runs.comparison import Comparison
from oneway.dashboard.runs.graph_card import graph_card
from oneway.dashboard.runs.record_text import config_sections, figures, last
from oneway.dashboard.runs.run_table import comparison_link, run_link
from oneway.errors import StoreError
from oneway.records.measures import Measures
from oneway.store.entry import (
    Entry,
    PanelCurve,
    as_list,
    as_number,
    as_table,
    read_panel,
    read_result,
)

_MOST_LETTERS = 100_000
_MOST_PEERS = 200
_MOST_EVENTS = 500
_BACK = """(event) => {
  if (document.referrer.startsWith(location.origin)) { event.preventDefault(); history.back(); }
}"""


async def run_page(runs: CatalogueCache, name: str) -> None:
    """Show what has this name in the catalogue."""
    with page_frame(name[:200] or "A stored run") as beside:
        with beside:
            # Back to the list as it was, with its ticks, if that is where one came from.
            ui.link("All runs", "/").classes("ow-link").on("click", js_handler=_BACK)
        try:
            entry = runs.catalogue[name]
        except StoreError as error:
            empty(f"{error}.")
            return
        if entry.belongs_to:
            with ui.row().classes("gap-1 ow-soft"):
                ui.label("Belongs to")
                ui.link(entry.belongs_to, run_link(entry.belongs_to))
        if entry.problem:
            _problem_card("Damaged", entry.problem)
            return
        # Reading may take a while: the page stands already, and is filled now.
        await ui.context.client.connected()
        show = show_run if entry.is_run else show_lab if entry.kind == "lab" else show_report
        try:
            await show(runs, entry)
        except StoreError as error:
            _problem_card("Damaged", str(error))
        except Exception as error:
            # Not the folder's fault: the page says so rather than stop half-filled.
            _problem_card("A mistake in oneway", mistake(error))


async def show_run(runs: CatalogueCache, entry: Entry) -> None:
    """Show a run: its numbers, its curves, how it was made, its graph."""
    record = await asyncio.to_thread(runs.record, entry.name)
    Figures().show([figure for figure in figures(record) if figure.value != "-"])
    if not record.complete:
        ui.label("It ended early; these are the rounds that were done.").classes("ow-soft")
    await Comparison(runs).show([entry.name])
    MeasuresCard().show(record.measures)
    with ui.element("div").classes("ow-grid halves"):
        with ui.column().classes("w-full gap-4"):
            _config_card(record.config)
        with ui.column().classes("w-full gap-4"):
            names = [name for name in as_list(record.config.get("peers")) if isinstance(name, str)]
            await graph_card(record.config, record.masses.tolist(), names)
            with card("Versions"):
                FactList().show([(str(key), str(value)) for key, value in record.versions.items()])
    _raw_card("run.json", {"config": record.config, "versions": record.versions})


async def show_lab(runs: CatalogueCache, entry: Entry) -> None:
    """Show a lab: what came out, its peers, what happened, and its runs."""
    result = await asyncio.to_thread(read_result, entry)
    with card("What came out"):
        for sentence in entry.sentences:
            ui.label(sentence[:1].upper() + sentence[1:] + ".")
        if not entry.complete:
            ui.label("It ended early; this is what was learned until then.")
    MeasuresCard().show(_measures_in(result))
    _members_card(runs, entry, "No runs are stored beside it.")
    config = as_table(result.get("config"))
    peers = [peer for peer in as_list(result.get("peers")) if isinstance(peer, Mapping)]
    masses = [as_number(peer.get("mass")) for peer in peers]
    names = [name for peer in peers if isinstance(name := peer.get("name"), str)]
    events = [str(event) for event in as_list(result.get("events"))]
    with ui.element("div").classes("ow-grid halves"):
        with ui.column().classes("w-full gap-4"):
            await graph_card(config, [mass for mass in masses if mass is not None], names)
            if events:
                with card("What happened"), ui.element("ul").classes("ow-log").props("tabindex=0"):
                    sentences(events[-_MOST_EVENTS:])
        with ui.column().classes("w-full gap-4"):
            with card("Peers"):
                forms = {
                    "samples": ",.0f",
                    "average_loss": ".4f",
                    "base_loss": ".4f",
                    "alone_loss": ".4f",
                    "mass": ".4f",
                    "restarts": ",.0f",
                }
                number_table(
                    ["Peer", "Samples", "Average loss", "Base rate", "Alone", "Mass", "Restarts"],
                    [
                        [
                            str(peer.get("name", "")),
                            *(
                                number(as_number(peer.get(key)), form)
                                for key, form in forms.items()
                            ),
                        ]
                        for peer in peers[:_MOST_PEERS]
                    ],
                )
            _config_card(config)
    _raw_card("result.json", result)


def _measures_in(result: Mapping[str, Any]) -> Measures | None:
    """The measures in a lab's result; None if it has none that can be read."""
    try:
        return msgspec.convert(result.get("measures"), Measures | None)
    except msgspec.ValidationError:
        return None


async def show_report(runs: CatalogueCache, entry: Entry) -> None:
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
        _members_card(runs, entry, "Its runs are not there any more.")
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
        means = [mean if math.isfinite(mean) else None for mean in curve.means]
        points = list(zip(map(float, curve.rounds), means, strict=True))
        lines.append(Line(curve.name, points, *line_style(slot), width=2.2))
    chart.show(lines)
    number_table(
        ["Curve", "Average loss in the end, mean", "Rounds", "Seeds"],
        [
            [
                curve.name,
                number(last(curve.means), ".4f"),
                f"{curve.rounds[-1]:,}",
                f"{curve.num_seeds:,}",
            ]
            for curve in curves
        ],
    )


def _problem_card(heading: str, sentence: str) -> None:
    with card(heading):
        ui.label(sentence).classes("ow-bad")


def _config_card(config: Mapping[str, Any]) -> None:
    """What determined the numbers, in parts."""
    with card("How it was made"):
        for title, facts in config_sections(config):
            with ui.element("h3").classes("ow-part"):
                ui.label(title)
            FactList().show(facts)


def _raw_card(title: str, value: object) -> None:
    """What a file holds, to be unfolded."""
    text = json.dumps(value, indent=2, default=str)
    if len(text) > _MOST_LETTERS:
        text = f"{text[:_MOST_LETTERS]}\n... {len(text) - _MOST_LETTERS:,} letters more"
    with ui.element("details").classes("ow-card ow-raw"):
        with ui.element("summary"):
            ui.label(f"As stored in {title}")
        ui.label(text).classes("ow-mono ow-pre")


def _members_card(runs: CatalogueCache, entry: Entry, otherwise: str) -> None:
    """The runs that belong to a lab or a demo, or what to say if there are none."""
    members = runs.catalogue.members_of(entry)
    with card("Its runs"):
        if not members:
            ui.label(otherwise).classes("ow-soft")
            return
        good = [member.name for member in members if not member.problem]
        ui.link(f"Compare its {len(good)} runs", comparison_link(good)).classes("ow-link")
        for member in members:
            ui.link(member.name, run_link(member.name))
