"""One call for every table: a known data set by name, or a file by path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oneway.datasets.data_set import DATASETS, names_of
from oneway.errors import DataError, MissingDataError, needs_extra
from oneway.files.validation import checked
from oneway.models import LabelKind
from oneway.sentences import listed, nearest, shown
from oneway.tables.arrays import LABEL, holds_arrays, open_arrays
from oneway.tables.encoder import Encoder
from oneway.tables.inference import CHOICES
from oneway.tables.table import Table


def load(
    name_or_path: str | Path,
    *,
    label: str | None = None,
    task: LabelKind | None = None,
    features: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    category: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    numeric: Sequence[str] | None = None,
    owner: str | None = None,
    encoder: Encoder | None = None,
    **options: Any,
) -> Table:
    """Load a table: a data set such as "flights", a file, or arrays.

    Columns of a file other than the label are told by what they hold: numbers, booleans, categories
    (text with up to 50 values, each of them twice on average) and times are features; identifiers
    and free text are not. A column with missing values has a flag for them. `table.notes` says what
    became of each. `table.frame` holds all columns as they are in the data.

    Arrays, such as images, are one feature each: of a `.npy` file `[row, ...]` with the labels in
    `NAME.labels.npy` beside it, a `.npz` file with `features` and `labels`, or a folder of images
    by class. All their cells are scaled alike.

    Rows without a label are skipped; a note says how many. The whole table is held in memory. A
    CSV file of gigabytes that is read often loads faster as Parquet.

    Args:
        name_or_path: A known name, or a path that ends in .csv, .jsonl, .parquet, .libsvm or .svm;
            text may be compressed (.gz, .bz2, .xz). A CSV file is separated by commas, semicolons
            or tabs.
        label: The column to predict; of arrays and LIBSVM, "label" if not given.
        task: "binary" for a label of two values, "classes" for several, "number" for regression;
            of a file, as the label looks if not given.
        features: The feature columns, in this order.
        exclude: Columns that are no features.
        category: Columns that are categories, or these with their values.
        numeric: Columns that are numbers, whatever else they look like.
        owner: The owner column, for `deal_by`: no feature.
        encoder: Says label, features, scaling and classes of a file instead: those of a task.
        options: What else a data set can be told, such as `seed` and `samples` of "synthetic".

    Raises:
        MissingDataError: If the data is not on this machine; says where to put it.
        DataError: If the file is damaged, or breaks a rule; says which row and column.
        MissingExtraError: If polars is not installed.
    """
    if task is not None:
        checked("task", task, LabelKind, DataError)
    with needs_extra("loading data", "tables"):
        import polars  # noqa: F401
    options |= {
        "label": label,
        "task": task,
        "features": features,
        "exclude": exclude,
        "category": category,
        "numeric": numeric,
        "owner": owner,
        "encoder": encoder,
    }
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(name_or_path, str) and name_or_path in names_of("table"):
        return _load_known(name_or_path, given)
    return _load_file(_existing(name_or_path), **given)


def load_for(
    data: str,
    kind: LabelKind | None,
    *,
    label: str | None = None,
    columns: Mapping[str, Any] | None = None,
    **offered: Any,
) -> Table:
    """Load a data set or a file with the kind of labels that a model learns from; None for any.

    A model of numbers takes -1 and +1 as well. A file is told `columns`, what is said about them; a
    data set of `offered` what it takes.

    Raises:
        DataError: As `load`, or if the labels of the data set are of another kind.
    """
    if data not in names_of("table"):
        return load(data, label=label, task=kind, **columns or {})
    takes = DATASETS[data].takes
    options = {name: value for name, value in offered.items() if name in takes}
    if kind != "number" or "task" in takes:
        return load(data, label=label, task=kind, **options)
    table = load(data, label=label, **options)
    return table.as_numbers() if table.label_kind == "binary" else _of_kind(table, kind)


def _load_known(name: str, given: dict[str, Any]) -> Table:
    data_set = DATASETS[name]
    kind = None if "task" in data_set.takes else given.pop("task", None)
    for option in given:
        if option not in data_set.takes:
            raise DataError(
                f"{option} {given[option]!r} is for files, and {name!r} has its own label and "
                "features; leave it out"
            )
    return _of_kind(data_set.load(**given), kind)


def _of_kind(table: Table, kind: LabelKind | None) -> Table:
    if kind not in (None, table.label_kind):
        raise DataError(
            f"the labels of {table.name} are {table.label_kind!r}, and {kind!r} is needed: choose "
            "another model" + ("; softmax needs classes" if kind == "classes" else "")
        )
    return table


def _load_file(
    path: Path, *, label: str | None = None, encoder: Encoder | None = None, **options: Any
) -> Table:
    from oneway.tables.reading import file_kind, line_of, of_arrays, read_frame

    for option in options:
        if option not in (*CHOICES, "task"):
            raise DataError(f"{path.name} is a file, which has no {option}; leave it out")
    is_arrays = holds_arrays(path)
    if encoder is not None and (label is not None or options):
        raise DataError(
            f"the encoder says which label and features of {path.name} are read; leave label, "
            "features and what else is said about columns out"
        )
    if is_arrays and {*options} - {"task", "owner"}:
        raise DataError(
            f"{path} holds arrays, which are one feature each; leave out what is said about columns"
        )
    if is_arrays:
        arrays = open_arrays(path)
        if encoder is not None:
            arrays.check_encoder(encoder)
        frame = of_arrays(arrays)
    else:
        frame = read_frame(path)
    if is_arrays or file_kind(path) in (".libsvm", ".svm"):  # their label has no name
        called = encoder.label if encoder is not None else label or LABEL
        names = {LABEL: called}
        if is_arrays and encoder is not None and len(encoder.names) == 1:
            names[frame.columns[0]] = encoder.names[0]
        frame, label = frame.rename(names), None if encoder else called
    origin = {"kind": "file", "path": str(path.resolve())}
    return Table.from_frame(
        frame,
        label=label,
        encoder=encoder,
        name=path.name,
        origin=origin,
        place=lambda row: line_of(path, row),
        **options,
    )


def _existing(name_or_path: str | Path) -> Path:
    if not isinstance(name_or_path, str | Path) or name_or_path == "":
        raise DataError(
            f"what to load is {shown(name_or_path)}, not the path of a file; a frame becomes a "
            "table with Table.from_frame(frame, label=...), arrays do with "
            "Table.from_arrays(features, labels)"
        )
    try:
        path = Path(name_or_path).expanduser()
        if path.is_file() or path.is_dir():
            return path
    except (OSError, RuntimeError, ValueError) as error:
        raise DataError(
            f"{shown(str(name_or_path))} cannot be the path of a file ({error}); check the path"
        ) from None
    if isinstance(name_or_path, Path) or path.suffix or len(path.parts) > 1:
        raise MissingDataError(f"{path} is not there; a file to load must exist, check the path")
    tables = names_of("table")
    raise DataError(
        f"there is no data set or file {str(name_or_path)!r}"
        f"{nearest(str(name_or_path), tables) or ';'} known are {listed(tables)} and paths of "
        "CSV, Parquet, LIBSVM and NumPy files or folders of images"
    )
