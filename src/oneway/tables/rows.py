"""Rows: how the bytes of CSV or JSON lines become records, at once or piece by piece.

A record is one line. The first line that is not blank decides: if it starts with `{`, every line is
a JSON object; otherwise it is the header of a CSV file, separated by commas, semicolons or tabs. In
a file that is not separated by commas, a cell such as 1,5 or 1.234,5 is a number with a decimal
comma. Text is UTF-8; a line of CSV that is not valid UTF-8 is Windows-1252. `Header.parse` defines
what a line means; `reading` gives the same cells for a whole file.

There is no file in here: `RowReader` is fed bytes in pieces of any size. What a row is never
depends on where the pieces end, so that a restarted peer sees the same rows as one that read on.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import zip_longest
from typing import TypeAlias
from zlib import crc32

import msgspec

from oneway.errors import DataError
from oneway.sentences import listed, nearest
from oneway.tables.cells import SPACES

Values: TypeAlias = Mapping[str, object]
"""The cells of a record: column -> text (CSV) or JSON value."""

MAX_LINE_BYTES = 2**20
CHECKED_BYTES = 4096
"""How much of the last row a position remembers."""
BOM = b"\xef\xbb\xbf"
SEPARATORS = (",", ";", "\t")
UNNAMED = "unnamed column "
"""Beginning of the name of a column without one, such as the index that pandas writes."""

_SPACE = r"[ \t\r\n\x0b\x0c\xa0]*"
DECIMAL_COMMA = (
    rf"^{_SPACE}[+-]?([0-9]{{1,3}}(\.[0-9]{{3}})+|[0-9]+),[0-9]+([eE][+-]?[0-9]+)?{_SPACE}$"
)
"""A number with a decimal comma, and perhaps points between thousands; for `re` and polars."""
_DECIMAL_COMMA = re.compile(DECIMAL_COMMA)


@dataclass(frozen=True)
class Header:
    """How to read a source: JSON lines, or rows of cells below the names of their columns.

    Attributes:
        columns: The names; empty for JSON lines.
        separator: Between two cells.
        num_bytes: Where the first row starts.
        num_lines: How many lines are above it.
        checksum: Of the header, to recognise the source by; 0 for JSON lines.
    """

    columns: tuple[str, ...] = ()
    separator: str = ","
    num_bytes: int = 0
    num_lines: int = 0
    checksum: int = 0

    @property
    def is_csv(self) -> bool:
        """Whether the records are rows of cells."""
        return bool(self.columns)

    def parse(self, line: bytes) -> Values | None:
        """Return the values of a line; None if it is blank.

        The cells that a short row lacks are empty.

        Raises:
            DataError: The line is malformed.
        """
        if len(line) > MAX_LINE_BYTES:
            raise DataError(f"it is longer than {MAX_LINE_BYTES:,} bytes")
        if is_blank(line):
            return None
        if not self.columns:
            return _json_object(line)
        text = as_utf8(line).decode()
        if "\0" in text:
            raise DataError("it holds bytes that are not text")
        cells = split(text, self.separator)
        if len(cells) > len(self.columns):
            columns = "1 column" if len(self.columns) == 1 else f"{len(self.columns)} columns"
            raise DataError(f"it has {len(cells)} cells, but the header has {columns}")
        if not any(cell.strip(SPACES) for cell in cells):
            return None
        if self.separator != "," and "," in text:
            cells = [with_point(cell) if "," in cell else cell for cell in cells]
        return dict(zip_longest(self.columns, cells, fillvalue=""))


def read_header(top: bytes, name: str) -> Header | None:
    """Return what the first line that is not blank says; None if there is no such line.

    Args:
        top: The beginning of a source; a header must be in it whole.
        name: What errors call the source.

    Raises:
        DataError: The first line is no header.
    """
    start = len(BOM) if top.startswith(BOM) else 0
    for num_above, line in enumerate(BytesIO(top[start:])):
        if is_blank(line):
            start += len(line)
            continue
        if line.lstrip().startswith(b"{"):
            return Header(num_bytes=start, num_lines=num_above)
        return _read_names(line, name, start + len(line), num_above + 1)
    return None


def check_columns(
    columns: Sequence[str], task_columns: Iterable[str], name: str = "the data"
) -> None:
    """Check that a header has every column that a task needs.

    Raises:
        DataError: Lists the missing columns.
    """
    missing = [column for column in task_columns if column not in columns]
    if missing:
        several, verb = ("s", "are") if len(missing) > 1 else ("", "is")
        near = nearest(missing[0], columns) if not several else ""
        raise DataError(
            f"the task needs the column{several} {listed(map(repr, missing))}, which {verb} not in "
            f"the header of {name}{near or ';'} its columns are {listed(columns)}; "
            "rename one there or in the task"
        )


def is_blank(line: bytes) -> bool:
    """Whether a line holds nothing; a tab may be an empty cell."""
    return not line.strip(b" \r\n")


def as_utf8(data: bytes) -> bytes:
    """Return whole lines in UTF-8, each on its own from Windows-1252 if it is not valid UTF-8."""
    if data.isascii():
        return data
    try:
        data.decode()
    except UnicodeDecodeError:
        return b"".join(map(_line_as_utf8, BytesIO(data)))
    return data


def _line_as_utf8(line: bytes) -> bytes:
    try:
        line.decode()
    except UnicodeDecodeError:
        try:
            return line.decode("cp1252").encode()
        except UnicodeDecodeError:
            return line.decode("latin-1").encode()  # five bytes that Windows-1252 leaves free
    return line


def with_point(cell: str) -> str:
    """Return a cell with a decimal point, if it is a number with a decimal comma.

    >>> with_point("1,5"), with_point("1.234,5"), with_point("a, b")
    ('1.5', '1234.5', 'a, b')
    """
    return cell.replace(".", "").replace(",", ".") if _DECIMAL_COMMA.match(cell) else cell


def split(text: str, separator: str) -> list[str]:
    """Return the cells of a line; a DataError if it is malformed."""
    # Only with a quote open does the csv module ask for a second line.
    reader = csv.reader((text, ""), delimiter=separator)
    try:
        cells = next(reader)
    except csv.Error as error:
        if "limit" in str(error):
            limit = csv.field_size_limit()
            raise DataError(f"a cell in it is longer than {limit:,} characters") from None
        raise DataError("it has a carriage return outside quotes that ends no line") from None
    if reader.line_num > 1:
        raise DataError(
            "a quote in it is not closed on its line; write text with line breaks as JSON lines"
        )
    return cells


def _read_names(line: bytes, name: str, num_bytes: int, num_lines: int) -> Header:
    if b"\0" in line or len(line) > MAX_LINE_BYTES:
        raise DataError(
            f"the first line of {name} is no text; if it is compressed or in UTF-16, convert it to "
            "UTF-8"
        )
    text = as_utf8(line).decode()
    if text.rstrip() == "[" or text.startswith("[{"):
        raise DataError(
            f"{name} is one JSON array; write its objects on one line each, without the brackets"
        )
    separator, cells = sniff(text, name)
    stripped = [cell.strip() for cell in cells]
    if not any(stripped):
        raise DataError(f"the header of {name} names no column; write the names in its first line")
    columns = tuple(cell or f"{UNNAMED}{index + 1}" for index, cell in enumerate(stripped))
    for column in columns:
        if columns.count(column) > 1:
            raise DataError(f"{name} has two columns named {column!r}; rename one of them")
    return Header(columns, separator, num_bytes, num_lines, crc32(line))


def sniff(text: str, name: str) -> tuple[str, list[str]]:
    """Return the separator that gives a first line the most cells, and those cells."""
    found, problem = [], None
    for separator in SEPARATORS:
        try:
            found.append((separator, split(text, separator)))
        except DataError as error:
            problem = error
    best = max(found, key=lambda it: len(it[1]), default=("", []))
    if problem is not None and len(best[1]) < 2:
        raise DataError(f"the header of {name} cannot be read: {problem}")
    return best


def _json_object(line: bytes) -> Values:
    try:
        value = msgspec.json.decode(line)
    except UnicodeDecodeError:
        raise DataError("it holds bytes that are not UTF-8 text") from None
    except msgspec.DecodeError as error:
        raise DataError(f"it is not a JSON object ({error})") from None
    except RecursionError:
        raise DataError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise DataError('it is JSON, but not an object such as {"height": 1.5}')
    return value


class Position(msgspec.Struct, frozen=True):
    """The place in a file right after a row; to be stored, and to go on from after a restart.

    Attributes:
        offset: Where the next row starts, in bytes.
        last_offset: Where the row before started.
        num_rows: How many rows lie before, the bad ones included.
        num_lines: How many lines lie before.
        checksum: Of the header and the beginning of the row before, to recognise the file by.
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
    """A row as it stands in the source; the task decides whether it makes a sample.

    Attributes:
        values: Column -> text (CSV) or JSON value.
        line: Its line, counted from 1.
        position: Where to go on after it.
    """

    values: Values
    line: int
    position: Position


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be parsed.

    Attributes:
        line: Its line, counted from 1.
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
        header: That of the source, if the bytes do not start there.
        mid_line: Whether a line that had no end yet was taken for a row right before `start`.

    Raises:
        DataError: The header lacks a column of the task.
    """

    def __init__(
        self,
        name: str,
        task_columns: Iterable[str] = (),
        *,
        start: Position = START,
        header: Header | None = None,
        mid_line: bool = False,
    ) -> None:
        self._name = name
        self._task_columns = tuple(task_columns)
        self._offset, self._num_rows = start.offset, start.num_rows
        self._num_lines = start.num_lines - mid_line
        self._mid_line = mid_line
        self._unended = bytearray()  # the beginning of a line
        self._num_cut = 0  # bytes of that line beyond the longest that is kept
        self.header: Header | None = None
        if header is not None:
            self._adopt(header)

    def feed(self, data: bytes) -> Iterator[Row | BadRow]:
        """Take the next bytes and give every row that they complete; to be used up at once.

        Raises:
            DataError: The source has no header, or one that does not suit the task.
        """
        end = data.find(b"\n") + 1
        self._keep(data[:end] if end else data)
        if not end:
            return
        yield from self._end_line()
        for line in BytesIO(data[end:]):
            if line.endswith(b"\n"):
                yield from self._take(line, len(line))
            else:
                self._keep(line)

    def finish(self) -> Iterator[Row | BadRow]:
        """Give what the source ended with; its last line needs no line end.

        Raises:
            DataError: There was nothing in the source, or no header that suits the task.
        """
        if self._unended:
            yield from self._end_line()
        if self.header is None:
            raise DataError(
                f"{self._name} is empty; start it with the names of its columns, or write a JSON "
                "object on every line"
            )

    def abandon(self) -> Iterator[BadRow]:
        """Give the line that the source broke off in, if any, as a bad row; the last call."""
        if self._unended:
            size = len(self._unended) + self._num_cut
            reason = "the file was replaced or cut while it was being written"
            yield BadRow(self._num_lines + 1, reason, self._step(bytes(self._unended), size))

    def _keep(self, piece: bytes) -> None:
        room = MAX_LINE_BYTES + 1 - len(self._unended)
        self._unended += piece[:room]
        self._num_cut += max(len(piece) - room, 0)

    def _end_line(self) -> Iterator[Row | BadRow]:
        line, size = bytes(self._unended), len(self._unended) + self._num_cut
        self._unended, self._num_cut = bytearray(), 0
        yield from self._take(line, size)

    def _take(self, line: bytes, size: int) -> Iterator[Row | BadRow]:
        """Take a whole line; `size` is its size in the source, where it may be longer."""
        if self.header is None:
            mark = len(BOM) if self._offset == 0 and line.startswith(BOM) else 0
            self._offset, line, size = self._offset + mark, line[mark:], size - mark
            header = read_header(line, self._name)
            if header is not None:
                self._adopt(header)
            if header is None or header.is_csv:
                self._skip(size)
                return
        assert self.header is not None
        number, problem = self._num_lines + 1, ""
        try:
            values = self.header.parse(line)
        except DataError as error:
            values, problem = {}, str(error)
        if values is None:
            self._skip(size)
        elif self._mid_line:
            reason = "its beginning was read as a whole row before"
            yield BadRow(number, reason, self._step(line, size))
        elif problem:
            yield BadRow(number, problem, self._step(line, size))
        else:
            yield Row(values, number, self._step(line, size))
        self._mid_line = False

    def _adopt(self, header: Header) -> None:
        if header.is_csv:
            check_columns(header.columns, self._task_columns, self._name)
        self.header = header

    def _skip(self, size: int) -> None:
        self._offset += size
        self._num_lines += 1

    def _step(self, record: bytes, size: int) -> Position:
        last_offset = self._offset
        self._skip(size)
        self._num_rows += 1
        header = self.header.checksum if self.header else 0
        checksum = crc32(record[:CHECKED_BYTES], header)
        return Position(self._offset, last_offset, self._num_rows, self._num_lines, checksum)
