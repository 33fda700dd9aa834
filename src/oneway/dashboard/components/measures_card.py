"""Card of measures: numbers, classes, confusion matrix and calibration; for peers and for runs."""

from __future__ import annotations

from nicegui import ui

from oneway.dashboard.components.elements import FactList, card, number_table
from oneway.metrics.measure_rows import (
    baseline_rows,
    calibration_table,
    class_table,
    confusion_rows,
    in_words,
    measure_rows,
)
from oneway.records.measures import Measures

_MOST_CLASSES = 12
"""A confusion matrix of more classes is left to programs."""


class MeasuresCard:
    """How good predictions were; hidden as long as nothing was measured."""

    def __init__(self) -> None:
        self._shown: Measures | None = None
        heading = "How good its predictions were, each made before its label was known"
        with ui.element("div").classes("w-full").props("data-measures") as self._box, card(heading):
            self._facts = FactList(abreast=True)
            self._tables = ui.element("div").classes("ow-grid halves")
        self._box.set_visibility(False)

    def show(self, measures: Measures | None) -> None:
        """Bring it up to date; nothing is sent to the browser if it is so already."""
        if measures == self._shown:
            return
        self._shown = measures
        self._box.set_visibility(measures is not None)
        if measures is None:
            return
        rows = [*baseline_rows(measures), *measure_rows(measures)]
        words = list(in_words(measures).items())
        self._facts.show([(f"{row.name}, {row.meaning}", row.text) for row in rows] + words)
        self._tables.clear()
        few = len(measures.classes) <= _MOST_CLASSES
        with self._tables:
            with ui.element("div"):
                _table("Classes", class_table(measures))
                _table("Confusion matrix", confusion_rows(measures) if few else [])
            with ui.element("div"):
                _table("Calibration, by tenths of the probability", calibration_table(measures))


def _table(title: str, rows: list[dict[str, str]]) -> None:
    """A heading and rows of cells by their headings; nothing if there are none."""
    if rows:
        with ui.element("h3").classes("ow-part"):
            ui.label(title)
        number_table(list(rows[0]), [list(row.values()) for row in rows])
