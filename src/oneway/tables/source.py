"""What every kind of data file turns into: blocks of rows with chosen columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import polars as pl

from oneway.errors import DataError
from oneway.records import Matrix
from oneway.sentences import listed, nearest

Kind: TypeAlias = Literal["number", "text"]
"""What a column of a file holds; booleans count as numbers."""


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a file.

    Attributes:
        features: `features[row, feature]`; nan where a cell is empty.
        labels: Numbers or strings; null where a cell is empty.
        columns: The columns that are not features, as strings.
    """

    features: Matrix
    labels: pl.Series
    columns: Mapping[str, pl.Series]


@dataclass(frozen=True)
class Source:
    """A file that can be read in blocks, as often as needed.

    Attributes:
        path: The file.
        feature_names: The columns that are features.
        label_name: The column that is the label.
        column_names: The other columns, kept for `deal_by`.
        blocks: Starts reading from the top.
    """

    path: Path
    feature_names: tuple[str, ...]
    label_name: str
    column_names: tuple[str, ...]
    blocks: Callable[[], Iterator[Block]]


def choose_columns(
    path: Path, kinds: Mapping[str, Kind], label: str | None, features: Sequence[str] | None
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Decide which columns of a file are the label, the features and the rest.

    Args:
        path: For messages.
        kinds: What each column of the file holds.
        label: The label column; must be given.
        features: The feature columns; all other numeric columns if not given.

    Returns:
        The label, the features and the others.

    Raises:
        DataError: If a column does not exist, is not numeric, or is asked for twice.
    """
    if label is None:
        raise DataError(
            f"{path.name} needs label='...', the column to predict; it has: {listed(kinds)}"
        )
    for column in (label, *(features or ())):
        if column not in kinds:
            raise DataError(
                f"{path.name} has no column {column!r}{nearest(column, kinds) or ';'} "
                f"it has: {listed(kinds)}"
            )
    if features is None:
        chosen = [name for name, kind in kinds.items() if kind == "number" and name != label]
    else:
        chosen = list(features)
    for column in chosen:
        if column == label or chosen.count(column) > 1:
            raise DataError(
                f"column {column!r} of {path.name} is asked for twice, among the features or as "
                "label and feature; name it once"
            )
        if kinds[column] == "text":
            raise DataError(
                f"column {column!r} of {path.name} is not numeric and cannot be a feature; leave "
                "it out or encode it first"
            )
    if not chosen:
        raise DataError(
            f"{path.name} has no numeric column besides the label {label!r} to be a feature; "
            f"it has: {listed(kinds)}"
        )
    others = tuple(name for name in kinds if name != label and name not in set(chosen))
    return label, tuple(chosen), others
