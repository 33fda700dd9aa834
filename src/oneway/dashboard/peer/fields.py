"""What a sample is typed into: a field for each feature, or one for all if there are too many."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from nicegui import ui

from oneway.dashboard.components.numbers import number_problem
from oneway.dashboard.peer.source import FeatureField

MOST_FIELDS = 100
"""More would take a browser seconds, and nobody fills them in one by one."""


class SampleFields(Protocol):
    """A sample that somebody types."""

    def sample(self) -> dict[str, str] | None:
        """Return the values by feature; None if one is no number, which is marked at its field."""
        ...


def sample_fields(
    features: Sequence[FeatureField], on_enter: Callable[[], Awaitable[None]]
) -> SampleFields:
    """Make the fields, with typical values in them.

    Args:
        features: What a sample has.
        on_enter: Called when somebody presses Enter in a field.
    """
    if len(features) > MOST_FIELDS:
        return _OneForAll(features)
    return _OneForEach(features, on_enter)


class _OneForEach:
    """A field for each feature."""

    def __init__(
        self, features: Sequence[FeatureField], on_enter: Callable[[], Awaitable[None]]
    ) -> None:
        self._fields: dict[str, ui.input] = {}
        with ui.element("div").classes("ow-fields"):
            for feature in features:
                field = ui.input(
                    feature.name, value=f"{feature.typical:.4g}", validation=number_problem
                )
                field.props("dense outlined inputmode=decimal autocomplete=off hide-bottom-space")
                field.on("keydown.enter", on_enter)
                self._fields[feature.name] = field

    def sample(self) -> dict[str, str] | None:
        # Every field is looked at, so that all that is wrong is marked at once.
        are_numbers = [field.validate() for field in self._fields.values()]
        if not all(are_numbers):
            return None
        return {name: str(field.value).strip() for name, field in self._fields.items()}


class _OneForAll:
    """All values in one field, in the order of the task."""

    def __init__(self, features: Sequence[FeatureField]) -> None:
        self._names = [feature.name for feature in features]
        self._field = ui.textarea(
            f"{len(features)} numbers with commas between them, {self._names[0]} to "
            f"{self._names[-1]}",
            value=", ".join(f"{feature.typical:.4g}" for feature in features),
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
