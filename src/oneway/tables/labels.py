"""Labels as the models want them: -1/+1, class codes from 0, or plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oneway.errors import DataError
from oneway.records import Ints
from oneway.sentences import listed
from oneway.streams.arguments import with_missing

Task: TypeAlias = Literal["binary", "classes", "number"]
"""What is predicted: one of two values, one of several classes, or a number."""

LabelValue: TypeAlias = float | int | str | bool
"""What a label was called in the data."""

MAX_CLASSES = 10_000


def check_task(task: str) -> None:
    """Check that a task is one of those that exist.

    Raises:
        DataError: If it is not.
    """
    if task not in get_args(Task):
        known = ", ".join(repr(name) for name in get_args(Task))
        raise DataError(f"task {task!r} is not known; choose one of {known}")


def encode_labels(
    values: ArrayLike, task: Task, column: str = "label"
) -> tuple[NDArray[np.float32], tuple[LabelValue, ...]]:
    """Encode an array of labels for a task.

    Returns:
        The labels in float32, and what -1/+1 or the class codes mean (empty for numbers).

    Raises:
        DataError: If a label is missing, or the labels do not suit the task.
    """
    array, missing = with_missing(values, "labels")
    if array.dtype.kind == "f":
        check_labels_finite(array, column)
    elif missing.any():
        row = int(np.argwhere(missing)[0, 0])
        raise DataError(
            f"row {row}, label column {column!r} is {array[row]}; every row needs a label; "
            "drop the row or fill it"
        )
    if task == "number":
        if array.dtype.kind not in "fiub":
            raise DataError(f"label column {column!r} is not numeric, as task='number' needs")
        return array.astype(np.float32), ()
    if array.dtype.kind not in "fiubU":
        array = array.astype(np.str_)
    distinct, codes = np.unique(array, return_inverse=True)
    return labels_from_codes(codes, distinct.tolist(), task, column)


def labels_from_codes(
    codes: Ints, distinct: Sequence[LabelValue], task: Task, column: str
) -> tuple[NDArray[np.float32], tuple[LabelValue, ...]]:
    """Encode labels given as codes into their distinct values, which may come in any order.

    The smaller of two values becomes -1, the larger +1; classes are numbered in order.

    Raises:
        DataError: If there are not two distinct values for "binary", or fewer than two classes.
    """
    order = sorted(range(len(distinct)), key=lambda index: distinct[index])
    meaning = tuple(_plain(distinct[index]) for index in order)
    if task == "binary" and len(meaning) != 2:
        raise DataError(
            f"label column {column!r} has {_count(meaning)}, but task='binary' needs exactly two; "
            "choose another column, or task='classes' or task='number'"
        )
    if len(meaning) < 2:
        raise DataError(
            f"label column {column!r} has {_count(meaning)}, but there is nothing to learn from "
            "fewer than two; choose another column"
        )
    new_labels = np.empty(len(meaning), dtype=np.float32)
    new_labels[order] = (-1.0, 1.0) if task == "binary" else np.arange(len(meaning))
    return new_labels[codes], meaning


def too_many_classes(column: str) -> DataError:
    """The error for a label column with more distinct values than there can be classes."""
    return DataError(
        f"label column {column!r} has more than {MAX_CLASSES:,} distinct values, too many to be "
        "classes; choose another column, or task='number'"
    )


def check_labels_finite(values: NDArray[np.floating], column: str, first_row: int = 0) -> None:
    """Check that every label is a finite number.

    Raises:
        DataError: If one is not; names the row (counted from 0).
    """
    broken = np.flatnonzero(~np.isfinite(values))
    if broken.size:
        row = int(broken[0])
        raise DataError(
            f"row {first_row + row}, label column {column!r} is {values[row]}; "
            "labels must be finite; drop the row or fill it"
        )


def _count(meaning: Sequence[LabelValue]) -> str:
    plural = "value" if len(meaning) == 1 else "values"
    return f"{len(meaning):,} distinct {plural} ({listed((repr(value) for value in meaning), 5)})"


def _plain(value: LabelValue) -> LabelValue:
    return int(value) if isinstance(value, float) and value.is_integer() else value
