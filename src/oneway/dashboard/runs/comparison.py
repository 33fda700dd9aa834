"""Comparison of runs: their curves in one chart, and their final numbers beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from nicegui import ui

from oneway.dashboard.components.chart import (
    MOST_LINES,
    Chart,
    Dash,
    Line,
    line_style,
    swatch_html,
)
from oneway.dashboard.components.colours import GREEN, INK, Colour
from oneway.dashboard.components.elements import Cell, card, empty, number_table
from oneway.dashboard.runs.record_text import (
    BASELINES,
    MEASURES,
    Measure,
    figures,
    points,
)
from oneway.dashboard.runs.run_table import run_link
from oneway.dashboard.runs.stored_runs import StoredRuns
from oneway.errors import StoreError
from oneway.records import RunRecord


class Comparison:
    """A part of a page that shows the runs it is given."""

    def __init__(self, runs: StoredRuns, on_drop: Callable[[str], None] | None = None) -> None:
        """Make it without runs.

        `on_drop` gets a run that somebody does not want to see any more; it is None if there is
        one run only, whose numbers stand elsewhere.
        """
        self._runs = runs
        self._on_drop = on_drop
        self._wanted: list[str] = []
        self._stamps: list[object] = []
        self._records: dict[str, RunRecord] = {}
        self._slots: dict[str, int] = {}
        with card("Curves") as beside:
            with beside:
                self._toggle = ui.toggle(
                    list(MEASURES), value=next(iter(MEASURES)), on_change=self._draw_chart
                ).props('no-caps padding="4px 10px" aria-label="What to compare"')
            self._empty = empty("Tick runs in the list above to compare their curves.")
            self._complaints = ui.column().classes("gap-1").props("role=status")
            self._place = ui.column().classes("w-full")
            self._table = ui.column().classes("w-full")
        self._draw([])

    async def show(self, names: list[str]) -> None:
        """Show these runs instead; what cannot be read is said."""
        self._wanted, self._stamps = names, self._stamps_of(names)
        records, complaints = await asyncio.to_thread(self._read, names[:MOST_LINES])
        if self._wanted is not names:
            # Somebody ticked on while these were read.
            return
        if len(names) > MOST_LINES:
            complaints.append(
                f"Only the first {MOST_LINES} of {len(names)} are drawn: more lines could not be "
                "told apart. Untick some."
            )
        self._records = records
        self._slots = {name: slot for slot, name in enumerate(records)}
        self._draw(complaints)

    async def follow(self) -> None:
        """Show the same runs again if one of them has changed, come or gone."""
        if self._stamps != self._stamps_of(self._wanted):
            await self.show(list(self._wanted))

    def _stamps_of(self, names: list[str]) -> list[object]:
        return [self._runs.entries.get(name) for name in names]

    def _read(self, names: list[str]) -> tuple[dict[str, RunRecord], list[str]]:
        records: dict[str, RunRecord] = {}
        complaints: list[str] = []
        for name in names:
            try:
                records[name] = self._runs.record(name)
            except StoreError as error:
                complaints.append(str(error))
        return records, complaints

    @property
    def _measure(self) -> Measure:
        return MEASURES[str(self._toggle.value)]

    def _draw(self, complaints: list[str]) -> None:
        self._complaints.clear()
        with self._complaints:
            for sentence in complaints:
                ui.label(sentence).classes("ow-bad")
        there = bool(self._records)
        self._empty.set_visibility(not there)
        for part in (self._toggle, self._place, self._table):
            part.set_visibility(there)
        self._draw_chart()
        self._draw_table()

    def _draw_chart(self) -> None:
        measure = self._measure
        lines = [
            Line(name, points(measure, record), *line_style(self._slots[name]), width=2.2)
            for name, record in self._records.items()
        ]
        unknown = [line.name for line in lines if not line.points]
        if measure.title == "Average loss" and len(self._records) == 1:
            [record] = self._records.values()
            styles: tuple[tuple[Colour, Dash], ...] = ((INK, "dashed"), (GREEN, "dotted"))
            lines += [
                Line(baseline.title, points(baseline, record), *style)
                for baseline, style in zip(BASELINES, styles, strict=True)
            ]
        runs_text = "1 run" if len(self._records) == 1 else f"{len(self._records)} runs"
        self._place.clear()
        with self._place:
            chart = Chart(
                f"{measure.title} of {runs_text} after each round",
                x="round",
                y=measure.axis,
                log_y=measure.log,
                legend=len([line for line in lines if line.points]) > 1,
            )
            chart.show([line for line in lines if line.points])
            if unknown:
                ui.label(f"Not known for: {', '.join(unknown)}").classes("ow-soft")

    def _draw_table(self) -> None:
        """One row per run; a column only for what is known of some run."""
        self._table.clear()
        if not self._records or self._on_drop is None:
            return
        rows = {name: figures(record) for name, record in self._records.items()}
        columns = [
            column
            for column in zip(*rows.values(), strict=True)
            if any(figure.value != "-" for figure in column)
        ]
        headings = [f"{one.name} ({one.unit})" if one.unit else one.name for one, *_ in columns]
        cells: list[list[Cell]] = [
            [
                partial(self._name, name),
                *(column[place].value for column in columns),
                partial(_drop_button, name, self._on_drop),
            ]
            for place, name in enumerate(rows)
        ]
        with self._table:
            made = number_table(["Run", *headings, ""], cells)
        for name, row in zip(rows, made, strict=True):
            row.props["data-final"] = name

    def _name(self, name: str) -> None:
        with ui.row().classes("items-center gap-2 no-wrap min-w-44"):
            ui.html(swatch_html(*line_style(self._slots[name])), sanitize=False)
            ui.link(name, run_link(name))


def _drop_button(name: str, drop: Callable[[str], None]) -> None:
    button = ui.button("Remove", on_click=lambda: drop(name)).props("flat dense no-caps size=sm")
    button.props["aria-label"] = f"Remove {name}"
