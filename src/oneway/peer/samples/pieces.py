"""Where the bytes of a source come from: a file, a file that grows, a pipe, standard input.

Everything in here blocks; `oneway.peer.samples.source` runs it in a thread.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from io import BytesIO, FileIO
from pathlib import Path
from typing import TypeAlias
from zlib import crc32

from oneway.errors import DataError, MissingDataError
from oneway.peer.samples.row import START, Position
from oneway.tables.format import MAX_RECORD_BYTES, Head, read_head

STANDARD_INPUT = "-"
CHUNK_BYTES = 2**17
TAIL_BYTES = 64


@dataclass(frozen=True)
class Begin:
    """The bytes that follow are those from `position` on.

    Attributes:
        position: A place in the file.
        head: What stands at the beginning of the file, unless the bytes start there.
        mid_line: Whether `position` is after a line that had no end when it was read.
        notice: What the user should know about it, or nothing.
    """

    position: Position = START
    head: Head | None = None
    mid_line: bool = False
    notice: str = ""


Piece: TypeAlias = Begin | bytes


def source_name(path: str) -> str:
    """Return what messages call a source."""
    return "standard input" if path == STANDARD_INPUT else path


def read_pieces(
    path: str, *, follow: bool, skip: Position, wait: Callable[[], bool]
) -> Generator[Piece, None, None]:
    """Read a source piece by piece: a `Begin`, then bytes, and again if the file is another one.

    Args:
        path: A file, a pipe, or "-" for standard input.
        follow: Whether to wait at the end of a file for it to grow.
        skip: Where to go on in a file; a pipe has no such place.
        wait: Waits until it is worth looking again; returns whether to stop instead.

    Raises:
        MissingDataError: There is no such file.
        DataError: It is a folder, or may not or cannot be read.
    """
    try:
        if path == STANDARD_INPUT:
            # If it was closed from the start, its number may belong to any file by now.
            if sys.__stdin__ is None:
                raise DataError("standard input is closed; pipe samples into it, or name a file")
            with FileIO(0, closefd=False) as pipe:
                yield from _read_pipe(pipe)
        elif stat.S_ISREG(Path(path).stat().st_mode):
            yield from _read_file(path, follow=follow, skip=skip, wait=wait)
        else:
            with FileIO(path) as pipe:
                yield from _read_pipe(pipe)
    except FileNotFoundError:
        raise MissingDataError(f"{path} does not exist; check the path") from None
    except IsADirectoryError:
        raise DataError(
            f"{source_name(path)} is a folder; name a CSV or JSON-lines file, or - for standard "
            "input"
        ) from None
    except OSError as error:
        raise DataError(
            f"{source_name(path)} cannot be read ({error.strerror}); check that this user may "
            "read it"
        ) from None


def _read_pipe(pipe: FileIO) -> Iterator[Piece]:
    yield Begin()
    # Without a buffer, a read returns as soon as there is anything.
    while (data := pipe.read(CHUNK_BYTES)) != b"":
        if data is None:
            # Whoever shares the pipe has set it so that a read does not wait.
            select.select([pipe], [], [])
        else:
            yield data


def _read_file(
    path: str, *, follow: bool, skip: Position, wait: Callable[[], bool]
) -> Iterator[Piece]:
    file: FileIO | None = FileIO(path)
    notice = ""
    while file is not None:
        with file:
            begin = Begin(notice=notice) if notice else _find_place(file, path, skip)
            yield begin
            file.seek(begin.position.offset)
            if not follow:
                while data := file.read(CHUNK_BYTES):
                    yield data
                return
            notice = yield from _follow(file, path, wait)
        file = _open_again(path, wait) if notice else None


def _follow(file: FileIO, path: str, wait: Callable[[], bool]) -> Generator[bytes, None, str]:
    """Read on as the file grows; returns why it has to be opened again, nothing to stop."""
    num_seen = min(file.tell(), TAIL_BYTES)
    tail = os.pread(file.fileno(), num_seen, file.tell() - num_seen)
    replaced = False
    while True:
        offset = file.tell()
        data = file.read(CHUNK_BYTES)
        # Only after the read: if the file was cut just before, the read was at a wrong place.
        if os.pread(file.fileno(), len(tail), offset - len(tail)) != tail:
            return f"{path} was cut or written anew; reading it from its start"
        if data:
            tail = (tail + data)[-TAIL_BYTES:]
            yield data
        elif replaced:
            return f"{path} was replaced; reading the new file from its start"
        elif wait():
            return ""
        else:
            # If so, what was written into the old file in the meantime comes first.
            replaced = _was_replaced(file, path)


def _open_again(path: str, wait: Callable[[], bool]) -> FileIO | None:
    while True:
        try:
            return FileIO(path)
        except FileNotFoundError:
            if wait():
                return None


def _find_place(file: FileIO, path: str, skip: Position) -> Begin:
    """The place to go on from, or the start if this is not the file that `skip` is about."""
    if skip == START:
        return Begin()
    afresh = "reading it from its start"
    if os.fstat(file.fileno()).st_size < skip.offset:
        return Begin(notice=f"{path} was cut, or is not the file that was read before; {afresh}")
    head = read_head(BytesIO(os.pread(file.fileno(), MAX_RECORD_BYTES, 0)).readlines(), path)
    last_row = os.pread(file.fileno(), skip.checked_bytes, skip.last_offset)
    if head is None or crc32(last_row, head.checksum) != skip.checksum:
        return Begin(notice=f"{path} is not the file that was read before; {afresh}")
    mid_line = os.pread(file.fileno(), 1, skip.offset - 1) != b"\n"
    return Begin(skip, head, mid_line)


def _was_replaced(file: FileIO, path: str) -> bool:
    try:
        return not os.path.samestat(Path(path).stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False  # the new one is still to come
