"""One number, large, with its name, its unit, and a remark that may be good or bad."""

from __future__ import annotations

from typing import Literal, TypeAlias

from nicegui import ui

Mark: TypeAlias = Literal["", "good", "bad"]


class Stat:
    """A number that is shown again and again."""

    def __init__(self, name: str, unit: str = "", *, key: str = "") -> None:
        """Make a number that is not known yet.

        Args:
            name: What it is.
            unit: What it is counted in.
            key: How tests and style sheets find it.
        """
        with ui.element("div").classes("ow-stat") as self._box:
            if key:
                self._box.props(f"data-stat={key}")
            ui.label(name).classes("name")
            with ui.row().classes("items-baseline gap-1"):
                self._value = ui.label("-").classes("value")
                self._unit = ui.label(unit).classes("unit")
            self._note = ui.label("").classes("note")
        self._mark: Mark = ""

    def show(self, value: str, note: str = "", *, unit: str | None = None, mark: Mark = "") -> None:
        """Show a value; only what changed is sent to the browser."""
        self._value.text = value
        self._note.text = note
        if unit is not None:
            self._unit.text = unit
        if mark != self._mark:
            self._box.classes(remove=self._mark or None, add=mark or None)
            self._mark = mark
