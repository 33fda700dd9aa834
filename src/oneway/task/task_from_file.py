"""Derivation of a first task from a user's file: its columns, their scaling, its labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from oneway.errors import ConfigError, DataError
from oneway.methods.batches import Normals
from oneway.models import MODELS
from oneway.sentences import listed, nearest, shown
from oneway.tables.cells import as_number, group_name, is_empty, label_key, label_text
from oneway.tables.format import Csv
from oneway.tables.labels import in_order
from oneway.tables.lines import line_blocks
from oneway.tables.rows import BadRow, Row, RowReader
from oneway.tables.scaling import Moments
from oneway.task.privacy import Privacy
from oneway.task.private_scales import BoundedSums, Range, private_scalings
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
        num_over: How many more were of groups of which the task allows no more: no peer would
            learn from them.
        scales: Where centers and scales are from, as a sentence.
        exact: The features whose centers and scales are statistics of the file as they are.
    """

    task: Task
    skipped: Mapping[str, str]
    num_rows: int
    num_bad_rows: int
    num_over: int
    scales: str
    exact: tuple[str, ...]


def derive_task(
    path: Path,
    label: str,
    *,
    model: str | None = None,
    ranges: Mapping[str, Range] | None = None,
    normals: Normals | None = None,
    **learning: Any,
) -> Derived:
    """Return a task for a file with a header, read once from start to end as a peer reads it.

    Every numeric column is brought to zero mean and unit variance. Without a model, up to 20
    distinct labels mean logistic (two) or softmax, more mean ridge.

    Args:
        path: A CSV file.
        label: What to predict.
        model: What is learned.
        ranges: Public knowledge about columns; what they hold is then not looked at for their
            scaling, or only with noise. That of the label says how large parameters may become.
        normals: Where noise comes from, for scaling that keeps the privacy of the task.
        learning: Method, privacy and all else that a task has.

    Raises:
        MissingDataError: If there is no such file.
        DataError: If it is not CSV, or has no such label column, or nothing to learn from.
        ConfigError: If a range is missing or of no use, or the privacy does not suit the file.
    """
    known, privacy = ranges or {}, learning.get("privacy", Privacy())
    found = _Contents(path, label, known, privacy)
    chosen, classes = found.labels.choose(model)
    reasons = found.reasons_to_skip()
    columns = {name: found.columns[name] for name, reason in reasons.items() if not reason}
    if not columns:
        raise DataError(f"{path} has no numeric column besides {shown(label)} to learn from")
    _check_ranges(path, known, [*columns, *([] if classes else [label])], normals is not None)
    num_rows = found.labels.count
    privacy.check_samples(num_rows)
    exact = tuple(name for name in columns if name not in known)
    features, scales = _features(columns, num_rows, privacy, normals)
    task = Task(
        chosen,
        label,
        features,
        classes,
        radius=1000.0 if classes else found.labels.radius(known.get(label)),
        **learning,
    )
    skipped = {name: reason for name, reason in reasons.items() if reason}
    return Derived(task, skipped, num_rows, found.num_bad, found.num_over, scales, exact)


class _Contents:
    """What a file holds, read once from start to end."""

    def __init__(
        self, path: Path, label: str, ranges: Mapping[str, Range], privacy: Privacy
    ) -> None:
        self.columns: dict[str, _Column] = {}
        self.labels = _Labels(str(path), label)
        self.num_bad = self.num_over = 0
        self._label, self._group = label, privacy.group if privacy.unit == "group" else ""
        self._reader = RowReader(str(path), filter(None, (label, self._group)))
        pieces = line_blocks(path, quoted=False)
        rows = chain.from_iterable(map(self._reader.feed, pieces))
        seen: Counter[str] = Counter()
        for row in chain(rows, self._reader.finish()):
            if isinstance(row, BadRow) or not self._is_complete(row):
                self.num_bad += 1
                continue
            if self._group:
                whose = group_name(row.values[self._group])
                seen[whose] += 1
                if seen[whose] > privacy.records_per_group:
                    self.num_over += 1
                    continue
            self.labels.add(row.values[label])
            for name, cell in row.values.items():
                self.columns.setdefault(name, _Column(ranges.get(name))).add(cell)

    def _is_complete(self, row: Row) -> bool:
        if self._group and not group_name(row.values.get(self._group)):
            return False
        return not is_empty(row.values.get(self._label))

    def reasons_to_skip(self) -> dict[str, str]:
        """Why columns are no features; nothing for those that are."""
        layout = self._reader.layout
        unnamed = layout.unnamed if isinstance(layout, Csv) else ()
        reasons = {
            # A column without a name is the row number that pandas writes.
            name: "it has no name" if name in unnamed else column.reason_to_skip()
            for name, column in self.columns.items()
            if name != self._label
        }
        if self._group and self._group != self._label:
            reasons[self._group] = "it says whose a row is"
        return reasons


