"""A stored lab: what came out, its peers, what happened, and its runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from nicegui import ui

from oneway.dashboard.components.frame import card
from oneway.dashboard.components.tables import number_table
from oneway.dashboard.runs.cards import config_card, members_card, raw_card
from oneway.dashboard.runs.graph_card import graph_card
from oneway.dashboard.runs.shelf import Shelf
from oneway.store.entry import Entry
from oneway.store.reading import read_result

_MOST_PEERS = 200
_MOST_EVENTS = 500


async def show_lab(shelf: Shelf, entry: Entry) -> None:
    """Show a lab.

    Raises:
        StoreError: If it is damaged.
    """
    result = await asyncio.to_thread(read_result, entry)
    with card("What came out"):
        for sentence in entry.sentences:
            ui.label(sentence[:1].upper() + sentence[1:] + ".")
        if not entry.complete:
            ui.label("It ended early; this is what was learned until then.")
    members_card(shelf, entry, "No runs are stored beside it.")
    config = result.get("config")
    config = config if isinstance(config, Mapping) else {}
    peers = [peer for peer in _listed(result.get("peers")) if isinstance(peer, Mapping)]
    with ui.element("div").classes("ow-grid halves"):
        with ui.column().classes("w-full gap-4"):
            await graph_card(
                config,
                [mass for peer in peers if (mass := _number(peer.get("mass"))) is not None],
                [name for peer in peers if isinstance(name := peer.get("name"), str)],
            )
            _events_card(_listed(result.get("events")))
        with ui.column().classes("w-full gap-4"):
            _peers_card(peers[:_MOST_PEERS])
            config_card(config)
    raw_card("result.json", result)


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
    try:
        return format(value, form)
    except OverflowError:
        return "-"


def _number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:
        return None


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
