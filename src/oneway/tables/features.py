"""Features: what a column of a table is to a model, and which numbers one of its cells becomes.

One feature is one column to the user and one or several columns to the model:

- a *number* is learned from as (value - center) / scale;
- a *boolean* as -1 or +1;
- a *category* as one column of 0 and 1 per value, and one more for values that are not listed;
- a *time* as sines and cosines of its hour, weekday and season, or of some of these;
- an *array* of a given shape, such as an image, as its cells, each (value - center) / scale.

A cell that holds nothing is a gap. It has 0 in all columns of the feature, which is the centre of a
number, and 1 in a column of its own if `gaps` says that gaps tell something.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta

from oneway.errors import DataError, TaskError
from oneway.files.validation import checked
from oneway.records import Floats, Vector
from oneway.sentences import listed, shown
from oneway.tables.cells import as_number, as_truth, is_gap, label_key, label_text
from oneway.tables.times import PARTS, TimePart, parse_time, wave_names, waves

FeatureKind: TypeAlias = Literal["number", "boolean", "category", "time", "array"]
"""What a column holds."""

SCALED: tuple[FeatureKind, ...] = ("number", "array")
"""What has a center and a scale."""

TEXTS: tuple[FeatureKind, ...] = ("category", "time", "array")
"""What a table of text is read for as text."""

Numbers: TypeAlias = tuple[float, ...] | Vector
"""What a cell becomes."""

LONGEST_NAME = 200
LARGEST = float(np.finfo(np.float32).max)
"""What a feature may be after scaling: a table holds it in float32."""
OTHER = "other"
"""What a value that is not listed is called, in the name of its column."""

_CENTER = Annotated[float, Meta(extra={"rule": "a finite number"})]
_SCALE = Annotated[float, Meta(gt=0, extra={"rule": "a finite number above 0"})]


@dataclass(frozen=True)
class Feature:
    """A column of every sample, and how it is learned from.

    Attributes:
        name: The column.
        center: Of a number, or of all cells of an array: what is subtracted.
        scale: Likewise: what it is divided by then.
        kind: What the column holds; one with `values` is a category, one with `shape` an array.
        values: Of a category: its values as they stand in the data.
        gaps: Whether a gap has a column of its own.
        parts: Of a time: what of it is learned from, all if nothing is said.
        shape: Of an array: its lengths, as (channel, row, column).

    Raises:
        TaskError: If one of them breaks its rule.

    >>> Feature("age", 40.0, 10.0).encode("45"), Feature("age", 40.0, 10.0, gaps=True).encode("")
    ((0.5,), (0.0, 1.0))
    >>> size = Feature("size", values=("small", "large"))
    >>> size.outputs, size.encode("large"), size.encode("huge")
    (('size=small', 'size=large', 'size=other'), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    """

    name: str
    center: float = 0.0
    scale: float = 1.0
    kind: FeatureKind = "number"
    values: tuple[str, ...] = ()
    gaps: bool = False
    parts: tuple[TimePart, ...] = ()
    shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_column("a feature", self.name)
        what = f"feature {shown(self.name)}"
        hints = (("center", _CENTER), ("scale", _SCALE), ("kind", FeatureKind), ("gaps", bool))
        for name, hint in hints:
            value = checked(f"{what}: {name}", getattr(self, name), hint, TaskError)
            object.__setattr__(self, name, value)
        self._check_values(what)
        self._check_shape(what)
        self._check_parts(what)
        if self.kind not in SCALED and (self.center, self.scale) != (0.0, 1.0):
            raise TaskError(
                f"{what} is a {self.kind} with center {self.center:g} and scale {self.scale:g}; "
                "only numbers are scaled, alone or in arrays: leave them out"
            )
        _ = self._codes  # checks that no two values are the same

    def _check_values(self, what: str) -> None:
        if not isinstance(self.values, list | tuple):
            raise TaskError(
                f'{what}: values is {shown(self.values)}; it must be a list, as ["red", "blue"]'
            )
        values = tuple(label_text(value) for value in self.values)
        object.__setattr__(self, "values", values)
        if values and self.kind == "number":
            object.__setattr__(self, "kind", "category")
        if bool(values) != (self.kind == "category"):
            fact = f"is a {self.kind} with values" if values else "is a category without values"
            raise TaskError(
                f'{what} {fact}; a category, and nothing else, lists them: values = ["red", "blue"]'
            )
        for value in values:
            if not is_text(value) or is_gap(value):
                raise TaskError(
                    f"{what}: a value is {shown(value)}; it must be text as in the data of 1 to "
                    f"{LONGEST_NAME} characters, and not a word for an empty cell"
                )

    def _check_shape(self, what: str) -> None:
        shape = (self.shape,) if isinstance(self.shape, int) else self.shape
        rule = "it must be a list of whole numbers from 1 on, as [1, 28, 28]"
        try:
            lengths = tuple(msgspec.convert(shape, tuple[Annotated[int, Meta(ge=1)], ...]))
        except msgspec.ValidationError:
            raise TaskError(f"{what}: shape is {shown(self.shape)}; {rule}") from None
        object.__setattr__(self, "shape", lengths)
        if lengths and self.kind == "number":
            object.__setattr__(self, "kind", "array")
        if bool(lengths) != (self.kind == "array"):
            raise TaskError(
                f"{what} is a {self.kind} {'with' if lengths else 'without'} a shape; an array, "
                "and nothing else, has one: shape = [1, 28, 28]"
            )

    def _check_parts(self, what: str) -> None:
        hint = tuple[TimePart, ...]
        parts = checked(f"{what}: parts", self.parts, hint, TaskError)
        if parts and (self.kind != "time" or len(set(parts)) < len(parts)):
            fact = "twice the same" if self.kind == "time" else f"and is a {self.kind}"
            raise TaskError(
                f"{what} has the parts {listed(parts)}, {fact}; a time, and nothing else, lists "
                f"some of {listed(PARTS)}, each once"
            )
        # In one order, and all of them unsaid: what means the same is the same.
        ordered = tuple(part for part in PARTS if part in parts)
        object.__setattr__(self, "parts", () if ordered == PARTS else ordered)

    @cached_property
    def width(self) -> int:
        """How many numbers a cell becomes."""
        return math.prod(self.shape) + self.gaps if self.shape else len(self.outputs)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The names of its columns, in the order of the model's parameters."""
        names: tuple[str, ...] = (self.name,)
        if self.shape:
            names = tuple(map(self._cell_name, range(math.prod(self.shape))))
        elif self.kind == "category":
            other = OTHER if OTHER not in self.values else f"any {OTHER}"
            names = tuple(f"{self.name}={value}" for value in (*self.values, other))
        elif self.kind == "time":
            names = tuple(f"{self.name} {wave}" for wave in wave_names(self.parts or PARTS))
        return (*names, f"{self.name} missing") if self.gaps else names

    def _cell_name(self, place: int) -> str:
        """The name of a cell of an array, by its place in C order: `image[0, 27, 27]`."""
        return f"{self.name}[{', '.join(map(str, np.unravel_index(place, self.shape)))}]"

    @property
    def scaling(self) -> tuple[float, float]:
        """What is subtracted from a number, a boolean or a cell, and what it is divided by then."""
        return (0.5, 0.5) if self.kind == "boolean" else (self.center, self.scale)

    def encode(self, raw: object) -> Numbers:
        """Return the numbers that a cell becomes, one for each of `outputs`.

        Raises:
            DataError: If the cell holds something that the feature cannot be.
        """
        numbers = self._gap if is_gap(raw) else self._encoders[self.kind](self, raw)
        return (*numbers, float(numbers is self._gap)) if self.gaps else numbers

    def _encode_number(self, raw: object) -> tuple[float, ...]:
        number = as_number(raw)
        if number is None or not math.isfinite(number):
            raise self._wrong(raw, "a finite number")
        scaled = (number - self.center) / self.scale
        if not abs(scaled) <= LARGEST:
            raise DataError(
                f"feature {shown(self.name)} is {shown(raw)}, which is not finite after scaling "
                f"by center {self.center:g} and scale {self.scale:g}; it is far too large"
            )
        return (scaled,)

    def _encode_boolean(self, raw: object) -> tuple[float, ...]:
        truth = as_truth(raw)
        if truth is None:
            raise self._wrong(raw, "true or false, yes or no, 1 or 0")
        return (1.0 if truth else -1.0,)

    def _encode_category(self, raw: object) -> tuple[float, ...]:
        key = label_key(raw)
        if key == "":
            raise self._wrong(raw, "text or a number")
        return self._rows[self._codes.get(key, -1)]

    def _encode_time(self, raw: object) -> tuple[float, ...]:
        moment = parse_time(raw)
        if moment is None:
            raise self._wrong(raw, "a date, a time or both, as 2026-03-01 14:30")
        return waves(moment, self.parts or PARTS)

    def _encode_array(self, raw: object) -> Vector:
        try:
            given = msgspec.json.decode(raw) if isinstance(raw, str) else raw
            cells = np.asarray(given)
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise self._wrong(raw, f"numbers {self._shaped}") from None
        return self._scaled(cells, raw)

    def _scaled(self, cells: Floats, raw: object) -> Vector:
        """The cells of one array, in a row."""
        if cells.dtype.kind not in "biuf":
            raise self._wrong(raw, f"numbers {self._shaped}")
        if cells.shape not in (self.shape, (math.prod(self.shape),)):
            raise DataError(
                f"feature {shown(self.name)} is {shown(raw)}, which is {format_shape(cells.shape)}"
                f"{' numbers' if cells.shape else ''}; it must be an array {self._shaped}"
            )
        flat = cells.reshape(-1).astype(np.float64)
        with np.errstate(over="ignore"):
            scaled: Vector = (flat - self.center) / self.scale
        # One comparison for all that is not finite, before scaling or after.
        wrong = np.flatnonzero(~(np.abs(scaled) <= LARGEST))
        if wrong.size:
            name = self._cell_name(int(wrong[0]))
            raise DataError(
                f"feature {shown(self.name)} has {name} = {flat[wrong[0]]:g}, which is not finite "
                f"after scaling by center {self.center:g} and scale {self.scale:g}; leave the "
                "sample out or fill it"
            )
        return scaled

    @property
    def _shaped(self) -> str:
        return f"of the shape {format_shape(self.shape)}, nested or in a row"

    _encoders: ClassVar[dict[FeatureKind, Callable[[Feature, object], Numbers]]] = {
        "number": _encode_number,
        "boolean": _encode_boolean,
        "category": _encode_category,
        "time": _encode_time,
        "array": _encode_array,
    }

    def _wrong(self, raw: object, rule: str) -> DataError:
        return DataError(f"feature {shown(self.name)} is {shown(raw)}; it must be {rule}")

    @cached_property
    def _gap(self) -> tuple[float, ...]:
        return (0.0,) * (self.width - self.gaps)

    @cached_property
    def _rows(self) -> list[tuple[float, ...]]:
        """What every value becomes; the last is for those that are not listed."""
        return [tuple(row) for row in np.eye(len(self.values) + 1).tolist()]

    @cached_property
    def _codes(self) -> dict[str | float, int]:
        codes: dict[str | float, int] = {}
        for code, value in enumerate(self.values):
            if codes.setdefault(label_key(value), code) != code:
                raise TaskError(
                    f"feature {shown(self.name)} lists the value {shown(value)} twice (1, 1.0 and "
                    "true are the same); remove one of the two"
                )
        return codes


def format_shape(shape: Sequence[int]) -> str:
    """A shape in a sentence.

    >>> format_shape((1, 28, 28)), format_shape(())
    ('1 x 28 x 28', 'a single number')
    """
    return " x ".join(map(str, shape)) or "a single number"


def check_column(what: str, name: object) -> None:
    """Check that something can be the name of a column; a TaskError if not."""
    if not is_text(name):
        raise TaskError(
            f"{what} is named {shown(name)}; it must be the name of a column, "
            f"text of 1 to {LONGEST_NAME} characters"
        )


def is_text(name: object) -> bool:
    """Whether something is text that can be written into a file, not empty and not too long."""
    try:
        return isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and bool(name.encode())
    except UnicodeEncodeError:
        return False
