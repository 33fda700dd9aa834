"""CSV and JSON lines: which of the two a source holds, and how one record becomes values.

The first line that is not blank decides: if it starts with `{`, every line is a JSON object;
otherwise it is the header of a CSV file, separated by commas, semicolons or tabs. In a file that is
not separated by commas, a cell such as 1,5 or 1.234,5 is a number with a decimal comma.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeAlias
from zlib import crc32

import msgspec

from oneway.errors import DataError
from oneway.sentences import listed, nearest
from oneway.tables.cells import SPACES
from oneway.tables.encodings import Encoding, as_utf8, encoding_of

Values: TypeAlias = Mapping[str, object]
"""What a record says: column -> text (CSV) or JSON value."""

MAX_RECORD_BYTES = 2**20
MAX_RECORD_LINES = 100
"""A quote that is never closed must not swallow the rows after it for ever."""

SEPARATORS = (",", ";", "\t")
DECIMAL_COMMA = r"^\s*[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+([eE][+-]?\d+)?\s*$"
"""A number with a decimal comma, and perhaps points between thousands; for `re` and polars."""
_DECIMAL_COMMA = re.compile(DECIMAL_COMMA, re.ASCII)


@dataclass(frozen=True)
class Csv:
    """Rows of text below a header.

    Attributes:
        columns: The names in the header, without the spaces around them.
        separator: What stands between two cells.
        unnamed: Those of the columns that have a number for want of a name, as the index that some
            programs write first: no feature unless asked for.
    """

    columns: tuple[str, ...]
    separator: str
    unnamed: tuple[str, ...] = ()

    def parse(self, record: bytes) -> Values | None:
        """Return the values of a row, or None if a cell in quotes goes on in the next line.

        The cells that a short row lacks are empty. A row of nothing but separators has no values.

        Raises:
            DataError: The row cannot be parsed.
        """
        text = record.decode()
        cells, closed = split(text, self.separator)
        if not closed:
            return None
        if "\0" in text:
            raise DataError("it holds bytes that are not text")
        if self.has_row_name(text, cells):
            cells = cells[1:]
        if len(cells) > len(self.columns):
            columns = "1 column" if len(self.columns) == 1 else f"{len(self.columns)} columns"
            raise DataError(f"it has {len(cells)} cells, but the header has {columns}")
        if not any(cell.strip(SPACES) for cell in cells):
            return {}
        if self.separator != "," and "," in text:
            cells = [with_point(cell) if "," in cell else cell for cell in cells]
        return dict(zip_longest(self.columns, cells, fillvalue=""))

    def has_row_name(self, text: str, cells: Sequence[str]) -> bool:
        """Whether a row begins with a number in quotes: R's row name, which has no header."""
        more = len(cells) == len(self.columns) + 1
        return more and text.startswith('"') and cells[0].isdecimal()


@dataclass(frozen=True)
class JsonLines:
    """One JSON object a line."""

    def parse(self, record: bytes) -> Values:
        """Return the members of an object; a DataError if the line is none."""
        try:
            value = msgspec.json.decode(record)
        except UnicodeDecodeError:
            raise DataError("it holds bytes that are not UTF-8 text") from None
        except msgspec.DecodeError as error:
            raise DataError(f"it is not a JSON object ({error})") from None
        except RecursionError:
            raise DataError("it is nested too deeply") from None
        if not isinstance(value, dict):
            raise DataError('it is JSON, but not an object such as {"height": 1.5}')
        return value


@dataclass(frozen=True)
class Head:
    """How to read a source, as its first lines say.

    Attributes:
        format: What the records are.
        num_bytes: Where the first row starts.
        num_lines: How many lines are above the first row.
        checksum: Of the header; 0 if there is none.
        encoding: Of all lines.
    """

    format: Csv | JsonLines
    num_bytes: int
    num_lines: int
    checksum: int
    encoding: Encoding = "utf-8"


