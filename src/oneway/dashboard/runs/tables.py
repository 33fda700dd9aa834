"""Small tables of text, made of elements: whatever the text is, it stays text."""

from __future__ import annotations

from collections.abc import Sequence

from nicegui import ui

from oneway.dashboard.runs.facts import Facts


def fact_list(facts: Facts) -> None:
    """Names and values, one pair a line."""
    with ui.element("dl").classes("ow-facts"):
        for name, value in facts:
            with ui.element("dt"):
                ui.label(name)
            with ui.element("dd"):
                ui.label(value)


def number_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table whose first column is text and whose others are numbers."""
    with (
        ui.element("div").classes("ow-scroll"),
        ui.element("table").classes("ow-table"),
    ):
        with ui.element("thead"), ui.element("tr"):
            for place, heading in enumerate(headings):
                with ui.element("th").props("scope=col").classes("number" if place else ""):
                    ui.label(heading)
        with ui.element("tbody"):
            for row in rows:
                with ui.element("tr"):
                    for place, cell in enumerate(row):
                        with ui.element("td").classes("number" if place else ""):
                            ui.label(cell)
