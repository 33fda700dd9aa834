"""CSV files, block by block, with polars: header and cells by the rules of `format` and `cells`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import polars as pl

from oneway.errors import DataError
from oneway.tables.cells import SPACES, column_numbers
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
from oneway.tables.lines import file_is_plain, line_blocks, split_first_line
from oneway.tables.planning import Planner
from oneway.tables.rows import RowReader
from oneway.tables.source import Block, Chosen, Plan, Source, Wish

_ROW_NAME = "\0row name"
_SAYS_NOTHING = b' \t\r\n,;"'


def open_file(path: Path, wish: Wish, names: Sequence[str] | None = None) -> Source:
    """Open a CSV file as `open_source` says; `names` are those of its columns without a header.

    What a column holds is told by the first 16 MB; the values of a category by all rows.
    """
    layout, num_bytes, rows = _top(path, names)
    has_header = names is None

    def place(row: int) -> str:
        return f"line {_line_of(path, layout, row, has_header=has_header):,}"

    reader = _Reader(path, layout, rows, place)
    top = _typed(reader.read_text(rows, first_row=0))
    is_whole = len(rows) + num_bytes >= path.stat().st_size and file_is_plain(path)
    planner = Planner(path.name, top, wish, layout.unnamed, is_whole=is_whole)
    del rows

    def blocks_of(plan: Plan) -> Callable[[], Iterator[Block]]:
        return lambda: _blocks(path, reader, plan.chosen, top.schema, num_bytes)

    if not is_whole and planner.found_categories:
        for block in blocks_of(planner.plan())():
            planner.see(block.columns)
    plan = planner.plan()
    return Source(path, plan, blocks_of(plan), place)


def _blocks(
    path: Path, reader: _Reader, chosen: Chosen, schema: pl.Schema, num_bytes: int
) -> Iterator[Block]:
    label = [chosen.label] if schema[chosen.label] == pl.Float64 else []
    numbers, row, above = {*chosen.numbers, *label}, 0, num_bytes
    for block in line_blocks(path, quoted=True):
        rows, above = block[above:] if above else block, max(0, above - len(block))
        del block  # nothing of it is kept while the next one is read
        frame = reader.read(rows, numbers, row)
        row += len(frame)
        del rows
        if not frame.is_empty():
            yield Block.of(frame, chosen)
        del frame


def _typed(top: pl.DataFrame) -> pl.DataFrame:
    """Rows of text, with numbers where a column holds nothing else."""
    columns = []
    for cells in top:
        numbers, wrong = column_numbers(cells)
        is_text = wrong.any() or numbers.drop_nulls().is_empty()
        columns.append(cells if is_text else numbers)
    return pl.DataFrame(columns)


def _top(path: Path, names: Sequence[str] | None) -> tuple[Csv, int, bytes]:
    """The layout, the bytes above the first row, and the rows of the first block with any."""
    top = b""
    found: tuple[Csv, int, bytes] | None = None
    for block in line_blocks(path, quoted=True):
        top += block
        if names is not None:
            first = split_first_line(top)[0].decode(errors="replace")
            found = Csv(tuple(names), sniff(first, path.name)[0]), 0, top
        else:
            head = read_head(split_lines(top[: 2 * MAX_RECORD_BYTES], "utf-8"), str(path))
            if head is None:
                continue
            if not isinstance(head.format, Csv):
                raise DataError(f"{path} holds JSON lines, not CSV; convert it to load it")
            found = head.format, head.num_bytes, top[head.num_bytes :]
        if found[2].strip(_SAYS_NOTHING):
            break
    if found is None:
        raise DataError(f"{path} is empty; a table needs a header and rows")
    return found


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
                self._to_numbers(text[name], first_row).alias(name) for name in numbers
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

    def _to_numbers(self, cells: pl.Series, first_row: int) -> pl.Series:
        numbers, wrong = column_numbers(cells)
        if wrong.any():
            row = int(wrong.arg_true()[0])
            raise DataError(
                f"{self._path.name}: {self._place(first_row + row)}, column {cells.name!r} is "
                f"{cells[row]!r}, but the column is one of numbers",
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
