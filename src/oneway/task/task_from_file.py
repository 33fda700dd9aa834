"""Derivation of a first task from a user's file: its columns, their scaling, its labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from oneway.errors import DataError
from oneway.models import MODELS
from oneway.sentences import shown
from oneway.tables.cells import as_number, is_empty, label_key, label_text
from oneway.tables.format import Csv
from oneway.tables.labels import in_order
from oneway.tables.lines import line_blocks
from oneway.tables.rows import BadRow, Row, RowReader
from oneway.tables.scaling import Moments
from oneway.task.task import Feature, Task

MAX_CLASSES = 20
"""A label column with more distinct values is a number to predict."""


@dataclass(frozen=True)
class Derived:
    """A task, and what the file held that did not go into it.

    Attributes:
        skipped: Columns that are no features, and why.
        num_rows: How many rows had a label and the right number of cells.
        num_bad_rows: How many had not.
    """

    task: Task
    skipped: Mapping[str, str]
    num_rows: int
    num_bad_rows: int


def derive_task(path: Path, label: str, *, model: str | None = None, **learning: Any) -> Derived:
    """Return a task for a file with a header, read once from start to end as a peer reads it.

    Every numeric column is brought to zero mean and unit variance. Without a model, up to 20
    distinct labels mean logistic (two) or softmax, more mean ridge.

    Raises:
        MissingDataError: If there is no such file.
        DataError: If it is not CSV, or has no such label column, or nothing to learn from.
    """
    reader = RowReader(str(path), [label])
    pieces = line_blocks(path, quoted=False)
    columns: dict[str, _Column] = {}
    labels = _Labels(str(path), label)
    num_bad = 0
    for row in chain(chain.from_iterable(map(reader.feed, pieces)), reader.finish()):
        raw = row.values.get(label) if isinstance(row, Row) else None
        if isinstance(row, BadRow) or is_empty(raw):
            num_bad += 1
            continue
        labels.add(raw)
        for name, cell in row.values.items():
            columns.setdefault(name, _Column()).add(cell)
    chosen, classes = labels.choose(model)
    unnamed = reader.layout.unnamed if isinstance(reader.layout, Csv) else ()
    reasons = {
        # A column without a name is the row number that pandas writes.
        name: "it has no name" if name in unnamed else column.reason_to_skip()
        for name, column in columns.items()
        if name != label
    }
    features = [columns[name].feature(name) for name, reason in reasons.items() if not reason]
    if not features:
        raise DataError(f"{path} has no numeric column besides {shown(label)} to learn from")
    task = Task(
        chosen,
        label,
        tuple(features),
        classes,
        radius=1000.0 if classes else labels.radius(),
        **learning,
    )
    skipped = {name: reason for name, reason in reasons.items() if reason}
    return Derived(task, skipped, labels.count, num_bad)


class _Column:
    """The running moments of a column, as far as it holds numbers."""

    def __init__(self) -> None:
        self._moments = Moments(1)
        self._numbers: list[float] = []
        self._text: object = None

    def add(self, cell: object) -> None:
        number = None if self._text is not None else as_number(cell)
        if number is not None and math.isfinite(number):
            self._numbers.append(number)
            if len(self._numbers) == 1024:
                self._flush()
        elif number is None and self._text is None and not is_empty(cell):
            self._text = cell

    def reason_to_skip(self) -> str:
        self._flush()
        if self._text is not None:
            return f"it holds {shown(self._text)}, which is not a number"
        if not self._moments.count:
            return "it is empty"
        return "its numbers are too large" if self._moments.too_wide.size else ""

    def feature(self, name: str) -> Feature:
        found = self._moments.scaling([name])
        # A column that is constant here may vary at other peers: it stays, unscaled.
        scale = float(f"{found.scales[0]:.4g}")
        # Rounded for people, to a ten-thousandth of what matters.
        digits = 4 - math.floor(math.log10(scale))
        return Feature(name, round(float(found.means[0]), digits), scale)

    def _flush(self) -> None:
        if self._numbers:
            self._moments.add(np.array(self._numbers)[:, None])
            self._numbers = []


@dataclass
class _Labels:
    """The distinct labels of a column, as far as they can be classes, and their size as numbers."""

    where: str
    column: str
    count: int = 0
    text: str = ""
    largest: float = 0.0
    distinct: dict[str | float, str] = field(default_factory=dict)

    def add(self, raw: object) -> None:
        self.count += 1
        key = label_key(raw)
        if isinstance(key, str):
            self.text = self.text or key
        else:
            self.largest = max(self.largest, abs(key))
        if len(self.distinct) <= MAX_CLASSES:
            self.distinct.setdefault(key, label_text(raw))

    def choose(self, model: str | None) -> tuple[str, tuple[str, ...]]:
        """Return the model, the one asked for if any, and its classes in order."""
        count = len(self.distinct)
        if count < 2:
            raise self._unsuitable(
                f"has {count} distinct values", "there is nothing to learn from fewer than two"
            )
        if model is None:
            model = "logistic" if count == 2 else "softmax" if count <= MAX_CLASSES else "ridge"
        kind = MODELS[model].labels
        if kind == "number":
            if self.text:
                raise self._unsuitable(f"holds {shown(self.text)}", f"{model} needs numbers")
            return model, ()
        most = MAX_CLASSES if kind == "classes" else 2
        if count > most:
            raise self._unsuitable(
                f"has more than {most} distinct values", f"{model} tells at most {most} apart"
            )
        return model, tuple(map(str, in_order(self.distinct.values()).values()))

    def radius(self) -> float:
        """Return a power of ten that leaves room for parameters ten times the largest label."""
        return max(1000.0, 10.0 ** math.ceil(math.log10(self.largest or 1.0) + 1))

    def _unsuitable(self, fact: str, rule: str) -> DataError:
        return DataError(
            f"{self.where}: label column {shown(self.column)} {fact}, but {rule}; "
            "choose another column or model"
        )
