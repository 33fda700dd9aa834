"""Features: what a column of a table is to a model, and which numbers one of its cells becomes.

One feature is one column to the user and one or several columns to the model. `encode` defines what
a cell means; `encode_column` gives the same numbers for a whole column, in float32.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, get_args
from typing import get_type_hints as hints_of

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from oneway.errors import DataError, TaskError
from oneway.files.validation import checked, refuse_unknown
from oneway.records import Floats, Vector
from oneway.sentences import listed, shown
from oneway.tables.cells import (
    SPACES,
    as_number,
    as_truth,
    coded,
    column_numbers,
    is_missing,
    label_key,
    label_text,
)

if TYPE_CHECKING:
    import polars as pl

FeatureKind: TypeAlias = Literal["number", "boolean", "category", "time", "array"]
"""What a column holds."""

TimePart: TypeAlias = Literal["hour", "weekday", "season"]
PARTS: tuple[TimePart, ...] = get_args(TimePart)
"""What of a point in time can be learned from."""

Numbers: TypeAlias = Sequence[float] | Vector
"""What a cell becomes."""

LONGEST_NAME = 200
LARGEST = float(np.finfo(np.float32).max)
"""What a feature may be after scaling: a table holds it in float32."""
OTHER = "other"
"""The name of the column for values that are not listed."""
NUMBERS_AT_A_TIME = 2**20

_CENTER = Annotated[float, Meta(extra={"rule": "a finite number"})]
_SCALE = Annotated[float, Meta(gt=0, extra={"rule": "a finite number above 0"})]


class _Named(Struct, frozen=True, dict=True, tag_field="kind"):
    name: str


class BaseFeature(_Named, frozen=True, kw_only=True):
    """A column of every sample, and how it is learned from.

    Attributes:
        name: The column.
        missing_indicator: Whether a missing value has a column of its own.

    Raises:
        TaskError: A field breaks its rule.
    """

    missing_indicator: bool = False

    def __post_init__(self) -> None:
        check_column("a feature", self.name)
        for field, hint in _HINTS[type(self)].items():
            value = checked(f"{self._title}: {field}", getattr(self, field), hint, TaskError)
            msgspec.structs.force_setattr(self, field, value)

    @property
    def kind(self) -> FeatureKind:
        """What the column holds."""
        kind: FeatureKind = self.__struct_config__.tag  # type: ignore[assignment]
        return kind

    @cached_property
    def width(self) -> int:
        """How many numbers a cell becomes."""
        return self._plain_width + self.missing_indicator

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The names of its columns, in the order of the model's parameters."""
        return (*self._names(), f"{self.name} missing") if self.missing_indicator else self._names()

    @property
    def scaling(self) -> tuple[float, float]:
        """What is subtracted from a number, and what it is divided by then."""
        return 0.0, 1.0

    def encode(self, cell: object) -> Numbers:
        """Return the numbers that a cell becomes, one for each of `outputs`.

        A missing value is 0 in all of them but the column of its own.

        Raises:
            DataError: The cell holds something that the feature cannot be.
        """
        if is_missing(cell):
            return [0.0] * self._plain_width + [1.0] * self.missing_indicator
        numbers = self._encode(cell)
        return [*numbers, 0.0] if self.missing_indicator else numbers

    def encode_column(
        self, cells: pl.Series, place: Callable[[int], str] = "row {}".format
    ) -> NDArray[np.float32]:
        """Return what all cells of a column become, `[row, output]`, as `encode` does.

        Args:
            cells: Raw cells, of any type.
            place: What errors call a row.

        Raises:
            DataError: A cell holds what the feature cannot be; names its place.
        """
        encoded = np.empty((len(cells), self.width), np.float32)
        self.encode_into(encoded, cells, place)
        return encoded

    def encode_into(
        self, encoded: NDArray[np.float32], cells: pl.Series, place: Callable[[int], str]
    ) -> None:
        """Write what `encode_column` returns into an array."""
        distinct, codes = coded(cells)
        book = []
        for code, cell in enumerate(distinct):
            try:
                book.append(self.encode(cell))
            except DataError as error:
                raise DataError(f"{place(int(np.argmax(codes == code)))}: {error}") from None
        numbers = np.array([*book, self.encode(None)], dtype=np.float32)
        step = max(1, NUMBERS_AT_A_TIME // self.width)
        for first in range(0, len(codes), step):
            encoded[first : first + step] = numbers[codes[first : first + step]]

    @property
    def _plain_width(self) -> int:
        return len(self._names())

    def _names(self) -> tuple[str, ...]:
        return (self.name,)

    def _encode(self, cell: object) -> Numbers:
        raise NotImplementedError

    @property
    def _title(self) -> str:
        return f"feature {shown(self.name)}"

    def _wrong(self, cell: object, rule: str) -> DataError:
        return DataError(f"{self._title} is {shown(cell)}; it must be {rule}")


class Number(BaseFeature, frozen=True, tag="number"):
    """A number, learned from as (value - center) / scale.

    >>> Number("age", 40.0, 10.0).encode("45")
    [0.5]
    >>> Number("age", 40.0, 10.0, missing_indicator=True).encode("")
    [0.0, 1.0]
    """

    center: _CENTER = 0.0
    scale: _SCALE = 1.0

    @property
    def scaling(self) -> tuple[float, float]:
        """What is subtracted from a number, and what it is divided by then."""
        return self.center, self.scale

    def _encode(self, cell: object) -> Numbers:
        number = as_number(cell)
        if number is None or not math.isfinite(number):
            raise self._wrong(cell, "a finite number")
        scaled = (number - self.center) / self.scale
        if not abs(scaled) <= LARGEST:
            raise DataError(
                f"{self._title} is {shown(cell)}, which is not finite after scaling by center "
                f"{self.center:g} and scale {self.scale:g}; it is far too large"
            )
        return [scaled]

    def encode_into(
        self, encoded: NDArray[np.float32], cells: pl.Series, place: Callable[[int], str]
    ) -> None:
        """Write what `encode_column` returns, all at once."""
        values, wrong = column_numbers(cells)
        missing = np.isnan(values)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (values - self.center) / self.scale
            scaled[missing] = 0.0
            bad = np.flatnonzero(wrong | ~(np.abs(scaled) <= LARGEST))
        if bad.size:
            row = int(bad[0])
            try:
                self.encode(cells[row])
            except DataError as error:
                raise DataError(f"{place(row)}: {error}") from None
        encoded[:, 0] = scaled
        if self.missing_indicator:
            encoded[:, 1] = missing


class Boolean(BaseFeature, frozen=True, tag="boolean"):
    """True or false, learned from as +1 or -1."""

    @property
    def scaling(self) -> tuple[float, float]:
        """What makes -1 and +1 of 0 and 1."""
        return 0.5, 0.5

    def _encode(self, cell: object) -> Numbers:
        truth = as_truth(cell)
        if truth is None:
            raise self._wrong(cell, "true or false, yes or no, 1 or 0")
        return [1.0 if truth else -1.0]


class Category(BaseFeature, frozen=True, tag="category"):
    """One column of 0 and 1 per value, and one more for values that are not listed.

    >>> size = Category("size", values=("small", "large"))
    >>> size.outputs, size.encode("large"), size.encode("huge")
    (('size=small', 'size=large', 'size=other'), [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    """

    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.values, list | tuple) or not self.values:
            raise TaskError(
                f"feature {shown(self.name)}: values is {shown(self.values)}; a category must list "
                'its values, as ["red", "blue"]'
            )
        # As data files spell them: values = [0, 1] means ["0", "1"].
        msgspec.structs.force_setattr(self, "values", tuple(map(label_text, self.values)))
        super().__post_init__()
        for value in self.values:
            if not is_text(value) or is_missing(value):
                raise TaskError(
                    f"{self._title}: a value is {shown(value)}; it must be text as in the data of "
                    f"1 to {LONGEST_NAME} characters, and not a word for a missing value"
                )
        _ = self._codes  # checks that no two values are the same

    def _names(self) -> tuple[str, ...]:
        other = OTHER if OTHER not in self.values else f"any {OTHER}"
        return tuple(f"{self.name}={value}" for value in (*self.values, other))

    def _encode(self, cell: object) -> Numbers:
        key = label_key(cell)
        if key == "":
            raise self._wrong(cell, "text or a number")
        return self._rows[self._codes.get(key, -1)]

    @cached_property
    def _rows(self) -> list[list[float]]:
        """What every value becomes; the last is for those that are not listed."""
        rows: list[list[float]] = np.eye(len(self.values) + 1).tolist()
        return rows

    @cached_property
    def _codes(self) -> dict[str | float, int]:
        codes: dict[str | float, int] = {}
        for code, value in enumerate(self.values):
            if codes.setdefault(label_key(value), code) != code:
                raise TaskError(
                    f"{self._title} lists the value {shown(value)} twice (1, 1.0 and true are the "
                    "same); remove one of the two"
                )
        return codes


