"""What the pages of stored runs and labs have in common: config, files as they are, members."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nicegui import ui

from oneway.dashboard.components.facts import FactList
from oneway.dashboard.components.frame import card
from oneway.dashboard.runs.facts import config_sections
from oneway.dashboard.runs.run_table import comparison_link, run_link
from oneway.dashboard.runs.shelf import Shelf
from oneway.store.entry import Entry

_MOST_LETTERS = 100_000


def config_card(config: Mapping[str, Any]) -> None:
    """What determined the numbers, in parts."""
    with card("How it was made"):
        for title, facts in config_sections(config):
            with ui.element("h3").classes("ow-part"):
                ui.label(title)
            FactList().show(facts)


def raw_card(title: str, value: object) -> None:
    """What a file holds, to be unfolded."""
    text = json.dumps(value, indent=2, default=str)
    if len(text) > _MOST_LETTERS:
        text = f"{text[:_MOST_LETTERS]}\n... {len(text) - _MOST_LETTERS:,} letters more"
    with ui.element("details").classes("ow-card ow-raw"):
        with ui.element("summary"):
            ui.label(f"As stored in {title}")
        ui.label(text).classes("ow-mono ow-pre")


def members_card(shelf: Shelf, entry: Entry, otherwise: str) -> None:
    """The runs that belong to a lab or a demo, or what to say if there are none."""
    members = shelf.catalogue.members_of(entry)
    with card("Its runs"):
        if not members:
            ui.label(otherwise).classes("ow-soft")
            return
        good = [member.name for member in members if not member.problem]
        ui.link(f"Compare its {len(good)} runs", comparison_link(good)).classes("ow-link")
        for member in members:
            ui.link(member.name, run_link(member.name))
