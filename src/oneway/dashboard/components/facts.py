"""Names and values, made of elements: whatever a text is, it stays text."""

from __future__ import annotations

from collections.abc import Sequence

from nicegui import ui


class FactList:
    """Names with their values; `show` brings them up to date."""

    def __init__(self, *, abreast: bool = False) -> None:
        """Make it empty.

        Args:
            abreast: Whether the facts stand beside each other, each value below its name; else
                there is one fact a line.
        """
        self._names: list[str] = []
        self._values: list[ui.label] = []
        self._list = ui.element("dl").classes("ow-facts abreast" if abreast else "ow-facts")

    def show(self, facts: Sequence[tuple[str, str]]) -> None:
        """Replace what is shown; only what changed is sent to the browser."""
        names = [name for name, _ in facts]
        if names != self._names:
            self._names = names
            self._list.clear()
            with self._list:
                self._values = [_value_of(name) for name in names]
        for label, (_, value) in zip(self._values, facts, strict=True):
            label.text = value


def _value_of(name: str) -> ui.label:
    with ui.element("div"):
        with ui.element("dt"):
            ui.label(name)
        with ui.element("dd"):
            return ui.label("")
