"""Reading: files and frames of any kind as one polars frame of raw cells.

Columns are Float64 where every cell is a number or missing, arrays, or else String. The rows that a
`RowReader` gives are the definition; polars reads what provably has the same cells.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import json
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from oneway.errors import DataError, MissingDataError
from oneway.sentences import shown
from oneway.tables.arrays import LABEL, Arrays, holds_arrays, open_arrays
from oneway.tables.cells import (
    EMPTY,
    EXACT_BELOW,
    NONE,
    SPACES,
    column_numbers,
    is_missing,
)
from oneway.tables.rows import (
    DECIMAL_COMMA,
    MAX_LINE_BYTES,
    BadRow,
    Header,
    RowReader,
    Values,
    as_utf8,
    read_header,
    sniff,
)

OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
TEXT = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".libsvm", ".svm")
BLOCK_BYTES = 2**24
TOP_BYTES = 2**21
"""How much of a file suggests which columns are numbers."""
TOP_CELLS = 1000
"""So many are looked at before all are."""
_DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, pl.exceptions.PolarsError)
_NULLS = sorted({*EMPTY[1:], *(word.upper() for word in EMPTY), "NaN", "Null", "NaT", NONE} - {""})
"""The usual spellings of a missing value; polars reads a column with others as text."""


def read_frame(path: Path, names: Sequence[str] | None = None) -> pl.DataFrame:
    """Read a CSV, JSON-lines, LIBSVM or Parquet file, or a file or folder of arrays.

    Args:
        path: Text may be compressed (.gz, .bz2, .xz).
        names: The columns of a text file without a header; the label of LIBSVM is "label".

    Raises:
        MissingDataError: There is no such file.
        DataError: It cannot be read as what its name says.
    """
    if holds_arrays(path):
        return of_arrays(open_arrays(path))
    kind = file_kind(path)
    try:
        if kind == ".parquet":
            return typed(pl.read_parquet(path))
        if kind in (".libsvm", ".svm"):
            return _libsvm(path, names)
        return _text(path, names)
    except FileNotFoundError:
        raise MissingDataError(f"{path} does not exist; check the path") from None
    except _DAMAGE as error:
        raise DataError(
            f"{path} cannot be read ({str(error).splitlines()[0]}); if it is damaged or cut off, "
            "write or download it again"
        ) from None


def file_kind(path: Path) -> str:
    """Return the end of a file's name that says what it holds, without that of its compression.

    Raises:
        DataError: It is nothing that can be read.
    """
    compressed = path.suffix.lower() in OPENERS
    suffix = (Path(path.stem) if compressed else path).suffix.lower()
    if suffix in TEXT or (suffix == ".parquet" and not compressed):
        return suffix
    raise DataError(
        f"{path.name} ends in {path.suffix or 'nothing'!r}, but a table is a .csv, .tsv, .txt, "
        ".jsonl, .libsvm or .svm file (or one of those with .gz, .bz2 or .xz), a .parquet file, or "
        "arrays in a .npy or .npz file or a folder; rename or convert it"
    )


def typed(frame: pl.DataFrame) -> pl.DataFrame:
    """Return columns of any types as Float64, Float32, arrays of numbers, or String."""
    return pl.DataFrame([_typed(cells) for cells in frame])


def of_frame(frame: Any) -> pl.DataFrame:
    """Return a DataFrame of polars or pandas as one of raw cells.

    Raises:
        DataError: If it is neither, or a name of a column is no text or there twice.
    """
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        return typed(frame)
    if not (hasattr(frame, "columns") and hasattr(frame, "dtypes") and hasattr(frame, "to_numpy")):
        raise DataError(
            f"the frame is {shown(frame)}; it must be a DataFrame of pandas or polars; for arrays "
            "there is Table.from_arrays"
        )
    columns: list[pl.Series] = []
    for place, name in enumerate(frame.columns):
        if not isinstance(name, str):
            raise DataError(
                f"column {place} of the frame is named {shown(name)}; the name of a column must be "
                "text: rename it, for example with frame.columns = map(str, frame.columns)"
            )
        if any(name == column.name for column in columns):
            raise DataError(f"the frame has two columns named {name!r}; rename one of them")
        # By place: a name that is there twice would give a frame.
        cells = frame.iloc[:, place]
        if isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "iuf":
            columns.append(_typed(pl.Series(name, cells.to_numpy())))
        else:
            columns.append(cells_of(name, cells.tolist()))
    return pl.DataFrame(columns)


def of_arrays(arrays: Arrays) -> pl.DataFrame:
    """Return arrays and their labels as a frame."""
    column = array_column(arrays.name, arrays.features)
    return pl.DataFrame([column, cells_of(LABEL, arrays.labels)])


def cells_of(name: str, cells: Iterable[Any]) -> pl.Series:
    """Return Python values as a column: of numbers if all are, else of text as in a file."""
    rows = [None if is_missing(cell) else cell for cell in _plain(cells)]
    filled = [cell for cell in rows if cell is not None]
    if filled and all(type(cell) in (int, float) and abs(cell) < EXACT_BELOW for cell in filled):
        return pl.Series(name, rows, pl.Float64, strict=False)
    return _typed(pl.Series(name, [_text_of(cell) for cell in rows], pl.String))


def array_column(name: str, arrays: np.ndarray[Any, Any]) -> pl.Series:
    """Return arrays `[row, ...]` as a column, without a copy where polars has their type."""
    known = arrays.dtype.kind in "iuf" and arrays.dtype.itemsize * 8 in (8, 16, 32, 64)
    if not known or arrays.dtype == np.float16:
        arrays = arrays.astype(np.uint8 if arrays.dtype.kind == "b" else np.float64)
    native = arrays.astype(arrays.dtype.newbyteorder("="), copy=False)
    return pl.Series(name, np.ascontiguousarray(native))


def line_of(path: Path, row: int) -> str:
    """Say where in a text file a row of its frame stands; the file is read up to there."""
    if holds_arrays(path) or file_kind(path) not in TEXT[:6]:
        return f"row {row}"
    reader = RowReader(str(path))
    with _opened(path) as file:
        found = chain(_rows(reader, iter(lambda: file.read(BLOCK_BYTES), b"")), reader.finish())
        for number, item in enumerate(found):
            if number == row:
                return f"line {item.line:,}"
    return f"row {row}"


def _plain(cells: Iterable[Any]) -> Iterator[Any]:
    for cell in cells:
        yield cell.item() if isinstance(cell, np.generic) else cell


def _text_of(cell: Any) -> str | None:
    """A cell as a file would spell it."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, list | tuple | dict | np.ndarray):
        plain = cell.tolist() if isinstance(cell, np.ndarray) else cell
        return json.dumps(plain, default=str)
    return None if cell is None else str(cell)


