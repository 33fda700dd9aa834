"""NumPy files: `images.npy` with `images.labels.npy` beside it, or one `.npz` with both.

A `.npy` file is mapped, never loaded. Arrays of Python objects are pickles and are refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError, MissingDataError
from oneway.files.memory import require_unpacked
from oneway.sentences import listed
from oneway.tables.array_source import LABEL, ArraySource
from oneway.tables.features import format_shape

NAME = "features"

_DAMAGE = (ValueError, MemoryError, OverflowError)
"""What an array raises that is none of numbers, or whose header claims an absurd shape."""


def reads(path: Path) -> bool:
    """Whether a path is that of a NumPy file."""
    return path.suffix.lower() in (".npy", ".npz")


def labels_path(path: Path) -> Path:
    """Where the labels of a `.npy` file are."""
    return path.with_name(f"{path.stem}.labels.npy")


def open_file(path: Path) -> ArraySource:
    """Map the features of a `.npy` file, or read those of a `.npz`."""
    if path.suffix.lower() == ".npz":
        features, labels = _members(path)
        files: tuple[Path, ...] = (path,)
    else:
        beside = labels_path(path)
        if path.is_file() and not beside.is_file():
            raise MissingDataError(
                f"{beside} is not there; it must hold a label for each row of {path.name}: write "
                "it with numpy.save, or both as features and labels into one .npz"
            )
        features, labels = _load(path), np.array(_load(beside))
        files = (path, beside)
    for what, array in (("features", features), ("labels", labels)):
        if array.dtype.kind not in ("biuf" if what == "features" else "biufU"):
            raise DataError(
                f"the {what} of {path} have the type {array.dtype}; they must be real numbers"
            )
    if features.ndim < 2:
        raise DataError(
            f"the features of {path} have the shape {format_shape(features.shape)}; they must be "
            "an array [row, ...], as [row, channel, y, x]"
        )
    return ArraySource(path, NAME, features.shape[1:], features, labels, files)


def save(path: Path, features: NDArray[Any], labels: NDArray[Any]) -> None:
    """Write what `open_file` reads."""
    np.save(path, features)
    np.save(labels_path(path), labels)


def _load(path: Path) -> NDArray[Any]:
    try:
        return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except _DAMAGE as error:
        raise _refused(path, error) from None


def _members(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    try:
        require_unpacked(path, DataError)
        with path.open("rb") as file, np.load(file, allow_pickle=False) as members:
            if not {NAME, f"{LABEL}s"} <= set(members.files):
                raise DataError(
                    f"{path} holds {listed(members.files) or 'nothing'}; it must hold features and "
                    "labels, as numpy.savez(file, features=..., labels=...) writes them"
                )
            return members[NAME], members[f"{LABEL}s"]
    except _DAMAGE as error:
        raise _refused(path, error) from None


def _refused(path: Path, error: Exception) -> DataError:
    if "pickle" in str(error).lower() or "object" in str(error).lower():
        return DataError(
            f"{path} holds Python objects (a pickle, which can run any code when it is read); "
            "save it as an array of numbers of one shape, with numpy.save"
        )
    return DataError(f"{path} is no NumPy file ({error}); write it with numpy.save")
