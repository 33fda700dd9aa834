"""Arrays as a peer's samples: the rows of an array source, from a position on."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from numpy.typing import NDArray

from oneway.errors import DataError
from oneway.sentences import listed, shown
from oneway.tables.arrays import Arrays, open_arrays
from oneway.tables.rows import CHECKED_BYTES, START, Position, Row

ROWS_AT_A_TIME = 64
NUMBERS_AT_A_TIME = 2**18


async def array_rows(
    path: Path, *, skip: Position, columns: Sequence[str], say: Callable[[str], None]
) -> AsyncGenerator[Row, None]:
    """The rows after a position, as `samples.rows` gives those of text.

    Arrays have no names: they are called as the task calls its label and its only feature.

    Args:
        path: What holds arrays.
        skip: The position of the last row that was used; of another file, all rows are given.
        columns: The label and the feature of the task.
        say: Told in a sentence when it is another file.

    Raises:
        DataError: If it cannot be read, or the task needs more columns.
    """
    source = await asyncio.to_thread(open_arrays, path)
    label, name = _two(path, columns)
    first = skip.num_rows
    if not _has(source, skip):
        say(f"{path} is not the file that was read before; reading it from its start")
        first = 0
    step = max(1, min(ROWS_AT_A_TIME, NUMBERS_AT_A_TIME // math.prod(source.shape)))
    while first < len(source):
        block = await asyncio.to_thread(source.features.__getitem__, slice(first, first + step))
        for row, array in enumerate(block, first):
            values = {name: array, label: source.labels[row].item()}
            yield Row(values, row + 1, _position(source, row, array))
        first += len(block)


def has_array_place(path: Path, position: Position) -> bool:
    """Whether a position is one in these arrays, as they are now."""
    try:
        return _has(open_arrays(path), position)
    except DataError:
        return False


def _has(source: Arrays, position: Position) -> bool:
    if position == START:
        return True
    row = position.num_rows - 1
    if not 0 <= row < len(source):
        return False
    return _position(source, row, source.features[row : row + 1]) == position


def _position(source: Arrays, row: int, array: NDArray[Any]) -> Position:
    """The place after a row, counted in rows; known by what the row holds."""
    about = crc32(f"{source.shape} {source.labels[row].item()}".encode())
    checksum = crc32(array.reshape(-1)[:CHECKED_BYTES].tobytes(), about)
    return Position(row + 1, row, row + 1, row + 1, checksum)


def _two(path: Path, columns: Sequence[str]) -> Sequence[str]:
    if len(columns) != 2:
        raise DataError(
            f"{path} holds arrays and their labels, and {listed(map(shown, columns), 5)} are "
            "needed; give them as JSON lines"
        )
    return columns
