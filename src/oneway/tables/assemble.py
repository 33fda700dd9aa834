"""Assembly: from blocks of a file to one encoded table, without ever holding two copies of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from oneway.errors import DataError
from oneway.models import LabelKind
from oneway.records import Origin
from oneway.streams.arguments import check_finite
from oneway.tables.encoder import Encoder
from oneway.tables.labels import MAX_CLASSES, LabelValue, labels_from_codes
from oneway.tables.owners import MAX_DISTINCT_NAMES, Coder, WholeNumbers
from oneway.tables.scaling import Moments, Scaling, rescale_file, to_float32
from oneway.tables.source import Source
from oneway.tables.table import Table


@dataclass(frozen=True)
class Wish:
    """What numbers a table is to hold; an encoder's scaling and codes come before the others."""

    kind: LabelKind = "binary"
    standardise: bool = True
    encoder: Encoder | None = None


def assemble(source: Source, file: BinaryIO, wish: Wish, name: str, origin: Origin) -> Table:
    """Write the features of a source to a file, row by row in float32, and collect the rest.

    The first block's own mean and scale are applied while writing, so that float32 loses nothing
    of a column such as a date in seconds; when the moments of all rows are known, the rows in
    the file are brought to those, in place. An encoder's scaling is applied at once.

    Returns:
        The table called `name` without its features, which are in the file.
    """
    where, names, encoder = f"{source.path.name}: ", source.chosen.features, wish.encoder
    standardise = wish.standardise and encoder is None
    moments, labels = Moments(len(names)), _Labels(source, wish)
    coders = {name: Coder() for name in source.chosen.others}
    whole = WholeNumbers(names, standardise=wish.standardise)
    scaling = Scaling.identity(len(names)) if encoder is None else encoder.scaling
    row = 0
    for block in source.blocks():
        if encoder is not None:
            scaled = encoder.matrix(block.features, row, where)
        else:
            check_finite(block.features, "feature", names, first_row=row, where=where)
            if standardise:
                moments.add(block.features)
                scaling = scaling if row else moments.scaling(names)
            scaled = to_float32(scaling.apply(block.features), names, first_row=row, where=where)
        file.write(scaled.tobytes())
        whole.add(block.features)
        labels.add(block.labels, row)
        for column in list(coders):
            coders[column].add(block.columns[column])
            if len(coders[column]) > MAX_DISTINCT_NAMES:
                del coders[column]
        row += len(block.features)
    if row == 0:
        raise DataError(f"{source.path} has no rows; a table needs at least one")
    if standardise:
        provisional, scaling = scaling, moments.scaling(names)
        rescale_file(file, row, before=provisional, after=scaling)
    encoded, meaning = labels.finish()
    left_out = [column for column in source.chosen.others if column not in coders]
    return Table(
        features=np.empty((0, len(names)), dtype=np.float32),
        labels=encoded,
        feature_names=names,
        name=name,
        columns={column: coder.column for column, coder in coders.items()} | whole.coded,
        means=scaling.means,
        scales=scaling.scales,
        label_values=meaning,
        origin={**origin, "rows": row, "features": len(names), "columns_left_out": left_out},
        recoverable=whole.recoverable,
    )


class _Labels:
    """The labels of a source, collected block by block."""

    def __init__(self, source: Source, wish: Wish) -> None:
        self._where, self._column, self._wish = source.path.name, source.chosen.label, wish
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
        if self._wish.kind == "number":
            if values.dtype != pl.Float64:
                raise DataError(
                    f"{self._where}: label column {self._column!r} is not numeric, as "
                    f"a number to predict must be (row {first_row} is {values[0]!r})"
                )
            numbers = values.to_numpy()
            check_finite(numbers[:, None], "label", [self._column], first_row=first_row)
            self._numbers.append(numbers.astype(np.float32))
        else:
            self._coder.add(values)
            if len(self._coder) > MAX_CLASSES:
                raise DataError(
                    f"label column {self._column!r} has more than {MAX_CLASSES:,} distinct values, "
                    "too many to be classes",
                    remedy="choose another column, or task='number'",
                    flag_remedy="choose another column, or --model ridge",
                )

    def finish(self) -> tuple[NDArray[np.float32], tuple[LabelValue, ...]]:
        if self._wish.kind == "number":
            return np.concatenate(self._numbers), ()
        codes, distinct, encoder = self._coder.codes, self._coder.distinct, self._wish.encoder
        if encoder is None:
            return labels_from_codes(codes, distinct, self._wish.kind, self._column)
        known = np.array([encoder.label_value(label) for label in distinct], dtype=np.float32)
        return known[codes], encoder.classes
