"""Inference: which columns of a frame are label and features, and of which kind.

A user's choices come before what columns hold. A note says what became of every column, so that
nothing is left out in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError
from oneway.models import LabelKind
from oneway.records import Vector
from oneway.sentences import listed, nearest, shown
from oneway.tables.cells import as_truth, column_numbers, empty_cells, label_text
from oneway.tables.encoder import Encoder, in_order
from oneway.tables.features import (
    NUMBERS_AT_A_TIME,
    PARTS,
    Array,
    Boolean,
    Category,
    Feature,
    Number,
    Time,
    format_shape,
    parse_time,
)
from oneway.tables.rows import UNNAMED

if TYPE_CHECKING:
    import polars as pl

MAX_CLASSES = 20
"""A label with more distinct values is a number to predict, unless the user says otherwise."""
MOST_CLASSES = 10_000
MAX_VALUES = 50
"""Text with more distinct values is a category only if that is asked for."""
MOST_VALUES = 1_000
"""No category has more values, unless they are listed."""
FEWEST_ROWS = 30
"""Below so many rows, what looks like a rule may well be chance."""
TOP = 100_000
"""Rows that warnings look at."""
FEW = 1_000
"""Distinct cells that must be times for a column to be one."""
MISTAKEN = 0.05
"""Up to this share of cells that are no numbers is treated as typos."""
NEARLY_ONE = 0.9999
"""A correlation with the label above this gives it away."""


@dataclass(frozen=True)
class Choices:
    """What a user says about columns.

    Attributes:
        features: Only these are features; None for all that can be.
        exclude: These are none.
        category: These are categories, with these values if they are given.
        numeric: These are numbers.
        owner: The owner column: no feature.
    """

    features: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    category: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    numeric: tuple[str, ...] = ()
    owner: str | None = None

    def check(self, known: Sequence[str], label: str, where: str) -> None:
        """Check that they name columns of the data, and do not contradict each other.

        Raises:
            DataError: Names the first that is wrong.
        """
        owner = () if self.owner is None else (self.owner,)
        kinds = (*self.category, *self.numeric)
        for column in (label, *(self.features or ()), *self.exclude, *kinds, *owner):
            if column not in known:
                raise DataError(
                    f"{where} has no column {column!r}{nearest(column, known) or ';'} "
                    f"it has: {listed(known)}"
                )
        wanted = (*(self.features or ()), *kinds)
        for column in (*(self.features or ()), label):
            if (self.features or ()).count(column) > 1 or (column == label and column in wanted):
                raise DataError(
                    f"column {column!r} of {where} is asked for twice, among the features or as "
                    "label and feature; name it once"
                )
        for column in wanted:
            if column in self.exclude or kinds.count(column) > 1:
                raise DataError(
                    f"column {column!r} of {where} is to be two things at once; name it once among "
                    "features, category, numeric and exclude"
                )


ALL = Choices()
"""Nothing is said about columns."""

CHOICES = tuple(each.name for each in fields(Choices))


def make_choices(**given: Any) -> Choices:
    """Return choices as callers give them: any sequences, and categories with or without values.

    >>> make_choices(exclude=["id"], category=["sex"]).category
    {'sex': ()}
    """
    for name, value in given.items():
        if name not in CHOICES:
            known = listed(CHOICES)
            raise DataError(f"there is no option {name!r} about columns; there are {known}")
        if isinstance(value, Mapping) and name == "category":
            given[name] = {column: tuple(values) for column, values in value.items()}
        elif name == "category":
            given[name] = dict.fromkeys(value or (), ())
        elif not isinstance(value, str | Mapping | None):
            given[name] = tuple(value)
    return Choices(**given)


def parse_categories(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return categories as flags give them: `COLUMN`, or `COLUMN=A,B,C` with all values.

    >>> parse_categories(["sex", "pain=1,2,3"])
    {'sex': (), 'pain': ('1', '2', '3')}
    """
    found = {}
    for text in texts:
        column, _, values = text.partition("=")
        found[column.strip()] = tuple(filter(None, map(str.strip, values.split(","))))
    return found


@dataclass(frozen=True)
class ColumnNote:
    """What became of a column.

    Attributes:
        name: The column.
        used: What it is used as; empty if it is left out.
        missing: How many of its cells are missing values.
        remark: Why it is left out, or a warning.
        warns: Whether the remark is a warning.
    """

    name: str
    used: str
    missing: int = 0
    remark: str = ""
    warns: bool = False


