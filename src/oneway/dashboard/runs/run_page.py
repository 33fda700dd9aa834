"""One run: its numbers, how it was made, its graph; other kinds have pages of their own."""

from __future__ import annotations

import asyncio

from nicegui import ui

from oneway.dashboard.components.amounts import short
from oneway.dashboard.components.facts import FactList
from oneway.dashboard.components.frame import card, empty, page_frame
from oneway.dashboard.components.stat import Stat
from oneway.dashboard.runs.cards import config_card, raw_card
from oneway.dashboard.runs.comparison import Comparison
from oneway.dashboard.runs.facts import last, number
from oneway.dashboard.runs.graph_card import graph_card
from oneway.dashboard.runs.lab_result import show_lab
from oneway.dashboard.runs.report_page import show_report
from oneway.dashboard.runs.run_table import run_link
from oneway.dashboard.runs.shelf import Shelf
from oneway.errors import StoreError
from oneway.metrics import accuracy, average_loss
from oneway.records import RunRecord
from oneway.store.entry import Entry


async def run_page(shelf: Shelf, name: str) -> None:
    """Show what has this name in the catalogue."""
    with page_frame(name[:200] or "A stored run") as beside:
        with beside:
            # Back to the list as it was, with its ticks, if that is where one came from.
            ui.link("All runs", "/").classes("ow-link").on("click", js_handler=_BACK)
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
                await show_lab(shelf, entry)
            else:
                await show_report(shelf, entry)
        except StoreError as error:
            with card("Damaged"):
                ui.label(str(error)).classes("ow-bad")
        except Exception as error:
            # The page says so rather than stop half-filled.
            with card("Damaged"):
                ui.label(
                    f"The rest cannot be shown ({type(error).__name__}); make it again."
                ).classes("ow-bad")


async def _run(shelf: Shelf, entry: Entry) -> None:
    record = await asyncio.to_thread(shelf.record, entry.name)
    _stats(record)
    if not record.complete:
        ui.label("It ended early; these are the rounds that were done.").classes("ow-soft")
    comparison = Comparison(shelf)
    await comparison.show([entry.name])
    with ui.element("div").classes("ow-grid halves"):
        with ui.column().classes("w-full gap-4"):
            config_card(record.config)
        with ui.column().classes("w-full gap-4"):
            peers = record.config.get("peers")
            listed = peers if isinstance(peers, list) else []
            names = [name for name in listed if isinstance(name, str)]
            await graph_card(record.config, record.masses.tolist(), names)
            with card("Versions"):
                FactList().show([(str(key), str(value)) for key, value in record.versions.items()])
    raw_card("run.json", {"config": record.config, "versions": record.versions})


_BACK = """(event) => {
  if (document.referrer.startsWith(location.origin)) { event.preventDefault(); history.back(); }
}"""


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
