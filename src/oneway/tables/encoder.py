"""Encoder: from the raw cells of a row, or of a whole table, to the numbers of a model, and back.

Simulator and peer encode alike: `vector` takes one sample as a mapping of raw cells, `matrix` a
block of a table; both give the same numbers. Columns, classes and scaling are those of the task,
or those that a table was found to have.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from oneway.errors import DataError, TaskError
from oneway.files.typed_values import checked
from oneway.models import LabelKind
from oneway.records import Floats, Vector
from oneway.sentences import listed, nearest, shown
from oneway.streams.arguments import check_finite
from oneway.tables.cells import as_number, label_key
from oneway.tables.labels import class_codes
from oneway.tables.scaling import Scaling, to_float32

LONGEST_NAME = 200
LARGEST = float(np.finfo(np.float32).max)
"""What a feature may be after scaling: a table holds it in float32."""
MORE_DECIMALS = 4
"""How many more than six digits after the first of a column's scale are tried to write a number."""
_CENTER = Annotated[float, Meta(extra={"rule": "a finite number"})]
_SCALE = Annotated[float, Meta(gt=0, extra={"rule": "a finite number above 0"})]


@dataclass(frozen=True)
class Feature:
    """A number of every sample, learned from as (value - center) / scale.

    Raises:
        TaskError: If the name, the center or the scale breaks its rule.
    """

    name: str
    center: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_column("a feature", self.name)
        for name, hint in (("center", _CENTER), ("scale", _SCALE)):
            what = f"feature {shown(self.name)}: {name}"
            object.__setattr__(self, name, checked(what, getattr(self, name), hint, TaskError))


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
    def scaling(self) -> Scaling:
        """Centers and scales of all features."""
        return Scaling(
            np.array([feature.center for feature in self.features]),
            np.array([feature.scale for feature in self.features]),
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns of the features."""
        return tuple(feature.name for feature in self.features)

    def vector(self, cells: Mapping[str, object]) -> Vector:
        """Return the features of one sample, scaled and in order.

        Raises:
            DataError: If one is missing, is not a number, or is not finite.
        """
        return np.array([self._scaled(feature, cells) for feature in self.features])

    def matrix(self, block: Floats, first_row: int = 0, where: str = "") -> NDArray[np.float32]:
        """Return raw numbers `block[row, feature]` scaled as `vector` does, in float32.

        Raises:
            DataError: If one is not finite, also after scaling; names the row and the column, see
                `check_finite`.
        """
        check_finite(block, "feature", self.names, first_row=first_row, where=where)
        with np.errstate(over="ignore"):
            scaled = self.scaling.apply(block)
        return to_float32(scaled, self.names, first_row=first_row, where=where)

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

    def write_csv(
        self,
        path: Path,
        vectors: Floats,
        labels: Floats,
        others: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Write encoded samples as the raw rows that they were, which read back as they are.

        Encoding what is written gives the very same float32 features, as short as that allows.
        Only where a table of several blocks is so far from zero that float64 has no number for a
        feature, the nearest one is written.

        Args:
            path: The file, with a header; a file that is there is replaced.
            vectors: `vectors[sample, feature]`, float32.
            labels: As the model calls them.
            others: Columns that are neither, such as whose a sample is, as text.
        """
        more = others or {}
        columns = [
            _raw_numbers(vectors[:, index], feature) for index, feature in enumerate(self.features)
        ]
        names = [self._exact_label(label) for label in labels.tolist()]
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*self.names, self.label, *more])
            numbers = [column.tolist() for column in columns]
            writer.writerows(zip(*numbers, names, *more.values(), strict=True))

    def _exact_label(self, value: float) -> str:
        return repr(value) if self.kind == "number" else self.label_name(value)

    def _scaled(self, feature: Feature, cells: Mapping[str, object]) -> float:
        try:
            raw = cells[feature.name]
        except KeyError:
            others = (str(name) for name in islice(cells, 100) if name not in self.names)
            raise DataError(
                f"the sample has no feature {shown(feature.name)}, which the task needs"
                f"{nearest(feature.name, others)}"
            ) from None
        number = as_number(raw)
        if number is None or not math.isfinite(number):
            raise DataError(
                f"feature {shown(feature.name)} is {shown(raw)}; it must be a finite number"
            )
        scaled = (number - feature.center) / feature.scale
        if not abs(scaled) <= LARGEST:
            raise DataError(
                f"feature {shown(feature.name)} is {shown(raw)}, which is not finite after scaling "
                f"by center {feature.center:g} and scale {feature.scale:g}; it is far too large"
            )
        return scaled

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


def check_column(what: str, name: object) -> None:
    """Check that something can be the name of a column; a TaskError if not."""
    if not _is_text(name, LONGEST_NAME):
        raise TaskError(
            f"{what} is named {shown(name)}; it must be the name of a column, "
            f"text of 1 to {LONGEST_NAME} characters"
        )


def _check_class(name: object) -> None:
    if not _is_text(name, LONGEST_NAME) or str(name).strip() != name:
        raise TaskError(
            f"a class is {shown(name)}; it must be text as in the data, not empty and without "
            'spaces around it, for example classes = ["0", "1"]'
        )


def _is_text(name: object, longest: int) -> bool:
    try:
        return isinstance(name, str) and 0 < len(name) <= longest and bool(name.encode())
    except UnicodeEncodeError:
        return False


def _raw_numbers(scaled: Floats, feature: Feature) -> Vector:
    """The shortest numbers that the feature's scaling brings back to `scaled`, a float32 column."""
    wanted = scaled.astype(np.float32)
    chosen = wanted.astype(np.float64) * feature.scale + feature.center
    first = 6 - math.floor(math.log10(feature.scale))
    # The shortest last, so that it is the one that stays.
    for places in reversed(range(first, min(first + MORE_DECIMALS, 300))):
        with np.errstate(over="ignore", invalid="ignore"):
            shorter = chosen.round(places)
            same = ((shorter - feature.center) / feature.scale).astype(np.float32) == wanted
        chosen[same] = shorter[same]
    return chosen + 0.0
