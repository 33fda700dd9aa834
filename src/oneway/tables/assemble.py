"""Assembly: from the blocks of a source to one encoded table.

Means and scales are computed in float64 over all rows before any row is encoded, so that a table
holds exactly the numbers that its encoder gives for a single row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from oneway.errors import DataError
from oneway.models import LabelKind
from oneway.records import Ints, Matrix, Origin, Vector
from oneway.streams.arguments import check_finite, with_missing
from oneway.tables.array_source import LABEL, ArraySource
from oneway.tables.cells import empty_cells, is_gap
from oneway.tables.encoder import Encoder, check_numbers
from oneway.tables.from_arrays import standardised
from oneway.tables.inference import ALL, ColumnNote, described
from oneway.tables.label_profile import LabelProfile
from oneway.tables.labels import MAX_CLASSES, LabelValue, encode_labels, labels_from_codes
from oneway.tables.owners import MAX_DISTINCT_NAMES, Coder, whole_numbers
from oneway.tables.scaling import Moments, row_after
from oneway.tables.source import Block, Source, Wish
from oneway.tables.table import Table


def read_table(
    source: Source | ArraySource, wish: Wish, name: str, options: Mapping[str, Any] | None = None
) -> Table:
    """Read a file into a table called `name`; `options` are added to the table's origin.

    Raises:
        DataError: If the file breaks a rule.
    """
    facts = [file.stat() for file in source.files]
    origin: dict[str, Any] = {
        "kind": "file",
        "path": str(source.path.resolve()),
        "files": len(facts),
        "bytes": sum(fact.st_size for fact in facts),
        "modified_ns": max(fact.st_mtime_ns for fact in facts),
        "asked": {"label": wish.label, "task": wish.kind, "columns": asdict(wish.choices)},
        **(options or {}),
    }
    if wish.encoder is not None:
        origin["encoder"] = asdict(wish.encoder)
    return assemble(source, wish, name, json.loads(json.dumps(origin)))


def assemble(source: Source | ArraySource, wish: Wish, name: str, origin: Origin) -> Table:
    """Encode all rows of a source; rows without a label are skipped, and a note counts them.

    Raises:
        DataError: If a cell or a label breaks a rule, or no row has a label.
    """
    if isinstance(source, ArraySource):
        return _assemble_arrays(source, wish, name, origin)
    chosen, names = source.plan.chosen, source.plan.chosen.numbers
    moments, labels = Moments(len(names)), _Labels(source, wish)
    coders = {name: Coder() for name in (*chosen.texts, *chosen.others)}
    gaps: dict[str, list[Ints]] = {}
    blocks: list[tuple[Block, Callable[[int], str]]] = []
    num_rows = num_read = 0
    for read in source.blocks():
        block, kept = _labelled(read)
        place = _place(source, num_read, kept)
        num_read += len(read.labels)
        if not len(kept):
            continue
        check_numbers(block.numbers, names, place)
        moments.add(block.numbers)
        labels.add(block.labels, place)
        for column, rows in _gaps(block.numbers, names).items():
            gaps.setdefault(column, []).append(num_rows + rows)
        for column in list(coders):
            coders[column].add(block.columns[column])
            if column in chosen.others and len(coders[column]) > MAX_DISTINCT_NAMES:
                del coders[column]
        blocks.append((block, place))
        num_rows += len(kept)
    if num_rows == 0:
        what = f"no row with a label in column {chosen.label!r}" if num_read else "no rows"
        raise DataError(f"{source.path} has {what}; a table needs at least one")
    encoder = wish.encoder or _scaled(source, moments)
    features = np.empty((num_rows, encoder.width), dtype=np.float32)
    answers, meaning = labels.finish()
    row = 0
    for block, place in blocks:
        texts = {name: block.columns[name] for name in chosen.texts}
        features[row : row + len(block.numbers)] = encoder.matrix(block.numbers, texts, place=place)
        row += len(block.numbers)
    columns = _columns([block.numbers for block, _ in blocks], names)
    recoverable, coded = whole_numbers(columns, standardised=True)
    left_out = [column for column in chosen.others if column not in coders]
    counts = {name: sum(map(len, rows)) for name, rows in gaps.items()}
    counts |= {name: _count_gaps(coder) for name, coder in coders.items()}
    notes = [replace(note, gaps=counts.get(note.name, 0)) for note in source.plan.notes]
    return Table(
        features=features,
        labels=answers,
        feature_names=encoder.outputs,
        name=name,
        columns={column: coder.column for column, coder in coders.items()} | coded,
        means=encoder.scaling.means,
        scales=encoder.scaling.scales,
        label_values=meaning,
        origin={
            **origin,
            "label": chosen.label,
            "task": source.plan.kind,
            "rows": num_rows,
            "rows_without_label": num_read - num_rows,
            "features": encoder.width,
            "columns_left_out": left_out,
        },
        recoverable=recoverable,
        encoding=encoder.features,
        gaps={name: np.concatenate(rows) for name, rows in gaps.items()},
        notes=_with_skipped(notes, chosen.label, num_read - num_rows),
    )


def _assemble_arrays(source: ArraySource, wish: Wish, name: str, origin: Origin) -> Table:
    """Encode arrays of one shape: one mean and one scale for all cells."""
    kept = np.flatnonzero(~with_missing(source.labels, "labels")[1])
    if not len(kept):
        raise DataError(f"{source.path} has no row with a label; a table needs at least one")
    column, raw_labels = wish.label or LABEL, source.labels[kept]
    if wish.encoder is not None:
        source.check_encoder(wish.encoder)
        encoder, labels, meaning = wish.encoder, *_as_known(raw_labels, wish.encoder)
        column, kind = encoder.label, encoder.kind
    else:
        if replace(wish.choices, owner=None) != ALL:
            raise DataError(
                f"{source.path} holds arrays, which are one feature each; leave out what is said "
                "about columns"
            )
        kind = wish.kind or label_kind(source)
        labels, meaning = encode_labels(raw_labels, kind, column)
        feature = standardised(source.feature(), source.blocks(), f"{source.path.name}: ")
        encoder = Encoder((feature,), column, "number")
    features = np.empty((len(source), encoder.width), dtype=np.float32)
    for first, block in source.blocks():
        place = row_after(first, f"{source.path.name}: ")
        features[first : first + len(block)] = encoder.arrays(block, place=place)
    skipped = len(source) - len(kept)
    [feature] = encoder.features
    notes = [ColumnNote(column, "label", 0), ColumnNote(feature.name, described(feature), 0)]
    return Table(
        features=features[kept] if skipped else features,
        labels=labels,
        feature_names=encoder.outputs,
        name=name,
        columns={},
        means=encoder.scaling.means,
        scales=encoder.scaling.scales,
        label_values=meaning,
        origin={
            **origin,
            "label": column,
            "task": kind,
            "rows": len(kept),
            "rows_without_label": skipped,
            "features": encoder.width,
            "shape": list(source.shape),
        },
        encoding=encoder.features,
        notes=_with_skipped(notes, column, skipped),
    )


def label_kind(source: ArraySource) -> LabelKind:
    """What the labels of a source look like."""
    profile = LabelProfile(str(source.path), LABEL)
    profile.add([label for label in source.labels.tolist() if not is_gap(label)])
    return profile.kind


def _as_known(
    raw_labels: NDArray[Any], encoder: Encoder
) -> tuple[NDArray[np.float32], tuple[LabelValue, ...]]:
    """Labels as the encoder of a task has them."""
    distinct, codes = np.unique(raw_labels, return_inverse=True)
    known = np.array([encoder.label_value(label) for label in distinct.tolist()], np.float32)
    return known[codes], encoder.classes


def _with_skipped(notes: list[ColumnNote], label: str, skipped: int) -> tuple[ColumnNote, ...]:
    """Notes in which that of the label counts the rows without one."""
    if not skipped:
        return tuple(notes)
    rows = "1 row without a label is" if skipped == 1 else f"{skipped:,} rows without a label are"
    return tuple(
        replace(note, remark=f"{rows} skipped", warns=True) if note.name == label else note
        for note in notes
    )


def _labelled(block: Block) -> tuple[Block, Ints]:
    """The rows of a block that have a label, and which of its rows they are."""
    labels = block.labels
    if labels.dtype == pl.Float64:
        labels = labels.fill_nan(None)
    else:
        labels = labels.set(empty_cells(labels), None)
    if not labels.has_nulls():
        return replace(block, labels=labels), np.arange(len(labels))
    mask = labels.is_not_null()
    kept = mask.arg_true().to_numpy()
    columns = {name: cells.filter(mask) for name, cells in block.columns.items()}
    return Block(block.numbers[kept], labels.filter(mask), columns), kept


def _count_gaps(coder: Coder) -> int:
    """How many cells of a column hold nothing."""
    empty = [code for code, cell in enumerate(coder.distinct) if is_gap(cell)]
    return int(np.isin(coder.codes, [-1, *empty]).sum())


def _place(source: Source, first_row: int, kept: Ints) -> Callable[[int], str]:
    """Where in the file the labelled rows of a block are; `first_row` is the block's first."""
    return lambda row: f"{source.path.name}: {source.place(first_row + int(kept[row]))}"


