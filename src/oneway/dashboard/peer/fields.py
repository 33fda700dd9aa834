"""What a sample is put into: a field for each number or choice, or one for all if too many."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from nicegui import ui

from oneway.dashboard.components.numbers import number_problem
from oneway.dashboard.peer.source import ChoiceField, FeatureField, SampleField

MOST_FIELDS = 100
"""More would take a browser seconds, and nobody fills them in one by one."""


class SampleFields(Protocol):
    """A sample that somebody types."""

    def sample(self) -> dict[str, str] | None:
        """Return the values by feature; None if one is no number, which is marked at its field."""
        ...


def sample_fields(
    fields: Sequence[SampleField], on_enter: Callable[[], Awaitable[None]]
) -> SampleFields:
    """Make the fields, with typical values in them.

    Args:
        fields: What a sample has.
        on_enter: Called when somebody presses Enter in a field.
    """
    if len(fields) > MOST_FIELDS:
        return _OneForAll(fields)
    return _OneForEach(fields, on_enter)


class _OneForEach:
    """A field for each number, and one for each choice."""

    def __init__(
        self, fields: Sequence[SampleField], on_enter: Callable[[], Awaitable[None]]
    ) -> None:
        self._numbers: list[tuple[FeatureField, ui.input]] = []
        self._choices: list[tuple[ChoiceField, ui.select]] = []
        with ui.element("div").classes("ow-fields"):
            for field in fields:
                if isinstance(field, ChoiceField):
                    self._choices.append((field, _choice(field)))
                else:
                    self._numbers.append((field, _number(field, on_enter)))

    def sample(self) -> dict[str, str] | None:
        # Every field is looked at, so that all that is wrong is marked at once.
        are_numbers = [typed.validate() for _, typed in self._numbers]
        if not all(are_numbers):
            return None
        sample: dict[str, str] = {}
        for number, typed in self._numbers:
            sample |= number.sample(str(typed.value).strip())
        for choice, chosen in self._choices:
            sample |= choice.sample(str(chosen.value))
        return sample


def _number(field: FeatureField, on_enter: Callable[[], Awaitable[None]]) -> ui.input:
    typed = ui.input(field.name, value=f"{field.typical:.4g}", validation=number_problem)
    typed.props("dense outlined inputmode=decimal autocomplete=off hide-bottom-space")
    return typed.on("keydown.enter", on_enter)


def _choice(field: ChoiceField) -> ui.select:
    return ui.select(list(field.features), label=field.name, value=field.typical).props(
        "dense outlined options-dense"
    )


class _OneForAll:
    """All values in one field, in the order of the task."""

    def __init__(self, fields: Sequence[SampleField]) -> None:
        typical: dict[str, str] = {}
        for field in fields:
            value = field.typical
            typical |= field.sample(value if isinstance(value, str) else f"{value:.4g}")
        self._names = list(typical)
        self._field = ui.textarea(
            f"{len(self._names)} numbers with commas between them, {self._names[0]} to "
            f"{self._names[-1]}",
            value=", ".join(typical.values()),
            validation=lambda text: values_problem(text, self._names),
        )
        self._field.props("outlined rows=5 autocomplete=off spellcheck=false").classes("w-full")

    def sample(self) -> dict[str, str] | None:
        if not self._field.validate():
            return None
        return dict(zip(self._names, split_values(self._field.value), strict=True))


def split_values(text: str | None) -> list[str]:
    r"""The values in a text, with commas or line ends between them.

    >>> split_values("1, 2.5\n3,")
    ['1', '2.5', '3']
    """
    parts = [part.strip() for line in (text or "").splitlines() for part in line.split(",")]
    while parts and not parts[-1]:
        parts.pop()
    return parts


def values_problem(text: str | None, names: Sequence[str]) -> str | None:
    """What is wrong with values for these features, as a sentence for their field; None if nothing.

    >>> values_problem("1, x", ["light", "co2"])
    'co2: x is not a number'
    """
    values = split_values(text)
    for name, value in zip(names, values, strict=False):
        problem = number_problem(value)
        if problem is not None:
            return f"{name}: {problem}"
    if len(values) != len(names):
        return f"there are {len(values)} numbers, and {len(names)} are needed"
    return None
