"""One call for every table: a known data set by name, or a file by path."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from oneway.errors import DataError, MissingDataError, MissingExtraError
from oneway.sentences import nearest
from oneway.tables.labels import Task, check_task
from oneway.tables.table import Table

if TYPE_CHECKING:
    from oneway.tables.source import Source

TABLES = ("flights", "occupancy", "susy")
SUFFIXES: dict[str, Literal["csv", "parquet", "libsvm"]] = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
}


def load(
    name_or_path: str | Path,
    *,
    label: str | None = None,
    task: Task = "binary",
    features: Sequence[str] | None = None,
    standardise: bool = True,
) -> Table:
    """Load a table: "flights", "occupancy", "susy", or a CSV, Parquet or LIBSVM file.

    For a file, the features are all numeric columns (booleans count) other than the label, unless
    `features` names them. Columns that are not features, text or numbers, are kept in
    `table.columns` for `deal_by`; they never become features by themselves. A column with
    more than 250,000 distinct values is left out (`table.origin["columns_left_out"]`). A feature
    of whole numbers too far apart for float32, such as large ids, is in `table.columns` as well.

    A file above 64 MB is read in a stream, once, and cached as a memory-mapped float32 array in
    the folder `ONEWAY_CACHE` (default: `oneway/tables` in the user's cache folder). The cache
    follows the file: it is rebuilt when the file's size or time changes.

    Args:
        name_or_path: A known name, or a path that ends in .csv, .parquet, .libsvm or .svm; text
            may be compressed (.gz, .bz2, .xz).
        label: The column to predict; required for CSV and Parquet, and only for them.
        task: "binary" for a label of two values, "classes" for several, "number" for regression.
        features: The feature columns.
        standardise: Whether each feature is brought to zero mean and unit variance.

    Raises:
        MissingDataError: If the data is not on this machine; says where to put it.
        DataError: If the file is damaged, or breaks a rule; says which row and column.
        MissingExtraError: If polars is not installed.
    """
    check_task(task)
    try:
        import polars  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            "loading data needs polars; install it with pip install 'oneway[lab]'"
        ) from None
    if name_or_path in TABLES:
        name = str(name_or_path)
        if label is not None or features is not None or task != "binary":
            raise DataError(
                f"{name!r} has its own label and features; label, features and task are for "
                "files, leave them out"
            )
        return _load_known(name, standardise)
    return _load_file(_existing(name_or_path), label, task, features, standardise)


def _load_known(name: str, standardise: bool) -> Table:
    match name:
        case "flights":
            from oneway.datasets.flights import load_flights

            return load_flights(standardise=standardise)
        case "occupancy":
            from oneway.datasets.occupancy import load_occupancy

            return load_occupancy(standardise=standardise)
        case _:
            from oneway.datasets.susy import load_susy

            return load_susy(standardise=standardise)


def _load_file(
    path: Path,
    label: str | None,
    task: Task,
    features: Sequence[str] | None,
    standardise: bool,
) -> Table:
    from oneway.tables.cache import read_table

    kind = file_kind(path)
    if kind == "libsvm" and label is not None:
        raise DataError(
            f"label={label!r} does not apply to {path.name}: a LIBSVM file has its label first "
            "in every line; leave label out"
        )

    def make_source() -> Source:
        match kind:
            case "csv":
                from oneway.tables.csv_source import csv_source

                return csv_source(path, label=label, features=features)
            case "parquet":
                from oneway.tables.parquet_source import parquet_source

                return parquet_source(path, label=label, features=features)
            case _:
                from oneway.tables.libsvm_source import libsvm_source

                return libsvm_source(path, features=features)

    return read_table(
        path,
        make_source,
        name=path.name,
        task=task,
        standardise=standardise,
        options={"label": label, "chosen_features": None if features is None else list(features)},
    )


def file_kind(path: Path) -> Literal["csv", "parquet", "libsvm"]:
    """What a file is, by the end of its name.

    Raises:
        DataError: If it is none of those that can be read.
    """
    from oneway.tables.lines import COMPRESSIONS

    compressed = path.suffix.lower() in COMPRESSIONS
    suffix = (Path(path.stem) if compressed else path).suffix.lower()
    kind = SUFFIXES.get(suffix)
    if kind is not None and not (compressed and kind == "parquet"):
        return kind
    raise DataError(
        f"{path.name} ends in {path.suffix or 'nothing'!r}, but a table is a .csv, .libsvm or "
        ".svm file (or one of those with .gz, .bz2 or .xz) or a .parquet file; rename or convert it"
    )


def _existing(name_or_path: str | Path) -> Path:
    try:
        path = Path(name_or_path).expanduser()
        if path.is_file():
            return path
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise DataError(
            f"{name_or_path!r} cannot be the path of a file ({error}); check the path"
        ) from None
    if isinstance(name_or_path, Path) or path.suffix or len(path.parts) > 1:
        raise MissingDataError(f"{path} is not there; a file to load must exist, check the path")
    raise DataError(
        f"there is no data set or file {str(name_or_path)!r}"
        f"{nearest(str(name_or_path), TABLES) or ';'} known are {', '.join(TABLES)} and paths of "
        "CSV, Parquet and LIBSVM files"
    )
