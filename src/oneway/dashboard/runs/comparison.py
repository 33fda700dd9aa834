"""The curves of several runs in one chart, their final numbers beside it, and both as files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from nicegui import ui

from oneway.dashboard.components.chart import Chart, Line
from oneway.dashboard.components.frame import card, empty
from oneway.dashboard.components.legend import swatch_html
from oneway.dashboard.components.tables import Cell, number_table
from oneway.dashboard.runs.facts import numbers
from oneway.dashboard.runs.measures import MEASURES, MOST_LINES, Measure, as_csv, points, style
from oneway.dashboard.runs.run_table import run_link
from oneway.dashboard.runs.shelf import Shelf
from oneway.errors import StoreError
from oneway.records import RunRecord


class Comparison:
    """A part of a page that shows the runs it is given."""

    def __init__(self, shelf: Shelf, on_drop: Callable[[str], None] | None = None) -> None:
        """Make it without runs.

        Args:
            shelf: Where runs are read.
            on_drop: Called with a run that somebody does not want to see any more; None if there is
                one run only, whose numbers stand elsewhere.
        """
        self._shelf = shelf
        self._on_drop = on_drop
        self._wanted: list[str] = []
        self._stamps: list[object] = []
        self._records: dict[str, RunRecord] = {}
        self._slots: dict[str, int] = {}
        self._measure = next(iter(MEASURES.values()))
        self._chart: Chart | None = None
        with card("Curves") as beside:
            with beside:
                self._toggle = ui.toggle(
                    list(MEASURES),
                    value=self._measure.title,
                    on_change=lambda event: self._choose(str(event.value)),
                ).props('no-caps padding="4px 10px" aria-label="What to compare"')
            self._empty = empty("Tick runs in the list above to compare their curves.")
            self._complaints = ui.column().classes("gap-1").props("role=status")
            self._place = ui.column().classes("w-full")
            self._files = ui.row().classes("gap-2")
            with self._files:
                ui.button("Save as CSV", on_click=self._save_csv).props("outline no-caps")
                ui.button("Save as PNG", on_click=self._save_png).props("outline no-caps")
            self._table = ui.column().classes("w-full")
        self._draw([])

    async def show(self, names: list[str]) -> None:
        """Show these runs instead; what cannot be read is said."""
        self._wanted, self._stamps = names, self._stamps_of(names)
        drawn = names[:MOST_LINES]
        records, complaints = await asyncio.to_thread(self._read, drawn)
        if self._wanted is not names:
            # Somebody ticked on while these were read.
            return
        if len(names) > MOST_LINES:
            complaints.append(
                f"Only the first {MOST_LINES} of {len(names)} are drawn: more lines could not be "
                "told apart. Untick some."
            )
        self._records = records
        self._slots = {name: self._slots[name] for name in records if name in self._slots}
        free = (slot for slot in range(MOST_LINES) if slot not in self._slots.values())
        for name in records:
            if name not in self._slots:
                self._slots[name] = next(free)
        self._draw(complaints)

    async def follow(self) -> None:
        """Show the same runs again if one of them has changed, come or gone."""
        if self._stamps != self._stamps_of(self._wanted):
            await self.show(list(self._wanted))

    def _stamps_of(self, names: list[str]) -> list[object]:
        known = {entry.name: entry.stamp for entry in self._shelf.catalogue.entries}
        return [known.get(name) for name in names]

    def _read(self, names: list[str]) -> tuple[dict[str, RunRecord], list[str]]:
        records: dict[str, RunRecord] = {}
        complaints: list[str] = []
        for name in names:
            try:
                records[name] = self._shelf.record(name)
            except StoreError as error:
                complaints.append(str(error))
        return records, complaints

    def _choose(self, title: str) -> None:
        self._measure = MEASURES[title]
        self._draw_chart()

    def _draw(self, complaints: list[str]) -> None:
        self._complaints.clear()
        with self._complaints:
            for sentence in complaints:
                ui.label(sentence).classes("ow-bad")
        there = bool(self._records)
        self._empty.set_visibility(not there)
        for part in (self._toggle, self._place, self._files, self._table):
            part.set_visibility(there)
        self._draw_chart()
        self._draw_table()

    def _draw_chart(self) -> None:
        measure = self._measure
        lines = [self._line(measure, name) for name in self._records]
        unknown = [line.name for line in lines if not line.points]
        self._place.clear()
        with self._place:
            self._chart = Chart(
                f"{measure.title} of {len(lines)} runs after each round",
                x="round",
                y=measure.axis,
                log_y=measure.log,
                legend=self._on_drop is not None,
            )
            self._chart.show([line for line in lines if line.points])
            if unknown:
                ui.label(f"Not known for: {', '.join(unknown)}").classes("ow-soft")

    def _line(self, measure: Measure, name: str) -> Line:
        colour, dash = style(self._slots[name])
        return Line(name, points(measure, self._records[name]), colour, dash, width=2.2)

    def _draw_table(self) -> None:
        self._table.clear()
        if not self._records or self._on_drop is None:
            return
        rows = {name: numbers(record) for name, record in self._records.items()}
        headings = [
            heading
            for heading in next(iter(rows.values()))
            if any(values[heading] != "-" for values in rows.values())
        ]
        cells: list[list[Cell]] = [
            [
                partial(self._name, name),
                *(values[heading] for heading in headings),
                partial(_drop_button, name, self._on_drop),
            ]
            for name, values in rows.items()
        ]
        with self._table:
            made = number_table(["Run", *headings, ""], cells)
        for name, row in zip(rows, made, strict=True):
            row.props["data-final"] = name

    def _name(self, name: str) -> None:
        with ui.row().classes("items-center gap-2 no-wrap min-w-44"):
            ui.html(swatch_html(*style(self._slots[name])), sanitize=False)
            ui.link(name, run_link(name))

    async def _save_csv(self) -> None:
        text = await asyncio.to_thread(as_csv, self._measure, dict(self._records))
        ui.download.content(text.encode(), f"{self._measure.file_name}.csv", "text/csv")

    def _save_png(self) -> None:
        if self._chart is not None:
            self._chart.save(f"{self._measure.file_name}.png")


def _drop_button(name: str, drop: Callable[[str], None]) -> None:
    button = ui.button("Remove", on_click=lambda: drop(name)).props("flat dense no-caps size=sm")
    button.props["aria-label"] = f"Remove {name}"
