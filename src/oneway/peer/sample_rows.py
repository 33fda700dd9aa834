"""Samples in memory as a peer learns them: frames, tables and lists, one row after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, TypeAlias

import numpy as np

from oneway.errors import DataError
from oneway.peer.node import Node
from oneway.records import Vector
from oneway.sentences import nearest, shown
from oneway.tables.cells import is_missing
from oneway.tables.table import Table

Cells: TypeAlias = Mapping[str, object]
"""A row by its columns' names; it may have more columns than a task needs."""

Samples: TypeAlias = Any
"""A frame of polars or pandas, a `Table`, or an iterable of rows with their label among the cells,
or of pairs of a row and its label."""

_NumberedRow: TypeAlias = tuple[int, Cells, object]
"""A row with its place among the samples, counted from 0, and its label."""

MOST_NUMBERS = 2**24
"""Of gradients that are computed at once."""


def learn_rows(
    node: Node, learn: Callable[[Cells, object], float], samples: Samples, label: str
) -> Vector:
    """Learn from samples one after the other; return what `learn` returns for each.

    Those that fill a batch together are predicted, and their gradients taken, in one call: at the
    model of the moment when the first of them comes.

    Raises:
        DataError: A sample cannot be used; says which, and that those before it were learned.
    """
    losses: list[float] = []
    for some in _batches(node, _usable_rows(node, samples, label)):
        rows: Sequence[Cells] = [x for _, x, _ in some]
        if len(some) > 1:
            with suppress(DataError), node.lock:  # told when its turn has come
                rows = node.learner.foresee(node.estimate, [(x, y) for _, x, y in some])
        for x, (number, _, y) in zip(rows, some, strict=True):
            try:
                losses.append(learn(x, y))
            except DataError as error:
                raise _unusable(number, error) from error
    return np.array(losses)


def _usable_rows(node: Node, samples: Samples, label: str) -> Iterator[_NumberedRow]:
    """The rows with a label; of those without one the node counts how many there are."""
    rows = labelled_rows(samples, label)
    for number in count():
        try:
            x, y = next(rows)
        except StopIteration:
            return
        except DataError as error:
            raise _unusable(number, error) from error
        if is_missing(y):
            node.skip(f"sample {number}, counted from 0: it has no label")
        else:
            yield number, x, y


def _unusable(number: int, error: DataError) -> DataError:
    return DataError(
        f"sample {number}, counted from 0, cannot be used: {error}; those before it were learned"
    )


def _batches(node: Node, rows: Iterator[_NumberedRow]) -> Iterator[list[_NumberedRow]]:
    """Rows together whose gradients will be at one model; before an error, those that came."""
    some: list[_NumberedRow] = []
    most = max(1, MOST_NUMBERS // len(node.learner.start))
    try:
        for row in rows:
            some.append(row)
            if len(some) >= min(most, node.learner.until_released(node.snapshot.memory)):
                yield some
                some = []
    except DataError:
        if some:
            yield some
        raise
    if some:
        yield some


def labelled_rows(samples: Samples, label: str) -> Iterator[tuple[Cells, object]]:
    """The rows of samples, each with its label.

    Args:
        samples: What a caller has.
        label: The column of the label.

    Raises:
        DataError: If it is nothing that has rows, or a row has no label.
    """
    for row in _rows(samples):
        match row:
            case Mapping():
                if label not in row:
                    raise _no_label(row, label)
                yield row, row[label]
            case (Mapping() as cells, answer):
                yield cells, answer
            case _:
                raise DataError(
                    f"it is {shown(row)} and must be a mapping of columns to values "
                    f"with {shown(label)} among them, or a pair of a mapping and its label"
                )


def _rows(samples: Samples) -> Iterator[Any]:
    if isinstance(samples, Table):
        return _of_table(samples)
    if hasattr(samples, "iter_rows"):  # polars
        return iter(samples.iter_rows(named=True))
    if hasattr(samples, "itertuples"):  # pandas
        return _of_pandas(samples)
    if isinstance(samples, Iterable) and not isinstance(samples, str | bytes | Mapping):
        return iter(samples)
    raise DataError(
        f"the samples are {shown(samples)}; give a frame, a Table, or a list of rows"
        + ("; one row is learned by learn_one" if isinstance(samples, Mapping) else "")
    )


def _of_table(table: Table) -> Iterator[Cells]:
    """The raw rows."""
    encoder = table.encoder
    if not table.is_arrays:
        yield from table.frame.select(*encoder.names, encoder.label).iter_rows(named=True)
        return
    labels = table.frame[encoder.label].to_list()
    for array, label in zip(table.arrays(), labels, strict=True):
        yield {encoder.names[0]: array, encoder.label: label}


def _of_pandas(frame: Any) -> Iterator[Cells]:
    names = list(map(str, frame.columns))
    for values in frame.itertuples(index=False, name=None):
        # pandas has nan for an empty cell, whatever the column holds.
        yield {
            name: None if value is None or value != value else value
            for name, value in zip(names, values, strict=True)
        }


def _no_label(row: Cells, label: str) -> DataError:
    near = nearest(label, map(str, row)) or "; add it, or give pairs of a row and its label"
    return DataError(f"it has no {shown(label)}, the label of the task{near}")
