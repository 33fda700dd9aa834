"""Row reader: from the bytes of CSV or JSON lines to rows, each with the position after it.

There is no file in here: `RowReader` is fed bytes in pieces of any size. What a row is never
depends on where the pieces end, so that a restarted peer sees the same rows as one that read on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from zlib import crc32

import msgspec

from oneway.errors import DataError
from oneway.tables.encodings import Encoding, as_utf8, encoding_of, line_end, split_lines
from oneway.tables.format import (
    MAX_RECORD_BYTES,
    MAX_RECORD_LINES,
    Csv,
    Head,
    JsonLines,
    Values,
    check_columns,
    is_blank,
    read_head,
)

CHECKED_BYTES = 4096
"""How much of the last row a position remembers."""
LONGEST_MARK = 3
"""So many bytes tell the encoding of a source."""


class Position(msgspec.Struct, frozen=True):
    """The place in a file right after a row; to be stored, and to go on from after a restart.

    Attributes:
        offset: Where the next row starts, in bytes.
        last_offset: Where the row before started.
        num_rows: How many rows lie before, the bad ones included.
        num_lines: How many lines lie before.
        checksum: Of the header and the beginning of the row before, to know the file by.
    """

    offset: int = 0
    last_offset: int = 0
    num_rows: int = 0
    num_lines: int = 0
    checksum: int = 0

    @property
    def checked_bytes(self) -> int:
        """How many bytes from `last_offset` on the checksum covers."""
        return min(self.offset - self.last_offset, CHECKED_BYTES)


START = Position()
"""The beginning of any source."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it stands in the source; whether it makes a sample is for the task to say.

    Attributes:
        values: Column -> text (CSV) or JSON value.
        line: Where the row starts, counted from 1.
        position: Where to go on after it.
    """

    values: Values
    line: int
    position: Position


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be parsed.

    Attributes:
        line: Where it starts, counted from 1.
        reason: What is wrong with it.
        position: Where to go on after it.
    """

    line: int
    reason: str
    position: Position


