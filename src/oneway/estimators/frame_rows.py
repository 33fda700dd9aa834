"""Rows of a frame or an array by names of features; frames encoded as a task encodes a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError
from oneway.models import LabelKind
from oneway.records import Matrix
from oneway.sentences import listed, shown
from oneway.tables.encoder import Encoder
from oneway.tables.table import Table


def samples_of(rows: Any, names: Sequence[str]) -> Iterator[Mapping[str, object]]:
    """The rows of a frame by the names of its columns, those of an array by these names in order.

    Raises:
        DataError: An array does not have one column for each of the names.
    """
    if hasattr(rows, "iter_rows"):  # polars
        yield from rows.iter_rows(named=True)
        return
    if hasattr(rows, "to_dict"):  # pandas
        yield from rows.to_dict("records")
        return
    block = np.asarray(rows)
    if block.ndim != 2 or block.shape[1] != len(names):
        raise DataError(
            f"the samples have the shape {block.shape} and the model has {len(names)} "
            f"features ({listed(map(shown, names), 5)}); give rows[sample, feature] in this order, "
            "or a frame with columns of these names"
        )
    for row in block.tolist():
        yield dict(zip(names, row, strict=True))


def encoder_for(rows: Any, labels: Any, kind: LabelKind) -> Encoder | None:
    """How the columns of a frame become numbers; None if they are, without gaps, or it is no frame.

    Args:
        rows: A frame, or anything else.
        labels: One for each row: a gap has a flag where they differ.
        kind: What they are.

    Raises:
        DataError: A column cannot be used, or there are not as many labels as rows.
    """
    if not hasattr(rows, "columns"):
        return None
    if all(_is_plain(np.asarray(rows[name])) for name in rows.columns):
        return None
    label = "label"
    while label in rows.columns:
        label += "_"
    given = np.asarray(labels)
    if given.shape != (len(rows),):
        raise DataError(f"there are {len(rows):,} rows and labels of the shape {given.shape}")
    if hasattr(rows, "with_columns"):
        import polars as pl

        frame = rows.with_columns(pl.Series(label, given))
    else:
        frame = rows.assign(**{label: given})
    return Table.from_frame(frame, label=label, task=kind).encoder


def _is_plain(cells: NDArray[Any]) -> bool:
    """Whether a column is of numbers without gaps."""
    return cells.dtype.kind in "iu" or (cells.dtype.kind == "f" and not np.isnan(cells).any())


def encoded(encoder: Encoder, rows: Any) -> Matrix:
    """The rows of a frame, or of an array with the same columns, as numbers.

    Raises:
        DataError: A row lacks a feature, or a cell is what it cannot be; says which row.
    """
    block = []
    for row, cells in enumerate(samples_of(rows, encoder.names)):
        try:
            block.append(encoder.vector(cells))
        except DataError as error:
            raise DataError(f"row {row}, counted from 0: {error}") from None
    return np.array(block).reshape(len(block), encoder.width)
