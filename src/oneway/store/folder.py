"""One run is one folder: `run.json` says what it was, `arrays.npz` holds the numbers."""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from oneway.errors import StoreError
from oneway.records import RunRecord

FORMAT = 1
_SUMMARY = "run.json"
_ARRAYS = "arrays.npz"


def check(path: Path | str) -> None:
    """Say whether a run may be saved into the folder `path`: a run replaces a run, nothing else.

    Raises:
        StoreError: If `path` exists and is not a stored run.
    """
    folder = Path(path)
    if folder.exists() and not (folder / _SUMMARY).is_file():
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
            (draft / _SUMMARY).write_text(json.dumps(summary, indent=2, default=_plain) + "\n")
            np.savez(draft / _ARRAYS, allow_pickle=False, **arrays)
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
    try:
        summary: dict[str, Any] = json.loads((folder / _SUMMARY).read_text())
        found = summary.pop("format", None)
        if found != FORMAT:
            raise StoreError(
                f"the run in {folder} has format {found!r} and this version reads format {FORMAT}; "
                "read it with the version of oneway that wrote it"
            )
        with (folder / _ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        return RunRecord(**(summary | arrays))
    except FileNotFoundError as error:
        raise StoreError(
            f"there is no stored run in {folder}: {Path(error.filename).name} is missing"
        ) from error
    except (OSError, ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise StoreError(f"the run in {folder} is damaged ({error}); run it again") from error


def _plain(value: Any) -> Any:
    """NumPy scalars as Python numbers."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} cannot be stored as JSON")