class Time(BaseFeature, frozen=True, tag="time"):
    """Sines and cosines of hour, weekday and season, or of some of them; 0 for what is not known.

    Times are local; UTC offsets are ignored.
    """

    parts: tuple[TimePart, ...] = PARTS

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(set(self.parts)) < len(self.parts):
            raise TaskError(
                f"{self._title} has the parts {listed(self.parts)}, twice the same; list some of "
                f"{listed(PARTS)}, each once"
            )
        # In one order: what means the same is the same.
        ordered = tuple(part for part in PARTS if part in self.parts)
        msgspec.structs.force_setattr(self, "parts", ordered or PARTS)

    def _names(self) -> tuple[str, ...]:
        return tuple(f"{self.name} {part} {wave}" for part in self.parts for wave in ("sin", "cos"))

    def _encode(self, cell: object) -> Numbers:
        moment = parse_time(cell)
        if moment is None:
            raise self._wrong(cell, "a date, a time or both, as 2026-03-01 14:30")
        known = _waves(moment)
        return [number for part in self.parts for number in known.get(part, (0.0, 0.0))]


class Array(BaseFeature, frozen=True, tag="array"):
    """An array of one shape, such as an image: its cells in C order, each (value - center) / scale.

    Attributes:
        shape: Its lengths, as (channel, row, column).
    """

    shape: tuple[Annotated[int, Meta(ge=1)], ...] = ()
    center: _CENTER = 0.0
    scale: _SCALE = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.shape, int):
            msgspec.structs.force_setattr(self, "shape", (self.shape,))
        super().__post_init__()
        if not self.shape:
            raise TaskError(f"{self._title} is an array and needs a shape, as [1, 28, 28]")

    @property
    def scaling(self) -> tuple[float, float]:
        """What is subtracted from every cell, and what it is divided by then."""
        return self.center, self.scale

    @property
    def _plain_width(self) -> int:
        return math.prod(self.shape)

    def _names(self) -> tuple[str, ...]:
        return tuple(map(self._cell_name, range(self._plain_width)))

    def _cell_name(self, place: int) -> str:
        """The name of a cell, by its place in C order: `image[0, 27, 27]`."""
        return f"{self.name}[{', '.join(map(str, np.unravel_index(place, self.shape)))}]"

    def _encode(self, cell: object) -> Numbers:
        rule = f"numbers of the shape {format_shape(self.shape)}, nested or in a row"
        try:
            cells = np.asarray(msgspec.json.decode(cell) if isinstance(cell, str) else cell)
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise self._wrong(cell, rule) from None
        if cells.dtype.kind not in "biuf":
            raise self._wrong(cell, rule)
        if cells.shape not in (self.shape, (self._plain_width,)):
            raise DataError(
                f"{self._title} is {shown(cell)}, which is {format_shape(cells.shape)}"
                f"{' numbers' if cells.shape else ''}; it must be {rule}"
            )
        scaled: Vector = self._scaled(cells.reshape(1, -1), "".format)[0]
        return scaled

    def encode_into(
        self, encoded: NDArray[np.float32], cells: pl.Series, place: Callable[[int], str]
    ) -> None:
        """Write what `encode_column` returns, block by block."""
        import polars as pl

        if not isinstance(cells.dtype, pl.Array) or cells.null_count():
            super().encode_into(encoded, cells, place)
            return
        arrays = cells.to_numpy()
        if arrays.shape[1:] not in (self.shape, (self._plain_width,)):
            raise DataError(
                f"column {shown(self.name)} holds arrays of {format_shape(arrays.shape[1:])}, and "
                f"the task needs {format_shape(self.shape)}; give the data that the task is for"
            )
        flat = arrays.reshape(len(arrays), -1)
        step = max(1, NUMBERS_AT_A_TIME // self._plain_width)
        for first in range(0, len(flat), step):
            scaled = self._scaled(flat[first : first + step], partial(_from, place, first))
            encoded[first : first + step, : self._plain_width] = scaled
        if self.missing_indicator:
            encoded[:, -1] = 0.0

    def _scaled(self, rows: NDArray[Any], place: Callable[[int], str]) -> Floats:
        """The cells of some arrays, each in a row."""
        flat = rows.astype(np.float64)
        with np.errstate(over="ignore"):
            scaled: Floats = (flat - self.center) / self.scale
        # One comparison for all that is not finite, before scaling or after.
        wrong = np.argwhere(~(np.abs(scaled) <= LARGEST))
        if wrong.size:
            row, cell = wrong[0].tolist()
            where = f"{place(row)}: " if place(row) else ""
            raise DataError(
                f"{where}{self._title} has {self._cell_name(cell)} = {flat[row, cell]:g}, which is "
                f"not finite after scaling by center {self.center:g} and scale {self.scale:g}; "
                "leave the sample out or fill it"
            )
        return scaled


def _from(place: Callable[[int], str], first: int, row: int) -> str:
    """The place of a row of a block."""
    return place(first + row)


Feature: TypeAlias = Number | Boolean | Category | Time | Array

KINDS: Mapping[str, type[Feature]] = {
    "number": Number,
    "boolean": Boolean,
    "category": Category,
    "time": Time,
    "array": Array,
}
_HINTS: dict[type[BaseFeature], dict[str, Any]] = {
    kind: {name: hints_of(kind, include_extras=True)[name] for name in kind.__struct_fields__[1:]}
    for kind in KINDS.values()
}


def make_feature(name: str, entry: Mapping[str, Any], where: str = "") -> Feature:
    """Return the feature that an entry of a file describes; values imply a category, and so on.

    Raises:
        TaskError: The kind or a key is unknown, or a field breaks its rule.

    >>> make_feature("size", {"values": ["small", "large"]}).kind
    'category'
    """
    implied = "category" if "values" in entry else "array" if "shape" in entry else "number"
    kind = entry.get("kind", implied)
    title = f"{where}feature {shown(name)}"
    if kind not in KINDS:
        raise TaskError(f"{title}: kind is {shown(kind)}; it must be one of {listed(KINDS)}")
    fields = {key: value for key, value in entry.items() if key not in ("kind", "name")}
    refuse_unknown(fields, KINDS[kind].__struct_fields__[1:], f"{title}, a {kind},", TaskError)
    try:
        return KINDS[kind](name, **fields)
    except TaskError as error:
        raise TaskError(f"{where}{error}") from None


def as_json(feature: Feature) -> dict[str, Any]:
    """Return a feature in terms JSON can hold, with its kind and without defaults."""
    # By value: msgspec leaves out defaults only if they are the same object.
    defaults = {it.name: it.default for it in msgspec.structs.fields(feature)}
    given = {name: getattr(feature, name) for name in defaults}
    chosen = {name: it for name, it in given.items() if it != defaults[name]}
    plain = {name: list(it) if isinstance(it, tuple) else it for name, it in chosen.items()}
    return {"kind": feature.kind, **plain}


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


class Moment(NamedTuple):
    """A point in time.

    Attributes:
        day: The date, if there is one.
        minute: The minute of the day, if there is a time of day.
    """

    day: date | None
    minute: int | None

    @property
    def parts(self) -> set[TimePart]:
        """The parts that it tells something about.

        Midnight tells no hour: many programs write dates with a time of day of 0.
        """
        found: set[TimePart] = set() if self.day is None else {"weekday", "season"}
        return found | {"hour"} if self.minute else found


_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(:\d\d([.,]\d+)?)?(\s*(Z|UTC|[+-]\d\d(:?\d\d)?))?"
_DAY = (
    r"(?P<year>\d{4})(?P<mark>[-/])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})",
    r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})",
)
_FORMS = tuple(
    re.compile(form, re.ASCII) for form in (*(f"{day}([T ]+{_CLOCK})?" for day in _DAY), _CLOCK)
)


