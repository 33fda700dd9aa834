"""The page of one stored entry: a run, a lab or a demo."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urlencode

import msgspec
from nicegui import ui

from oneway.dashboard.components.elements import (
    Figures,
    card,
    empty,
    number_table,
    page_frame,
    sentences,
)
from oneway.dashboard.components.measures_card import MeasuresCard
from oneway.dashboard.components.numbers import number
from oneway.dashboard.runs.comparison import Comparison
from oneway.dashboard.runs.record_text import figures
from oneway.dashboard.runs.run_table import comparison_link, run_link
from oneway.dashboard.runs.stored_runs import StoredRuns
from oneway.errors import StoreError
from oneway.records.measures import Measures
from oneway.store.catalogue import Entry, read_result

_BACK = """(event) => {
  if (document.referrer.startsWith(location.origin)) { event.preventDefault(); history.back(); }
}"""


async def run_page(runs: StoredRuns, name: str) -> None:
    """Show what has this name in the catalogue."""
    with page_frame(name or "A stored run") as beside:
        with beside:
            # Back to the list as it was, with its ticks, if that is where one came from.
            ui.link("All runs", "/").classes("ow-link").on("click", js_handler=_BACK)
        try:
            entry = runs[name]
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
        show = show_run if entry.is_run else show_lab if entry.kind == "lab" else show_demo
        try:
            await show(runs, entry)
        except StoreError as error:
            _problem_card("Damaged", str(error))


async def show_run(runs: StoredRuns, entry: Entry) -> None:
    """Show a run: its numbers, its curves, and how it was made."""
    record = await asyncio.to_thread(runs.record, entry.name)
    Figures().show([figure for figure in figures(record) if figure.value != "-"])
    if not record.complete:
        ui.label("It ended early; these are the rounds that were done.").classes("ow-soft")
    await Comparison(runs).show([entry.name])
    MeasuresCard().show(record.measures)
    _json_card("How it was made", {"config": record.config, "versions": record.versions})


async def show_lab(runs: StoredRuns, entry: Entry) -> None:
    """Show a lab: what came out, its peers, what happened, and its runs."""
    result = await asyncio.to_thread(read_result, entry)
    with card("What came out"):
        for sentence in entry.sentences:
            ui.label(sentence[:1].upper() + sentence[1:] + ".")
        if not entry.complete:
            ui.label("It ended early; this is what was learned until then.")
    MeasuresCard().show(msgspec.convert(result.get("measures"), Measures | None))
    _members_card(runs, entry, "No runs are stored beside it.")
    with ui.element("div").classes("ow-grid halves"):
        with ui.column().classes("w-full gap-4"):
            if result["events"]:
                with card("What happened"), ui.element("ul").classes("ow-log").props("tabindex=0"):
                    sentences(result["events"])
        with ui.column().classes("w-full gap-4"), card("Peers"):
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
                    [peer["name"], *(number(peer.get(key), form) for key, form in forms.items())]
                    for peer in result["peers"]
                ],
            )
    _json_card("As stored in result.json", result)


async def show_demo(runs: StoredRuns, entry: Entry) -> None:
    """Show a demo: its report and its runs."""
    if entry.report is not None:
        with card("Report"):
            ui.link(
                "Open the report, with every figure and number",
                f"/report?{urlencode({'name': entry.name})}",
                new_tab=True,
            ).classes("ow-link")
    _members_card(runs, entry, "Its runs are not there any more.")


def _problem_card(heading: str, sentence: str) -> None:
    with card(heading):
        ui.label(sentence).classes("ow-bad")


def _json_card(title: str, value: object) -> None:
    """What a file holds, to be unfolded."""
    with ui.element("details").classes("ow-card ow-raw"):
        with ui.element("summary"):
            ui.label(title)
        ui.label(json.dumps(value, indent=2, default=str)).classes("ow-mono ow-pre")


def _members_card(runs: StoredRuns, entry: Entry, otherwise: str) -> None:
    """The runs that belong to a lab or a demo, or what to say if there are none."""
    members = runs.members_of(entry)
    with card("Its runs"):
        if not members:
            ui.label(otherwise).classes("ow-soft")
            return
        good = [member.name for member in members if not member.problem]
        ui.link(f"Compare its {len(good)} runs", comparison_link(good)).classes("ow-link")
        for member in members:
            ui.link(member.name, run_link(member.name))