def _typed(cells: pl.Series) -> pl.Series:
    dtype = cells.dtype
    if isinstance(dtype, pl.Array):
        inner: Any = dtype.inner
        while isinstance(inner, pl.Array):
            inner = inner.inner
        if inner.is_numeric():
            return cells
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
        return cells_of(cells.name, cells.to_list())
    if dtype.is_integer() and len(cells) and _largest(cells) >= EXACT_BELOW:
        return cells.cast(pl.String)  # such as an id: as a float it would lose digits
    if dtype.is_numeric():
        return (cells if dtype == pl.Float32 else cells.cast(pl.Float64)).fill_nan(None)
    if isinstance(dtype, pl.Datetime):
        cells = cells.dt.replace_time_zone(None)  # times are local
    text = cells.cast(pl.String)
    if dtype != pl.String:
        return text
    if column_numbers(text.head(TOP_CELLS))[1].any():
        return text
    numbers, wrong = column_numbers(text)
    known = numbers[~np.isnan(numbers)]
    words = text.str.to_lowercase().str.contains("true|false").any()
    if wrong.any() or words or not known.size or np.abs(known).max() >= EXACT_BELOW:
        return text
    return pl.Series(cells.name, numbers).fill_nan(None)


def _largest(cells: pl.Series) -> float:
    ends = [float(end) for end in (cells.min(), cells.max()) if end is not None]  # type: ignore[arg-type]
    return max(map(abs, ends), default=0.0)


