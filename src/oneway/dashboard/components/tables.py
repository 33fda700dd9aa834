"""Small tables, made of elements: whatever a text is, it stays text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from nicegui import ui

Cell: TypeAlias = str | Callable[[], object]
"""A text, or what makes the elements of a cell."""


def number_table(headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[ui.element]:
    """Make a table whose first column is text and whose others are numbers; return its rows."""
    with (
        ui.element("div").classes("ow-scroll"),
        ui.element("table").classes("ow-table"),
    ):
        with ui.element("thead"), ui.element("tr"):
            for place, heading in enumerate(headings):
                with ui.element("th").props("scope=col").classes("number" if place else ""):
                    ui.label(heading)
        with ui.element("tbody"):
            return [_row(cells) for cells in rows]


def _row(cells: Sequence[Cell]) -> ui.element:
    with ui.element("tr") as row:
        for place, cell in enumerate(cells):
            with ui.element("td").classes("number" if place else ""):
                if isinstance(cell, str):
                    ui.label(cell)
                else:
                    cell()
    return row
