"""From blocks of a file to one standardised table, without ever holding two copies of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from oneway.errors import DataError
from oneway.tables.column import MAX_DISTINCT_NAMES, Column
from oneway.tables.labels import (
    MAX_CLASSES,
    LabelValue,
    Task,
    check_labels_finite,
    labels_from_codes,
    too_many_classes,
)
from oneway.tables.scaling import Moments, Scaling, check_finite, rescale_file, to_float32
from oneway.tables.source import Source
from oneway.tables.whole_numbers import WholeNumbers


@dataclass(frozen=True, eq=False)
class Assembled:
    """All of a table but its features, which are in a file.

    Attributes:
        columns: Those that are not features, and the features that `deal_by` needs as well.
        columns_left_out: Columns with too many distinct values to be owners.
        recoverable: See `Table`.
    """

    labels: NDArray[np.float32]
    label_values: tuple[LabelValue, ...]
    columns: Mapping[str, Column]
    columns_left_out: tuple[str, ...]
    scaling: Scaling
    recoverable: tuple[str, ...]


class Coder:
    """Codes for values that arrive in blocks, in the order in which they first appear."""

    def __init__(self) -> None:
        self._code_of: dict[Any, int] = {}
        self._blocks: list[NDArray[np.int32]] = []

    def add(self, values: pl.Series) -> None:
        """Code a block; null becomes -1."""
        distinct = values.unique().drop_nulls().to_list()
        codes = [self._code_of.setdefault(value, len(self._code_of)) for value in distinct]
        coded = values.replace_strict(distinct, codes, default=-1, return_dtype=pl.Int32)
        self._blocks.append(coded.to_numpy())

    @property
    def distinct(self) -> list[Any]:
        """The value of every code."""
        return list(self._code_of)

    def __len__(self) -> int:
        return len(self._code_of)

    @property
    def codes(self) -> NDArray[np.int32]:
        """The codes of all blocks."""
        return np.concatenate(self._blocks)


def encode_column(values: pl.Series) -> Column:
    """Code a whole column of strings."""
    coder = Coder()
    coder.add(values)
    return Column.from_codes(coder.codes, coder.distinct)


def assemble(source: Source, file: BinaryIO, *, task: Task, standardise: bool) -> Assembled:
    """Write the features of a source to a file, row by row in float32, and collect the rest.

    The first block's own mean and scale are applied while writing, so that float32 loses nothing
    of a column such as a date in seconds; when the moments of all rows are known, the rows in
    the file are brought to those, in place.

    Raises:
        DataError: If a feature or label is missing or not finite, the labels do not suit the
            task, or there are no rows.
    """
    where = f"{source.path.name}: "
    names = source.feature_names
    moments, labels = Moments(names), _Labels(source, task)
    coders = {name: Coder() for name in source.column_names}
    whole = WholeNumbers(names, standardise=standardise)
    provisional = Scaling.identity(len(names))
    row = 0
    for block in source.blocks():
        check_finite(block.features, names, first_row=row, where=where)
        whole.add(block.features)
        if standardise:
            moments.add(block.features)
            provisional = provisional if row else moments.scaling()
        scaled = provisional.apply(block.features)
        file.write(to_float32(scaled, names, first_row=row, where=where).tobytes())
        labels.add(block.labels, row)
        for name in list(coders):
            coders[name].add(block.columns[name])
            if len(coders[name]) > MAX_DISTINCT_NAMES:
                del coders[name]
        row += len(block.features)
    if row == 0:
        raise DataError(f"{source.path} has no rows; a table needs at least one")
    scaling = moments.scaling() if standardise else provisional
    if standardise:
        rescale_file(file, row, before=provisional, after=scaling)
    encoded, meaning = labels.finish()
    return Assembled(
        labels=encoded,
        label_values=meaning,
        columns={
            name: Column.from_codes(coder.codes, coder.distinct) for name, coder in coders.items()
        }
        | whole.coded,
        columns_left_out=tuple(name for name in source.column_names if name not in coders),
        scaling=scaling,
        recoverable=whole.recoverable,
    )


class _Labels:
    """The labels of a source, collected block by block."""

    def __init__(self, source: Source, task: Task) -> None:
        self._where, self._column, self._task = source.path.name, source.label_name, task
        self._coder = Coder()
        self._numbers: list[NDArray[np.float32]] = []

    def add(self, values: pl.Series, first_row: int) -> None:
        if values.dtype == pl.Float64:
            values = values.fill_nan(None)
        if values.has_nulls():
            row = first_row + int(values.is_null().arg_true()[0])
            raise DataError(
                f"{self._where}: row {row} has no label in column {self._column!r}; "
                "drop the row or fill it"
            )
        if self._task == "number":
            if values.dtype != pl.Float64:
                raise DataError(
                    f"{self._where}: label column {self._column!r} is not numeric, as "
                    f"task='number' needs (row {first_row} is {values[0]!r})"
                )
            check_labels_finite(values.to_numpy(), self._column, first_row)
            self._numbers.append(values.to_numpy().astype(np.float32))
        else:
            self._coder.add(values)
            if len(self._coder) > MAX_CLASSES:
                raise too_many_classes(self._column)

    def finish(self) -> tuple[NDArray[np.float32], tuple[LabelValue, ...]]:
        if self._task == "number":
            return np.concatenate(self._numbers), ()
        return labels_from_codes(self._coder.codes, self._coder.distinct, self._task, self._column)
