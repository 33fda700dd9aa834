"""Run folder: `run.json` describes a run, `arrays.npz` holds its numbers.

`model.json`, where there is one, describes how the estimates predict raw rows.
"""

from __future__ import annotations

import json
import math
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from oneway.errors import ConfigError, StoreError
from oneway.files.memory import require_unpacked
from oneway.files.output_folder import MARKER
from oneway.files.validation import convert
from oneway.records import RunRecord

FORMAT = 1
SUMMARY = "run.json"
ARRAYS = "arrays.npz"
MODEL = "model.json"
FILES = (SUMMARY, ARRAYS, MODEL)
"""All files of a stored run."""

_DERIVED = ("format", "average_loss", "rounds_done")
"""Keys of `run.json` that are not fields of a record: what a list of runs shows of the arrays."""

_PERSONAL = "personal."
"""Prefix of the arrays of personal predictions."""

_DAMAGE = (
    *(OSError, EOFError, ValueError, TypeError, KeyError),
    *(zipfile.BadZipFile, zlib.error),
    *(MemoryError, OverflowError),  # the header of an array may claim any shape
)
"""What reading a damaged file raises."""


def check(path: Path | str) -> None:
    """Check that a run may be saved into the folder `path`: it is new, empty, or a stored run.

    Raises:
        StoreError: If it is anything else.
    """
    folder = Path(path)
    is_empty = folder.is_dir() and not any(folder.iterdir())
    if folder.exists() and not is_run(folder) and not is_empty:
        raise StoreError(f"{folder} exists and is not a stored run; choose another name")
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if unknown := sorted(names - {*FILES, MARKER}):
        raise StoreError(
            f"{folder} holds {unknown[0]} beside a stored run, and saving would delete it; move it "
            "away, or choose another name"
        )


def is_run(path: Path) -> bool:
    """Whether a folder is a stored run, judged by its file names."""
    return (path / SUMMARY).is_file()


def save(record: RunRecord, path: Path | str) -> Path:
    """Write a run into the folder `path`, replacing a run that is already there.

    The folder appears whole or not at all; until then the run that was there stays.

    Raises:
        StoreError: If `path` exists and is not a stored run, or cannot be written.
    """
    check(path)
    folder = Path(path).resolve()
    values = {item.name: getattr(record, item.name) for item in fields(record)}
    if record.personal is not None:
        del values["personal"]
        values |= {_PERSONAL + name: value for name, value in vars(record.personal).items()}
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    summary = {"format": FORMAT, "average_loss": _average_loss(record)}
    summary["rounds_done"] = record.num_rounds
    summary |= {name: value for name, value in values.items() if name not in (*arrays, "model")}
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            (draft / SUMMARY).write_text(json.dumps(summary, indent=2, default=_plain) + "\n")
            np.savez(draft / ARRAYS, allow_pickle=False, **arrays)
            if record.model is not None:
                (draft / MODEL).write_text(json.dumps(record.model, default=_plain) + "\n")
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
    folder = Path(path)
    summary = read_summary(folder)
    with _as_store_errors(folder):
        values = {name: value for name, value in summary.items() if name not in _DERIVED}
        if (folder / MODEL).exists():
            values["model"] = json.loads((folder / MODEL).read_text("utf-8"))
        require_unpacked(folder / ARRAYS, StoreError)
        with (folder / ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            values |= dict(arrays)
        own = [name for name in values if name.startswith(_PERSONAL)]
        if own:
            values["personal"] = {name.removeprefix(_PERSONAL): values.pop(name) for name in own}
        return convert(values, RunRecord, SUMMARY)


def read_summary(path: Path | str) -> dict[str, Any]:
    """Read `run.json`, without the arrays.

    Raises:
        StoreError: If there is no run, or it is damaged or of another format.
    """
    folder = Path(path)
    with _as_store_errors(folder):
        summary: dict[str, Any] = json.loads((folder / SUMMARY).read_text("utf-8"))
        found = summary["format"]
    if found != FORMAT:
        rule = (
            f"has format {found!r} and this version reads format {FORMAT}; "
            "read it with the version of oneway that wrote it"
        )
        raise StoreError(f"the run in {folder} {rule}", reason=f"it {rule}")
    return summary


def _average_loss(record: RunRecord) -> float | None:
    """The mean loss of all samples; None if there are none, or it is not finite."""
    num_samples = int(record.sample_counts.sum())
    mean = float(record.loss_sums.sum()) / num_samples if num_samples else math.nan
    return mean if math.isfinite(mean) else None


@contextmanager
def _as_store_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        missing = f"{Path(error.filename).name} is missing"
        raise StoreError(
            f"there is no stored run in {folder}: {missing}", reason=missing
        ) from error
    except (ConfigError, *_DAMAGE) as error:
        detail = error if isinstance(error, ConfigError) else repr(error)
        reason = f"{getattr(error, 'strerror', None) or detail}; run it again"
        raise StoreError(f"the run in {folder} is damaged: {reason}", reason=reason) from error


def _plain(value: Any) -> Any:
    """NumPy scalars as Python numbers, records as tables."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    raise TypeError(f"{value!r} cannot be stored as JSON")
