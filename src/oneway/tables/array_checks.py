"""Whether arrays fit together to be a table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError
from oneway.records import Floats
from oneway.tables.owners import Column


def check_shapes(features: Floats, labels: NDArray[np.float32]) -> None:
    """Check that there is a label for every row, and something in both; a DataError if not."""
    if features.ndim != 2 or features.size == 0 or labels.shape != features.shape[:1]:
        raise DataError(
            f"features have the shape {features.shape} and labels {labels.shape}; a table needs "
            "features[row, feature] and labels[row], none of them empty"
        )


def check_names(
    features: Floats, feature_names: tuple[str, ...], columns: Mapping[str, Column]
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
