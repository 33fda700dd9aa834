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
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError, TaskError
from oneway.files.folders import cache_folder
from oneway.tables.array_source import ArraySource
from oneway.tables.assemble import assemble, assemble_in_memory, with_features
from oneway.tables.encoder import Encoder
from oneway.tables.features import Feature
from oneway.tables.inference import ColumnNote
from oneway.tables.owners import Column
from oneway.tables.source import Source, Wish
from oneway.tables.table import Table

FORMAT = 5
CACHE_ABOVE_BYTES = 64 * 2**20
ABANDONED_AFTER_SECONDS = 24 * 3600.0
ATTEMPTS = 10
PLAIN = ("label_values", "recoverable")
"""Fields of a table that are tuples of what JSON can hold."""


def read_table(
    path: Path,
    make_source: Callable[[], Source | ArraySource],
    wish: Wish,
    *,
    name: str,
    options: Mapping[str, Any] | None = None,
    size: int | None = None,
) -> Table:
    """Read a file that exists into a table called `name`, from the cache if it is there.

    Otherwise `make_source` opens it; `options` say, in terms JSON can hold, what that depends on.
    With a `size`, that and not the file's decides whether it is small.

    Raises:
        DataError: If the file breaks a rule, or the cache cannot be written.
    """
    status = path.stat()
    origin: dict[str, Any] = {
        "kind": "file",
        "path": str(path.resolve()),
        "bytes": status.st_size,
        "modified_ns": status.st_mtime_ns,
        "asked": {"label": wish.label, "task": wish.kind, "columns": asdict(wish.choices)},
        "standardised": wish.standardise,
        **(options or {}),
    }
    if wish.encoder is not None:
        origin["encoder"] = asdict(wish.encoder)
    origin = json.loads(json.dumps(origin))  # the same from the cache
    if (status.st_size if size is None else size) <= CACHE_ABOVE_BYTES:
        return assemble_in_memory(make_source(), wish, name, origin)
    identity = {key: value for key, value in origin.items() if key not in ("bytes", "modified_ns")}
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    entry = cache_folder() / digest[:32]
    for _ in range(ATTEMPTS):
        kept = _read_entry(entry, name, origin)
        if kept is not None:
            return kept
        # Another process may replace what is written here before it is read: then once more.
        _build_entry(entry, make_source(), origin, wish)
    raise DataError(
        f"the cache entry {entry} of {path} was damaged or replaced {ATTEMPTS} times while it was "
        "read; leave the file and the cache alone meanwhile, or set ONEWAY_CACHE to another folder"
    )


def _build_entry(
    entry: Path, source: Source | ArraySource, origin: Mapping[str, Any], wish: Wish
) -> None:
    """Write an entry beside its place, then put it there."""
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(entry.parent)
        work = Path(tempfile.mkdtemp(prefix=f"{entry.name}.", suffix=".part", dir=entry.parent))
        try:
            with (work / "features.f32").open("w+b") as file:
                table = assemble(source, file, wish, "", origin)
            _write_rest(work, table)
            _put_in_place(work, entry, origin)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise DataError(
            f"the cache folder {entry.parent} cannot be written ({error}); make room there, or "
            "set ONEWAY_CACHE to another folder"
        ) from None


def _write_rest(work: Path, table: Table) -> None:
    table.labels.tofile(work / "labels.f32")
    for index, column in enumerate(table.columns.values()):
        column.codes.tofile(work / f"codes-{index}.i32")
    for index, rows in enumerate(table.gaps.values()):
        rows.astype(np.int64).tofile(work / f"gaps-{index}.i64")
    checks = {}
    for file in sorted(work.iterdir()):
        with file.open("rb+") as opened:
            os.fsync(opened.fileno())
        checks[file.name] = _check_of(file)
    about = {
        "format": FORMAT,
        "origin": table.origin,
        "files": checks,
        "columns": {name: column.names for name, column in table.columns.items()},
        "encoding": [asdict(feature) for feature in table.encoding],
        "gaps": list(table.gaps),
        "notes": [asdict(note) for note in table.notes],
        **{name: getattr(table, name) for name in PLAIN},
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
        wanted = {**about["origin"], **json.loads(json.dumps(origin))}
        if about["format"] != FORMAT or about["origin"] != wanted:
            return None
        for file, check in about["files"].items():
            if _check_of(entry / file) != check:
                return None
        encoder = Encoder(tuple(Feature(**it) for it in about["encoding"]), "label", "number")
        # A plain view of the map: a read-only array like any other to NumPy and Numba.
        mapped = np.memmap(entry / "features.f32", dtype=np.float32, mode="r")
        table = Table(
            features=np.empty((0, 0), dtype=np.float32),
            feature_names=encoder.outputs,
            labels=np.fromfile(entry / "labels.f32", dtype=np.float32),
            name=name,
            columns={
                column: Column(np.fromfile(entry / f"codes-{index}.i32", np.int32), tuple(values))
                for index, (column, values) in enumerate(about["columns"].items())
            },
            means=encoder.scaling.means,
            scales=encoder.scaling.scales,
            origin=about["origin"],
            encoding=encoder.features,
            notes=tuple(ColumnNote(**note) for note in about["notes"]),
            gaps={
                column: np.fromfile(entry / f"gaps-{index}.i64", np.int64)
                for index, column in enumerate(about["gaps"])
            },
            **{field: tuple(about[field]) for field in PLAIN},
        )
        return with_features(table, cast(NDArray[np.float32], np.asarray(mapped)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, TaskError):
        return None


def _check_of(path: Path) -> dict[str, int]:
    """The size and the CRC-32 of a file."""
    size = checksum = 0
    with path.open("rb") as file:
        while block := file.read(2**20):
            size, checksum = size + len(block), zlib.crc32(block, checksum)
    return {"bytes": size, "crc32": checksum}


def _remove_abandoned(folder: Path) -> None:
    """Remove what a process that was killed a day or more ago left behind."""
    for part in folder.glob("*.part"):
        with suppress(FileNotFoundError):  # another process may be tidying up as well
            if time.time() - part.stat().st_mtime > ABANDONED_AFTER_SECONDS:
                shutil.rmtree(part, ignore_errors=True)