def infer(
    frame: pl.DataFrame,
    label: str,
    choices: Choices,
    kind: LabelKind | None = None,
    where: str = "the data",
) -> tuple[Encoder, tuple[ColumnNote, ...]]:
    """Tell label and features from what the columns of a frame hold; numbers are standardised.

    Args:
        frame: Raw cells, every row with a label.
        label: The column to predict.
        choices: What the user says.
        kind: What the label is; None for what it looks like.
        where: What errors call the frame.

    Raises:
        DataError: If a choice cannot be kept, or there is nothing to learn from.
    """
    choices.check(frame.columns, label, where)
    kind, classes = label_meaning(frame[label], kind, where)
    deciding = _Deciding(frame[label], kind, choices, where)
    found = [deciding.decide(cells) for cells in frame if cells.name != label]
    if not any(feature for feature, _ in found):  # better a doubtful one than none
        deciding = replace(deciding, allow_row_numbers=True)
        found = [deciding.decide(cells) for cells in frame if cells.name != label]
    by_name = {feature.name: feature for feature, _ in found if feature is not None}
    notes = (ColumnNote(label, "label"), *(note for _, note in found))
    if not by_name:
        reasons = [f"{shown(note.name)}: {note.remark}" for note in notes if note.remark]
        raise DataError(
            f"{where} has no column besides {shown(label)} to learn from; left out are "
            f"{listed(reasons, 5) or 'none'}"
        )
    order = by_name if choices.features is None else choices.features
    return Encoder(tuple(by_name[name] for name in order), label, kind, classes), notes


def described(feature: Feature) -> str:
    """Return what a feature is used as, in a few words.

    >>> described(Category("size", ("small", "large"), missing_indicator=True))
    'category of 2, missing values flagged'
    """
    more = ""
    if isinstance(feature, Category):
        more = f" of {len(feature.values):,}"
    elif isinstance(feature, Array):
        more = f" of {format_shape(feature.shape)}"
    elif isinstance(feature, Time) and feature.parts != PARTS:
        more = f": {', '.join(feature.parts)}"
    return f"{feature.kind}{more}{', missing values flagged' if feature.missing_indicator else ''}"


def label_meaning(
    cells: pl.Series, kind: LabelKind | None, where: str
) -> tuple[LabelKind, tuple[str, ...]]:
    """Return what labels are, and the classes in order: numbers first, then text.

    Two values are a binary label; more than 20 distinct numbers, some that are not whole, or hardly
    one twice, are numbers; else they are classes.

    Raises:
        DataError: If they cannot be what they are to be.
    """
    distinct = cells.drop_nulls().unique(maintain_order=True)
    found = in_order(map(_spelled, distinct.head(MOST_CLASSES + 1).to_list()))
    keys = list(found)
    count = len(found)
    text = next((text for key, text in found.items() if isinstance(key, str)), "")
    if kind is None and count > 2 and not text:
        is_whole = all(isinstance(key, float) and key.is_integer() for key in keys)
        many = count > MAX_CLASSES or not is_whole or 4 * count > 3 * len(cells)
        kind = "number" if many else "classes"
    if kind is None:
        kind = "binary" if count <= 2 else "classes"
        if count > MAX_CLASSES:
            raise _unsuitable(
                where,
                cells.name,
                f"has more than {MAX_CLASSES} distinct values and holds {shown(text)}",
                f"at most {MAX_CLASSES} classes, or numbers, can be told from data",
            )
    if kind == "number":
        if text:
            fact = f"holds {shown(text)}, which is not numeric"
            raise _unsuitable(where, cells.name, fact, "the model predicts numbers")
        return kind, ()
    if count < 2:
        fact = f"has {count} distinct value{'' if count == 1 else 's'}"
        rule = "there is nothing to learn from fewer than two"
        raise _unsuitable(where, cells.name, fact, rule)
    if kind == "binary" and count != 2:
        fact = f"has {count:,} distinct values ({listed(map(shown, found.values()), 5)})"
        raise _unsuitable(where, cells.name, fact, "a two-class model needs exactly two")
    if count > MOST_CLASSES:
        fact = f"has more than {MOST_CLASSES:,} distinct values"
        raise _unsuitable(where, cells.name, fact, "that is too many to be classes")
    return kind, tuple(found.values())


def _unsuitable(where: str, column: str, fact: str, rule: str) -> DataError:
    return DataError(
        f"{where}: label column {shown(column)} {fact}, but {rule}",
        remedy="choose another column, or task='classes' or task='number'",
        flag_remedy="choose another column, or --model softmax for classes or --model ridge for "
        "numbers",
    )


def scaling_of(numbers: NDArray[Any]) -> tuple[float, float]:
    """Return mean and standard deviation in float64, block by block; a constant has scale 1.

    They are not finite if the numbers are too large.
    """
    flat = numbers.reshape(-1)
    if not flat.size or flat.min() == flat.max():
        # Not by the variance: rounding gives a constant 0.1 one above 0.
        return (float(flat[0]), 1.0) if flat.size else (0.0, 1.0)
    blocks = range(0, len(flat), NUMBERS_AT_A_TIME)
    with np.errstate(over="ignore", invalid="ignore"):
        total = sum(flat[it : it + NUMBERS_AT_A_TIME].sum(dtype=np.float64) for it in blocks)
        mean = total / len(flat)
        squares = 0.0
        for it in blocks:
            away = flat[it : it + NUMBERS_AT_A_TIME].astype(np.float64) - mean
            squares += float(away @ away)
    scale = float(np.sqrt(squares / len(flat)))
    return float(mean), scale if scale > 0 else 1.0