def _opened(path: Path) -> IO[bytes]:
    file: IO[bytes] = OPENERS.get(path.suffix.lower(), open)(path, "rb")
    return file


def _text(path: Path, names: Sequence[str] | None) -> pl.DataFrame:
    """CSV or JSON lines, as the first line says."""
    with _opened(path) as file:
        top = file.read(TOP_BYTES)
        if names is None:
            header = read_header(top, str(path))
        else:
            first = top.partition(b"\n")[0].decode(errors="replace")
            header = Header(tuple(names), sniff(first, path.name)[0])
        if header is None:
            raise DataError(f"{path} is empty; a table needs a header and rows")
        compressed = path.suffix.lower() in OPENERS
        source: Path | bytes = top + file.read() if compressed else path
    frame = _fast(source, header, top, has_names=names is None) if header.is_csv else None
    if frame is None:
        data = source if isinstance(source, bytes) else path.read_bytes()
        frame = _by_rows(data, header, path.name, has_names=names is None)
    if frame.is_empty():
        raise DataError(f"{path} has no rows; a table needs at least one")
    return frame


def _by_rows(data: bytes, header: Header, name: str, *, has_names: bool) -> pl.DataFrame:
    """The rows as a peer reads them: slower, and says which line is wrong."""
    reader = RowReader(name, header=None if has_names else header)
    rows: list[Values] = []
    for item in chain(_rows(reader, (data,)), reader.finish()):
        if isinstance(item, BadRow):
            raise DataError(f"{name}: line {item.line:,}: {item.reason}; repair it")
        rows.append(item.values)
    columns = header.columns or tuple(dict.fromkeys(chain.from_iterable(rows)))
    return pl.DataFrame([cells_of(column, [row.get(column) for row in rows]) for column in columns])


def _rows(reader: RowReader, pieces: Iterable[bytes]) -> Iterator[Any]:
    return chain.from_iterable(map(reader.feed, pieces))


def _fast(
    source: Path | bytes, header: Header, top: bytes, *, has_names: bool
) -> pl.DataFrame | None:
    """The rows as polars reads them; None if these may be others than those of the row reader."""
    data = _checked(source, header)
    if data is None:
        return None
    types = _guess(top, header)
    layout: dict[str, Any] = {
        "has_header": has_names,
        "skip_lines": header.num_lines - 1 if has_names else 0,
        "separator": header.separator,
    }
    while True:
        try:
            frame = pl.read_csv(data, schema_overrides=types, null_values=_NULLS, **layout)
        except pl.exceptions.PolarsError:
            if pl.Float64 not in types:
                return None
            types = [pl.String] * len(header.columns)
            continue
        if frame.width != len(header.columns):
            return None
        frame.columns = list(header.columns)
        large = [
            cells.dtype == pl.Float64 and len(cells) > 0 and _largest(cells) >= EXACT_BELOW
            for cells in frame
        ]
        if not any(large):
            break
        types = [pl.String if it else kind for it, kind in zip(large, types, strict=True)]
    texts = [cells for cells in frame if cells.dtype == pl.String]
    longest = csv.field_size_limit()
    if any((cells.str.len_bytes().max() or 0) > longest for cells in texts):  # type: ignore[operator]
        return None
    if header.separator != ",":
        number = pl.col(pl.String).str.replace_all(".", "", literal=True)
        number = number.str.replace(",", ".", literal=True)
        comma = pl.col(pl.String).str.contains(DECIMAL_COMMA)
        frame = frame.with_columns(pl.when(comma).then(number).otherwise(pl.col(pl.String)))
    return typed(_without_blank(frame, data, layout))


