"""Array source: a file or folder whose samples are arrays of one shape, with a label for each.

One way for simulator and peer. The formats are modules `<format>_arrays`, each with `reads(path)`,
which tells by the path, and `open_file(path)`. Rows are read when they are asked for.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError, MissingDataError
from oneway.sentences import listed, shown
from oneway.tables.encoder import Encoder
from oneway.tables.features import Feature, format_shape

FORMATS = ("npy", "idx", "image")
"""Asked in this order; a folder of images is what remains of folders."""
LABEL = "label"
NUMBERS_AT_A_TIME = 2**20

_PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib")
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


class ArrayRows(Protocol):
    """Rows by slices: an array, mapped from a file or not, or what reads files as it is asked."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> NDArray[Any]: ...


@dataclass(frozen=True, eq=False)
class ArraySource:
    """Arrays and their labels, as they stand in files.

    Attributes:
        path: The file or folder.
        name: What a sample is called if nobody says otherwise.
        shape: Of every sample.
        rows: `rows[first:last]` is an array of the shape `[last - first, *shape]`.
        labels: One for each row: numbers or text.
        files: All that is read.
    """

    path: Path
    name: str
    shape: tuple[int, ...]
    rows: ArrayRows
    labels: NDArray[Any]
    files: tuple[Path, ...]

    def __post_init__(self) -> None:
        if len(self.rows) == 0 or math.prod(self.shape) == 0:
            raise DataError(f"{self.path} has no rows; it needs at least one")
        if self.labels.shape != (len(self.rows),):
            raise DataError(
                f"{self.path} has {len(self.rows):,} rows and labels of the shape "
                f"{format_shape(self.labels.shape)}; there must be one label for each row"
            )
        if self.labels.dtype.kind not in "biufU":
            raise DataError(
                f"the labels of {self.path} have the type {self.labels.dtype}; they must be "
                "numbers or text"
            )

    def __len__(self) -> int:
        return len(self.rows)

    def blocks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """The rows, some at a time, each with the number of the first of them."""
        step = max(1, NUMBERS_AT_A_TIME // math.prod(self.shape))
        for first in range(0, len(self), step):
            yield first, self.rows[first : first + step]

    def raw_label(self, row: int) -> object:
        """The label of a row."""
        return self.labels[row].item()

    def check_encoder(self, encoder: Encoder) -> None:
        """Check that a task is about such arrays; they have no names, so any name will do.

        Raises:
            DataError: If it has other features, or an array of another shape.
        """
        if len(encoder.features) == 1 and encoder.features[0].kind == "array":
            if encoder.shape == self.shape:
                return
            wanted = f"arrays of {format_shape(encoder.features[0].shape)}"
        else:
            wanted = f"the columns {listed(map(shown, encoder.names), 5)}"
        raise DataError(
            f"{self.path} holds arrays of {format_shape(self.shape)}, and the task needs {wanted}; "
            "give the data that the task is for"
        )

    def feature(self) -> Feature:
        """What a sample is to a model, not scaled."""
        return Feature(self.name, shape=self.shape)


def holds_arrays(path: Path) -> bool:
    """Whether a path, by its name, is a file or a folder of arrays.

    Raises:
        DataError: If it is a pickle, which can run any code when it is read.
    """
    if path.suffix.lower() in _PICKLES:
        raise DataError(
            f"{path.name} is a pickle, which can execute arbitrary code; oneway does not read "
            "pickles: save the arrays with numpy.save"
        )
    return _format_of(path) is not None


def open_arrays(path: Path) -> ArraySource:
    """Open a path that `holds_arrays`.

    Raises:
        MissingDataError: If there is no such file, or its labels are missing.
        DataError: If it is not what its name says.
    """
    try:
        return cast(ArraySource, _module(_format_of(path)).open_file(path))
    except FileNotFoundError as error:
        raise MissingDataError(f"{error.filename} is not there; check the path") from None
    except (OSError, EOFError, zlib.error, lzma.LZMAError, BadZipFile) as error:
        raise DataError(f"{path} cannot be read ({error}); check that it is whole") from None


def _format_of(path: Path) -> str | None:
    return next((name for name in FORMATS if _module(name).reads(path)), None)


def _module(name: str | None) -> Any:
    return import_module(f"oneway.tables.{name}_arrays")


def bare_name(path: Path) -> str:
    """The name of a file in lower case, without the end that says how it is compressed."""
    name = path.name.lower()
    return name.removesuffix(path.suffix.lower()) if path.suffix.lower() in _OPENERS else name


def read_bytes(path: Path) -> NDArray[np.uint8]:
    """All bytes of a file: mapped, or unpacked in memory if it is compressed."""
    opener = _OPENERS.get(path.suffix.lower())
    if opener is None and path.stat().st_size == 0:
        return np.empty(0, np.uint8)  # nothing cannot be mapped
    if opener is None:
        return np.memmap(path, dtype=np.uint8, mode="r")
    with opener(path, "rb") as file:
        return np.frombuffer(file.read(), dtype=np.uint8)