def read_head(lines: Sequence[bytes], name: str) -> Head | None:
    """Return what the first lines of a source say, or None if that takes more lines.

    They are split as their encoding asks, see `split_lines`.

    Raises:
        DataError: The source called `name` starts with something that is not a header.
    """
    header = b""
    encoding, num_bytes = encoding_of(lines[0] if lines else b"")
    for num_above, raw in enumerate(lines):
        raw = raw[num_bytes:] if num_above == 0 else raw
        line = _header_text(raw, encoding, name)
        if not header and line.lstrip().startswith(b"{"):
            return Head(JsonLines(), num_bytes, num_above, checksum=0, encoding=encoding)
        num_bytes += len(raw)
        if num_above == MAX_RECORD_LINES or num_bytes > MAX_RECORD_BYTES:
            raise DataError(
                f"{name} has no header in its first {MAX_RECORD_LINES} lines and "
                f"{MAX_RECORD_BYTES:,} bytes; start it with the names of its columns, and close "
                "every quote"
            )
        if header or not is_blank(line):
            header += line
            layout = _read_header(header, name)
            if layout is not None:
                return Head(layout, num_bytes, num_above + 1, crc32(header), encoding)
    return None


def check_columns(
    columns: Sequence[str], task_columns: Iterable[str], name: str = "the data"
) -> None:
    """Check that a header has every column that a task needs; a DataError names all it has not."""
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
    """Whether a line says nothing; a tab may be an empty cell, so that it is not nothing."""
    return not line.strip(b" \r\n")


def _header_text(line: bytes, encoding: Encoding, name: str) -> bytes:
    text = as_utf8(line, encoding)
    if b"\0" in text:
        raise DataError(
            f"the first line of {name} is no text; if it is compressed or in another encoding than "
            "UTF-8, UTF-16 or Windows-1252, convert it"
        )
    return text


def _read_header(header: bytes, name: str) -> Csv | None:
    text = header.decode()
    if text.rstrip() == "[" or text.startswith("[{"):
        raise DataError(
            f"{name} is one JSON array; write its objects on one line each, without the brackets"
        )
    separator, cells, closed = sniff(text, name)
    return _layout(cells, separator, name) if closed else None


def with_point(cell: str) -> str:
    """A cell with a decimal point, if it is a number with a decimal comma.

    >>> with_point("1,5"), with_point("1.234,5"), with_point("a, b")
    ('1.5', '1234.5', 'a, b')
    """
    return cell.replace(".", "").replace(",", ".") if _DECIMAL_COMMA.match(cell) else cell


def sniff(text: str, name: str) -> tuple[str, list[str], bool]:
    """The separator that gives the most cells, those cells, and whether all quotes are closed."""
    splits = []
    for separator in SEPARATORS:
        try:
            splits.append((separator, *split(text, separator)))
        except DataError as error:
            problem = error
    if not splits:
        raise DataError(f"the header of {name} cannot be read: {problem}; repair it")
    return max(splits, key=lambda found: len(found[1]))


def _layout(cells: Sequence[str], separator: str, name: str) -> Csv:
    stripped = [cell.strip() for cell in cells]
    if not any(stripped):
        raise DataError(f"the header of {name} names no column; write the names in its first line")
    names = tuple(cell or f"column {index + 1}" for index, cell in enumerate(stripped))
    for column in names:
        if names.count(column) > 1:
            raise DataError(f"{name} has two columns named {column!r}; rename one of them")
    unnamed = tuple(name for name, cell in zip(names, stripped, strict=True) if not cell)
    return Csv(names, separator, unnamed)


def split(text: str, separator: str) -> tuple[list[str], bool]:
    """The cells of a record, and whether the last one is not in quotes that are still open."""
    # Only with a quote open does the csv module ask for a second line.
    reader = csv.reader((text, ""), delimiter=separator)
    try:
        cells = next(reader)
    except csv.Error as error:
        if "limit" in str(error):
            limit = csv.field_size_limit()
            raise DataError(f"a cell in it is longer than {limit:,} characters") from None
        raise DataError("it has a carriage return outside quotes that ends no line") from None
    return cells, reader.line_num == 1
