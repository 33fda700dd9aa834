"""Rows of a file, growing or not, of a pipe or of standard input, paced, from a position on.

It goes on where the peer stopped. Reading blocks, so that it happens in a thread of its own, piece
by piece; `rows` gives what has arrived to asyncio.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import stat
import sys
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import aclosing, closing, contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import TypeAlias, TypeVar
from zlib import crc32

from oneway.errors import DataError, MissingDataError
from oneway.peer.array_samples import array_rows, has_array_place
from oneway.tables.arrays import holds_arrays
from oneway.tables.rows import (
    MAX_LINE_BYTES,
    START,
    BadRow,
    Header,
    Position,
    Row,
    RowReader,
    read_header,
)
from oneway.transport.descriptors import is_shortage

STANDARD_INPUT = "-"
CHUNK_BYTES = 2**17
TAIL_BYTES = 64
MAX_PIECES_AHEAD = 4
ROWS_PER_TURN = 64
"""After so many rows without a wait, the other tasks get a turn."""
CATCH_UP_SECONDS = 0.1
"""By how much a paced stream may be behind before it gives up the time it lost."""

T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Begin:
    """The bytes that follow are those from `position` on.

    Attributes:
        position: A place in the file.
        header: That of the file, unless the bytes start there.
        mid_line: Whether `position` is after a line that had no end when it was read.
        notice: What the user should know about it, or nothing.
    """

    position: Position = START
    header: Header | None = None
    mid_line: bool = False
    notice: str = ""


Piece: TypeAlias = Begin | bytes


async def rows(
    path: str,
    *,
    follow: bool = False,
    skip: Position = START,
    poll: float = 0.2,
    task_columns: Iterable[str] = (),
    say: Callable[[str], None] = _log.warning,
) -> AsyncGenerator[Row | BadRow, None]:
    """Read CSV or JSON lines from a file, a growing file, a pipe or standard input; or arrays.

    A row is given as soon as it has arrived. Leave the iterator with `contextlib.aclosing`, so
    that the file is closed.

    Args:
        path: A file, a folder of images, or "-" for standard input.
        follow: Whether to go on when the end of a file is reached, like `tail -F`: a line counts
            when its line end is written, and a new file under the same name is read from its start.
        skip: The position of the last row that was used. If the file is not the same any more, it
            is read from its start; a pipe is read as it comes.
        poll: How many seconds to wait before looking at a file again that had nothing new.
        task_columns: What the header of a CSV source must have.
        say: Told in a sentence when a file is cut, replaced, or not the one `skip` is about.

    Raises:
        MissingDataError: There is no such file.
        DataError: The source is a folder, may not be read, is empty, or its header is not one or
            lacks a column of the task.
    """
    name, columns = source_name(path), tuple(task_columns)
    if is_arrays(path):
        if follow:
            raise DataError(f"{path} holds arrays, which do not grow; leave --follow out")
        async with aclosing(array_rows(Path(path), skip=skip, columns=columns, say=say)) as found:
            async for array in found:
                yield array
        return
    stop = threading.Event()
    pieces = read_pieces(path, follow=follow, skip=skip, wait=lambda: stop.wait(poll))
    reader = RowReader(name, columns)
    async with aclosing(_in_thread(pieces, stop)) as arriving:
        async for piece in arriving:
            if isinstance(piece, bytes):
                for turn, row in enumerate(reader.feed(piece), 1):
                    yield row
                    if turn % ROWS_PER_TURN == 0:
                        await asyncio.sleep(0)
                continue
            for row in reader.abandon():
                yield row
            if piece.notice:
                say(piece.notice)
            reader = RowReader(
                name, columns, start=piece.position, header=piece.header, mid_line=piece.mid_line
            )
        for row in reader.finish():
            yield row


async def pace(
    items: AsyncGenerator[T, None],
    per_second: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncGenerator[T, None]:
    """Pass items on at no more than a number per second, and at that number if they come faster.

    A sleep that took too long is made up for; a time in which no item came, only up to
    `CATCH_UP_SECONDS` of it, so that no burst follows.
    """
    due = clock()
    async with aclosing(items):
        async for item in items:
            now = clock()
            due = max(due, now - CATCH_UP_SECONDS)
            if due > now:
                await sleep(due - now)
            yield item
            due += 1 / per_second


async def _in_thread(
    pieces: Generator[Piece, None, None], stop: threading.Event
) -> AsyncGenerator[Piece, None]:
    """Run a blocking generator in a thread, a few pieces ahead; `stop` is set in the end."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[Piece | Exception | None] = asyncio.Queue()
    slots = threading.Semaphore(MAX_PIECES_AHEAD)

    def hand_over(item: Piece | Exception | None) -> None:
        slots.acquire()
        if not stop.is_set():
            with suppress(RuntimeError):  # the loop was closed just now
                loop.call_soon_threadsafe(arrived.put_nowait, item)

    def read() -> None:
        try:
            with closing(pieces):
                for piece in pieces:
                    hand_over(piece)
                    if stop.is_set():
                        return
        except Exception as error:
            hand_over(error)
        else:
            hand_over(None)

    # A daemon: nobody can wake a thread that waits for standard input, so none may wait for it.
    threading.Thread(target=read, name="oneway samples", daemon=True).start()
    try:
        while (item := await arrived.get()) is not None:
            slots.release()
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        stop.set()
        slots.release()


