"""Derivation of a first task from a user's file: its columns, their scaling, its labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from oneway.errors import ConfigError, DataError
from oneway.models.base import rounded_units
from oneway.sentences import listed, nearest, shown
from oneway.tables.array_source import LABEL, ArraySource, holds_arrays, open_arrays
from oneway.tables.cells import group_name, is_empty, is_gap
from oneway.tables.format import Csv, Values
from oneway.tables.from_arrays import standardised
from oneway.tables.inference import ALL, Choices, ColumnNote, described, infer
from oneway.tables.label_profile import LabelProfile
from oneway.tables.lines import line_blocks
from oneway.tables.profile import ColumnProfile
from oneway.tables.rows import BadRow, Row, RowReader
from oneway.task.learning import shares_of, with_start
from oneway.task.privacy import Privacy
from oneway.task.ranges import Range
from oneway.task.task import Feature, Task

ROWS_AT_A_TIME = 1024


@dataclass(frozen=True)
class Derived:
    """A task, and what the file held that did not go into it.

    Attributes:
        task: The task.
        notes: How every column is used.
        num_rows: The number of rows with a label and the right number of cells.
        num_bad_rows: The number of other rows, which are skipped.
        num_over: The number of rows skipped because their group has more than the task allows.
        scales: Where centers and scales come from, as a sentence.
        exact: The columns of which the task holds exact statistics: centers, scales, values.
    """

    task: Task
    notes: tuple[ColumnNote, ...]
    num_rows: int
    num_bad_rows: int
    num_over: int
    scales: str
    exact: tuple[str, ...]


def derive_task(
    path: Path,
    label: str | None,
    *,
    model: str | None = None,
    choices: Choices = ALL,
    ranges: Mapping[str, Range] | None = None,
    **learning: Any,
) -> Derived:
    """Return a task for a file with a header, read once from start to end as a peer reads it.

    Columns are numbers, booleans, categories or times by what they hold (see `infer`). Numbers, the
    label included, are brought to zero mean and unit variance. Without a model, the label decides:
    two values mean logistic, up to 20 that are text or whole numbers softmax, other numbers ridge.

    Args:
        path: A CSV file, or arrays: a NumPy or IDX file, or a folder of images.
        label: The column to predict; of arrays, what to call it, "label" if not given.
        model: The model to learn.
        choices: Choices about columns.
        ranges: Public knowledge about columns: they are scaled by that, not by their values.
        learning: Method, privacy and the other keys of a task.

    Raises:
        MissingDataError: If there is no such file.
        DataError: If it is not CSV, or has no such label column, or nothing to learn from.
        ConfigError: If a range is of no use, or the privacy does not suit the file.
    """
    known = ranges or {}
    if holds_arrays(path):
        if choices != ALL:
            raise ConfigError(
                f"{path} holds arrays, which are one feature each; leave out the choices of columns"
            )
        return _of_arrays(open_arrays(path), label, model, known, learning)
    if label is None:
        raise DataError(
            f"{path} needs a label, the column to predict", flag_remedy="add --label COLUMN"
        )
    privacy = learning.get("privacy", Privacy())
    found = _Contents(path, label, privacy)
    choices.check([label, *found.columns], label, str(path))
    chosen, classes = found.labels.choose(model, learning.get("options", {}).get(model))
    inferred = infer(
        found.columns,
        found.labels,
        choices,
        classifies=bool(classes),
        left_out=found.reasons_to_skip(),
        bounded=known,
    )
    if not inferred.features:
        raise DataError(
            f"{path} has no column besides {shown(label)} to learn from; "
            f"{_why_none(inferred.notes)}"
        )
    numbers = [feature.name for feature in inferred.features if feature.kind == "number"]
    _check_ranges(path, known, [*numbers, *([] if classes else [label])])
    exact = {f.name for f in inferred.features if f.gaps or _is_found(f, choices)}
    scales = f"Centers and scales {_origin([*numbers, *([] if classes else [label])], known)}."
    if exact:
        scales += " So are the values of categories and the flags of missing values."
    exact |= {name for name in numbers if name not in known}
    task, starts = _task_of(
        chosen,
        found.labels,
        tuple(_scaled(feature, found, known) for feature in inferred.features),
        classes,
        known,
        exact=bool(exact or not known),
        **learning,
    )
    if starts and classes:
        scales += " The model starts from the shares of the classes there."
    elif starts and label not in known:
        exact |= {label}
    return Derived(
        task,
        inferred.notes,
        found.labels.count,
        found.num_bad,
        found.num_over,
        scales,
        tuple(name for name in (*task.encoder.names, label) if name in exact),
    )


def _of_arrays(
    source: ArraySource,
    label: str | None,
    model: str | None,
    ranges: Mapping[str, Range],
    learning: Mapping[str, Any],
) -> Derived:
    """Return a task for arrays: one feature, all its cells scaled alike."""
    labels = LabelProfile(str(source.path), label or LABEL)
    given = source.labels.tolist()
    labels.add([label for label in given if not is_gap(label)])
    chosen, classes = labels.choose(model, learning.get("options", {}).get(model))
    columns = [source.name, *([] if classes else [labels.column])]
    _check_ranges(source.path, ranges, columns)
    feature, known = source.feature(), ranges.get(source.name)
    if known is None:
        found = standardised(feature, source.blocks(), f"{source.path.name}: ")
        scaling = found.center, found.scale
    else:
        scaling = known.scaling
    feature = replace(feature, **rounded_units(*scaling))
    task, starts = _task_of(
        chosen, labels, (feature,), classes, ranges, exact=known is None, **learning
    )
    notes = (
        ColumnNote(labels.column, "label", 0),
        ColumnNote(source.name, described(feature), 0),
    )
    exact = [name for name in columns if name not in ranges] if starts or known is None else []
    scales = f"Center and scale {_origin(columns, ranges)}."
    return Derived(task, notes, labels.count, len(given) - labels.count, 0, scales, tuple(exact))


def _task_of(
    model: str,
    labels: LabelProfile,
    features: tuple[Feature, ...],
    classes: tuple[str, ...],
    ranges: Mapping[str, Range],
    *,
    exact: bool,
    **learning: Any,
) -> tuple[Task, bool]:
    """Return a task whose model suits the labels, and whether it has options for that.

    Args:
        model: Its name.
        labels: What the labels are.
        features: Scaled.
        classes: None for numbers.
        ranges: That of the label replaces its mean and deviation.
        exact: Whether the shares of the classes may become part of the task.
        learning: Further keys.
    """
    learning.get("privacy", Privacy()).check_samples(labels.count)
    task = Task(model, labels.column, features, classes, rows=labels.count, **learning)
    options = task.options
    if classes and exact:
        counts = np.array([labels.count_of(name) for name in classes])
        options = with_start(task, len(counts), shares_of(counts))
    elif not classes:
        known = ranges.get(labels.column)
        center, scale = labels.scaling if known is None else known.scaling
        options = with_start(task, 0, np.array([center]), scale)
    return replace(task, options=options).sealed(), options != task.options


def _is_found(feature: Feature, choices: Choices) -> bool:
    return feature.kind == "category" and not choices.category.get(feature.name)


def _why_none(notes: Sequence[ColumnNote]) -> str:
    reasons = [f"{shown(note.name)}: {note.remark}" for note in notes if note.remark]
    return f"left out are {listed(reasons, 5)}" if reasons else "add some"


class _Contents:
    """The contents of a file, read once from start to end."""

    def __init__(self, path: Path, label: str, privacy: Privacy) -> None:
        self.columns: dict[str, ColumnProfile] = {}
        self.labels = LabelProfile(str(path), label)
        self.num_bad = self.num_over = 0
        self._label, self._group = label, privacy.group if privacy.unit == "group" else ""
        self._reader = RowReader(str(path), filter(None, (label, self._group)))
        self._rows: list[Values] = []
        pieces = line_blocks(path, quoted=False)
        rows = chain.from_iterable(map(self._reader.feed, pieces))
        seen: Counter[str] = Counter()
        for row in chain(rows, self._reader.finish()):
            if isinstance(row, BadRow) or not self._is_complete(row):
                self.num_bad += 1
                continue
            if self._group:
                group = group_name(row.values[self._group])
                seen[group] += 1
                if seen[group] > privacy.records_per_group:
                    self.num_over += 1
                    continue
            self._rows.append(row.values)
            if len(self._rows) == ROWS_AT_A_TIME:
                self._flush()
        self._flush()

    def _flush(self) -> None:
        rows, self._rows = self._rows, []
        if not rows:
            return
        before = self.labels.count
        block = self.labels.add([row[self._label] for row in rows])
        for name in dict.fromkeys(name for row in rows for name in row if name != self._label):
            if name not in self.columns:
                self.columns[name] = ColumnProfile()
            profile = self.columns[name]
            profile.miss(before - profile.count)
            profile.add([row.get(name) for row in rows], block)

    def _is_complete(self, row: Row) -> bool:
        if self._group and not group_name(row.values.get(self._group)):
            return False
        return not is_empty(row.values.get(self._label))

    def reasons_to_skip(self) -> dict[str, str]:
        """Return the columns that are never features, and why."""
        layout = self._reader.layout
        # A column without a name is the row number that pandas writes.
        unnamed = layout.unnamed if isinstance(layout, Csv) else ()
        reasons = dict.fromkeys(unnamed, "it has no name")
        return reasons | ({self._group: "owner column"} if self._group else {})


def _check_ranges(path: Path, ranges: Mapping[str, Range], columns: Sequence[str]) -> None:
    for name in ranges:
        if name not in columns:
            raise ConfigError(
                f"a range is given for {shown(name)}, which is not a column of numbers that the "
                f"task has from {path}{nearest(name, columns) or f'; those are {listed(columns)}'}"
            )


def _origin(columns: Sequence[str], ranges: Mapping[str, Range]) -> str:
    """Return where the centers and scales of columns come from."""
    public = "come from ranges that are public knowledge; no data was used"
    exact = [name for name in columns if name not in ranges]
    if columns and not exact:
        return public
    statistics = "are statistics of one peer's data, without noise"
    if len(exact) == len(columns):
        return statistics
    return f"of {listed(map(shown, exact))} {statistics}; the others {public}"


def _scaled(feature: Feature, found: _Contents, ranges: Mapping[str, Range]) -> Feature:
    """Return a feature with center and scale if it is a number."""
    if feature.kind != "number":
        return feature
    if feature.name in ranges:
        return replace(feature, **rounded_units(*ranges[feature.name].scaling))
    own = found.columns[feature.name].moments.scaling([feature.name])
    # A column that is constant here may vary at other peers: it stays, unscaled.
    return replace(feature, **rounded_units(float(own.means[0]), float(own.scales[0])))
