"""Sources: what every kind of data file turns into, blocks of rows with chosen columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from oneway.errors import DataError
from oneway.records import Matrix
from oneway.sentences import listed, nearest
from oneway.tables.lines import COMPRESSIONS

if TYPE_CHECKING:
    import polars as pl

Kind: TypeAlias = Literal["number", "text"]
"""What a column of a file holds; booleans count as numbers."""

SUFFIXES = {".csv": "csv", ".parquet": "parquet", ".libsvm": "libsvm", ".svm": "libsvm"}
"""The module `<value>_source` reads files whose names end so."""


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

    @classmethod
    def of(cls, frame: pl.DataFrame, chosen: Chosen) -> Block:
        """Take the chosen columns out of a frame."""
        return cls(
            features=frame.select(chosen.features).to_numpy(),
            labels=frame[chosen.label],
            columns={name: frame[name] for name in chosen.others},
        )


@dataclass(frozen=True)
class Chosen:
    """Which columns are the label, the features and the rest, which is kept for `deal_by`."""

    label: str
    features: tuple[str, ...]
    others: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """A file that can be read in blocks; every call of `blocks` starts from the top."""

    path: Path
    chosen: Chosen
    blocks: Callable[[], Iterator[Block]]


def open_source(path: Path, *, label: str | None, features: Sequence[str] | None) -> Source:
    """Look at the top of a file whose name ends in one of `SUFFIXES`, and prepare to read it.

    Args:
        path: The file; text may be compressed.
        label: The column to predict; a LIBSVM file has its label in the first place.
        features: The feature columns; all other numeric columns if not given.

    Raises:
        MissingDataError: If there is no such file.
        DataError: If it cannot be read as what its name says, or a column is not there.
    """
    module = import_module(f"oneway.tables.{file_kind(path)}_source")
    return cast(Source, module.open_file(path, label=label, features=features))


def file_kind(path: Path) -> str:
    """What a file is, by the end of its name; a DataError if it is nothing that can be read."""
    compressed = path.suffix.lower() in COMPRESSIONS
    suffix = (Path(path.stem) if compressed else path).suffix.lower()
    kind = SUFFIXES.get(suffix)
    if kind is not None and not (compressed and kind == "parquet"):
        return kind
    raise DataError(
        f"{path.name} ends in {path.suffix or 'nothing'!r}, but a table is a .csv, .libsvm or "
        ".svm file (or one of those with .gz, .bz2 or .xz) or a .parquet file; rename or convert it"
    )


def choose_columns(
    path: Path, kinds: Mapping[str, Kind], label: str | None, features: Sequence[str] | None
) -> Chosen:
    """Decide which columns of a file, given with what they hold, are label, features and rest.

    Raises:
        DataError: If a column does not exist, is not numeric, or is asked for twice.
    """
    if label is None:
        raise DataError(
            f"{path.name} needs a label, the column to predict (it has: {listed(kinds)})",
            remedy="give it as label='...'",
            flag_remedy="give it as --label COLUMN",
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
    return Chosen(label, tuple(chosen), others)
