"""Page elements: frame, card, headline figures, facts and tables; any text stays text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from nicegui import ui

_CSS, _JS = (
    (Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("page.css", "page.js")
)

Mood: TypeAlias = Literal["", "good", "bad", "quiet"]
"""How something is coloured and marked."""

Cell: TypeAlias = str | Callable[[], object]
"""A text, or what makes the elements of a cell."""


@contextmanager
def page_frame(heading: str) -> Iterator[ui.element]:
    """Lay out a page; what is made inside the block becomes its content.

    Yields a place beside the heading, for a state or a link.
    """
    ui.page_title(f"{heading} - oneway")
    ui.add_css(_CSS)
    ui.add_body_html(f"<script>{_JS}</script>")
    ui.colors(primary="#0072b2", positive="#00704f", negative="#b3261e")
    with ui.header(elevated=False, fixed=False).classes("ow-header row items-center no-wrap"):
        with ui.row().classes("items-center gap-x-4 gap-y-1 grow min-w-0"):
            ui.html(f"<h1>{escape(heading)}</h1>", sanitize=False)
            beside = ui.row().classes("items-center gap-2")
        mode = ui.button(icon="contrast").props('flat round dense data-mode="auto"')
        mode.props('aria-label="Colours: light, dark or as the system has it"')
        mode.on("click", js_handler="() => window.owMode(true)")
    with ui.column().classes("ow-main"):
        yield beside


@contextmanager
def card(heading: str) -> Iterator[ui.element]:
    """A part of a page with a heading; yields a place beside the heading."""
    with ui.element("section").classes("ow-card"):
        with ui.row().classes("items-center w-full gap-2"):
            ui.html(f"<h2>{escape(heading)}</h2>", sanitize=False)
            beside = ui.row().classes("items-center gap-2 ml-auto")
        yield beside


def empty(sentence: str) -> ui.element:
    """What stands where there is nothing yet: what to do next."""
    with ui.element("p").classes("ow-empty") as element:
        ui.label(sentence)
    return element


def say(label: ui.label, sentence: str) -> None:
    """Show a sentence, or hide its place if there is none."""
    label.text = sentence
    label.set_visibility(bool(sentence))


def set_mood(element: ui.element, mood: Mood) -> None:
    """Colour and mark an element; nothing is sent to the browser if it is so already."""
    element.classes(remove="good bad quiet", add=mood or None)


def sentences(said: Sequence[str]) -> None:
    """Make an entry of a list for each sentence."""
    for sentence in said:
        with ui.element("li"):
            ui.label(sentence)


class Figure(NamedTuple):
    """A headline number.

    Attributes:
        key: How tests and style sheets find it.
        name: What it is.
        value: "-" if it is not known.
        unit: What it is counted in.
        note: A remark, which the mood colours.
    """

    key: str
    name: str
    value: str
    unit: str = ""
    note: str = ""
    mood: Mood = ""


class Figures:
    """Headline numbers in a row of boxes; `show` brings them up to date."""

    def __init__(self) -> None:
        self._grid = ui.element("div").classes("ow-stats")
        self._boxes: dict[str, tuple[ui.element, ui.label, ui.label, ui.label]] = {}

    def show(self, figures: Sequence[Figure]) -> None:
        """Show these; only what changed is sent to the browser."""
        for figure in figures:
            if figure.key not in self._boxes:
                with self._grid:
                    self._boxes[figure.key] = _figure_box(figure.key, figure.name)
            box, value, unit, note = self._boxes[figure.key]
            value.text, unit.text, note.text = figure.value, figure.unit, figure.note
            set_mood(box, figure.mood)


def _figure_box(key: str, name: str) -> tuple[ui.element, ui.label, ui.label, ui.label]:
    """A box, and the labels of its number, its unit and its remark."""
    with ui.element("div").classes("ow-stat").props(f"data-stat={key}") as box:
        ui.label(name).classes("name")
        with ui.row().classes("items-baseline gap-1"):
            value, unit = ui.label().classes("value"), ui.label().classes("unit")
        note = ui.label().classes("note")
    return box, value, unit, note


class FactList:
    """Names with their values, one a line or all abreast; `show` brings them up to date."""

    def __init__(self, *, abreast: bool = False) -> None:
        self._values: dict[str, ui.label] = {}
        self._list = ui.element("dl").classes("ow-facts abreast" if abreast else "ow-facts")

    def show(self, facts: Sequence[tuple[str, str]]) -> None:
        """Replace what is shown; only what changed is sent to the browser."""
        if [name for name, _ in facts] != list(self._values):
            self._list.clear()
            with self._list:
                self._values = {name: _value_of(name) for name, _ in facts}
        for name, value in facts:
            self._values[name].text = value


def _value_of(name: str) -> ui.label:
    with ui.element("div"):
        with ui.element("dt"):
            ui.label(name)
        with ui.element("dd"):
            return ui.label("")


def number_table(headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[ui.element]:
    """Make a table whose first column is text and whose others are numbers; return its rows."""
    with ui.element("div").classes("ow-scroll"), ui.element("table").classes("ow-table"):
        with ui.element("thead"):
            _table_row("th", headings)
        with ui.element("tbody"):
            return [_table_row("td", cells) for cells in rows]


def _table_row(tag: str, cells: Sequence[Cell]) -> ui.element:
    with ui.element("tr") as row:
        for place, cell in enumerate(cells):
            with ui.element(tag).classes("number" if place else "") as element:
                if tag == "th":
                    element.props("scope=col")
                if isinstance(cell, str):
                    ui.label(cell)
                else:
                    cell()
    return row
