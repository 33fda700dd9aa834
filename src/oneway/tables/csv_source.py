"""CSV files, block by block, with polars: header and cells by the rules of `format` and `cells`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import polars as pl

from oneway.errors import DataError
from oneway.tables.cells import SPACES, column_numbers, empty_cells
from oneway.tables.encodings import lines_as_utf8, split_lines
from oneway.tables.format import (
    DECIMAL_COMMA,
    MAX_RECORD_BYTES,
    Csv,
    Head,
    read_head,
    sniff,
    split,
)
from oneway.tables.lines import OpenQuoteError, line_blocks, split_first_line
from oneway.tables.planning import Planner
from oneway.tables.rows import BadRow, Row, RowReader
from oneway.tables.source import Block, Chosen, Plan, Source, Wish

_ROW_NAME = "\0row name"
_BLANK = b' \t\r\n,;"'


def open_file(path: Path, wish: Wish, names: Sequence[str] | None = None) -> Source:
    """Open a CSV file as `open_source` says; `names` are its columns if it has no header.

    The first 16 MB decide what a column holds; the values of a category are those of all rows. A
    file whose quotes are irregular is read row by row, as a peer reads it: polars would split such
    a line in another way, or refuse it.
    """
    head = _read_head(path, names)
    layout = head.format
    assert isinstance(layout, Csv)
    size = _regular_size(path, layout.separator, head.num_bytes)
    if size is None:
        return _open_by_rows(path, layout, wish, has_header=names is None)

    def place(row: int) -> str:
        return f"line {_line_of(path, layout, row, has_header=names is None):,}"

    first = _first_rows(path, head.num_bytes)
    reader = _Reader(path, layout, first, place)
    top = _typed(reader.read_text(first, first_row=0))
    is_whole = len(first) == size
    planner = Planner(path.name, top, wish, layout.unnamed, is_whole=is_whole)
    del first

    def blocks_of(plan: Plan) -> Callable[[], Iterator[Block]]:
        numbers = _numeric(plan, top)
        return lambda: _blocks(path, reader, plan.chosen, numbers, head.num_bytes)

    if not is_whole and planner.found_categories:
        for block in blocks_of(planner.plan())():
            planner.see(block.columns)
    plan = planner.plan()
    return Source(path, plan, blocks_of(plan), place)


def _read_head(path: Path, names: Sequence[str] | None) -> Head:
    """The layout of a file, and where its rows begin."""
    top = b""
    for block in line_blocks(path, quoted=False):
        top += block
        if names is not None:
            line = split_first_line(top)[0].decode(errors="replace")
            return Head(Csv(tuple(names), sniff(line, path.name)[0]), 0, 0, checksum=0)
        head = read_head(split_lines(top[: 2 * MAX_RECORD_BYTES], "utf-8"), str(path))
        if head is not None:
            if isinstance(head.format, Csv):
                return head
            raise DataError(f"{path} holds JSON lines, not CSV; convert it to load it")
    if top.strip(_BLANK):
        raise DataError(f"{path} has a header in which a quote is not closed; repair it")
    raise DataError(f"{path} is empty; a table needs a header and rows")


def _row_blocks(path: Path, num_bytes: int) -> Iterator[bytes]:
    """The blocks of a file without its first bytes, those of the header."""
    for block in line_blocks(path, quoted=True):
        yield block[num_bytes:] if num_bytes else block
        num_bytes = max(0, num_bytes - len(block))


def _first_rows(path: Path, num_bytes: int) -> bytes:
    """The blocks up to the first that is not blank, below the header."""
    rows = b""
    for block in _row_blocks(path, num_bytes):
        rows += block
        if rows.strip(_BLANK):
            break
    return rows


def _regular_size(path: Path, separator: str, num_bytes: int) -> int | None:
    """The size of all rows in bytes; None if one is irregular.

    Rows are regular if they are as RFC 4180 says: quotes stand only around cells, doubled inside.
    """
    cell = rb'(?:"(?:[^"]++|"")*+"|[^"%s\r\n]*+)' % separator.encode()
    line = cell + b"(?:%s%s)*+" % (separator.encode(), cell)
    regular = re.compile(rb"(?:%s\r?\n)*+(?:%s)?" % (line, line))
    size = 0
    try:
        for block in _row_blocks(path, num_bytes):
            size += len(block)
            has_quotes_or_returns = b'"' in block or b"\r" in block
            if has_quotes_or_returns and not regular.fullmatch(block):
                return None
    except OpenQuoteError:
        return None
    return size


def _open_by_rows(path: Path, layout: Csv, wish: Wish, *, has_header: bool) -> Source:
    """Open a file whose quotes only the row reader understands."""
    head = None if has_header else Head(layout, num_bytes=0, num_lines=0, checksum=0)
    reader = RowReader(str(path), head=head)
    found = chain.from_iterable(map(reader.feed, line_blocks(path, quoted=False)))
    rows: list[Row] = []
    for item in chain(found, reader.finish()):
        if isinstance(item, BadRow):
            raise DataError(f"{path.name}: line {item.line:,}: {item.reason}; repair it")
        rows.append(item)
    if not rows:
        raise DataError(f"{path.name} has no rows; a table needs at least one")

    def place(row: int) -> str:
        return f"line {rows[row].line:,}"

    cells = {name: [row.values[name] for row in rows] for name in layout.columns}
    text = pl.DataFrame(cells, schema=dict.fromkeys(layout.columns, pl.String))
    top = _typed(text)
    plan = Planner(path.name, top, wish, layout.unnamed, is_whole=True).plan()
    numbers = _numeric(plan, top)
    frame = text.with_columns(_to_numbers(path, text[name], place, 0) for name in numbers)
    return Source(path, plan, lambda: iter((Block.of(frame, plan.chosen),)), place)


def _numeric(plan: Plan, top: pl.DataFrame) -> set[str]:
    """The columns to be read as numbers, given the first rows."""
    label = top[plan.chosen.label]
    is_number = label.dtype == pl.Float64
    if plan.kind == "number" and not is_number:  # the first labels may stand further down
        is_number = bool(empty_cells(label).all())
    return {*plan.chosen.numbers, *([plan.chosen.label] if is_number else [])}


def _blocks(
    path: Path, reader: _Reader, chosen: Chosen, numbers: set[str], num_bytes: int
) -> Iterator[Block]:
    row = 0
    for rows in _row_blocks(path, num_bytes):
        frame = reader.read(rows, numbers, row)
        row += len(frame)
        if not frame.is_empty():
            yield Block.of(frame, chosen)


def _typed(top: pl.DataFrame) -> pl.DataFrame:
    """Rows of text, with numbers where a column holds nothing else."""
    columns = []
    for cells in top:
        numbers, wrong = column_numbers(cells)
        is_text = wrong.any() or numbers.drop_nulls().is_empty()
        columns.append(cells if is_text else numbers)
    return pl.DataFrame(columns)


class _Reader:
    """Parses blocks of a CSV file into frames."""

    def __init__(self, path: Path, layout: Csv, rows: bytes, place: Callable[[int], str]) -> None:
        self._place = place
        self._path, self._columns, self._separator = path, layout.columns, layout.separator
        first = split_first_line(rows.lstrip(b"\r\n"))[0].decode(errors="replace")
        named = bool(first) and layout.has_row_name(first, split(first, layout.separator)[0])
        self._read = (_ROW_NAME, *layout.columns) if named else layout.columns

    def read(self, block: bytes, numbers: set[str], first_row: int) -> pl.DataFrame:
        """Parse a block; the columns `numbers` become Float64, the rest String."""
        try:
            return self._parse(block, numbers)
        except pl.exceptions.PolarsError:
            # Cells such as " 1", "NA" or "true": slower, but it can say which cell is wrong.
            text = self.read_text(block, first_row)
            return text.with_columns(
                _to_numbers(self._path, text[name], self._place, first_row) for name in numbers
            )

    def read_text(self, block: bytes, first_row: int) -> pl.DataFrame:
        """Parse a block into columns of text."""
        try:
            return self._parse(block, numbers=set())
        except pl.exceptions.PolarsError as error:
            reason = str(error).split("\n")[0]
            raise DataError(
                f"{self._path} is not valid CSV with {len(self._columns)} columns ({reason}), "
                f"{self._place(first_row)} or after it; repair it"
            ) from None

    def _parse(self, block: bytes, numbers: set[str]) -> pl.DataFrame:
        # With a header of our own, a short line means empty cells wherever it stands in the block.
        header = self._separator.join(str(index) for index in range(len(self._read)))
        schema = {
            str(index): pl.Float64 if name in numbers else pl.String
            for index, name in enumerate(self._read)
        }
        if b"\0" in block:
            raise DataError(f"{self._path} is not valid CSV: it holds bytes that are not text")
        text = b"".join((header.encode(), b"\n", lines_as_utf8(block)))
        frame = pl.read_csv(text, schema=schema, separator=self._separator)
        frame.columns = list(self._read)
        if self._separator != "," and b"," in block:
            frame = frame.with_columns(
                pl.when(pl.col(name).str.contains(DECIMAL_COMMA))
                .then(
                    pl.col(name)
                    .str.replace_all(".", "", literal=True)
                    .str.replace(",", ".", literal=True)
                )
                .otherwise(pl.col(name))
                for name in self._read
                if name not in numbers
            )
        blank = [
            pl.col(name).is_null()
            if name in numbers
            else pl.col(name).fill_null("").str.strip_chars(SPACES) == ""
            for name in self._columns
        ]
        if frame.select(blank[-1].any()).item():  # a row that says nothing is none
            frame = frame.filter(~pl.all_horizontal(blank))
        return frame.drop(_ROW_NAME, strict=False)


def _to_numbers(
    path: Path, cells: pl.Series, place: Callable[[int], str], first_row: int
) -> pl.Series:
    numbers, wrong = column_numbers(cells)
    if wrong.any():
        row = int(wrong.arg_true()[0])
        raise DataError(
            f"{path.name}: {place(first_row + row)}, column {cells.name!r} is {cells[row]!r}, but "
            "the column is one of numbers",
            remedy="repair it, or leave the column out with exclude=[...]",
            flag_remedy=f"repair it, or leave the column out with --exclude {cells.name}",
        )
    return numbers


def _line_of(path: Path, layout: Csv, row: int, *, has_header: bool) -> int:
    """The line of the file in which a row stands, counted from 1; the file is read up to there."""
    head = None if has_header else Head(layout, num_bytes=0, num_lines=0, checksum=0)
    reader = RowReader(str(path), head=head)
    found = chain.from_iterable(map(reader.feed, line_blocks(path, quoted=False)))
    last = 0
    for item in islice(chain(found, reader.finish()), row + 1):
        last = item.line
    return last
