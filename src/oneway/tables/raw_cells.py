"""Raw cells: from the numbers of a table back to what stood in the data, for files and tasks."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError
from oneway.records import Ints
from oneway.sentences import listed, nearest
from oneway.tables.cells import label_text
from oneway.tables.encoder import Encoder
from oneway.tables.features import Feature
from oneway.tables.owners import Column, recover
from oneway.tables.scaling import raw_numbers

if TYPE_CHECKING:
    from oneway.tables.table import Table


def write_csv(
    table: Table, path: Path, rows: Ints, encoder: Encoder, others: Sequence[str]
) -> None:
    """Write rows of a table as `Table.write_csv` says."""
    columns = {name: _cells(table, name, rows, encoder) for name in encoder.names}
    labels = table.labels[rows].tolist()
    columns[encoder.label] = [encoder.exact_label(label) for label in labels]
    columns |= {name: _raw_column(table, name).values[rows].tolist() for name in others}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _cells(table: Table, name: str, rows: Ints, encoder: Encoder) -> list[object]:
    """The cells of a feature as they were: text as it is kept, numbers from their scaling."""
    index = encoder.names.index(name)
    feature = encoder.features[index]
    if _is_text(table, feature):
        return list(_texts(table, feature, rows))
    if feature.shape:
        place = encoder.places[index]
        flat = table.features[rows, place.start : place.start + math.prod(feature.shape)]
        raw = raw_numbers(flat.reshape(-1), *feature.scaling).reshape(flat.shape)
        return [json.dumps(row.tolist()) for row in raw]
    numbers = raw_numbers(table.features[rows, encoder.places[index].start], *feature.scaling)
    empty = np.isin(rows, table.gaps.get(name, ()))
    return ["" if gap else number for gap, number in zip(empty, numbers.tolist(), strict=True)]


def raw_arrays(table: Table, rows: Ints | slice, encoder: Encoder) -> NDArray[Any]:
    """The arrays of some rows as they were, `[row, ...]`: the only feature of the table.

    Pixels, and other small whole numbers, are bytes. Encoding them gives the very same numbers.
    """
    [feature] = encoder.features
    flat = table.features[rows]
    numbers = raw_numbers(flat.reshape(-1), *feature.scaling)
    if ((numbers >= 0) & (numbers <= 255) & (numbers == np.rint(numbers))).all():
        numbers = numbers.astype(np.uint8)
    return numbers.reshape(len(flat), *feature.shape)


def recoded(table: Table, encoder: Encoder) -> Table:
    """The same samples, encoded and labelled as `Table.recoded` says."""
    import polars as pl

    own = table.encoder
    if own.names != encoder.names:
        raise DataError(
            f"the task has {len(encoder.names)} features and {table.name} has "
            f"{len(own.names)} others, or in another order; give the file that the task was "
            "made for"
        )
    if table.is_arrays and encoder.shape == own.shape:
        raw = raw_numbers(table.features.reshape(-1), *own.features[0].scaling)
        return _relabelled(table, encoder, encoder.arrays(raw.reshape(table.features.shape)))
    numbers, texts = [], {}
    for feature, place in zip(own.features, own.places, strict=True):
        if not _is_text(table, feature):
            numbers.append(raw_numbers(table.features[:, place.start], *feature.scaling))
            numbers[-1][table.gaps.get(feature.name, [])] = np.nan
        else:
            cells = _texts(table, feature, slice(None))
            texts[feature.name] = pl.Series(cells, dtype=pl.String).replace("", None)
    block = np.stack(numbers, axis=1) if numbers else np.empty((len(table), 0))
    return _relabelled(table, encoder, encoder.matrix(block, texts))


def _relabelled(table: Table, encoder: Encoder, features: NDArray[np.float32]) -> Table:
    """The table with other features, and the labels of an encoder."""
    labels = table.labels
    if encoder.classes:
        known = [encoder.label_value(value) for value in table.label_values]
        places = ((labels + 1) / 2 if len(known) == 2 else labels).astype(np.intp)
        labels = np.array(known, np.float32)[places]
    return replace(
        table,
        features=features,
        labels=labels,
        label_values=encoder.classes,
        feature_names=encoder.outputs,
        means=encoder.scaling.means,
        scales=encoder.scaling.scales,
        encoding=encoder.features,
    )


def owners_of(table: Table, column: str) -> Column:
    """The owner of every row, as `Table.owners` says."""
    return _raw_column(table, column).grouped()


def _raw_column(table: Table, column: str) -> Column:
    """A column as it is written in the data."""
    if column in table.columns:
        return table.columns[column]
    if column == table.origin.get("label", "label") and table.label_values:
        return _by_label(table)
    if column not in table.feature_names:
        known = list(dict.fromkeys([*table.columns, *table.feature_names]))
        raise DataError(
            f"{table.name} has no column {column!r}{nearest(column, known) or ';'} "
            f"it has: {listed(known)}"
        )
    if column not in table.recoverable:
        raise DataError(
            f"column {column!r} of {table.name} cannot name owners: it is a feature, rounded to "
            "float32, and its values are not whole numbers or too many or too far apart to be "
            "had back; keep it as it is, by leaving it out of features=[...] in load or giving "
            "it in columns={...} to from_arrays"
        )
    feature = table.feature_names.index(column)
    return recover(table.features[:, feature], table.means[feature], table.scales[feature])


def class_places(table: Table, adversarial: float = 0.0) -> Ints:
    """The class of every row, counted from 0, for dealing by class.

    Raises:
        DataError: If the labels are numbers, or rows are to be dealt by cluster as well.
    """
    if not table.label_values or adversarial:
        fact = "its labels are numbers" if not table.label_values else "adversarial is not 0"
        raise DataError(
            f"{table.name} cannot be dealt by class: {fact}; leave classes_per_node out"
        )
    codes = (table.labels + 1) / 2 if table.label_kind == "binary" else table.labels
    return codes.astype(np.int32)


def _by_label(table: Table) -> Column:
    """Whose a row is if every class is somebody's."""
    return Column.from_codes(class_places(table), [label_text(it) for it in table.label_values])


def told_owner(table: Table) -> str:
    """The column of owners that a table was made with.

    Raises:
        DataError: If it was made without.
    """
    asked = table.origin.get("asked")
    columns = asked.get("columns") if isinstance(asked, Mapping) else table.origin
    owner = columns.get("owner") if isinstance(columns, Mapping) else None
    if not isinstance(owner, str):
        raise DataError(f"{table.name} was made without an owner; name the owner column")
    return owner


def _is_text(table: Table, feature: Feature) -> bool:
    """Whether a feature was read as text."""
    return feature.kind in ("category", "time") or (
        feature.kind in ("boolean", "array") and feature.name in table.columns
    )


def _texts(table: Table, feature: Feature, rows: Ints | slice) -> list[str]:
    """The cells of a feature that is no number, as the table keeps them."""
    if feature.name in table.columns:
        return list(table.columns[feature.name].values[rows].tolist())
    raise DataError(
        f"{table.name} does not keep the cells of {feature.name!r}, a {feature.kind}; give them in "
        "columns"
    )
