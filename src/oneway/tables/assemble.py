"""Assembly: from blocks of a file to one encoded table, without ever holding two copies of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from oneway.errors import DataError
from oneway.records import Ints, Matrix, Origin
from oneway.streams.arguments import check_finite
from oneway.tables.array_source import ArraySource
from oneway.tables.assemble_arrays import assemble_arrays
from oneway.tables.cells import empty_cells, is_gap
from oneway.tables.encoder import Encoder, check_numbers
from oneway.tables.labels import MAX_CLASSES, LabelValue, labels_from_codes
from oneway.tables.owners import MAX_DISTINCT_NAMES, Coder, WholeNumbers
from oneway.tables.scaling import Moments, rescale_file
from oneway.tables.source import Source, Wish
from oneway.tables.table import Table


def assemble(
    source: Source | ArraySource, file: BinaryIO, wish: Wish, name: str, origin: Origin
) -> Table:
    """Write the features of a source to a file, row by row in float32, and collect the rest.

    The first block's own mean and scale are applied while writing, so that float32 loses nothing
    of a column such as a date in seconds; when the moments of all rows are known, the rows in
    the file are brought to those, in place. An encoder's scaling is applied at once.

    Returns:
        The table called `name` without its features, which are in the file.
    """
    if isinstance(source, ArraySource):
        return assemble_arrays(source, file, wish, name, origin)
    chosen, names = source.plan.chosen, source.plan.chosen.numbers
    standardise = wish.standardise and wish.encoder is None
    encoder = wish.encoder or Encoder(source.plan.features, chosen.label, "number")
    moments, labels = Moments(len(names)), _Labels(source, wish)
    coders = {name: Coder() for name in (*chosen.texts, *chosen.others)}
    whole = WholeNumbers(names, standardise=wish.standardise)
    gaps: dict[str, list[Ints]] = {}
    row = 0
    for block in source.blocks():
        if standardise:
            check_numbers(block.numbers, names, _place(source, row))
            moments.add(block.numbers)
            encoder = encoder if row else _scaled(encoder, names, moments)
        texts = {name: block.columns[name] for name in chosen.texts}
        encoded = encoder.matrix(block.numbers, texts, place=_place(source, row))
        for column, rows in _gaps(block.numbers, names).items():
            gaps.setdefault(column, []).append(row + rows)
            if standardise:  # marked, to be put into the final centre
                encoded[rows, encoder.outputs.index(column)] = np.nan
        file.write(encoded.tobytes())
        whole.add(block.numbers)
        labels.add(block.labels, row)
        for column in list(coders):
            coders[column].add(block.columns[column])
            if column in chosen.others and len(coders[column]) > MAX_DISTINCT_NAMES:
                del coders[column]
        row += len(block.numbers)
    if row == 0:
        raise DataError(f"{source.path} has no rows; a table needs at least one")
    if standardise:
        provisional, encoder = encoder, _scaled(encoder, names, moments)
        rescale_file(file, row, before=provisional.scaling, after=encoder.scaling)
    answers, meaning = labels.finish()
    left_out = [column for column in chosen.others if column not in coders]
    counts = {name: sum(map(len, rows)) for name, rows in gaps.items()}
    counts |= {name: _count_gaps(coder) for name, coder in coders.items()}
    return Table(
        features=np.empty((0, encoder.width), dtype=np.float32),
        labels=answers,
        feature_names=encoder.outputs,
        name=name,
        columns={column: coder.column for column, coder in coders.items()} | whole.coded,
        means=encoder.scaling.means,
        scales=encoder.scaling.scales,
        label_values=meaning,
        origin={
            **origin,
            "label": chosen.label,
            "task": source.plan.kind,
            "rows": row,
            "features": encoder.width,
            "columns_left_out": left_out,
        },
        recoverable=whole.recoverable,
        encoding=encoder.features,
        gaps={name: np.concatenate(rows) for name, rows in gaps.items()},
        notes=tuple(replace(note, gaps=counts.get(note.name, 0)) for note in source.plan.notes),
    )


def assemble_in_memory(
    source: Source | ArraySource, wish: Wish, name: str, origin: Origin
) -> Table:
    """The whole table, features included."""
    file = BytesIO()
    table = assemble(source, file, wish, name, origin)
    return with_features(table, np.frombuffer(file.getbuffer(), dtype=np.float32))


def with_features(table: Table, numbers: NDArray[np.float32]) -> Table:
    """A table with the features that were written beside it."""
    return replace(table, features=numbers.reshape(len(table), len(table.feature_names)))


def _count_gaps(coder: Coder) -> int:
    """How many cells of a column hold nothing."""
    empty = [code for code, cell in enumerate(coder.distinct) if is_gap(cell)]
    return int(np.isin(coder.codes, [-1, *empty]).sum())


def _place(source: Source, first_row: int) -> Callable[[int], str]:
    """Where in the file the rows of a block are that comes after so many rows."""
    return lambda row: f"{source.path.name}: {source.place(first_row + row)}"


def _scaled(encoder: Encoder, names: tuple[str, ...], moments: Moments) -> Encoder:
    """The encoder with numbers scaled by what was seen so far."""
    found = moments.scaling(names)
    means = dict(zip(names, found.means.tolist(), strict=True))
    scales = dict(zip(names, found.scales.tolist(), strict=True))
    features = [
        replace(feature, center=means[feature.name], scale=scales[feature.name])
        if feature.kind == "number"
        else feature
        for feature in encoder.features
    ]
    return replace(encoder, features=tuple(features))


def _gaps(numbers: Matrix, names: tuple[str, ...]) -> dict[str, Ints]:
    """The rows of a block without a number, by column."""
    missing = np.isnan(numbers)
    return {
        names[column]: np.flatnonzero(missing[:, column])
        for column in np.flatnonzero(missing.any(axis=0)).tolist()
    }


class _Labels:
    """The labels of a source, collected block by block."""

    def __init__(self, source: Source, wish: Wish) -> None:
        self._source, self._column, self._wish = source, source.plan.chosen.label, wish
        self._kind = source.plan.kind
        self._coder = Coder()
        self._numbers: list[NDArray[np.float32]] = []

    def add(self, values: pl.Series, first_row: int) -> None:
        if values.dtype == pl.Float64:
            values = values.fill_nan(None)
        else:
            values = values.set(empty_cells(values), None)
        if values.has_nulls():
            where = _place(self._source, first_row)(int(values.is_null().arg_true()[0]))
            raise DataError(
                f"{where} has no label in column {self._column!r}; drop the row or fill it"
            )
        if self._kind == "number":
            if values.dtype != pl.Float64:
                raise DataError(
                    f"label column {self._column!r} is not numeric, as a number to predict must "
                    f"be ({_place(self._source, first_row)(0)} has {values[0]!r})"
                )
            numbers = values.to_numpy()
            place = _place(self._source, first_row)
            check_finite(numbers[:, None], "label", [self._column], place=place)
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
        if self._kind == "number":
            return np.concatenate(self._numbers), ()
        codes, distinct, encoder = self._coder.codes, self._coder.distinct, self._wish.encoder
        if encoder is None:
            return labels_from_codes(codes, distinct, self._kind, self._column)
        known = np.array([encoder.label_value(label) for label in distinct], dtype=np.float32)
        return known[codes], encoder.classes
