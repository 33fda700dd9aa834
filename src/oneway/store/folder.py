"""One run is one folder: `run.json` says what it was, `arrays.npz` holds the numbers."""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneway.errors import StoreError
from oneway.records import Ints, RunRecord, Vector
from oneway.store.layout import ARRAYS, SUMMARY
from oneway.store.tables import in_short, read_table

FORMAT = 1
_DAMAGE = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    EOFError,
    OverflowError,
    MemoryError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What Python says when a run's files are not what they should be."""
_ARRAY_FIELDS = (
    "loss_sums",
    "sample_counts",
    "correct_counts",
    "disagreement",
    "comparator_sums",
    "masses",
    "numerators",
)


def check(path: Path | str) -> None:
    """Say whether a run may be saved into the folder `path`: a run replaces a run, nothing else.

    Raises:
        StoreError: If `path` exists and is not a stored run.
    """
    folder = Path(path)
    if folder.exists() and not (folder / SUMMARY).is_file():
        raise StoreError(f"{folder} exists and is not a stored run; choose another name")


def save(record: RunRecord, path: Path | str) -> Path:
    """Write a run into the folder `path`; a run that is already there is replaced.

    The folder appears whole or not at all; until then the run that was there stays.

    Raises:
        StoreError: If `path` exists and is not a stored run, or cannot be written.
    """
    check(path)
    folder = Path(path).resolve()
    values = {item.name: getattr(record, item.name) for item in fields(record)}
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    summary = {"format": FORMAT} | {
        name: value for name, value in values.items() if name not in arrays
    }
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            (draft / SUMMARY).write_text(json.dumps(summary, indent=2, default=_plain) + "\n")
            np.savez(draft / ARRAYS, allow_pickle=False, **arrays)
            draft.chmod(0o755)
            old = draft.with_name(f"{draft.name}-old")
            if folder.exists():
                folder.rename(old)
            try:
                draft.rename(folder)
            except OSError:
                if old.exists():
                    old.rename(folder)
                raise
            shutil.rmtree(old, ignore_errors=True)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except (OSError, TypeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"cannot write the run to {folder}: {reason}") from error
    return Path(path)


def load(path: Path | str) -> RunRecord:
    """Read a run back.

    Raises:
        StoreError: If there is no run, or it is damaged or of another format.
    """
    summary = read_summary(path)
    with _in_words(path):
        arrays = _arrays(Path(path))
        for name in arrays:
            if name not in _ARRAY_FIELDS:
                raise ValueError(f"{ARRAYS} holds {name[:40]!r}, which is no array of a run")
        record = RunRecord(**(summary | arrays))
        _check_types(record)
        _check_shapes(record)
        return record


def load_losses(path: Path | str) -> tuple[Vector, Ints]:
    """Read only a run's `loss_sums` and `sample_counts`, which is quick.

    Raises:
        StoreError: If there is no run, or it is damaged.
    """
    with _in_words(path):
        arrays = _arrays(Path(path), "loss_sums", "sample_counts")
        sums, counts = arrays["loss_sums"], arrays["sample_counts"]
        if sums.ndim != 1 or sums.shape != counts.shape:
            raise ValueError("loss_sums and sample_counts do not fit together")
        for name, array in arrays.items():
            _check_numbers(name, array)
        return sums, counts


def read_summary(path: Path | str) -> dict[str, Any]:
    """Read what is written down about a run, without its arrays.

    Raises:
        StoreError: If there is no run, or it is damaged or of another format.
    """
    folder = Path(path)
    with _in_words(path):
        summary = read_table(folder / SUMMARY)
        found = summary.pop("format", None)
        if found != FORMAT:
            rule = (
                f"has format {repr(found)[:40]} and this version reads format {FORMAT}; "
                "read it with the version of oneway that wrote it"
            )
            raise StoreError(f"the run in {folder} {rule}", reason=f"it {rule}")
        return summary


def _arrays(folder: Path, *names: str) -> dict[str, NDArray[Any]]:
    """The arrays of these names, or all."""
    with (folder / ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return {name: stored[name] for name in names or stored.files}


def _check_types(record: RunRecord) -> None:
    """What `run.json` says is of the kind it should be."""
    if not isinstance(record.algorithm, str):
        raise TypeError("algorithm is no text")
    if not isinstance(record.complete, bool):
        raise TypeError("complete is neither true nor false")
    if isinstance(record.seconds, bool) or not isinstance(record.seconds, int | float):
        raise TypeError("seconds is no number")
    float(record.seconds)
    for name in ("config", "versions"):
        if not isinstance(getattr(record, name), Mapping):
            raise TypeError(f"{name} is no table")


def _check_numbers(name: str, array: object) -> None:
    """Arrays are of numbers; losses may be infinite, as they are when learning diverges."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        raise TypeError(f"{name} is no array of numbers")
    if name in ("sample_counts", "correct_counts") and not np.all((array >= 0) & (array < np.inf)):
        raise ValueError(f"{name} holds what is no count")


def _check_shapes(record: RunRecord) -> None:
    """Arrays are of numbers, and fit together: one per round, or one per node."""
    num_rounds, num_nodes = len(record.loss_sums), len(record.masses)
    expected = {
        "loss_sums": (num_rounds,),
        "sample_counts": (num_rounds,),
        "correct_counts": (num_rounds,),
        "disagreement": (num_rounds,),
        "comparator_sums": (num_rounds,),
        "masses": (num_nodes,),
        "numerators": (num_nodes, *np.shape(record.numerators)[1:2]),
    }
    for name, shape in expected.items():
        array = getattr(record, name)
        if array is None and name in ("correct_counts", "comparator_sums"):
            continue
        _check_numbers(name, array)
        if array.shape != shape:
            raise ValueError(f"{name} has the shape {array.shape} and should have {shape}")


@contextmanager
def _in_words(path: Path | str) -> Iterator[None]:
    """Say in a sentence what is wrong with the run in a folder."""
    folder = Path(path)
    try:
        yield
    except FileNotFoundError as error:
        missing = f"{Path(error.filename).name} is missing"
        raise StoreError(
            f"there is no stored run in {folder}: {missing}", reason=missing
        ) from error
    except _DAMAGE as error:
        raise StoreError(
            f"the run in {folder} is damaged ({in_short(error)}); run it again",
            reason=f"{in_short(error)}; run it again",
        ) from error


def _plain(value: Any) -> Any:
    """NumPy scalars as Python numbers."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} cannot be stored as JSON")