def _without_blank(
    frame: pl.DataFrame, data: Path | bytes, layout: Mapping[str, Any]
) -> pl.DataFrame:
    """The frame without rows that hold nothing.

    A row of words for missing values is a row: where all cells may be blank, they are read again.
    """
    numbers = [name for name, dtype in frame.schema.items() if dtype == pl.Float64]
    if numbers and not frame.select(pl.all_horizontal(pl.col(numbers).is_null()).any()).item():
        return frame
    empty = pl.all().fill_null("").str.strip_chars(SPACES) == ""
    words = frame.select(pl.col(pl.String))
    if words.width and not words.select(pl.all_horizontal(empty).any()).item():
        return frame
    cells = pl.read_csv(data, infer_schema=False, **layout)
    return frame.filter(~cells.select(pl.all_horizontal(empty)).to_series())


def _guess(top: bytes, header: Header) -> list[Any]:
    """The types of columns by the first rows: Float64 or String."""
    rows = top[header.num_bytes : top.rfind(b"\n") + 1] or top[header.num_bytes :]
    names = header.separator.join(map(str, range(len(header.columns)))).encode()
    try:
        found = pl.read_csv(
            b"".join((names, b"\n", as_utf8(rows))),
            separator=header.separator,
            infer_schema_length=None,
            null_values=_NULLS,
        )
    except pl.exceptions.PolarsError:
        return [pl.String] * len(header.columns)
    return [pl.Float64 if dtype.is_numeric() else pl.String for dtype in found.dtypes]


def _checked(source: Path | bytes, header: Header) -> Path | bytes | None:
    """The source, in UTF-8; None if its rows are not regular.

    Rows are regular if they are as RFC 4180 says: quotes stand only around cells, doubled inside.
    """
    utf8, has_quotes, is_valid = codecs.getincrementaldecoder("utf-8")(), False, True
    num_left, last = 0, b""
    with BytesIO(source) if isinstance(source, bytes) else source.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            last = block[-1:]
            has_quotes = has_quotes or b'"' in block or b"\r" in block
            if b"\0" in block:
                return None
            num_left = _longest_lines(block, num_left)
            if num_left > MAX_LINE_BYTES:
                return None
            try:
                is_valid = is_valid and (block.isascii() or utf8.decode(block) is not None)
            except UnicodeDecodeError:
                is_valid = False
    if last == header.separator.encode():  # polars ignores an empty cell at the very end
        return None
    if is_valid and not has_quotes:
        return source
    data = source if isinstance(source, bytes) else source.read_bytes()
    data = data if is_valid else as_utf8(data)
    if has_quotes and not _is_regular(data, header):
        return None
    return source if is_valid else data


def _longest_lines(block: bytes, num_left: int) -> int:
    """How many bytes after the last line end; more than the most if a line is too long."""
    start = -num_left
    while len(block) - start > MAX_LINE_BYTES:
        end = block.rfind(b"\n", max(start, 0), max(start + MAX_LINE_BYTES, 0)) + 1
        if not end:
            return MAX_LINE_BYTES + 1
        start = end
    return len(block) - (block.rfind(b"\n") + 1 or start)


def _is_regular(data: bytes, header: Header) -> bool:
    separator = header.separator.encode()
    cell = rb'(?:"(?:[^"]++|"")*+"|[^"%s\r\n]*+)' % separator
    line = cell + b"(?:%s%s)*+" % (separator, cell)
    regular = re.compile(rb"(?:%s\r?\n)*+(?:%s)?" % (line, line))
    return regular.fullmatch(data, header.num_bytes) is not None


def _libsvm(path: Path, names: Sequence[str] | None) -> pl.DataFrame:
    """`label index:value ...` with absent entries 0, as a dense table."""
    from sklearn.datasets import load_svmlight_file

    with _opened(path) as file:
        data = file.read()
    try:
        sparse, labels = load_svmlight_file(
            BytesIO(data), n_features=len(names) if names else None, zero_based=False
        )
    except ValueError as error:
        raise DataError(
            f"{path} is not in LIBSVM format ({error}); every line must be `label index:value ...` "
            "with indices that ascend from 1"
        ) from None
    if not len(labels) or not sparse.shape[1]:
        raise DataError(f"{path} has no rows with index:value; a table needs at least one")
    columns = names or [f"feature {column + 1}" for column in range(sparse.shape[1])]
    frame = pl.DataFrame(sparse.toarray(), schema=list(columns))
    return frame.with_columns(pl.Series("label", labels))