def is_arrays(path: str) -> bool:
    """Whether a source is a file of arrays, or a folder of images.

    Raises:
        DataError: If it is a pickle.
    """
    return path != STANDARD_INPUT and holds_arrays(Path(path))


def source_name(path: str) -> str:
    """Return what messages call a source."""
    return "standard input" if path == STANDARD_INPUT else path


def read_pieces(
    path: str, *, follow: bool, skip: Position, wait: Callable[[], bool]
) -> Generator[Piece, None, None]:
    """Read a source piece by piece: a `Begin`, then bytes, and again if the file is another one.

    Arguments and errors are those of `rows`; `wait` waits until it is worth looking again, and
    returns whether to stop instead.
    """
    with problems_of(path):
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


@contextmanager
def problems_of(path: str) -> Iterator[None]:
    """Make a sentence of what the operating system says about a source.

    Raises:
        MissingDataError: There is no such file.
        DataError: It is a folder, or may not or cannot be read.
    """
    try:
        yield
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
    file = _open(path, wait)
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
        file = _open(path, wait, awaited=True) if notice else None


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


def _open(path: str, wait: Callable[[], bool], *, awaited: bool = False) -> FileIO | None:
    """Open a file; wait while there are no descriptors, and for one that is awaited; or stop."""
    while True:
        try:
            return FileIO(path)
        except OSError as error:
            is_missing = isinstance(error, FileNotFoundError)
            if not (is_shortage(error) or (awaited and is_missing)):
                raise
            if wait():
                return None


def _find_place(file: FileIO, path: str, skip: Position) -> Begin:
    """The place to go on from, or the start if this is not the file that `skip` is about."""
    if skip == START:
        return Begin()
    afresh = "reading it from its start"
    if os.fstat(file.fileno()).st_size < skip.offset:
        return Begin(notice=f"{path} was cut, or is not the file that was read before; {afresh}")
    header = read_header(os.pread(file.fileno(), MAX_LINE_BYTES, 0), path)
    last_row = os.pread(file.fileno(), skip.checked_bytes, skip.last_offset)
    if header is None or crc32(last_row, header.checksum) != skip.checksum:
        return Begin(notice=f"{path} is not the file that was read before; {afresh}")
    mid_line = os.pread(file.fileno(), 1, skip.offset - 1) != b"\n"
    return Begin(skip, header, mid_line)


def has_place(path: str, position: Position) -> bool:
    """Whether a position is one in this file, as it is now; never in a pipe."""
    if is_arrays(path):
        return has_array_place(Path(path), position)
    with suppress(OSError):
        if stat.S_ISREG(Path(path).stat().st_mode):
            with FileIO(path) as file:
                return not _find_place(file, path, position).notice
    return False


def _was_replaced(file: FileIO, path: str) -> bool:
    try:
        return not os.path.samestat(Path(path).stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False  # the new one is still to come
