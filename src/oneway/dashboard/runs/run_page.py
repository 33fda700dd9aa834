"""One run, lab, demo or reproduction: its numbers, how it was made, its graph."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from nicegui import ui

from oneway.dashboard.components.chart import Chart, Line
from oneway.dashboard.components.frame import card, empty, page_frame
from oneway.dashboard.components.stat import Stat
from oneway.dashboard.runs.comparison import Comparison
from oneway.dashboard.runs.facts import config_sections, last, number, short
from oneway.dashboard.runs.graph_card import graph_card
from oneway.dashboard.runs.measures import style
from oneway.dashboard.runs.run_table import comparison_link, run_link
from oneway.dashboard.runs.shelf import Shelf
from oneway.dashboard.runs.tables import fact_list, number_table
from oneway.errors import StoreError
from oneway.metrics import accuracy, average_loss
from oneway.records import RunRecord
from oneway.store.entry import Entry
from oneway.store.panels import PanelCurve, read_panel
from oneway.store.reading import read_result

_MOST_LETTERS = 100_000
_MOST_PEERS = 200
_MOST_EVENTS = 500


async def run_page(shelf: Shelf, name: str) -> None:
    """Show what has this name in the catalogue."""
    with page_frame(name[:200] or "A stored run") as beside:
        with beside:
            ui.link("All runs", "/").classes("ow-link")
        try:
            entry = shelf.catalogue[name]
        except StoreError as error:
            empty(f"{error}.")
            return
        if entry.belongs_to:
            with ui.row().classes("gap-1 ow-soft"):
                ui.label("Belongs to")
                ui.link(entry.belongs_to, run_link(entry.belongs_to))
        if entry.problem:
            with card("Damaged"):
                ui.label(entry.problem).classes("ow-bad")
            return
        # Reading may take a while: the page stands already, and is filled now.
        await ui.context.client.connected()
        try:
            if entry.is_run:
                await _run(shelf, entry)
            elif entry.kind == "lab":
                await _lab(shelf, entry)
            else:
                await _report(shelf, entry)
        except StoreError as error:
            with card("Damaged"):
                ui.label(str(error)).classes("ow-bad")


async def _run(shelf: Shelf, entry: Entry) -> None:
    record = await asyncio.to_thread(shelf.record, entry.name)
    _stats(record)
    if not record.complete:
        ui.label("It was interrupted; these are the rounds that were done.").classes("ow-soft")
    comparison = Comparison(shelf)
    await comparison.show([entry.name])
    with ui.element("div").classes("ow-grid halves"):
        with ui.column().classes("w-full gap-4"):
            _config_card(record.config)
        with ui.column().classes("w-full gap-4"):
            await graph_card(
                record.config, record.masses.tolist(), _names(record.config.get("peers"))
            )
            with card("Versions"):
                fact_list([(str(key), str(value)) for key, value in record.versions.items()])
    _raw_card("run.json", {"config": record.config, "versions": record.versions})


def _stats(record: RunRecord) -> None:
    right = accuracy(record)
    with ui.element("div").classes("ow-stats"):
        Stat("Average loss", "per sample", key="loss").show(number(average_loss(record), 4))
        if right is not None:
            Stat("Accuracy", "%", key="accuracy").show(f"{100 * right:.2f}")
        Stat("Disagreement at the end", "squared distance", key="disagreement").show(
            short(last(record.disagreement))
        )
        Stat("Length", "rounds", key="rounds").show(f"{record.num_rounds:,}")
        Stat("Network", "nodes", key="nodes").show(f"{len(record.masses):,}")
        if len(record.masses):
            masses = f"{record.masses.min():.3g} to {record.masses.max():.3g}"
            Stat("Mass at the end", "per node", key="mass").show(masses)
        Stat("Time", "s", key="seconds").show(number(record.seconds, 2))


def _config_card(config: Mapping[str, Any]) -> None:
    with card("How it was made"):
        for title, facts in config_sections(config):
            with ui.element("h3").classes("ow-part"):
                ui.label(title)
            fact_list(facts)


def _raw_card(title: str, value: object) -> None:
    text = json.dumps(value, indent=2, default=str)
    if len(text) > _MOST_LETTERS:
        text = f"{text[:_MOST_LETTERS]}\n... {len(text) - _MOST_LETTERS:,} letters more"
    with ui.element("details").classes("ow-card ow-raw"):
        with ui.element("summary"):
            ui.label(f"As stored in {title}")
        ui.label(text).classes("ow-mono ow-pre")


async def _lab(shelf: Shelf, entry: Entry) -> None:
    result = await asyncio.to_thread(read_result, entry)
    with card("What came out"):
        for sentence in entry.sentences:
            ui.label(sentence[:1].upper() + sentence[1:] + ".")
        if not entry.complete:
            ui.label("It was interrupted; this is what was learned until then.")
    _members(shelf, entry, "No runs are stored beside it.")
    config = result.get("config")
    config = config if isinstance(config, Mapping) else {}
    peers = [peer for peer in _listed(result.get("peers")) if isinstance(peer, Mapping)]
    with ui.element("div").classes("ow-grid halves"):
        with ui.column().classes("w-full gap-4"):
            await graph_card(
                config,
                [mass for peer in peers if isinstance(mass := peer.get("mass"), int | float)],
                _names([peer.get("name") for peer in peers]),
            )
            _events_card(_listed(result.get("events")))
        with ui.column().classes("w-full gap-4"):
            _peers_card(peers[:_MOST_PEERS])
            _config_card(config)
    _raw_card("result.json", result)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _names(value: object) -> list[str]:
    return [name for name in _listed(value) if isinstance(name, str)]


def _peers_card(peers: list[Mapping[str, Any]]) -> None:
    with card("Peers"):
        number_table(
            ["Peer", "Samples", "Average loss", "Mass", "Restarts"],
            [
                [
                    str(peer.get("name", "")),
                    _shown(peer.get("samples"), ",d"),
                    _shown(peer.get("average_loss"), ".4f"),
                    _shown(peer.get("mass"), ".4f"),
                    _shown(peer.get("restarts"), ",d"),
                ]
                for peer in peers
            ],
        )


def _events_card(events: list[Any]) -> None:
    if not events:
        return
    with card("What happened"), ui.element("ul").classes("ow-log").props("tabindex=0"):
        for event in events[-_MOST_EVENTS:]:
            with ui.element("li"):
                ui.label(str(event))


def _shown(value: object, form: str) -> str:
    whole = form.endswith("d")
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        return "-"
    return format(value, form)


async def _report(shelf: Shelf, entry: Entry) -> None:
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
        _members(shelf, entry, "Its runs are not there any more.")
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
            (float(at), mean if mean == mean else None)
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


def _members(shelf: Shelf, entry: Entry, otherwise: str) -> None:
    members = shelf.catalogue.members_of(entry)
    with card("Its runs"):
        if not members:
            ui.label(otherwise).classes("ow-soft")
            return
        good = [member.name for member in members if not member.problem]
        ui.link(f"Compare its {len(good)} runs", comparison_link(good)).classes("ow-link")
        for member in members:
            ui.link(member.name, run_link(member.name))