@dataclass(frozen=True)
class _Deciding:
    """What features are told by, column by column."""

    labels: pl.Series
    kind: LabelKind
    choices: Choices
    where: str
    allow_row_numbers: bool = False

    def decide(self, cells: pl.Series) -> tuple[Feature | None, ColumnNote]:
        column, name = _Column.of(cells), cells.name
        reason = self._reason_to_leave_out(name)
        if reason:
            return None, ColumnNote(name, "", column.missing, reason)
        found = self._feature(column)
        if isinstance(found, str):
            doubtful = column.is_unique or found.startswith("numbers but")
            return None, ColumnNote(name, "", column.missing, found, warns=doubtful)
        remark = self._warning(found, column)
        return found, ColumnNote(name, described(found), column.missing, remark, bool(remark))

    def _reason_to_leave_out(self, name: str) -> str:
        choices = self.choices
        if name in choices.exclude:
            return "excluded"
        if choices.features is not None and name not in choices.features:
            return "not asked for"
        if name in (*(choices.features or ()), *choices.category, *choices.numeric):
            return ""
        if name == choices.owner:
            return "owner column"
        return "it has no name" if name.startswith(UNNAMED) else ""

    def _feature(self, column: _Column) -> Feature | str:
        """The feature that a column is, or why it is none."""
        name, flags = column.cells.name, bool(column.missing)
        if column.cells.dtype.is_nested():
            arrays = column.cells.drop_nulls().to_numpy()
            return Array(
                name, arrays.shape[1:], *self._scaling(name, arrays), missing_indicator=flags
            )
        if name in self.choices.category:
            values = self.choices.category[name] or self._values(column)
            return Category(name, values, missing_indicator=flags)
        if name in self.choices.numeric:
            return self._number(column)
        if not column.num_filled:
            return "it is empty"
        if column.is_truth:
            return Boolean(name, missing_indicator=flags)
        asked = self.choices.features is not None
        if not len(column.wrong):
            if column.counts_rows and not (asked or self.allow_row_numbers):
                return "it numbers the rows: an identifier"
            return self._number(column)
        moments = [parse_time(cell) for cell in column.distinct.head(FEW)]
        if all(moments):
            known = {part for moment in moments if moment is not None for part in moment.parts}
            parts = tuple(part for part in PARTS if part in known) or ("hour",)
            return Time(name, parts, missing_indicator=flags)
        return self._text(column, asked)

    def _number(self, column: _Column) -> Feature:
        name, known = column.cells.name, column.numbers[np.isfinite(column.numbers)]
        return Number(name, *self._scaling(name, known), missing_indicator=bool(column.missing))

    def _scaling(self, name: str, numbers: NDArray[Any]) -> tuple[float, float]:
        scaling = scaling_of(numbers)
        if not np.isfinite(scaling).all():
            raise DataError(
                f"column {shown(name)} of {self.where} has numbers that are not finite, or too "
                "large to be standardised; rescale it or leave it out"
            )
        return scaling

    def _text(self, column: _Column, asked: bool) -> Feature | str:
        name, count, filled = column.cells.name, len(column.distinct), column.num_filled
        wrong, num_wrong = shown(column.wrong[0]), column.num_wrong
        if asked and (count > MOST_VALUES or column.is_unique):
            fact = "is unique per row" if column.is_unique else f"has {count:,} distinct values"
            raise DataError(
                f"column {shown(name)} cannot be a feature: it holds {wrong}, which is not a "
                f"number, and {fact}; leave it out or encode it first"
            )
        if asked or (count <= MAX_VALUES and 2 * count <= filled and not column.is_unique):
            return Category(name, self._values(column), missing_indicator=bool(column.missing))
        if num_wrong <= MISTAKEN * filled:
            cells = f"{num_wrong:,} cell{'s' if num_wrong > 1 else ''}"
            return f"numbers but for {cells}, as {wrong}; repair it, or name it numeric"
        if count == filled:
            return "text, unique per row: an identifier, or free text"
        return f"text, {count:,} distinct values in {filled:,} rows; name it a category to use it"

    def _values(self, column: _Column) -> tuple[str, ...]:
        values = in_order(map(_spelled, column.distinct.head(MOST_VALUES + 1).to_list()))
        if not 0 < len(values) <= MOST_VALUES:
            count = f"more than {MOST_VALUES:,}" if values else "no"
            name = column.cells.name
            raise DataError(
                f"category {shown(name)} has {count} values; give those that matter as "
                f"{name}=A,B,C, or leave it out"
            )
        return tuple(values.values())

    def _warning(self, feature: Feature, column: _Column) -> str:
        if isinstance(feature, Array):
            return ""
        if len(column.distinct) == 1 and not bool(column.missing) and column.num_filled > 1:
            return "always the same here"
        if self._gives_label_away(column):
            return (
                f"tells {self.labels.name} without an error: is it known before what is predicted?"
            )
        if isinstance(feature, Number):
            if len(column.wrong):
                wrong = shown(column.wrong[0])
                count = f"{column.num_wrong:,} cells are no numbers"
                return f"{count}, as {wrong}: such samples are refused"
            if column.is_whole and column.is_unique:
                return "whole numbers, unique per row: an identifier?"
        return ""

    def _gives_label_away(self, column: _Column) -> bool:
        """Whether the label can be read from this column alone."""
        import polars as pl

        is_number = not len(column.wrong)
        numbers = column_numbers(column.cells.head(TOP))[0]
        cells = pl.Series(numbers).fill_nan(None) if is_number else column.cells
        both = pl.DataFrame({"cell": cells.head(TOP), "label": self.labels.head(TOP)})
        both = both.filter(~empty_cells(both["cell"]))
        if len(both) < FEWEST_ROWS:
            return False
        if self.kind == "number":
            if not is_number or both["cell"].n_unique() < 2 or both["label"].n_unique() < 2:
                return False
            told = np.corrcoef(both["cell"], column_numbers(both["label"])[0])[0, 1]
            return bool(abs(told) > NEARLY_ONE)
        cell = pl.col("cell")
        sizes = both.group_by("label").agg(pl.len(), low=cell.min(), high=cell.max())
        if (sizes["len"] >= 5).sum() < 2 or len(sizes) > MAX_CLASSES:
            return False
        ordered = sizes.sort("low")
        if is_number and (ordered["high"][:-1] < ordered["low"][1:]).all():
            return True
        by_cell = both.group_by("cell").agg(pl.col("label").n_unique())
        return 5 * len(by_cell) <= len(both) and bool((by_cell["label"] == 1).all())


