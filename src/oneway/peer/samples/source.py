"""The rows of a peer's source as an asyncio stream, read in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from contextlib import aclosing, closing, suppress
from typing import TypeVar

from oneway.errors import ConfigError
from oneway.peer.samples.pieces import Piece, read_pieces, source_name
from oneway.peer.samples.reader import RowReader
from oneway.peer.samples.row import START, BadRow, Position, Row

MAX_PIECES_AHEAD = 4
ROWS_PER_TURN = 64
"""After so many rows without a wait, the other tasks get a turn."""
CATCH_UP_SECONDS = 0.1
"""By how much a paced stream may be behind before it gives up the time it lost."""

T = TypeVar("T")
_log = logging.getLogger(__name__)


async def rows(
    path: str,
    *,
    follow: bool = False,
    skip: Position = START,
    poll: float = 0.2,
    task_columns: Iterable[str] = (),
    say: Callable[[str], None] = _log.warning,
) -> AsyncGenerator[Row | BadRow, None]:
    """Read CSV or JSON lines from a file, a growing file, a pipe or standard input.

    A row is given as soon as it has arrived. Leave the iterator with `contextlib.aclosing`, so
    that the file is closed.

    Args:
        path: A file, or "-" for standard input.
        follow: Whether to go on when the end of a file is reached, like `tail -F`: a line counts
            when its line end is written, and a new file under the same name is read from its start.
            A pipe is always read until it is closed.
        skip: The position of the last row that was used, to go on with the next one. If the file is
            not the same any more, it is read from its start. A pipe is read as it comes.
        poll: How many seconds to wait before looking at a file again that had nothing new.
        task_columns: What the header of a CSV source must have.
        say: Told in a sentence when a file is cut, replaced, or not the one `skip` is about.

    Raises:
        MissingDataError: There is no such file.
        DataError: The source is a folder, may not be read, is empty, or its header is not one or
            lacks a column of the task.
    """
    name, columns = source_name(path), tuple(task_columns)
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
                name, columns, start=piece.position, head=piece.head, mid_line=piece.mid_line
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

    Raises:
        ConfigError: The number is not above 0.
    """
    if not per_second > 0:
        raise ConfigError(f"{per_second:g} samples per second is not a pace; it must be above 0")
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
