"""Derivation of a first task from a user's file: its columns, their scaling, its labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from oneway.errors import ConfigError, DataError
from oneway.methods.batches import Normals
from oneway.sentences import listed, nearest, shown
from oneway.tables.array_source import LABEL, ArraySource, holds_arrays, open_arrays
from oneway.tables.cells import as_number, group_name, is_empty
from oneway.tables.format import Csv, Values
from oneway.tables.from_arrays import standardised
from oneway.tables.inference import ALL, Choices, ColumnNote, described, infer
from oneway.tables.label_profile import LabelProfile
from oneway.tables.lines import line_blocks
from oneway.tables.profile import ColumnProfile
from oneway.tables.rows import BadRow, Row, RowReader
from oneway.task.privacy import Privacy
from oneway.task.private_scales import BoundedSums, Range, private_scalings
from oneway.task.start import shares_of, with_start
from oneway.task.task import Feature, Task

ROWS_AT_A_TIME = 1024


@dataclass(frozen=True)
class Derived:
    """A task, and what the file held that did not go into it.

    Attributes:
        notes: What became of every column.
        num_rows: How many rows had a label and the right number of cells.
        num_bad_rows: How many had not.
        num_over: How many more were of groups of which the task allows no more: no peer would
            learn from them.
        scales: Where centers and scales are from, as a sentence.
        exact: The features that tell statistics of the file as they are.
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
    normals: Normals | None = None,
    **learning: Any,
) -> Derived:
    """Return a task for a file with a header, read once from start to end as a peer reads it.

    Columns are numbers, booleans, categories or times by what they hold (see `infer`), and numbers
    are brought to zero mean and unit variance. Without a model, the label decides: two values mean
    logistic, up to 20 that are text or whole numbers softmax, other numbers ridge.

    Args:
        path: A CSV file, or arrays: a NumPy or IDX file, CIFAR's, or a folder of images.
        label: What to predict; of arrays, what to call it, "label" if not given.
        model: What is learned.
        choices: What is said about columns.
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
    if holds_arrays(path):
        if choices != ALL or normals is not None:
            raise ConfigError(
                f"{path} holds arrays, which are one feature each; leave out what is said about "
                "columns, and private scales: a range, as --range image=0..255, tells nothing"
            )
        return _of_arrays(open_arrays(path), label, model, known, learning)
    if label is None:
        raise DataError(
            f"{path} needs a label, the column to predict", flag_remedy="add --label COLUMN"
        )
    found = _Contents(path, label, known, privacy)
    choices.check([label, *found.columns], label, str(path))
    chosen, classes = found.labels.choose(model, learning.get("options", {}).get(model))
    inferred = infer(
        found.columns,
        found.labels,
        choices,
        classifies=bool(classes),
        left_out=found.reasons_to_skip(),
        bounded=known,
        public=normals is not None,
    )
    if not inferred.features:
        raise DataError(
            f"{path} has no column besides {shown(label)} to learn from; "
            f"{_why_none(inferred.notes)}"
        )
    numbers = [feature.name for feature in inferred.features if feature.kind == "number"]
    _check_ranges(path, known, [*numbers, *([] if classes else [label])], normals is not None)
    num_rows = found.labels.count
    privacy.check_samples(num_rows)
    told = [f.name for f in inferred.features if f.gaps or _is_found(f, choices)]
    features, scales = _scaled(inferred.features, found, privacy, normals)
    spread = known.get(label)
    largest = None if spread is None else max(abs(spread.low), abs(spread.high))
    task = Task(
        chosen,
        label,
        features,
        classes,
        radius=1000.0 if classes else found.labels.radius(largest),
        rows=num_rows,
        **learning,
    )
    if told:
        scales = f"{scales} So are the values of categories and the flags of gaps."
    exact = {*told, *(name for name in numbers if name not in known)}
    options = _start(task, found.labels, known, normals is None and bool(exact or not known))
    if options != task.options:
        if not classes:
            exact |= set() if label in known else {label}
            scales += f" {shown(label)} is learned in such units, too."
        elif task.model in options:
            scales += " The model starts from the shares of the classes there."
        radius = task.radius if classes else Task.radius
        task = replace(task, options=options, radius=radius)
    return Derived(
        task.sealed(),
        inferred.notes,
        num_rows,
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
    """A task for arrays: one feature, all its cells scaled alike."""
    labels = LabelProfile(str(source.path), label or LABEL)
    labels.add(source.labels.tolist())
    chosen, classes = labels.choose(model, learning.get("options", {}).get(model))
    known, feature = ranges.get(source.name), source.feature()
    others = [] if classes else [labels.column]
    _check_ranges(source.path, ranges, [source.name, *others], are_needed=False)
    if known is None:
        found = standardised(feature, source.blocks(), f"{source.path.name}: ")
        feature = _rounded(feature, found.center, found.scale)
    else:
        feature = _rounded(feature, *known.scaling)
    privacy = learning.get("privacy", Privacy())
    privacy.check_samples(len(source))
    radius = 1000.0 if classes else labels.radius()
    task = Task(
        chosen, labels.column, (feature,), classes, radius=radius, rows=len(source), **learning
    )
    options = _start(task, labels, ranges, exact=known is None)
    if options != task.options:
        task = replace(task, options=options, radius=radius if classes else Task.radius)
    notes = (
        ColumnNote(labels.column, "what is predicted", 0),
        ColumnNote(source.name, described(feature), 0),
    )
    scales = "Center and scale are statistics of one peer's data, without noise."
    if known is not None:
        scales = "Center and scale are of a range that is public knowledge; no data was used."
    exact = (source.name,) if known is None else ()
    return Derived(task.sealed(), notes, len(source), 0, 0, scales, exact)


def _is_found(feature: Feature, choices: Choices) -> bool:
    return feature.kind == "category" and not choices.category.get(feature.name)


def _why_none(notes: Sequence[ColumnNote]) -> str:
    reasons = [f"{shown(note.name)}: {note.remark}" for note in notes if note.remark]
    return f"left out are {listed(reasons, 5)}" if reasons else "add some"


def _start(
    task: Task, labels: LabelProfile, ranges: Mapping[str, Range], exact: bool
) -> dict[str, Any]:
    """The options with which the model starts; without statistics of the data unless `exact`."""
    if task.classes:
        counts = np.array([labels.count_of(name) for name in task.classes])
        return with_start(task, len(counts), shares_of(counts)) if exact else task.options
    known = ranges.get(task.label)
    center, scale = labels.scaling if known is None else known.scaling
    return with_start(task, 0, np.array([center]), scale)


class _Contents:
    """What a file holds, read once from start to end."""

    def __init__(
        self, path: Path, label: str, ranges: Mapping[str, Range], privacy: Privacy
    ) -> None:
        self.columns: dict[str, ColumnProfile] = {}
        self.sums = {name: BoundedSums(known) for name, known in ranges.items()}
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
                whose = group_name(row.values[self._group])
                seen[whose] += 1
                if seen[whose] > privacy.records_per_group:
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
        for name, sums in self.sums.items():
            for row in rows:
                number = as_number(row.get(name))
                if number is not None and math.isfinite(number):
                    sums.add(number)

    def _is_complete(self, row: Row) -> bool:
        if self._group and not group_name(row.values.get(self._group)):
            return False
        return not is_empty(row.values.get(self._label))

    def reasons_to_skip(self) -> dict[str, str]:
        """Why columns are no features, whatever they hold."""
        layout = self._reader.layout
        # A column without a name is the row number that pandas writes.
        unnamed = layout.unnamed if isinstance(layout, Csv) else ()
        reasons = dict.fromkeys(unnamed, "it has no name")
        return reasons | ({self._group: "it says whose a row is"} if self._group else {})


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


def _scaled(
    features: Sequence[Feature], found: _Contents, privacy: Privacy, normals: Normals | None
) -> tuple[tuple[Feature, ...], str]:
    """The features with the scaling of numbers, and a sentence on where that is from."""
    numbers = [feature.name for feature in features if feature.kind == "number"]
    bounded = {name: found.sums[name] for name in numbers if name in found.sums}
    if normals is not None:
        if privacy.guarantee is None:
            raise ConfigError(
                'private scales are asked for and privacy is "none"; leave one of the two out: '
                "they have the epsilon of the task"
            )
        scalings = private_scalings(bounded, found.labels.count, privacy.guarantee, normals)
        scales = f"are of one peer's data, with noise: {privacy.brief}"
    else:
        scalings = {name: sums.range.scaling for name, sums in bounded.items()}
        exact = [name for name in numbers if name not in bounded]
        public = "are of ranges that are public knowledge; no data was used"
        scales = "are statistics of one peer's data, without noise"
        if numbers and not exact:
            scales = public
        elif bounded:
            scales = f"of {listed(map(shown, exact))} {scales}; the others {public}"
    for name in numbers:
        if name not in scalings:
            own = found.columns[name].moments.scaling([name])
            # A column that is constant here may vary at other peers: it stays, unscaled.
            scalings[name] = float(own.means[0]), float(own.scales[0])
    made = (
        _rounded(feature, *scalings[feature.name]) if feature.name in scalings else feature
        for feature in features
    )
    return tuple(made), f"Centers and scales {scales}."


def _rounded(feature: Feature, center: float, scale: float) -> Feature:
    scale = float(f"{scale:.4g}")
    # Rounded for people, to a ten-thousandth of what matters.
    center = round(center, 4 - math.floor(math.log10(scale)))
    return replace(feature, center=center, scale=scale)