def _check_ranges(
    path: Path, ranges: Mapping[str, Range], columns: Sequence[str], are_needed: bool
) -> None:
    for name in ranges:
        if name not in columns:
            raise ConfigError(
                f"a range is given for {shown(name)}, which is no column of numbers that the task "
                f"has from {path}{nearest(name, columns) or f'; those are {listed(columns)}'}"
            )
    missing = [shown(name) for name in columns if name not in ranges]
    if missing and are_needed:
        raise ConfigError(
            f"private scales need a range from public knowledge for {listed(missing)}",
            remedy="add it to ranges, or take the column out of the file",
            flag_remedy="add --range COLUMN=LOW..HIGH for each, or take it out of the file",
        )


def _features(
    columns: Mapping[str, _Column], num_rows: int, privacy: Privacy, normals: Normals | None
) -> tuple[tuple[Feature, ...], str]:
    """The columns with their scaling, and a sentence on where that is from."""
    bounded = {name: it.sums for name, it in columns.items() if it.sums is not None}
    if normals is not None:
        if privacy.guarantee is None:
            raise ConfigError(
                'private scales are asked for and privacy is "none"; leave one of the two out: '
                "they have the epsilon of the task"
            )
        scalings = private_scalings(bounded, num_rows, privacy.guarantee, normals)
        scales = f"are of one peer's data, with noise: {privacy.brief}"
    else:
        scalings = {name: sums.range.scaling for name, sums in bounded.items()}
        exact = [name for name in columns if name not in bounded]
        public = "are of ranges that are public knowledge; no data was used"
        scales = "are statistics of one peer's data, without noise"
        if not exact:
            scales = public
        elif bounded:
            scales = f"of {listed(map(shown, exact))} {scales}; the others {public}"
    made = (
        _rounded(name, *(scalings[name] if name in scalings else column.scaling(name)))
        for name, column in columns.items()
    )
    return tuple(made), f"Centers and scales {scales}."


def _rounded(name: str, center: float, scale: float) -> Feature:
    scale = float(f"{scale:.4g}")
    # Rounded for people, to a ten-thousandth of what matters.
    return Feature(name, round(center, 4 - math.floor(math.log10(scale))), scale)


class _Column:
    """The running moments of a column, as far as it holds numbers; of one with a range, sums."""

    def __init__(self, known: Range | None = None) -> None:
        self.sums = None if known is None else BoundedSums(known)
        self._moments = Moments(1)
        self._is_empty = True
        self._numbers: list[float] = []
        self._text: object = None

    def add(self, cell: object) -> None:
        number = None if self._text is not None else as_number(cell)
        if number is not None and math.isfinite(number):
            self._is_empty = False
            if self.sums is not None:
                self.sums.add(number)
                return
            self._numbers.append(number)
            if len(self._numbers) == 1024:
                self._flush()
        elif number is None and self._text is None and not is_empty(cell):
            self._text = cell

    def reason_to_skip(self) -> str:
        self._flush()
        if self._text is not None:
            return f"it holds {shown(self._text)}, which is not a number"
        if self._is_empty:
            return "it is empty"
        return "its numbers are too large" if self._moments.too_wide.size else ""

    def scaling(self, name: str) -> tuple[float, float]:
        found = self._moments.scaling([name])
        # A column that is constant here may vary at other peers: it stays, unscaled.
        return float(found.means[0]), float(found.scales[0])

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

    def radius(self, known: Range | None) -> float:
        """Return a power of ten that leaves room for parameters ten times the largest label."""
        largest = self.largest if known is None else max(abs(known.low), abs(known.high))
        return max(1000.0, 10.0 ** math.ceil(math.log10(largest or 1.0) + 1))

    def _unsuitable(self, fact: str, rule: str) -> DataError:
        return DataError(
            f"{self.where}: label column {shown(self.column)} {fact}, but {rule}; "
            "choose another column or model"
        )
