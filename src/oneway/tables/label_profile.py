"""Label profile: what a column to predict holds, and so which kind of model suits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oneway.errors import DataError
from oneway.models import MODELS, LabelKind
from oneway.records import Ints, Vector
from oneway.sentences import shown
from oneway.tables.cells import label_key, label_text
from oneway.tables.labels import in_order
from oneway.tables.scaling import Moments

MAX_CLASSES = 20
"""A label column with more distinct values is a number to predict."""

MODEL_FOR: dict[LabelKind, str] = {"binary": "logistic", "classes": "softmax", "number": "ridge"}
"""Who learns a kind of label if nobody is asked for."""


@dataclass(frozen=True, eq=False)
class LabelBlock:
    """The labels of some rows.

    Attributes:
        codes: Which of the distinct labels each is; `MAX_CLASSES` if there are more than that.
        numbers: Each as a number; nan where it is none.
    """

    codes: Ints
    numbers: Vector


@dataclass
class LabelProfile:
    """The distinct labels of a column, as far as they can be classes, and their size as numbers.

    Attributes:
        where: What the data is called in errors.
        column: What is predicted.
    """

    where: str
    column: str
    count: int = 0
    text: str = ""
    is_whole: bool = True
    distinct: dict[str | float, str] = field(default_factory=dict)
    counts: Ints = field(default_factory=lambda: np.zeros(MAX_CLASSES + 1, dtype=np.int64))
    _codes: dict[str | float, int] = field(default_factory=dict)
    _moments: Moments = field(default_factory=lambda: Moments(1))

    def add(self, raw: Sequence[object]) -> LabelBlock:
        """Take in the labels of some rows; none of them is empty."""
        codes, numbers = np.empty(len(raw), np.int64), np.full(len(raw), np.nan)
        for row, label in enumerate(raw):
            key = label_key(label)
            if isinstance(key, str):
                self.text = self.text or key
            else:
                numbers[row] = key
                self.is_whole = self.is_whole and key.is_integer()
            if len(self.distinct) <= MAX_CLASSES:
                self.distinct.setdefault(key, label_text(label))
            codes[row] = self._codes.setdefault(key, min(len(self._codes), MAX_CLASSES))
            if len(self._codes) > 2 * MAX_CLASSES:  # a number to predict: nobody asks for codes
                self._codes.popitem()
        self.count += len(raw)
        if len(raw):
            self._moments.add(numbers[:, None])
        self.counts += np.bincount(codes, minlength=MAX_CLASSES + 1)
        return LabelBlock(codes, numbers)

    def count_of(self, label: str) -> int:
        """How many rows have a label, of those that can be classes."""
        return int(self.counts[self._codes[label_key(label)]])

    @property
    def scaling(self) -> tuple[float, float]:
        """Mean and standard deviation of the labels that are numbers."""
        found = self._moments.scaling([self.column])
        return float(found.means[0]), float(found.scales[0])

    @property
    def kind(self) -> LabelKind:
        """What the labels look like: two values, some classes, or numbers.

        Numbers are more than 20 distinct ones, some that are not whole, or hardly one twice.

        Raises:
            DataError: If they are neither.
        """
        count = len(self.distinct)
        if count < 2:
            raise self.unsuitable(
                f"has {count} distinct value{'' if count == 1 else 's'}",
                "there is nothing to learn from fewer than two",
            )
        if count == 2:
            return "binary"
        if not self.text and (
            count > MAX_CLASSES or not self.is_whole or 4 * count > 3 * self.count
        ):
            return "number"
        if count > MAX_CLASSES:
            raise self.unsuitable(
                f"has more than {MAX_CLASSES} distinct values and holds {shown(self.text)}",
                f"at most {MAX_CLASSES} classes, or numbers, can be told from a file",
            )
        return "classes"

    def choose(
        self, model: str | None, options: Mapping[str, Any] | None = None
    ) -> tuple[str, tuple[str, ...]]:
        """Return the model, the one asked for with its options if any, and its classes in order.

        Raises:
            DataError: If the labels do not suit it.
        """
        count = len(self.distinct)
        model = MODEL_FOR[self.kind] if model is None or count < 2 else model
        kind = MODELS[model].kind_of_labels(options or {}) or self.kind
        if kind == "number":
            if self.text:
                raise self.unsuitable(f"holds {shown(self.text)}", f"{model} needs numbers")
            return model, ()
        most = MAX_CLASSES if kind == "classes" else 2
        if count > most:
            raise self.unsuitable(
                f"has more than {most} distinct values", f"{model} tells at most {most} apart"
            )
        return model, tuple(map(str, in_order(self.distinct.values()).values()))

    def unsuitable(self, fact: str, rule: str) -> DataError:
        """The error that labels break a rule."""
        return DataError(
            f"{self.where}: label column {shown(self.column)} {fact}, but {rule}; "
            "choose another column or model"
        )
