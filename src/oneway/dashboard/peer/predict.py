"""Prediction form: a field for each number or choice, or one for all, and the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from nicegui import ui
from nicegui.elements.mixins.validation_element import ValidationElement

from oneway.dashboard.components.dialogs import attempt
from oneway.dashboard.components.elements import card, empty
from oneway.dashboard.components.numbers import number_problem
from oneway.errors import DataError
from oneway.tables.cells import is_missing
from oneway.tables.features import Array, Category, Feature, Number
from oneway.task.task import Task
from oneway.web.peer_page import PeerLook, PeerSource, Prediction

UNKNOWN = "not known"
"""What a choice begins with: a gap."""

MOST_FIELDS = 100
"""More would take a browser seconds, and nobody fills them in one by one."""

_MOST_CLASSES = 10
"""The most probable classes are shown, no more than so many."""


class PredictCard:
    """The form; `show` makes it anew when the task is another."""

    def __init__(self, source: PeerSource) -> None:
        """Make it without fields."""
        self._source = source
        self._task: Task | None = None
        self._sample: Callable[[], dict[str, str] | None] = lambda: None
        with card("Predict"):
            self._empty = empty("The task cannot be read, so there is nothing to fill in.")
            self._about = ui.label("").classes("ow-soft")
            self._place = ui.element("div")
            with ui.row().classes("items-center gap-3"):
                self._button = ui.button("Predict", on_click=self._predict).props("no-caps")
                self._problem = ui.label("").classes("ow-bad").props("role=alert")
            self._answer = ui.element("div").props("role=status aria-live=polite")

    def show(self, look: PeerLook) -> None:
        """Make the fields, unless they are there already."""
        task = look.task
        self._empty.set_visibility(task is None)
        self._button.set_visibility(task is not None)
        if task is None or task == self._task:
            return
        self._task = task
        self._about.text = (
            f"What does the model expect {task.label} to be? Values are in the units of the "
            "data; each field begins with its average, or with what is most frequent, or with "
            f"{UNKNOWN}."
        )
        self._place.clear()
        self._answer.clear()
        with self._place:
            self._sample = sample_fields(task.features, self._predict)

    async def _predict(self) -> None:
        self._problem.text = ""
        self._answer.clear()
        sample = self._sample()
        if sample is None:
            self._problem.text = "Fix the highlighted fields first."
            return
        found = await attempt(
            asyncio.to_thread(self._source.predict, sample), self._problem.set_text
        )
        if found is not None:
            self._answer.clear()  # somebody may have pressed the button twice
            with self._answer:
                self._say(found)

    def _say(self, found: Prediction) -> None:
        label = self._task.label if self._task is not None else ""
        ui.label(f"{label}: {found.label}").classes("ow-answer").props("data-answer")
        probable = sorted(found.probabilities.items(), key=lambda item: -item[1])
        for name, share in probable[:_MOST_CLASSES]:
            with ui.element("div").classes("ow-probability"):
                ui.label(name).classes("name")
                with ui.element("div").classes("bar"):
                    ui.element("div").style(f"width: {share:.2%}")
                ui.label(f"{share:.1%}").classes("share")
        if len(probable) > _MOST_CLASSES:
            ui.label(f"and {len(probable) - _MOST_CLASSES} less probable ones").classes("ow-soft")
        where = "of the running peer" if found.is_live else "on the disk"
        ui.label(
            f"By the personal model {where}; the network's: peer predict --model shared."
        ).classes("ow-soft")


def sample_fields(
    features: Sequence[Feature], on_enter: Callable[[], Awaitable[None]]
) -> Callable[[], dict[str, str] | None]:
    """Make fields for a sample, with typical values in them, and return what reads them.

    That returns the values by feature; None if one is no number, which is marked at its field.
    """
    if len(features) > MOST_FIELDS:
        return _one_for_all(features)
    with ui.element("div").classes("ow-fields"):
        made = [(field, _field(field, on_enter)) for field in features]

    def sample() -> dict[str, str] | None:
        # Every field is looked at, so that all that is wrong is marked at once.
        are_fine = [typed.validate() for _, typed in made]
        if not all(are_fine):
            return None
        return dict(pair for field, typed in made for pair in _values(field, str(typed.value)))

    return sample


def _field(field: Feature, on_enter: Callable[[], Awaitable[None]]) -> ValidationElement[Any]:
    options = _options(field)
    if options:
        return ui.select(options, label=field.name, value=_typical(field)).props(
            "dense outlined options-dense"
        )
    if isinstance(field, Array):
        return _array_field(field)
    typed = ui.input(
        field.name, value=_typical(field), validation=lambda text: field_problem(field, text)
    )
    mode = "decimal" if field.kind == "number" else "text"
    typed.props(f"dense outlined inputmode={mode} autocomplete=off hide-bottom-space")
    return typed.on("keydown.enter", on_enter)


def _array_field(feature: Array) -> ValidationElement[Any]:
    size = " x ".join(map(str, feature.shape))
    text = ui.textarea(
        f"{feature.name}, {size} numbers",
        validation=lambda text: field_problem(feature, array_text(text)),
    )
    text.props("dense outlined rows=3 autocomplete=off spellcheck=false").classes("ow-array w-full")
    return text


def _options(field: Feature) -> list[str]:
    """What there is to choose from; nothing if it is to be typed."""
    if isinstance(field, Category):
        return [*field.values, UNKNOWN]
    return ["yes", "no", UNKNOWN] if field.kind == "boolean" else []


def _typical(field: Feature) -> str:
    if isinstance(field, Number):
        return f"{field.center:.4g}"
    return "" if field.kind == "time" else UNKNOWN


def _values(field: Feature, typed: str) -> list[tuple[str, str]]:
    """What is typed or chosen, by feature."""
    if field.kind == "array":
        return [(field.name, "" if typed == UNKNOWN else array_text(typed))]
    return [(field.name, "" if typed == UNKNOWN else typed.strip())]


def array_text(typed: str | None) -> str:
    """The numbers of an array as typed, with brackets or without; nothing is a gap.

    >>> array_text("1, 2.5, ")
    '[1, 2.5]'
    """
    text = (typed or "").strip().rstrip(",")
    return f"[{text}]" if text and not text.startswith("[") else text


def field_problem(feature: Feature, text: str | None) -> str | None:
    """What is wrong with what is typed for a feature; nothing typed is a missing value.

    >>> from oneway.tables import Time
    >>> field_problem(Time("visit"), "noon")
    'it must be a date, a time or both, as 2026-03-01 14:30'
    """
    if feature.kind == "array" and is_missing(text) and not feature.missing_indicator:
        return "give its numbers"
    if is_missing(text) and (feature.missing_indicator or feature.kind != "number"):
        return None
    if feature.kind == "number":
        return number_problem(text)
    try:
        feature.encode(text)
    except DataError as error:
        return str(error).partition("; ")[2]
    return None


def _one_for_all(features: Sequence[Feature]) -> Callable[[], dict[str, str] | None]:
    """All values in one field, in the order of the task."""
    typical = dict(pair for field in features for pair in _values(field, _typical(field)))
    names = list(typical)
    what = "numbers" if all(feature.kind == "number" for feature in features) else "values"
    typed = ui.textarea(
        f"{len(names)} {what} with commas between them, {names[0]} to {names[-1]}",
        value=", ".join(value or UNKNOWN for value in typical.values()),
        validation=lambda text: values_problem(text, features),
    )
    typed.props("outlined rows=5 autocomplete=off spellcheck=false").classes("w-full")

    def sample() -> dict[str, str] | None:
        if not typed.validate():
            return None
        values = zip(features, split_values(typed.value), strict=True)
        return dict(pair for feature, value in values for pair in _values(feature, value))

    return sample


def split_values(text: str | None) -> list[str]:
    r"""The values in a text, with commas or line ends between them.

    >>> split_values("1, 2.5\n3,")
    ['1', '2.5', '3']
    """
    parts = [part.strip() for line in (text or "").splitlines() for part in line.split(",")]
    while parts and not parts[-1]:
        parts.pop()
    return parts


def values_problem(text: str | None, features: Sequence[Feature]) -> str | None:
    """What is wrong with values for these features, as a sentence for their field; None if nothing.

    >>> values_problem("1, x", [Number("light"), Number("co2")])
    'co2: x is not a number'
    """
    values = split_values(text)
    for feature, value in zip(features, values, strict=False):
        problem = None if value == UNKNOWN else field_problem(feature, value)
        if problem is not None:
            return f"{feature.name}: {problem}"
    if len(values) != len(features):
        return f"there are {len(values)} values, and {len(features)} are needed"
    return None
