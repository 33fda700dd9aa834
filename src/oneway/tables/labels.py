"""Labels as the models want them: -1/+1, class codes from 0, or plain numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oneway.errors import DataError
from oneway.models import LabelKind
from oneway.records import Ints
from oneway.sentences import listed
from oneway.streams.arguments import check_finite, with_missing
from oneway.tables.cells import label_key

LabelValue: TypeAlias = float | int | str | bool
"""What a label was called in the data."""

ClassName: TypeAlias = str | bool
"""What a class is called to whoever asks for a prediction: its text, or a truth value."""

MAX_CLASSES = 10_000


def class_codes(kind: LabelKind, count: int) -> list[float]:
    """What the models call so many classes, in order: -1 and +1, or 0, 1, 2, ..."""
    return [-1.0, 1.0] if kind == "binary" else [float(code) for code in range(count)]


def class_names(classes: Sequence[str]) -> tuple[ClassName, ...]:
    """Return classes as a prediction tells them: booleans where the data has true and false.

    >>> class_names(["false", "true"]), class_names(["0", "1"]), class_names(["True", "maybe"])
    ((False, True), ('0', '1'), ('True', 'maybe'))
    """
    words = [name.lower() for name in classes]
    if classes and set(words) <= {"true", "false"}:
        return tuple(word == "true" for word in words)
    return tuple(classes)


def in_order(labels: Iterable[LabelValue]) -> dict[str | float, LabelValue]:
    """Return the distinct labels as they were first written, by key: numbers first, then text."""
    distinct: dict[str | float, LabelValue] = {}
    for label in labels:
        distinct.setdefault(label_key(label), label)
    return dict(sorted(distinct.items(), key=lambda item: (isinstance(item[0], str), item[0])))


def encode_labels(
    values: ArrayLike, kind: LabelKind, column: str = "label"
) -> tuple[NDArray[np.float32], tuple[LabelValue, ...]]:
    """Encode an array of labels in float32; what -1/+1 or the codes mean (empty for numbers)."""
    array, missing = with_missing(values, "labels")
    if array.dtype.kind == "f":
        check_finite(array[:, None] if array.ndim == 1 else array, "label", [column])
    elif missing.any():
        row = int(np.argwhere(missing)[0, 0])
        raise DataError(
            f"row {row}, label column {column!r} is {array[row]}; every row needs a label; "
            "drop the row or fill it"
        )
    if kind == "number":
        if array.dtype.kind not in "fiub":
            raise DataError(
                f"label column {column!r} is not numeric, as a number to predict must be"
            )
        return array.astype(np.float32), ()
    if array.dtype.kind not in "fiubU":
        array = array.astype(np.str_)
    distinct, codes = np.unique(array, return_inverse=True)
    return labels_from_codes(codes, distinct.tolist(), kind, column)


def labels_from_codes(
    codes: Ints, distinct: Sequence[LabelValue], kind: LabelKind, column: str
) -> tuple[NDArray[np.float32], tuple[LabelValue, ...]]:
    """Encode labels given as codes into their distinct values, which may come in any order.

    The smaller of two values becomes -1, the larger +1; classes are numbered in order.
    """
    classes = in_order(distinct)
    meaning = tuple(map(_plain, classes.values()))
    count = f"{len(meaning):,} distinct value{'' if len(meaning) == 1 else 's'}"
    found = f"label column {column!r} has {count} ({listed(map(repr, meaning), 5)})"
    if kind == "binary" and len(meaning) != 2:
        raise DataError(
            f"{found}, but a two-class model needs exactly two",
            remedy="choose another column, or task='classes' or task='number'",
            flag_remedy="choose another column, or --model softmax for classes or --model ridge "
            "for numbers",
        )
    if len(meaning) < 2:
        raise DataError(
            f"{found}, but there is nothing to learn from fewer than two; choose another column"
        )
    code_of = dict(zip(classes, class_codes(kind, len(classes)), strict=True))
    new_labels = np.array([code_of[label_key(label)] for label in distinct], dtype=np.float32)
    return new_labels[codes], meaning


def _plain(value: Any) -> LabelValue:
    if isinstance(value, str):
        return value.strip()
    return int(value) if isinstance(value, float) and value.is_integer() else value