class RowReader:
    """Takes the bytes of a source one piece after the other and gives its rows.

    Args:
        name: What errors call the source.
        task_columns: What the header of a CSV source must have.
        start: Where the bytes start.
        head: What stands at the beginning of the source, if they do not start there.
        mid_line: Whether a line that had no end yet was taken for a row right before `start`.

    Raises:
        DataError: The header in `head` lacks a column of the task.
    """

    def __init__(
        self,
        name: str,
        task_columns: Iterable[str] = (),
        *,
        start: Position = START,
        head: Head | None = None,
        mid_line: bool = False,
    ) -> None:
        self._name = name
        self._task_columns = tuple(task_columns)
        self._offset, self._num_rows = start.offset, start.num_rows
        self._num_lines = start.num_lines - mid_line
        self._mid_line = mid_line
        self._unended = bytearray()  # the beginning of a line
        self._num_cut = 0  # bytes of that line beyond the longest that is kept
        self._open: list[bytes] = []  # lines of a record that is not complete
        self._head: Head | None = None
        self._encoding: Encoding | None = None
        if head is not None:
            self._encoding = head.encoding
            self._adopt(head)

    @property
    def layout(self) -> Csv | JsonLines | None:
        """What the records are, as far as the head of the source was read."""
        return self._head.format if self._head else None

    def feed(self, data: bytes) -> Iterator[Row | BadRow]:
        """Take the next bytes and give every row that they complete; to be used up at once.

        Raises:
            DataError: The source has no header, or one that does not suit the task.
        """
        if self._encoding is None:
            data = self._sniffed(data)
            if self._encoding is None:
                return
        if self._encoding != "utf-8":
            yield from self._feed_wide(data)
            return
        end = data.find(b"\n") + 1
        self._keep(data[:end] if end else data)
        if not end:
            return
        yield from self._end_line()
        for line in split_lines(data[end:], "utf-8"):
            if line.endswith(b"\n"):
                yield from self._take(line, len(line))
            else:
                self._keep(line)

    def _sniffed(self, data: bytes) -> bytes:
        """All bytes so far; the encoding is known as soon as a mark would be whole."""
        data = bytes(self._unended) + data
        self._unended = bytearray()
        if len(data) >= LONGEST_MARK:
            self._encoding = encoding_of(data)[0]
        else:
            self._unended += data
        return data

    def _feed_wide(self, data: bytes) -> Iterator[Row | BadRow]:
        """Take bytes of which two are a letter."""
        assert self._encoding is not None
        end = line_end(self._encoding)
        room = MAX_RECORD_BYTES + 2
        for line in split_lines(bytes(self._unended) + data, self._encoding):
            size, self._unended = len(line) + self._num_cut, bytearray()
            if line.endswith(end) and len(line) % 2 == 0:
                self._num_cut = 0
                yield from self._take(line[:room], size)
            else:
                kept = line[: room + len(line) % 2]
                self._unended, self._num_cut = bytearray(kept), size - len(kept)

    def finish(self) -> Iterator[Row | BadRow]:
        """Give what the source ended with; its last line needs no line end.

        Raises:
            DataError: There was nothing in the source, or no header that suits the task.
        """
        if self._encoding is None:
            self._encoding = "utf-8"
        if self._unended:
            yield from self._end_line()
        if self._head is None:
            blank = all(map(self._is_blank, self._open))
            problem = "is empty" if blank else "has a header in which a quote is never closed"
            raise DataError(
                f"{self._name} {problem}; start it with the names of its columns, or write a JSON "
                "object on every line"
            )
        while self._open:
            yield from self._give_up("a quote in it is never closed")

    def abandon(self) -> Iterator[BadRow]:
        """Give the record that the source broke off in, if any, as a bad row; the last call."""
        if self._unended or self._open:
            broken = b"".join(self._open) + self._unended
            num_lines = len(self._open) + bool(self._unended)
            reason = "the file was replaced or cut while it was being written"
            yield self._bad(reason, broken, len(broken) + self._num_cut, num_lines)

    def _keep(self, piece: bytes) -> None:
        room = MAX_RECORD_BYTES + 1 - len(self._unended)
        self._unended += piece[:room]
        self._num_cut += max(len(piece) - room, 0)

    def _end_line(self) -> Iterator[Row | BadRow]:
        line, size = bytes(self._unended), len(self._unended) + self._num_cut
        self._unended, self._num_cut = bytearray(), 0
        yield from self._take(line, size)

    def _take(self, line: bytes, size: int) -> Iterator[Row | BadRow]:
        """Take a whole line; `size` is its size in the source, where it may be longer."""
        if self._head is None:
            yield from self._take_head(line, size)
        elif self._mid_line:
            self._mid_line = False
            if self._is_blank(line):
                self._skip(size)
            else:
                yield self._bad("its beginning was read as a whole row before", line, size)
        elif self._open:
            yield from self._go_on(line, size)
        elif size > MAX_RECORD_BYTES:
            yield self._bad(f"it is longer than {MAX_RECORD_BYTES:,} bytes", line, size)
        elif self._is_blank(line):
            self._skip(size)
        else:
            yield from self._parse([line])

    def _take_head(self, line: bytes, size: int) -> Iterator[Row | BadRow]:
        self._open.append(line)
        head = read_head(self._open, self._name)
        if head is None:
            return
        rest = b"".join(self._open)[head.num_bytes :]
        self._open = []
        self._adopt(head)
        self._offset, self._num_lines = head.num_bytes, head.num_lines
        if rest:
            yield from self._take(rest, len(rest) + size - len(line))

    def _adopt(self, head: Head) -> None:
        if isinstance(head.format, Csv):
            check_columns(head.format.columns, self._task_columns, self._name)
        self._head = head

    def _go_on(self, line: bytes, size: int) -> Iterator[Row | BadRow]:
        """Take a line below one in which a quote was left open."""
        if sum(map(len, self._open)) + size > MAX_RECORD_BYTES:
            yield from self._give_up(f"a quote in it is not closed in {MAX_RECORD_BYTES:,} bytes")
            yield from self._take(line, size)
        elif len(self._open) == MAX_RECORD_LINES:
            yield from self._give_up(f"a quote in it is not closed in {MAX_RECORD_LINES} lines")
            yield from self._take(line, size)
        elif b'"' in line:
            lines, self._open = [*self._open, line], []
            yield from self._parse(lines)
        else:
            self._open.append(line)

    def _parse(self, lines: list[bytes]) -> Iterator[Row | BadRow]:
        assert self._head is not None
        record, text = b"".join(lines), lines
        try:
            # JSON is UTF-8, whatever its bytes could mean otherwise.
            if isinstance(self._head.format, Csv) or self._encoding != "utf-8":
                text = [self._text(line) for line in lines]
            values = self._head.format.parse(b"".join(text))
        except DataError as error:
            yield self._bad(str(error), record, len(record), len(lines))
            return
        if values is None:
            self._open = lines
        elif not values and isinstance(self._head.format, Csv):
            self._skip(len(record), len(lines))
        else:
            first_line = self._num_lines + 1
            yield Row(values, first_line, self._step(record, len(record), len(lines)))

    def _text(self, line: bytes) -> bytes:
        return as_utf8(line, self._encoding or "utf-8")

    def _is_blank(self, line: bytes) -> bool:
        wide = self._encoding not in (None, "utf-8")
        return is_blank(self._text(line) if wide else line)

    def _give_up(self, reason: str) -> Iterator[Row | BadRow]:
        """Call the line with the open quote bad; the lines below it are rows again."""
        first, *others = self._open
        self._open = []
        yield self._bad(reason, first, len(first))
        for line in others:
            yield from self._take(line, len(line))

    def _bad(self, reason: str, record: bytes, size: int, num_lines: int = 1) -> BadRow:
        return BadRow(self._num_lines + 1, reason, self._step(record, size, num_lines))

    def _skip(self, size: int, num_lines: int = 1) -> None:
        self._offset += size
        self._num_lines += num_lines

    def _step(self, record: bytes, size: int, num_lines: int) -> Position:
        last_offset = self._offset
        self._offset += size
        self._num_lines += num_lines
        self._num_rows += 1
        header = self._head.checksum if self._head else 0
        checksum = crc32(record[:CHECKED_BYTES], header)
        return Position(self._offset, last_offset, self._num_rows, self._num_lines, checksum)
