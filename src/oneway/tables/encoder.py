"""Encoder: from the raw cells of a row, or of a whole table, to the numbers of a model, and back.

Simulator and peer encode alike: `vector` takes one sample as a mapping of raw cells, `matrix` a
block of a table; both give the same numbers. Columns, classes and scaling are those of the task,
or those that a table was found to have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError, TaskError
from oneway.models import LabelKind
from oneway.records import Bools, Floats, Vector
from oneway.sentences import listed, nearest, shown
from oneway.streams.arguments import check_finite
from oneway.tables.cells import as_number, label_key
from oneway.tables.features import LARGEST, Feature, Numbers, check_column, is_text
from oneway.tables.labels import class_codes
from oneway.tables.owners import Coder
from oneway.tables.scaling import Scaling, to_float32

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Encoder", "Feature", "check_column"]

_PLAIN = frozenset({float, int, np.float64})
"""The types of cells that are numbers, whatever they hold."""


@dataclass(frozen=True)
class Encoder:
    """Which columns are features and label, how they are scaled and coded.

    Attributes:
        features: In the order of the model's parameters.
        label: The column to predict.
        kind: Whether the label is one of two classes, of several, or a number.
        classes: The raw labels in order: of two, the first means -1 and the second +1; of several,
            they mean 0, 1, 2, ... None for numbers.
        model: Who learns, for sentences.

    Raises:
        TaskError: If the classes do not suit the kind of label, or two of them mean the same.
    """

    features: tuple[Feature, ...]
    label: str
    kind: LabelKind
    classes: tuple[str, ...] = ()
    model: str = "the model"

    def __post_init__(self) -> None:
        for name in self.classes:
            _check_class(name)
        self._check_count()
        _ = self._codes  # checks that no two classes are the same

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns of the features, as they are called in the data."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The names of the encoded columns, in the order of the model's parameters."""
        return tuple(name for feature in self.features for name in feature.outputs)

    @property
    def width(self) -> int:
        """How many encoded columns there are: what a model calls the number of features."""
        return sum(feature.width for feature in self.features)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an encoded sample: of an array if that is all there is, else its width."""
        if len(self.features) == 1 and self.features[0].shape and not self.features[0].gaps:
            return self.features[0].shape
        return (self.width,)

    @cached_property
    def scaling(self) -> Scaling:
        """What is subtracted from and divided by in every encoded column."""
        means, scales = np.zeros(self.width), np.ones(self.width)
        for place, feature in zip(self.places, self.features, strict=True):
            cells = slice(place.start, place.start + max(1, math.prod(feature.shape)))
            means[cells], scales[cells] = feature.scaling
        return Scaling(means, scales)

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """For every feature, where its encoded columns are."""
        ends = np.cumsum([feature.width for feature in self.features]).tolist()
        return tuple(map(slice, [0, *ends], ends))

    def vector(self, cells: Mapping[str, object]) -> Vector:
        """Return one sample as the model wants it: every feature encoded, in order.

        Raises:
            DataError: If some are missing (names them all), or one holds what it cannot be.
        """
        try:
            raw = [cells[name] for name in self.names]
        except KeyError:
            raise self._missing(cells) from None
        if self._are_numbers and _PLAIN.issuperset(map(type, raw)):
            numbers = self._all_numbers(raw)
            if numbers is not None:
                return numbers
        parts = [feature.encode(cell) for feature, cell in zip(self.features, raw, strict=True)]
        if self._has_arrays:
            return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])
        return np.array([number for part in parts for number in part])

    @cached_property
    def _are_numbers(self) -> bool:
        return all(feature.kind == "number" and not feature.gaps for feature in self.features)

    def _all_numbers(self, raw: list[object]) -> Vector | None:
        """Numbers as `vector` returns them, all at once; None if there is something to say."""
        means, scales = self.scaling.means, self.scaling.scales
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                scaled: Vector = (np.array(raw, dtype=np.float64) - means) / scales
        except OverflowError:
            return None
        return scaled if np.abs(scaled).max(initial=0.0) <= LARGEST else None

    @cached_property
    def _has_arrays(self) -> bool:
        return any(feature.shape for feature in self.features)

    def arrays(
        self, cells: Floats, *, place: Callable[[int], str] = "row {}".format
    ) -> NDArray[np.float32]:
        """Return a block of raw arrays `[row, ...]`, the only feature, encoded as `vector` does.

        Raises:
            DataError: If a cell is not finite; names its place and the cell.
        """
        [feature] = self.features
        flat = cells.reshape(len(cells), -1).astype(np.float64)
        check_finite(flat, "feature", feature.outputs, place=place)
        with np.errstate(over="ignore"):
            scaled = (flat - feature.center) / feature.scale
        return to_float32(scaled, feature.outputs, place=place)

    def matrix(
        self,
        numbers: Floats,
        cells: Mapping[str, pl.Series] | None = None,
        *,
        place: Callable[[int], str] = "row {}".format,
    ) -> NDArray[np.float32]:
        """Return a block of samples encoded as `vector` does, in float32.

        Args:
            numbers: `numbers[row, feature]` of the numbers and booleans that are not in `cells`,
                in order; nan is a gap.
            cells: The other features, as text; null is a gap.
            place: What errors call a row.

        Raises:
            DataError: If a cell holds what its feature cannot be; names its place and its column.
        """
        texts = cells or {}
        plain = [feature for feature in self.features if feature.name not in texts]
        scaled = self._scaled(numbers, plain, place)
        if len(plain) == self.width:  # nothing but numbers, each of one column
            return scaled
        encoded = np.zeros((len(numbers), self.width), np.float32)
        column = 0
        for where, feature in zip(self.places, self.features, strict=True):
            if feature.name in texts:
                encoded[:, where] = _encode_texts(feature, texts[feature.name], place)
                continue
            encoded[:, where.start] = scaled[:, column]
            if feature.gaps:
                encoded[:, where.start + 1] = np.isnan(numbers[:, column])
            column += 1
        return encoded

    def _scaled(
        self, numbers: Floats, features: Sequence[Feature], place: Callable[[int], str]
    ) -> NDArray[np.float32]:
        """Numbers and booleans without their flags; gaps are 0."""
        names = [feature.name for feature in features]
        gaps = check_numbers(numbers, names, place)
        for column, feature in enumerate(features):
            if feature.kind == "boolean":
                values = numbers[:, column]
                wrong = np.flatnonzero(~(gaps[:, column] | (values == 0) | (values == 1)))
                if wrong.size:
                    row = int(wrong[0])
                    _encode_at(feature, float(values[row]), partial(place, row))
        scalings = [feature.scaling for feature in features]
        scaling = Scaling(*np.array(scalings, dtype=float).reshape(-1, 2).T)
        with np.errstate(over="ignore"):
            scaled = scaling.apply(numbers)
        if gaps.any():
            scaled[gaps] = 0.0
        return to_float32(scaled, names, place=place)

    def _missing(self, cells: Mapping[str, object]) -> DataError:
        missing = [name for name in self.names if name not in cells]
        others = [str(name) for name in islice(cells, 100) if name not in self.names]
        return DataError(
            f"the sample has no feature{'s' if len(missing) > 1 else ''} "
            f"{listed(map(shown, missing))}, which the task needs"
            f"{nearest(missing[0], others) if len(missing) == 1 else ''}"
        )

    def label_value(self, raw: object) -> float:
        """Return a raw label as the model wants it: -1 or +1, a class code, or a number.

        Raises:
            DataError: If it is not one of the classes, or not a finite number.
        """
        if self.kind != "number":
            value, rule = self._codes.get(label_key(raw)), self._known
        else:
            value, rule = as_number(raw), "a finite number"
        if value is None or not math.isfinite(value):
            raise DataError(f"label {shown(self.label)} is {shown(raw)}; it must be {rule}")
        return value

    def label_name(self, value: float) -> str:
        """Return what the data calls a label of the model; the number itself for numbers.

        Raises:
            DataError: If the model has no such label.
        """
        if self.kind == "number":
            return f"{value:.12g}"
        codes = self._class_codes
        if float(value) not in codes:
            known = listed((f"{code:g}" for code in codes), 10)
            raise DataError(f"{value!r} is not a label that the model knows; there are {known}")
        return self.classes[codes.index(float(value))]

    def exact_label(self, value: float) -> str:
        """Return a label as data has it, so that it reads back as the very same number."""
        return repr(value) if self.kind == "number" else self.label_name(value)

    @cached_property
    def _class_codes(self) -> list[float]:
        return class_codes(self.kind, len(self.classes))

    @cached_property
    def _codes(self) -> dict[str | float, float]:
        codes: dict[str | float, float] = {}
        for name, code in zip(self.classes, self._class_codes, strict=True):
            if codes.setdefault(label_key(name), code) != code:
                raise TaskError(
                    f"the class {shown(name)} is listed twice (1, 1.0 and true are the same "
                    "label); remove one of the two"
                )
        return codes

    @cached_property
    def _known(self) -> str:
        return f"one of {listed(map(shown, self.classes), 10)}, the task's classes"

    def _check_count(self) -> None:
        count, model = len(self.classes), f"model {self.model}"
        if self.kind == "number" and count:
            raise TaskError(
                f"{model} predicts a number, but {count} classes are given; remove classes, or "
                "choose logistic or softmax"
            )
        if self.kind == "binary" and count != 2:
            remedy = "choose softmax for more" if count > 2 else 'for example classes = ["0", "1"]'
            raise TaskError(
                f"{model} tells two classes apart, but {count} are given; classes lists the two "
                f"labels, {remedy}"
            )
        if self.kind == "classes" and count < 2:
            raise TaskError(
                f"{model} tells classes apart, but {count} are given; classes lists at least two "
                'labels, for example classes = ["a", "b", "c"]'
            )


def check_numbers(numbers: Floats, names: Sequence[str], place: Callable[[int], str]) -> Bools:
    """Check that a block of numbers is finite, and return where its gaps are.

    Raises:
        DataError: Names the place and the column of the first number that is not.
    """
    gaps: Bools = np.isnan(numbers)
    check_finite(numbers, "feature", names, place=place, gaps=gaps if gaps.any() else None)
    return gaps


def _check_class(name: object) -> None:
    if not is_text(name) or str(name).strip() != name:
        raise TaskError(
            f"a class is {shown(name)}; it must be text as in the data, not empty and without "
            'spaces around it, for example classes = ["0", "1"]'
        )


def _encode_texts(feature: Feature, cells: pl.Series, place: Callable[[int], str]) -> Floats:
    """A column of text, every distinct cell encoded once; the last of them is for gaps."""
    coder = Coder()
    coder.add(cells)
    codes = coder.codes

    def first_place(code: int) -> str:
        return place(int(np.argmax(codes == code)))

    book = [
        _encode_at(feature, raw, partial(first_place, code))
        for code, raw in enumerate(coder.distinct)
    ]
    encoded: Floats = np.array([*book, feature.encode(None)])[codes]
    return encoded


def _encode_at(feature: Feature, raw: object, place: Callable[[], str]) -> Numbers:
    try:
        return feature.encode(raw)
    except DataError as error:
        raise DataError(f"{place()}: {error}") from None