def _columns(blocks: Sequence[Matrix], names: tuple[str, ...]) -> Iterator[tuple[str, Vector]]:
    """The numbers of all blocks, column by column."""
    for index, name in enumerate(names):
        yield name, np.concatenate([block[:, index] for block in blocks])


def _scaled(source: Source, moments: Moments) -> Encoder:
    """The encoder of a source, with numbers scaled by the moments of all rows."""
    names = source.plan.chosen.numbers
    found = moments.scaling(names)
    means = dict(zip(names, found.means.tolist(), strict=True))
    scales = dict(zip(names, found.scales.tolist(), strict=True))
    features = [
        replace(feature, center=means[feature.name], scale=scales[feature.name])
        if feature.kind == "number"
        else feature
        for feature in source.plan.features
    ]
    return Encoder(tuple(features), source.plan.chosen.label, "number")


def _gaps(numbers: Matrix, names: tuple[str, ...]) -> dict[str, Ints]:
    """The rows of a block without a number, by column."""
    missing = np.isnan(numbers)
    return {
        names[column]: np.flatnonzero(missing[:, column])
        for column in np.flatnonzero(missing.any(axis=0)).tolist()
    }


class _Labels:
    """The labels of a source, collected block by block; none of them is missing."""

    def __init__(self, source: Source, wish: Wish) -> None:
        self._column, self._wish, self._kind = source.plan.chosen.label, wish, source.plan.kind
        self._coder = Coder()
        self._numbers: list[NDArray[np.float32]] = []

    def add(self, values: pl.Series, place: Callable[[int], str]) -> None:
        if self._kind == "number":
            if values.dtype != pl.Float64:
                raise DataError(
                    f"label column {self._column!r} is not numeric, as a number to predict must "
                    f"be ({place(0)} has {values[0]!r})"
                )
            numbers = values.to_numpy()
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
