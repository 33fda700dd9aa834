"""Run folder: `run.json` says what a run was, `arrays.npz` holds its numbers."""

from __future__ import annotations

import io
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
from numpy.typing import NDArray

from oneway.errors import StoreError
from oneway.records import Ints, RunRecord, Vector

FORMAT = 1
SUMMARY = "run.json"
ARRAYS = "arrays.npz"
MOST_BYTES = 1 << 24
"""A longer file of text is none of ours; what Python makes of a text can take 30 times as much."""
_MOST_AT_ONCE = 1 << 20
"""Bytes that are read of an archive in one go, so those of its table of contents, too."""
_LONGEST = 300
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
_AXES = {
    "loss_sums": ("round",),
    "sample_counts": ("round",),
    "correct_counts": ("round",),
    "skipped_counts": ("round",),
    "disagreement": ("round",),
    "comparator_sums": ("round",),
    "base_sums": ("round",),
    "alone_sums": ("round",),
    "masses": ("node",),
    "numerators": ("node", "dim"),
}
"""The arrays of a run; along the same axis they have the same length."""


def check(path: Path | str) -> None:
    """Say whether a run may be saved into the folder `path`: it replaces a run, or an empty folder.

    Raises:
        StoreError: If `path` exists and is neither.
    """
    folder = Path(path)
    is_empty = folder.is_dir() and not any(folder.iterdir())
    if folder.exists() and not is_run(folder) and not is_empty:
        raise StoreError(f"{folder} exists and is not a stored run; choose another name")


def is_run(path: Path) -> bool:
    """Whether a folder is a stored run, as far as its names tell."""
    return (path / SUMMARY).is_file()


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
    with _damage_in_words(path):
        for name in summary.keys() - {item.name for item in fields(RunRecord)}:
            raise ValueError(f"{SUMMARY} holds {name[:40]!r}, which no run has")
        return msgspec.convert(summary | _read_arrays(Path(path)), RunRecord)


def load_losses(path: Path | str) -> tuple[Vector, Ints]:
    """Read only a run's `loss_sums` and `sample_counts`, which is quick.

    Raises:
        StoreError: If there is no run, or it is damaged.
    """
    with _damage_in_words(path):
        arrays = _read_arrays(Path(path), "loss_sums", "sample_counts")
        return arrays["loss_sums"], arrays["sample_counts"]


def read_summary(path: Path | str) -> dict[str, Any]:
    """Read what is written down about a run, without its arrays.

    Raises:
        StoreError: If there is no run, or it is damaged or of another format.
    """
    folder = Path(path)
    with _damage_in_words(path):
        summary = read_json(folder / SUMMARY)
        found = summary.pop("format", None)
        if found != FORMAT:
            rule = (
                f"has format {repr(found)[:40]} and this version reads format {FORMAT}; "
                "read it with the version of oneway that wrote it"
            )
            raise StoreError(f"the run in {folder} {rule}", reason=f"it {rule}")
        return summary


def read_json(file: Path) -> dict[str, Any]:
    """Read a file of JSON that should hold a table; its texts can be sent to anybody.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is too long, no JSON, or holds something else.
        RecursionError: If there are too many tables within tables.
    """
    text = read_text(file)
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"{file.name} holds no table")
    if "\\ud" in text.lower():
        # JSON may name halves of letters, which UTF-8 cannot hold.
        found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    return dict(found)


def read_text(file: Path) -> str:
    """Read a file of text that is not too long.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is too long, or not UTF-8.
    """
    with file.open("rb") as opened:
        # Not by its size: a file may grow, and a device has none.
        content = opened.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"{file.name} has more than {MOST_BYTES:,} bytes")
    return content.decode("utf-8")


def in_short(error: BaseException) -> str:
    """What an error says, in one short line; its name if it says nothing."""
    said = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
    text = said.encode("utf-8", "replace").decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _read_arrays(folder: Path, *names: str) -> dict[str, NDArray[Any]]:
    """The arrays of these names, or all: of numbers, and they fit together."""
    with _Archive(folder / ARRAYS) as file:
        _check_sizes(file)
        with np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in names or stored.files}
    lengths: dict[str, int] = {}
    for name in filter(arrays.__contains__, _AXES):
        array = arrays[name]
        # Losses may be infinite, as they are when learning diverges.
        if array.dtype.kind not in "fiu":
            raise TypeError(f"{name} is no array of numbers")
        if name.endswith("_counts") and not np.all((array >= 0) & (array < np.inf)):
            raise ValueError(f"{name} holds what is no count")
        expected = tuple(map(lengths.setdefault, _AXES[name], array.shape))
        if array.shape != expected or len(array.shape) != len(_AXES[name]):
            raise ValueError(f"{name} has the shape {array.shape} and should have {expected}")
    return arrays


class _Archive(io.FileIO):
    """A file of which little is read at once, however much an archive's own tables claim."""

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = _MOST_AT_ONCE if size is None or size < 0 else min(size, _MOST_AT_ONCE)
        return super().read(wanted) or b""


def _check_sizes(file: io.FileIO) -> None:
    """Check that the arrays take no more memory than the file has bytes: that it is no zip bomb.

    What is compressed can be a thousand times as large as its file, so it is not read; a run's
    arrays are stored as they are.
    """
    left = file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name not in _AXES:
                raise ValueError(f"{ARRAYS} holds {name[:40]!r}, which is no array of a run")
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError(
                    f"{name} in {ARRAYS} is compressed, to unfold to {member.file_size:,} bytes; "
                    "the arrays of a run are stored uncompressed"
                )
            left -= member.file_size
            with archive.open(member) as content:
                np.lib.format.read_magic(content)
                shape, _, dtype = np.lib.format.read_array_header_1_0(content)
                claimed = math.prod(shape) * dtype.itemsize
                if left < 0 or claimed != member.file_size - content.tell():
                    raise ValueError(
                        f"{name} in {ARRAYS} claims {claimed:,} bytes, which the file does not have"
                    )
    file.seek(0)


@contextmanager
def _damage_in_words(path: Path | str) -> Iterator[None]:
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
    """NumPy scalars as Python numbers, records as tables."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    raise TypeError(f"{value!r} cannot be stored as JSON")