def parse_time(cell: object) -> Moment | None:
    """Return the point in time that a cell stands for; None if it is none.

    >>> parse_time("2026-03-01 14:30")
    Moment(day=datetime.date(2026, 3, 1), minute=870)
    >>> parse_time("1.3.2026"), parse_time("7:05"), parse_time("03/01/2026")
    (Moment(day=datetime.date(2026, 3, 1), minute=None), Moment(day=None, minute=425), None)
    """
    if isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[us]").item()
    if isinstance(cell, datetime):
        return Moment(cell.date(), 60 * cell.hour + cell.minute)
    if isinstance(cell, date):
        return Moment(cell, None)
    if isinstance(cell, time):
        return Moment(None, 60 * cell.hour + cell.minute)
    text = cell.strip(SPACES) if isinstance(cell, str) else ""
    found = next(filter(None, (form.fullmatch(text) for form in _FORMS)), None)
    if found is None:
        return None
    fields = {name: int(it) for name, it in found.groupdict().items() if it and it.isdigit()}
    try:
        day = date(fields["year"], fields["month"], fields["day"]) if "year" in fields else None
        clock = time(fields["hour"], fields["minute"]) if "hour" in fields else None
    except ValueError:
        return None
    return Moment(day, None if clock is None else 60 * clock.hour + clock.minute)


def _waves(moment: Moment) -> dict[TimePart, tuple[float, float]]:
    """Sine and cosine of every part of a point in time that is known."""
    known: dict[TimePart, tuple[float, float]] = {}
    if moment.minute is not None:
        known["hour"] = _HOUR[moment.minute]
    if moment.day is not None:
        known["weekday"] = _WEEKDAY[moment.day.weekday()]
        known["season"] = _SEASON[moment.day.timetuple().tm_yday - 1]
    return known


def _circle(steps: int) -> list[tuple[float, float]]:
    angles = 2.0 * np.pi * np.arange(steps) / steps
    return list(zip(np.sin(angles).tolist(), np.cos(angles).tolist(), strict=True))


_HOUR, _WEEKDAY, _SEASON = _circle(24 * 60), _circle(7), _circle(366)
