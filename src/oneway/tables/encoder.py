"""Encoder: from the raw cells of a row, or of a whole frame, to the numbers of a model, and back.

Simulator and peer encode alike: `vector` takes one sample as a mapping of raw cells, `matrix` a
frame; both give the same numbers, and so do `label_value` and `labels`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError, TaskError
from oneway.models import LabelKind
from oneway.records import Vector
from oneway.sentences import listed, nearest, shown
from oneway.tables.cells import as_number, coded, column_numbers, label_key
from oneway.tables.features import LARGEST, Array, Feature, Number, is_text

if TYPE_CHECKING:
    import polars as pl

ClassName: TypeAlias = str | bool
"""What a class is called in a prediction: its text, or a truth value."""

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
        model: The name of the model, for sentences.

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
            if not is_text(name) or str(name).strip() != name:
                raise TaskError(
                    f"a class is {shown(name)}; it must be text as in the data, not empty and "
                    'without spaces around it, for example classes = ["0", "1"]'
                )
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

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """For every feature, where its encoded columns are."""
        ends = np.cumsum([feature.width for feature in self.features]).tolist()
        return tuple(map(slice, [0, *ends], ends))

    @cached_property
    def width(self) -> int:
        """How many encoded columns there are: what a model calls the number of features."""
        return sum(feature.width for feature in self.features)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an encoded sample: of an array if that is all there is, else its width."""
        first, *others = self.features
        if isinstance(first, Array) and not (others or first.missing_indicator):
            return first.shape
        return (self.width,)

    @cached_property
    def scaling(self) -> tuple[Vector, Vector]:
        """What is subtracted from every encoded column, and what it is divided by then."""
        means, scales = np.zeros(self.width), np.ones(self.width)
        for place, feature in zip(self.places, self.features, strict=True):
            cells = slice(place.start, place.stop - feature.missing_indicator)
            means[cells], scales[cells] = feature.scaling
        return means, scales

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
        return np.array([number for part in parts for number in part], dtype=np.float64)

    @cached_property
    def _has_arrays(self) -> bool:
        return any(isinstance(it, Array) for it in self.features)

    @cached_property
    def _are_numbers(self) -> bool:
        return all(isinstance(it, Number) and not it.missing_indicator for it in self.features)

    def _all_numbers(self, raw: list[object]) -> Vector | None:
        """Numbers as `vector` returns them; None if one is missing or not finite."""
        means, scales = self.scaling
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                scaled: Vector = (np.array(raw, dtype=np.float64) - means) / scales
        except OverflowError:
            return None
        return scaled if np.abs(scaled).max(initial=0.0) <= LARGEST else None

    def matrix(
        self, frame: pl.DataFrame, place: Callable[[int], str] = "row {}".format
    ) -> NDArray[np.float32]:
        """Return all rows of a frame of raw cells encoded as `vector` does, in float32.

        Raises:
            DataError: If a cell holds what its feature cannot be; names its place and its column.
        """
        encoded = np.empty((len(frame), self.width), np.float32)
        for where, feature in zip(self.places, self.features, strict=True):
            feature.encode_into(encoded[:, where], frame[feature.name], place)
        return encoded

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

    def labels(
        self, frame: pl.DataFrame, place: Callable[[int], str] = "row {}".format
    ) -> NDArray[np.float32]:
        """Return the labels of a frame as `label_value` does, in float32.

        Raises:
            DataError: If a label is missing, or not what it must be; names its place.
        """
        cells = frame[self.label]
        if self.kind == "number":
            numbers, _ = column_numbers(cells)
            bad = np.flatnonzero(~(np.abs(numbers) <= LARGEST))
            if bad.size:
                row = int(bad[0])
                self._check_label(cells[row], place(row))
                raise DataError(
                    f"{place(row)}: label {shown(self.label)} is {shown(cells[row])}, which does "
                    "not fit in float32; rescale the column"
                )
            return numbers.astype(np.float32)
        distinct, codes = coded(cells)
        if (codes < 0).any():
            self._check_label(None, place(int(np.argmax(codes < 0))))
        for code, raw in enumerate(distinct):
            if label_key(raw) not in self._codes:
                self._check_label(raw, place(int(np.argmax(codes == code))))
        known = np.array([self.label_value(raw) for raw in distinct], np.float32)
        labels: NDArray[np.float32] = known[codes]
        return labels

    def _check_label(self, raw: object, place: str) -> None:
        try:
            self.label_value(raw)
        except DataError as error:
            raise DataError(f"{place}: {error}") from None

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

    @cached_property
    def _class_codes(self) -> list[float]:
        if self.kind == "binary":
            return [-1.0, 1.0]
        return [float(code) for code in range(len(self.classes))]

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


def class_names(classes: Sequence[str]) -> tuple[ClassName, ...]:
    """Return classes as a prediction names them: booleans where the data has true and false.

    >>> class_names(["false", "true"]), class_names(["0", "1"]), class_names(["True", "maybe"])
    ((False, True), ('0', '1'), ('True', 'maybe'))
    """
    words = [name.lower() for name in classes]
    if classes and set(words) <= {"true", "false"}:
        return tuple(word == "true" for word in words)
    return tuple(classes)


def in_order(labels: Iterable[str]) -> dict[str | float, str]:
    """Return the distinct labels as they were first written, by key: numbers first, then text."""
    distinct: dict[str | float, str] = {}
    for label in labels:
        distinct.setdefault(label_key(label), label)
    return dict(sorted(distinct.items(), key=lambda item: (isinstance(item[0], str), item[0])))
