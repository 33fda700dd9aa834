"""Tables from files: small ones in memory, large ones cached as a memory-mapped float32 array.

A cache entry is a folder named after the path and the options, with the raw float32 rows, the
labels, the codes of the other columns, and a JSON file that says what they are and how they are
checked. It is written under another name and renamed when complete. Processes that read the same
new file at once each write it, and the first one's entry stays.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError
from oneway.files.folders import cache_folder
from oneway.tables.assemble import Assembled, assemble
from oneway.tables.column import Column
from oneway.tables.labels import Task
from oneway.tables.scaling import Scaling
from oneway.tables.source import Source
from oneway.tables.table import Table

FORMAT = 2
CACHE_ABOVE_BYTES = 64 * 2**20
ABANDONED_AFTER_SECONDS = 24 * 3600.0
ATTEMPTS = 10


def read_table(
    path: Path,
    make_source: Callable[[], Source],
    *,
    name: str,
    task: Task,
    standardise: bool,
    options: Mapping[str, Any],
) -> Table:
    """Read a file that exists into a table, from the cache if it is there.

    Args:
        path: The file.
        make_source: Opens it, if it has to be read.
        name: What to call the table.
        task: What the labels are for.
        standardise: Whether to standardise the features.
        options: What else `make_source` depends on, in terms JSON can hold.

    Raises:
        DataError: If the file breaks a rule, or the cache cannot be written.
    """
    status = path.stat()
    origin = {
        "kind": "file",
        "path": str(path.resolve()),
        "bytes": status.st_size,
        "modified_ns": status.st_mtime_ns,
        "task": task,
        "standardised": standardise,
        **options,
    }
    if status.st_size <= CACHE_ABOVE_BYTES:
        source, file = make_source(), BytesIO()
        parts = assemble(source, file, task=task, standardise=standardise)
        features = np.frombuffer(file.getbuffer(), dtype=np.float32)
        return _table(name, origin, source.feature_names, features, parts)
    identity = {key: value for key, value in origin.items() if key not in ("bytes", "modified_ns")}
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    entry = cache_folder() / digest[:32]
    for _ in range(ATTEMPTS):
        table = _read_entry(entry, name, origin)
        if table is not None:
            return table
        # Another process may replace what is written here before it is read: then once more.
        _build_entry(entry, make_source(), origin, task, standardise)
    raise DataError(
        f"the cache entry {entry} of {path} was damaged or replaced {ATTEMPTS} times while it was "
        "read; leave the file and the cache alone meanwhile, or set ONEWAY_CACHE to another folder"
    )


def _table(
    name: str,
    origin: Mapping[str, Any],
    feature_names: tuple[str, ...],
    features: NDArray[np.float32],
    parts: Assembled,
) -> Table:
    return Table(
        features=features.reshape(len(parts.labels), len(feature_names)),
        labels=parts.labels,
        feature_names=feature_names,
        name=name,
        columns=parts.columns,
        means=parts.scaling.means,
        scales=parts.scaling.scales,
        label_values=parts.label_values,
        recoverable=parts.recoverable,
        origin={
            **origin,
            "rows": len(parts.labels),
            "features": len(feature_names),
            "columns_left_out": list(parts.columns_left_out),
        },
    )


def _build_entry(
    entry: Path, source: Source, origin: Mapping[str, Any], task: Task, standardise: bool
) -> None:
    """Write an entry beside its place, then put it there."""
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(entry.parent)
        work = Path(tempfile.mkdtemp(prefix=f"{entry.name}.", suffix=".part", dir=entry.parent))
        try:
            with (work / "features.f32").open("w+b") as file:
                parts = assemble(source, file, task=task, standardise=standardise)
            _write_rest(work, source, origin, parts)
            _put_in_place(work, entry, origin)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise DataError(
            f"the cache folder {entry.parent} cannot be written ({error}); make room there, or "
            "set ONEWAY_CACHE to another folder"
        ) from None


def _write_rest(work: Path, source: Source, origin: Mapping[str, Any], parts: Assembled) -> None:
    parts.labels.tofile(work / "labels.f32")
    for index, column in enumerate(parts.columns.values()):
        column.codes.tofile(work / f"codes-{index}.i32")
    checks = {}
    for file in sorted(work.iterdir()):
        with file.open("rb+") as opened:
            os.fsync(opened.fileno())
        checks[file.name] = {"bytes": file.stat().st_size, "crc32": _crc32(file)}
    about = {
        "format": FORMAT,
        "origin": dict(origin),
        "feature_names": source.feature_names,
        "means": parts.scaling.means.tolist(),
        "scales": parts.scaling.scales.tolist(),
        "label_values": parts.label_values,
        "columns": {name: column.names for name, column in parts.columns.items()},
        "columns_left_out": parts.columns_left_out,
        "recoverable": parts.recoverable,
        "files": checks,
    }
    with (work / "table.json").open("w", encoding="utf-8") as text:
        json.dump(about, text)
        text.flush()
        os.fsync(text.fileno())


def _put_in_place(work: Path, entry: Path, origin: Mapping[str, Any]) -> None:
    """Rename a complete entry to its place; a valid one that is there already stays."""
    if entry.exists() and _read_entry(entry, "", origin) is None:
        old = Path(tempfile.mkdtemp(prefix=f"{entry.name}.", suffix=".part", dir=entry.parent))
        try:
            with suppress(FileNotFoundError):  # another process has just moved it away
                entry.rename(old / "old")
        finally:
            shutil.rmtree(old, ignore_errors=True)
    try:
        work.rename(entry)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # another process was faster
            raise


def _read_entry(entry: Path, name: str, origin: Mapping[str, Any]) -> Table | None:
    """Map an entry; None if it is absent, damaged or of an older version of the file."""
    try:
        about = json.loads((entry / "table.json").read_text(encoding="utf-8"))
        if about["format"] != FORMAT or about["origin"] != json.loads(json.dumps(origin)):
            return None
        for file, check in about["files"].items():
            if (entry / file).stat().st_size != check["bytes"]:
                return None
            if _crc32(entry / file) != check["crc32"]:
                return None
        names = tuple(about["feature_names"])
        columns = {
            column: Column(np.fromfile(entry / f"codes-{index}.i32", np.int32), tuple(values))
            for index, (column, values) in enumerate(about["columns"].items())
        }
        parts = Assembled(
            labels=np.fromfile(entry / "labels.f32", dtype=np.float32),
            label_values=tuple(about["label_values"]),
            columns=columns,
            columns_left_out=tuple(about["columns_left_out"]),
            scaling=Scaling(np.array(about["means"]), np.array(about["scales"])),
            recoverable=tuple(about["recoverable"]),
        )
        # A plain view of the map: a read-only array like any other to NumPy and Numba.
        mapped = np.memmap(entry / "features.f32", dtype=np.float32, mode="r")
        return _table(name, origin, names, cast(NDArray[np.float32], np.asarray(mapped)), parts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _crc32(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(2**20):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _remove_abandoned(folder: Path) -> None:
    """Remove what a process that was killed a day or more ago left behind."""
    for part in folder.glob("*.part"):
        with suppress(FileNotFoundError):  # another process may be tidying up as well
            if time.time() - part.stat().st_mtime > ABANDONED_AFTER_SECONDS:
                shutil.rmtree(part, ignore_errors=True)