@dataclass(frozen=True)
class _Column:
    """Facts about the cells of a column.

    Attributes:
        cells: All of them.
        missing: How many are missing values.
        distinct: The others, each once, as they first appear; of numbers, those of the first rows.
    """

    cells: pl.Series
    missing: int
    distinct: pl.Series

    @classmethod
    def of(cls, cells: pl.Series) -> _Column:
        if cells.dtype.is_nested():
            return cls(cells, cells.null_count(), cells.head(1))
        if cells.dtype.is_numeric():
            filled = cells.drop_nulls()
            return cls(
                cells, len(cells) - len(filled), filled.head(TOP).unique(maintain_order=True)
            )
        distinct = cells.drop_nulls().unique(maintain_order=True)
        empty = empty_cells(distinct)
        missing = cells.null_count() + int(cells.is_in(distinct.filter(empty).to_list()).sum())
        return cls(cells, missing, distinct.filter(~empty))

    @property
    def num_filled(self) -> int:
        return len(self.cells) - self.missing

    @cached_property
    def numbers(self) -> Vector:
        return column_numbers(self.cells)[0]

    @cached_property
    def wrong(self) -> pl.Series:
        """The distinct cells that are no numbers."""
        return self.distinct.filter(column_numbers(self.distinct)[1])

    @cached_property
    def num_wrong(self) -> int:
        return int(self.cells.is_in(self.wrong.to_list()).sum())

    @property
    def is_truth(self) -> bool:
        """Whether the cells are true and false, both."""
        truths = {as_truth(cell) for cell in self.distinct.head(5).to_list()}
        if truths != {True, False} or len(self.distinct) > 4:
            return False
        return not self.cells.dtype.is_numeric() or bool(
            self.cells.drop_nulls().is_in([0.0, 1.0]).all()
        )

    @property
    def is_whole(self) -> bool:
        known = self.numbers[~np.isnan(self.numbers)]
        return bool((known == np.rint(known)).all())

    @property
    def is_unique(self) -> bool:
        """Whether no value is there twice, among enough to say so."""
        numeric = self.cells.dtype.is_numeric()
        looked_at = min(self.num_filled, TOP) if numeric else self.num_filled
        return len(self.distinct) == looked_at >= FEWEST_ROWS

    @property
    def counts_rows(self) -> bool:
        """Whether the column numbers its rows, in any order."""
        if not self.is_unique or self.missing or not self.is_whole:
            return False
        return bool((np.diff(np.sort(self.numbers)) == 1).all())


def _spelled(cell: Any) -> str:
    """A value as data files spell it; whole numbers without a fraction."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return label_text(cell)
