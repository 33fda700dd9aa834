"""Sources: what every kind of data file turns into, blocks of rows with chosen columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from oneway.errors import DataError
from oneway.models import LabelKind
from oneway.records import Matrix
from oneway.tables.encoder import Encoder
from oneway.tables.features import Feature
from oneway.tables.inference import ALL, Choices, ColumnNote
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
        numbers: `numbers[row, feature]` of the features that are read as numbers; nan where a cell
            is empty.
        labels: Numbers or strings; null where a cell is empty.
        columns: The other features, and the columns that are none, as strings.
    """

    numbers: Matrix
    labels: pl.Series
    columns: Mapping[str, pl.Series]

    @classmethod
    def of(cls, frame: pl.DataFrame, chosen: Chosen) -> Block:
        """Take the chosen columns out of a frame."""
        return cls(
            numbers=frame.select(chosen.numbers).to_numpy().reshape(len(frame), -1),
            labels=frame[chosen.label],
            columns={name: frame[name] for name in (*chosen.texts, *chosen.others)},
        )


@dataclass(frozen=True)
class Chosen:
    """Which columns are the label, the features and the rest, which is kept for `deal_by`.

    Attributes:
        label: What to predict.
        features: What to predict from.
        texts: Those of the features that are read as text.
        others: The rest.
    """

    label: str
    features: tuple[str, ...]
    texts: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def numbers(self) -> tuple[str, ...]:
        """Those of the features that are read as numbers."""
        return tuple(name for name in self.features if name not in self.texts)


@dataclass(frozen=True)
class Wish:
    """What a table is to be made of; an encoder says all of it but `owner`.

    Attributes:
        label: The column to predict.
        kind: What the label is; None: as it looks.
        choices: What is said about columns.
        encoder: That of a task.
    """

    label: str | None = None
    kind: LabelKind | None = None
    choices: Choices = ALL
    encoder: Encoder | None = None


@dataclass(frozen=True)
class Plan:
    """What the columns of a table are for.

    Attributes:
        chosen: Which are read, and how.
        features: What each is learned from as; numbers not scaled unless by an encoder.
        kind: What the label is.
        notes: What became of every column.
    """

    chosen: Chosen
    features: tuple[Feature, ...]
    kind: LabelKind
    notes: tuple[ColumnNote, ...] = ()


@dataclass(frozen=True)
class Source:
    """A file that can be read in blocks; every call of `blocks` starts from the top.

    Attributes:
        path: The file.
        plan: What its columns are for.
        blocks: Its rows.
        place: Where in the file a row is, counted from 0 without blank ones: its line, if it has
            lines. That may read the file once more.
    """

    path: Path
    plan: Plan
    blocks: Callable[[], Iterator[Block]]
    place: Callable[[int], str] = "row {}".format

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are read."""
        return (self.path,)


def open_source(path: Path, wish: Wish) -> Source:
    """Look at the top of a file whose name ends in one of `SUFFIXES`, and prepare to read it.

    Raises:
        MissingDataError: If there is no such file.
        DataError: If it cannot be read as what its name says, or a column is not there.
    """
    module = import_module(f"oneway.tables.{file_kind(path)}_source")
    return cast(Source, module.open_file(path, wish))


def file_kind(path: Path) -> str:
    """What a file is, by the end of its name; a DataError if it is nothing that can be read."""
    compressed = path.suffix.lower() in COMPRESSIONS
    suffix = (Path(path.stem) if compressed else path).suffix.lower()
    kind = SUFFIXES.get(suffix)
    if kind is not None and not (compressed and kind == "parquet"):
        return kind
    raise DataError(
        f"{path.name} ends in {path.suffix or 'nothing'!r}, but a table is a .csv, .libsvm or "
        ".svm file (or one of those with .gz, .bz2 or .xz), a .parquet file, or arrays in a .npy "
        "or .npz file or a folder; rename or convert it"
    )
