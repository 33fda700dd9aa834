"""CIFAR-10's binary files: a byte for the label, then red, green and blue of 32 x 32 pixels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError
from oneway.tables.array_source import ArraySource

SHAPE = (3, 32, 32)
RECORD = 1 + 3 * 32 * 32
CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
"""What the labels 0 to 9 mean, in the words of its authors."""


def reads(path: Path) -> bool:
    """Whether a path is that of such a file, or of a folder with all of them."""
    return path.suffix.lower() == ".bin" or bool(_batches(path))


def open_file(path: Path) -> ArraySource:
    """Map one file, or all `data_batch_*.bin` of a folder; not `test_batch.bin`, unless named."""
    return open_batches(path, _batches(path) or (path,))


def open_batches(path: Path, files: Sequence[Path]) -> ArraySource:
    """Map some files, as one source called `path`."""
    batches = [_records(file) for file in files]
    codes = np.concatenate([batch[:, 0] for batch in batches])
    if codes.max() >= len(CLASSES):
        raise DataError(
            f"{path} has the label {codes.max()}, and those of CIFAR-10 are 0 to 9; it is not in "
            "CIFAR-10's binary format"
        )
    labels = np.array(CLASSES)[codes]
    return ArraySource(path, "image", SHAPE, _Batches(batches), labels, 255.0, tuple(files))


def _batches(path: Path) -> tuple[Path, ...]:
    return tuple(sorted(path.glob("data_batch_*.bin"))) if path.is_dir() else ()


def _records(path: Path) -> NDArray[np.uint8]:
    size = path.stat().st_size
    if not size or size % RECORD:
        raise DataError(
            f"{path} has {size:,} bytes, no multiple of the {RECORD:,} that an image of CIFAR-10 "
            "has; it is cut off or in another format"
        )
    return np.memmap(path, dtype=np.uint8, mode="r").reshape(-1, RECORD)


class _Batches:
    """The images of several files, one after the other."""

    def __init__(self, batches: Sequence[NDArray[np.uint8]]) -> None:
        self._batches = batches

    def __len__(self) -> int:
        return sum(map(len, self._batches))

    def __getitem__(self, rows: slice, /) -> NDArray[Any]:
        first, last, _ = rows.indices(len(self))
        parts = []
        for batch in self._batches:
            parts.append(batch[max(0, first) : max(0, last), 1:])
            first, last = first - len(batch), last - len(batch)
        return np.concatenate(parts).reshape(-1, *SHAPE)
