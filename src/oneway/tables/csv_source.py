"""CSV files, block by block, with polars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from oneway.errors import DataError
from oneway.tables.lines import line_blocks, split_first_line
from oneway.tables.source import Block, Kind, Source, choose_columns

EMPTY_CELLS = ("", "na", "n/a", "nan", "null", "none")


def csv_source(
    path: Path,
    *,
    label: str | None,
    features: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
) -> Source:
    """Look at the top of a CSV file and prepare to read it.

    A column is numeric if all its cells in the first 16 MB are numbers (or all are true or
    false), empty cells aside.

    Args:
        path: The file, plain or compressed.
        label: The label column.
        features: The feature columns; all other numeric columns if not given.
        names: The names of the columns, if the file has no header.

    Raises:
        MissingDataError: If there is no such file.
        DataError: If it is empty or not CSV, or a column does not exist or is not numeric.
    """
    header, rows = _top(path, has_header=names is None)
    if not (header + rows).strip():
        raise DataError(f"{path} is empty; a table needs a header and rows")
    columns = _header_names(path, header) if names is None else tuple(names)
    top = _read_text(path, rows, columns, first_row=0)
    kinds = {name: _kind(top[name]) for name in columns}
    label_name, feature_names, others = choose_columns(path, kinds, label, features)

    def blocks() -> Iterator[Block]:
        row = 0
        for index, block in enumerate(line_blocks(path, quoted=True)):
            if index == 0 and names is None:
                block = split_first_line(block)[1]
            if not block.strip():
                continue
            frame = _read(path, block, columns, kinds, {label_name, *feature_names}, row)
            yield Block(
                features=frame.select(feature_names).to_numpy(),
                labels=frame[label_name],
                columns={name: frame[name] for name in others},
            )
            row += len(frame)

    return Source(path, feature_names, label_name, others, blocks)


def _top(path: Path, *, has_header: bool) -> tuple[bytes, bytes]:
    """The header, and the rows up to the end of the first block that has any."""
    top = b""
    for block in line_blocks(path, quoted=True):
        top += block
        header, rows = split_first_line(top) if has_header else (b"", top)
        if rows.strip():
            return header, rows
    return top, b""


def _read(
    path: Path,
    block: bytes,
    columns: tuple[str, ...],
    kinds: Mapping[str, Kind],
    needed: set[str],
    first_row: int,
) -> pl.DataFrame:
    """Parse a block; the numeric ones among the needed columns become Float64, the rest String."""
    numbers = [name for name in columns if name in needed and kinds[name] == "number"]
    try:
        return _parse(block, columns, set(numbers))
    except pl.exceptions.PolarsError:
        # Cells such as " 1", "NA" or "true": slower, but it can say which cell is wrong.
        text = _read_text(path, block, columns, first_row)
        return text.with_columns(
            _to_numbers(path, text[name], first_row).alias(name) for name in numbers
        )


def _read_text(path: Path, block: bytes, columns: tuple[str, ...], first_row: int) -> pl.DataFrame:
    try:
        return _parse(block, columns, numbers=set())
    except pl.exceptions.PolarsError as error:
        reason = str(error).split("\n")[0]
        raise DataError(
            f"{path} is not valid CSV with {len(columns)} columns ({reason}) somewhere after row "
            f"{first_row}; repair it"
        ) from None


def _parse(block: bytes, columns: tuple[str, ...], numbers: set[str]) -> pl.DataFrame:
    # With a header of our own, a short line means empty cells wherever it stands in the block.
    header = ",".join(str(index) for index in range(len(columns))).encode() + b"\n"
    schema = {
        str(index): pl.Float64 if name in numbers else pl.String
        for index, name in enumerate(columns)
    }
    frame = pl.read_csv(header + block.rstrip(b"\r\n") + b"\n", schema=schema)
    frame.columns = list(columns)
    return frame


def _header_names(path: Path, header: bytes) -> tuple[str, ...]:
    try:
        cells = pl.read_csv(header, has_header=False, infer_schema=False).row(0)
    except pl.exceptions.PolarsError as error:
        raise DataError(f"the header of {path} cannot be read ({error}); repair it") from None
    names = tuple((cell or f"column {index + 1}").strip() for index, cell in enumerate(cells))
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{path} has two columns named {name!r}; rename one of them")
    return names


def _kind(cells: pl.Series) -> Kind:
    filled = _filled(cells).drop_nulls()
    if filled.is_empty():
        return "text"
    return "text" if _numbers(filled).has_nulls() else "number"


def _filled(cells: pl.Series) -> pl.Series:
    """The cells without surrounding spaces; null where they say that there is nothing."""
    stripped = cells.str.strip_chars()
    return stripped.set(stripped.str.to_lowercase().is_in(EMPTY_CELLS), None)


def _numbers(filled: pl.Series) -> pl.Series:
    lower = filled.str.to_lowercase()
    numbers = filled.cast(pl.Float64, strict=False)
    return numbers.set(lower == "true", 1.0).set(lower == "false", 0.0)


def _to_numbers(path: Path, cells: pl.Series, first_row: int) -> pl.Series:
    filled = _filled(cells)
    numbers = _numbers(filled)
    wrong = (numbers.is_null() & filled.is_not_null()).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"{path.name}: row {first_row + row}, column {cells.name!r} is {cells[row]!r}, but "
            "the column was numeric so far; repair it, or leave the column out with features=[...]"
        )
    return numbers
