"""CSV files, block by block, with polars: header and cells by the rules of `format` and `cells`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

import polars as pl

from oneway.errors import DataError
from oneway.tables.cells import SPACES, column_numbers
from oneway.tables.format import MAX_RECORD_BYTES, Csv, read_head, sniff, split
from oneway.tables.lines import line_blocks, split_first_line
from oneway.tables.source import Block, Kind, Source, choose_columns

_ROW_NAME = "\0row name"
_SAYS_NOTHING = b' \t\r\n,;"'


def open_file(
    path: Path,
    *,
    label: str | None,
    features: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
) -> Source:
    """Open a CSV file as `open_source` says; `names` are those of its columns without a header.

    A column is numeric if all its cells in the first 16 MB are numbers (true and false are), empty
    cells aside.
    """
    layout, num_bytes, rows = _top(path, names)
    reader = _Reader(path, layout, rows)
    top = reader.read_text(rows, first_row=0)
    unwanted = set(layout.unnamed) - set(features or ())
    kinds: dict[str, Kind] = {
        name: "text" if name in unwanted else _kind(top[name]) for name in layout.columns
    }
    chosen = choose_columns(path, kinds, label, features)
    needed = (chosen.label, *chosen.features)
    numbers = {name for name in needed if kinds[name] == "number"}

    def blocks() -> Iterator[Block]:
        row, above = 0, num_bytes
        for block in line_blocks(path, quoted=True):
            rows, above = block[above:] if above else block, max(0, above - len(block))
            del block  # nothing of it is kept while the next one is read
            frame = reader.read(rows, numbers, row)
            row += len(frame)
            del rows
            if not frame.is_empty():
                yield Block.of(frame, chosen)
            del frame

    return Source(path, chosen, blocks)


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
            head = read_head(BytesIO(top[: 2 * MAX_RECORD_BYTES]).readlines(), str(path))
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

    def __init__(self, path: Path, layout: Csv, rows: bytes) -> None:
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
                f"{self._path} is not valid CSV with {len(self._columns)} columns ({reason}) "
                f"somewhere after row {first_row}; repair it"
            ) from None

    def _parse(self, block: bytes, numbers: set[str]) -> pl.DataFrame:
        # With a header of our own, a short line means empty cells wherever it stands in the block.
        header = self._separator.join(str(index) for index in range(len(self._read)))
        schema = {
            str(index): pl.Float64 if name in numbers else pl.String
            for index, name in enumerate(self._read)
        }
        text = b"".join((header.encode(), b"\n", block))
        frame = pl.read_csv(text, schema=schema, separator=self._separator)
        frame.columns = list(self._read)
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
                f"{self._path.name}: row {first_row + row}, column {cells.name!r} is "
                f"{cells[row]!r}, but the column was numeric so far; repair it, or leave the "
                "column out with features=[...]"
            )
        return numbers


def _kind(cells: pl.Series) -> Kind:
    numbers, wrong = column_numbers(cells)
    return "text" if wrong.any() or numbers.drop_nulls().is_empty() else "number"
