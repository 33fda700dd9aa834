"""Derivation of a first task from a user's file: its columns, their scaling, its labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from oneway.errors import ConfigError, DataError, needs_extra
from oneway.models import MODELS
from oneway.models.base import rounded_units
from oneway.sentences import listed, nearest, shown
from oneway.tables.arrays import LABEL, holds_arrays
from oneway.tables.cells import column_numbers, empty_cells
from oneway.tables.encoder import Encoder
from oneway.tables.features import Array, Category, Number
from oneway.tables.inference import ALL, Choices, ColumnNote, infer, label_meaning, scaling_of
from oneway.task.learning import MODEL_FOR, shares_of, with_start
from oneway.task.privacy import Privacy
from oneway.task.ranges import Range
from oneway.task.task import Task

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Derived:
    """A task, and what the file held that did not go into it.

    Attributes:
        task: The task.
        notes: How every column is used.
        num_rows: The number of rows that the task is of.
        num_without_label: The number of rows that are skipped, having no label or no group.
        num_over: The number of rows skipped because their group has more than the task allows.
        scales: Where centers and scales come from, as a sentence.
        exact: The columns of which the task holds exact statistics: centers, scales, values.
    """

    task: Task
    notes: tuple[ColumnNote, ...]
    num_rows: int
    num_without_label: int
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
    """Return a task for a file: its columns as `load` tells them, with rounded centers and scales.

    Numbers, the label included, are brought to zero mean and unit variance. Without a model, the
    label decides: two values mean logistic, up to 20 that are text or whole numbers softmax, other
    numbers ridge.

    Args:
        path: Any file that `load` reads.
        label: The column to predict; of arrays, what to call it, "label" if not given.
        model: The model to learn.
        choices: Choices about columns.
        ranges: Public knowledge about columns: they are scaled by that, not by their values.
        learning: Method, privacy and the other keys of a task.

    Raises:
        MissingDataError: If there is no such file.
        DataError: If it cannot be read, or has no such label column, or nothing to learn from.
        ConfigError: If a range is of no use, or the privacy does not suit the file.
        MissingExtraError: If polars is not installed.
    """
    with needs_extra("deriving a task from data", "tables"):
        from oneway.tables.reading import read_frame
    known, privacy = ranges or {}, learning.get("privacy", Privacy())
    frame, is_arrays = read_frame(path), holds_arrays(path)
    if is_arrays:
        if choices != ALL:
            raise ConfigError(
                f"{path} holds arrays, which are one feature each; leave out the choices of columns"
            )
        label = label or LABEL
        frame = frame.rename({LABEL: label})
    if label is None:
        raise DataError(
            f"{path} needs a label, the column to predict", flag_remedy="add --label COLUMN"
        )
    group = privacy.group if privacy.unit == "group" else None
    numeric = tuple(name for name in known if name != label and not is_arrays)
    choices = replace(
        choices,
        numeric=tuple(dict.fromkeys((*choices.numeric, *numeric))),
        owner=choices.owner or group,
    )
    for name in known:
        if name not in frame.columns:
            raise ConfigError(
                f"a range is given for {shown(name)}, which is no column of {path}"
                f"{nearest(name, frame.columns)}"
            )
    choices.check(frame.columns, label, str(path))
    rows, num_over = _usable(frame, label, privacy)
    if rows.is_empty():
        raise DataError(f"{path} has no row with a label in column {shown(label)}")
    options = learning.get("options", {}).get(model, {})
    wanted = None if model is None else MODELS[model].kind_of_labels(options)
    kind, classes = label_meaning(rows[label], wanted, str(path))
    encoder, notes = infer(rows, label, choices, kind, str(path))
    encoder = replace(encoder, features=tuple(_ranged(it, known) for it in encoder.features))
    scaled = [it.name for it in encoder.features if isinstance(it, Number | Array)]
    scaled += [label] if kind == "number" else []
    _check_ranges(path, known, scaled)
    exact = {name for name in scaled if name not in known and name != label}
    told = {it.name for it in encoder.features if it.missing_indicator or _is_found(it, choices)}
    task, is_started = _task_of(
        model or MODEL_FOR[kind], encoder, rows[label], known,
        may_tell=bool(exact | told or not known), **learning,
    )  # fmt: skip
    if is_started and label not in known and (kind == "number" or is_arrays):
        exact |= {label}
    scales = f"Centers and scales {_origin(scaled, known)}."
    if told:
        scales += " So are the values of categories and the flags of missing values."
    if is_started and classes:
        scales += " The model starts from the shares of the classes there."
    return Derived(
        task,
        notes,
        len(rows),
        len(frame) - len(rows) - num_over,
        num_over,
        scales,
        tuple(name for name in (*encoder.names, label) if name in exact | told),
    )


def _usable(frame: pl.DataFrame, label: str, privacy: Privacy) -> tuple[pl.DataFrame, int]:
    """The rows that a peer learns from, and how many are too many of their group."""
    rows = frame.filter(~empty_cells(frame[label]))
    if privacy.unit != "group":
        return rows, 0
    from oneway.tables.table import owners_of

    groups = owners_of(rows[privacy.group]).codes
    order = np.argsort(groups, kind="stable")
    first = np.searchsorted(groups[order], groups[order])
    before = np.empty(len(groups), np.intp)  # how many rows of its group come before each
    before[order] = np.arange(len(groups)) - first
    has_group, is_over = groups >= 0, before >= privacy.records_per_group
    kept = np.flatnonzero(has_group & ~is_over)
    return rows[kept], int((has_group & is_over).sum())


def _task_of(
    model: str,
    encoder: Encoder,
    labels: pl.Series,
    ranges: Mapping[str, Range],
    *,
    may_tell: bool,
    **learning: Any,
) -> tuple[Task, bool]:
    """Return a task whose model suits the labels, and whether it has options for that.

    Args:
        model: Its name.
        encoder: Features, label and classes.
        labels: The raw labels.
        ranges: That of the label replaces its mean and deviation.
        may_tell: Whether the shares of the classes may become part of the task.
        learning: Further keys.
    """
    learning.get("privacy", Privacy()).check_samples(len(labels))
    classes, name = encoder.classes, encoder.label
    task = Task(model, name, encoder.features, classes, rows=len(labels), **learning)
    options = task.options
    if classes and may_tell:
        codes = replace(encoder, kind="classes").labels(labels.to_frame()).astype(np.intp)
        counts = np.bincount(codes, minlength=len(classes))
        options = with_start(task, len(counts), shares_of(counts))
    elif not classes:
        numbers, _ = column_numbers(labels)
        center, scale = ranges[name].scaling if name in ranges else scaling_of(numbers)
        options = with_start(task, 0, np.array([center]), scale)
    return replace(task, options=options).sealed(), options != task.options


def _is_found(feature: object, choices: Choices) -> bool:
    return isinstance(feature, Category) and not choices.category.get(feature.name)


def _ranged(feature: Any, ranges: Mapping[str, Range]) -> Any:
    """Return a feature with rounded center and scale, those of its range if it has one."""
    if not isinstance(feature, Number | Array):
        return feature
    known = ranges.get(feature.name)
    center, scale = feature.scaling if known is None else known.scaling
    # A column that is constant here may vary at other peers: it stays, unscaled.
    return msgspec.structs.replace(feature, **rounded_units(center, scale))


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
