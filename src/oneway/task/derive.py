"""A first task from a CSV file that somebody has: its columns, their scaling, its labels."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from oneway.errors import DataError, MissingDataError
from oneway.sentences import listed, nearest, shown
from oneway.tables.class_labels import label_key
from oneway.tables.numbers import as_number
from oneway.task.task import Feature, ModelName, Task

MAX_CLASSES = 20
"""A label column with more distinct values is a number to predict."""

_EMPTY = ("", "na", "n/a", "nan", "null", "none")


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


def derive_task(
    path: Path, label: str, *, model: ModelName | None = None, learning_rate: float = 0.3
) -> Derived:
    """Return a task for a CSV file with a header, read once from start to end.

    Raises:
        MissingDataError: If there is no such file.
        DataError: If it is not CSV, or has no such label column, or nothing to learn from.
    """
    try:
        # A byte order mark at the start, as spreadsheets write it, is not part of the first name.
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file)
            names = [name.strip() for name in next(rows, [])]
            return task_from_samples(
                names, rows, label, where=str(path), model=model, learning_rate=learning_rate
            )
    except FileNotFoundError:
        raise MissingDataError(f"there is no {path}; name a CSV file with a header") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as CSV in UTF-8 ({error}); repair it") from error


def task_from_samples(
    names: Sequence[str],
    rows: Iterable[Sequence[str]],
    label: str,
    *,
    where: str = "the data",
    model: ModelName | None = None,
    learning_rate: float = 0.3,
) -> Derived:
    """Return a task for rows of cells: zero mean and unit variance for every numeric column.

    Without a model, up to 20 distinct labels mean logistic (two) or softmax, more mean ridge.

    Raises:
        DataError: If there is no such label column, or nothing to learn from.
    """
    if label not in names:
        near = nearest(label, names) or f"; there are {listed(map(shown, names), 10)}"
        raise DataError(f"{where} has no column {shown(label)}{near}")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{where} has two columns named {shown(twice)}; rename one of them")
    columns = {name: _Column() for name in names if name != label}
    labels = _Labels(where, label)
    num_bad = 0
    for cells in _named_cells(names, rows):
        raw = cells.pop(label, "").strip()
        if raw.lower() in _EMPTY:
            num_bad += 1
            continue
        labels.add(raw)
        for name, cell in cells.items():
            columns[name].add(cell)
    chosen, classes = labels.choose(model)
    reasons = {
        # A column without a name is the row number that pandas writes.
        name: column.reason_to_skip() if name else "it has no name"
        for name, column in columns.items()
    }
    features = [columns[name].feature(name) for name, reason in reasons.items() if not reason]
    if not features:
        raise DataError(f"{where} has no numeric column besides {shown(label)} to learn from")
    task = Task(
        chosen,
        label,
        tuple(features),
        classes,
        learning_rate=learning_rate,
        radius=labels.radius() if chosen == "ridge" else 1000.0,
    )
    skipped = {name: reason for name, reason in reasons.items() if reason}
    return Derived(task, skipped, labels.count, num_bad)


def _named_cells(names: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[dict[str, str]]:
    """Yield every row as cells by name; a row with too few or too many cells is empty."""
    for cells in rows:
        if len(cells) == len(names) + 1:
            # The format of R and of UCI's occupancy files: the row's own number has no name.
            cells = cells[1:]
        if cells:
            yield dict(zip(names, cells, strict=True)) if len(cells) == len(names) else {}


@dataclass
class _Column:
    """The running moments of a column, by Welford's method: stable wherever its center is."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    text: str = ""

    def add(self, cell: str) -> None:
        number = None if self.text else as_number(cell)
        if number is None:
            if cell.strip().lower() not in _EMPTY:
                self.text = self.text or cell
        elif math.isfinite(number):
            self.count += 1
            before = number - self.mean
            self.mean += before / self.count
            self.squares += before * (number - self.mean)

    def reason_to_skip(self) -> str:
        if self.text:
            return f"it holds {shown(self.text)}, which is not a number"
        if not self.count:
            return "it is empty"
        return "" if math.isfinite(self.squares) else "its numbers are too large"

    def feature(self, name: str) -> Feature:
        spread = math.sqrt(self.squares / self.count)
        # A column that is constant here may vary at other peers: it stays, unscaled.
        scale = float(f"{spread:.4g}") or 1.0
        # Rounded for people, to a ten-thousandth of what matters.
        digits = 4 - math.floor(math.log10(scale))
        return Feature(name, round(self.mean, digits), scale)


@dataclass
class _Labels:
    """The distinct labels of a column, as far as they can be classes, and their size as numbers."""

    where: str
    column: str
    count: int = 0
    text: str = ""
    largest: float = 0.0
    distinct: dict[str | float, str] = field(default_factory=dict)

    def add(self, raw: str) -> None:
        self.count += 1
        key = label_key(raw)
        if isinstance(key, str):
            self.text = self.text or key
        else:
            self.largest = max(self.largest, abs(key))
        if len(self.distinct) <= MAX_CLASSES:
            self.distinct.setdefault(key, raw)

    def choose(self, model: ModelName | None) -> tuple[ModelName, tuple[str, ...]]:
        """Return the model, the one asked for if any, and its classes in order."""
        count = len(self.distinct)
        if count < 2:
            raise self._unsuitable(
                f"has {count} distinct values", "there is nothing to learn from fewer than two"
            )
        if model is None:
            model = "logistic" if count == 2 else "softmax" if count <= MAX_CLASSES else "ridge"
        if model == "ridge":
            if self.text:
                raise self._unsuitable(f"holds {shown(self.text)}", "ridge needs numbers")
            return model, ()
        most = MAX_CLASSES if model == "softmax" else 2
        if count > most:
            raise self._unsuitable(
                f"has more than {most} distinct values", f"{model} tells at most {most} apart"
            )
        ordered = sorted(self.distinct.items(), key=lambda item: (isinstance(item[0], str), item))
        return model, tuple(raw for _, raw in ordered)

    def radius(self) -> float:
        """Return a power of ten that leaves room for parameters ten times the largest label."""
        return max(1000.0, 10.0 ** math.ceil(math.log10(self.largest or 1.0) + 1))

    def _unsuitable(self, fact: str, rule: str) -> DataError:
        return DataError(
            f"{self.where}: label column {shown(self.column)} {fact}, but {rule}; "
            "choose another column or model"
        )
