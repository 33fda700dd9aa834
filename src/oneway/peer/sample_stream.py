"""Sample stream of a peer: which source, from where on, how fast; set right while it runs."""

from __future__ import annotations

import stat
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from oneway.errors import ConfigError, DataError
from oneway.peer.groups import Groups
from oneway.peer.node import Node
from oneway.peer.samples import (
    STANDARD_INPUT,
    has_place,
    is_arrays,
    pace,
    problems_of,
    rows,
    source_name,
)
from oneway.peer.store.snapshot import Journal
from oneway.tables.arrays import open_arrays
from oneway.tables.rows import (
    MAX_LINE_BYTES,
    START,
    BadRow,
    Position,
    Row,
    check_columns,
    read_header,
)
from oneway.task.task import Task


@dataclass(frozen=True)
class SampleStream:
    """What a peer learns from.

    Attributes:
        source: A file of CSV or JSON lines or of arrays, a folder of images, a pipe, or "-" for
            standard input.
        follow: Whether to wait at the end of a file for more.
        rate: Samples per second at most; None for no limit.

    Raises:
        ConfigError: If the rate is not above 0.
    """

    source: str
    follow: bool = False
    rate: float | None = None

    def __post_init__(self) -> None:
        if self.rate is not None and not self.rate > 0:
            raise ConfigError(f"rate is {self.rate:g}; it must be a number of samples above 0")

    def check(self) -> None:
        """Find out before the peer is woken whether there is a source.

        Raises:
            MissingDataError: If there is no such file.
            DataError: If it is a folder without images by class, or arrays that cannot be read.
        """
        with problems_of(self.source):
            if self.source != STANDARD_INPUT:
                Path(self.source).stat()
            if is_arrays(self.source):
                open_arrays(Path(self.source))

    def check_columns(self, task: Task) -> None:
        """Find out before anything is said whether a file suits the task; a pipe cannot be asked.

        Raises:
            DataError: Its header is none, or lacks a column of the task.
        """
        if is_arrays(self.source):
            open_arrays(Path(self.source)).check_encoder(task.encoder)
            return
        with problems_of(self.source):
            path = Path(self.source)
            if self.source == STANDARD_INPUT or not stat.S_ISREG(path.stat().st_mode):
                return
            with path.open("rb") as file:
                top = file.read(MAX_LINE_BYTES)
        # Of a file that is followed, the header may be half written.
        header = read_header(top[: top.rfind(b"\n") + 1] if self.follow else top, str(path))
        if header is not None and header.is_csv:
            check_columns(header.columns, task.columns, str(path))

    async def samples(
        self,
        node: Node,
        say: Callable[[str], None],
    ) -> AsyncGenerator[Row | BadRow, None]:
        """The rows after the position in a node's journal; `say` is told where that is.

        The position is looked at before every row and must be after the last one: if it is not, a
        receiver has set the peer right, and the stream goes on from there. Where the task limits
        the rows of each group, the node is told of those in between, or nothing is read.

        Raises:
            DataError: As `rows`; or every sample may be learned once, and nobody knows which ones
                of this file were, in a life that a restored backup does not remember.
        """
        last: Position | None = None
        while last is None or node.snapshot.journal.position != last:
            last = node.snapshot.journal.position
            start = self._start(node.snapshot.journal, node.each_sample_once)
            if node.groups:
                await self._pass_over(node)
            async with aclosing(self._samples_after(start, node.task.columns, say)) as items:
                async for item in items:
                    if node.snapshot.journal.position != last:
                        break
                    yield item
                    last = item.position

    def _start(self, journal: Journal, once: bool) -> Position:
        old, is_forgetful = journal.remembered, journal.remembered != START
        if not is_forgetful or has_place(self.source, journal.position):
            return journal.position
        if not has_place(self.source, old):
            return journal.position
        if once:
            raise DataError(
                f"{self.source} is as old as the restored backup, and does not show which of its "
                f"rows after the first {old.num_rows:,} were learned since; put the newer file "
                "back, or name one that has only new rows"
            )
        return old

    async def _pass_over(self, node: Node) -> None:
        journal = node.snapshot.journal
        old, new = journal.remembered, journal.position
        if not journal.uncounted:
            return
        if not has_place(self.source, new):
            raise DataError(
                f"{source_name(self.source)} does not have the rows that were learned in a life "
                "that this backup does not remember, so that it is not known how many of whom "
                "were; the task limits that: name the file that has them"
            )
        noted: Groups = {}
        items = rows(self.source, skip=old, task_columns=node.task.columns, say=lambda _: None)
        async with aclosing(items):
            async for item in items:
                if item.position.num_rows > new.num_rows:
                    break
                if isinstance(item, Row):
                    noted = node.groups.noted(noted, item.values)
        node.note_forgotten(noted)

    async def _samples_after(
        self, before: Position, columns: tuple[str, ...], say: Callable[[str], None]
    ) -> AsyncGenerator[Row | BadRow, None]:
        items = rows(self.source, follow=self.follow, skip=before, task_columns=columns)
        if self.rate is not None:
            items = pace(items, self.rate)
        is_first = True
        async with aclosing(items):
            async for item in items:
                if is_first and before.num_rows and item.position.num_rows == before.num_rows + 1:
                    say(
                        f"going on in {self.source} at line {item.line:,}, after "
                        f"{before.num_rows:,} rows that were read before"
                    )
                is_first = False
                yield item
        if is_first and before.num_rows and self.source != STANDARD_INPUT:
            say(f"{self.source} has nothing new: all of it was read before")
