"""Tables from arrays in memory: rows of numbers, or arrays of any shape; checked and scaled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oneway.errors import DataError
from oneway.files.validation import checked
from oneway.models import LabelKind
from oneway.records import Floats
from oneway.streams.arguments import as_floats, check_finite, refuse_masked
from oneway.tables.encoder import Encoder
from oneway.tables.features import Feature
from oneway.tables.labels import encode_labels
from oneway.tables.owners import Column, whole_numbers
from oneway.tables.scaling import Moments, Scaling, row_after, to_float32
from oneway.tables.scaling import standardise as standardise_features

ARRAY = "features"
"""What an array is called if nobody says otherwise."""
NUMBERS_AT_A_TIME = 2**20


def fields_of_arrays(
    features: ArrayLike,
    labels: ArrayLike,
    feature_names: Sequence[str] | None,
    name: str,
    columns: Mapping[str, Column | ArrayLike],
    task: LabelKind,
    label_name: str,
    standardise: bool,
) -> dict[str, Any]:
    """What the `Table` of some arrays is made of, as `Table.from_arrays` says."""
    checked("task", task, LabelKind, DataError)
    encoded, meaning = encode_labels(labels, task, label_name)
    further = {
        column: values if isinstance(values, Column) else Column.of(values)
        for column, values in columns.items()
    }
    if isinstance(features, np.ndarray) and features.ndim > 2:
        made = _of_arrays(features, encoded, feature_names, further, standardise)
    else:
        matrix = as_floats(features, "features")
        shaped = matrix.ndim > 2
        of = _of_arrays if shaped else _of_numbers
        made = of(matrix, encoded, feature_names, further, standardise)
    if label_name in made["feature_names"]:
        raise DataError(
            f"a feature and the label are both named {label_name!r}; rename the feature, or give "
            "the label another name with label_name='...'"
        )
    return {
        **made,
        "labels": encoded,
        "name": name,
        "label_values": meaning,
        "origin": {
            "rows": len(encoded),
            "features": made["features"].shape[1],
            "label": label_name,
            "task": task,
            "standardised": standardise,
        },
    }


def _of_numbers(
    matrix: Floats,
    labels: NDArray[np.float32],
    feature_names: Sequence[str] | None,
    columns: Mapping[str, Column],
    standardise: bool,
) -> dict[str, Any]:
    """Every column of a matrix is a number."""
    _check_shapes(matrix, labels)
    names = tuple(feature_names or (f"feature {i + 1}" for i in range(matrix.shape[1])))
    _check_names(matrix, names, columns)
    check_finite(matrix, "feature", names)
    columns_of = zip(names, matrix.T, strict=True)
    recoverable, coded = whole_numbers(columns_of, standardised=standardise)
    if standardise:
        stored, scaling = standardise_features(matrix, names)
    else:
        scaling = Scaling.identity(len(names))
        kept = matrix.dtype == np.float32
        stored = np.ascontiguousarray(matrix if kept else to_float32(matrix, names))
    return {
        "features": stored,
        "feature_names": names,
        "columns": {**coded, **columns},
        "means": scaling.means,
        "scales": scaling.scales,
        "recoverable": recoverable,
    }


def _of_arrays(
    arrays: NDArray[Any],
    labels: NDArray[np.float32],
    feature_names: Sequence[str] | None,
    columns: Mapping[str, Column],
    standardise: bool,
) -> dict[str, Any]:
    """Every row is one feature, an array; converted some rows at a time."""
    refuse_masked(arrays, "features")
    if arrays.dtype.kind not in "biuf":
        raise DataError(
            f"features have the type {arrays.dtype}; they must be real numbers, convert them first"
        )
    flat = arrays.reshape(len(arrays), -1)
    _check_shapes(flat, labels)
    (name,) = _only_name(feature_names)
    feature = Feature(name, shape=arrays.shape[1:])
    if standardise:
        feature = standardised(feature, _blocks(flat))
    encoder = Encoder((feature,), "label", "number")
    _check_names(flat, encoder.outputs, columns)
    if not standardise and flat.dtype == np.float32:
        check_finite(flat, "feature", encoder.outputs)
        stored = np.ascontiguousarray(flat)
    else:
        stored = np.empty(flat.shape, dtype=np.float32)
        for first, block in _blocks(flat):
            stored[first : first + len(block)] = encoder.arrays(block, place=row_after(first))
    return {
        "features": stored,
        "feature_names": encoder.outputs,
        "columns": dict(columns),
        "means": encoder.scaling.means,
        "scales": encoder.scaling.scales,
        "encoding": encoder.features,
    }


def standardised(
    feature: Feature, blocks: Iterator[tuple[int, NDArray[Any]]], where: str = ""
) -> Feature:
    """An array with zero mean and unit variance over all cells of all rows.

    Args:
        feature: What a row is.
        blocks: The rows, some at a time, each with the number of the first of them.
        where: What errors put before a row.

    Raises:
        DataError: If a cell is not finite; names its row and the cell.
    """
    moments = Moments(1)
    for first, block in blocks:
        cells = block.reshape(len(block), -1).astype(np.float64)
        check_finite(cells, "feature", feature.outputs, place=row_after(first, where))
        moments.add(cells.reshape(-1, 1))
    scaling = moments.scaling([feature.name])
    return replace(feature, center=float(scaling.means[0]), scale=float(scaling.scales[0]))


def _blocks(flat: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    step = max(1, NUMBERS_AT_A_TIME // flat.shape[1])
    for first in range(0, len(flat), step):
        yield first, flat[first : first + step]


def _only_name(feature_names: Sequence[str] | None) -> Sequence[str]:
    names = (ARRAY,) if feature_names is None else feature_names
    if len(names) != 1:
        raise DataError(f"{len(names)} feature names for one feature, an array; give one name")
    return names


def _check_shapes(features: Floats, labels: NDArray[np.float32]) -> None:
    """Check that there is a label for every row, and something in both; a DataError if not."""
    if features.ndim != 2 or features.size == 0 or labels.shape != features.shape[:1]:
        raise DataError(
            f"features have the shape {features.shape} and labels {labels.shape}; a table needs "
            "features[row, feature] and labels[row], none of them empty"
        )


def _check_names(
    features: Floats, feature_names: Sequence[str], columns: Mapping[str, Column]
) -> None:
    """Check that there is a name for every feature, and an entry of every column for every row."""
    num_rows, num_features = features.shape
    if len(feature_names) != num_features:
        raise DataError(
            f"{len(feature_names)} feature names for {num_features} features; give one per feature"
        )
    for column, values in columns.items():
        if len(values) != num_rows:
            raise DataError(
                f"column {column!r} has {len(values)} entries for {num_rows} rows; give one per row"
            )
