"""Edge files: SNAP, KONECT and CSV, plain or gzipped.

One line is one edge, `sender receiver [weight [time]]`, separated by blanks or tabs, or by commas
or semicolons. Times are ignored. Lines that start with `#` or `%` are comments; if those at the top
say that the network is undirected (`% sym` in KONECT, `# Undirected graph` in SNAP), every line is
an edge each way.

The first line is a header if it has a sender and a receiver column, and its names then say which
columns count; or if neither of its first two columns is a number and the next line's are integers.

A file may say something twice or about a node itself: of repeated edges the last weight counts (a
later statement replaces an earlier one), self-loops are dropped without a word (Advogato's users
certify themselves), though their node counts. Integer ids are numbered in ascending order, names
in order of appearance; the first edge decides which of the two a file uses, and ids that are not
both 64-bit integers are names.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np

from oneway.errors import DataError, GraphError, MissingDataError
from oneway.records import Ints
from oneway.topology.edges import EdgeList

FilePath: TypeAlias = str | PathLike[str]

HEADERS = {
    "sender": {"sender", "source", "from", "src", "fromnodeid", "truster", "trustor"},
    "receiver": {"receiver", "target", "to", "dst", "tonodeid", "trustee"},
    "weight": {"weight", "trust", "rating", "value"},
}

_COMMENT_LINES = re.compile(rb"^[#%].*\n?", re.MULTILINE)
# Looks at comments and empty lines only, from the start of the file.
_UNDIRECTED = re.compile(
    rb"(?:[#%].*\n|\n)*?(?:%[ \t]*sym\b|#[ \t]*undirected graph\b)", re.IGNORECASE
)
_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class _Layout:
    """Which separator a file uses, and where sender, receiver and maybe weight stand."""

    separator: str
    has_header: bool
    columns: Mapping[str, int]
    num_columns: int
    integer_ids: bool


def read_edges(path: FilePath, most_bytes: float = np.inf) -> EdgeList:
    """Read an edge list, see above for what is understood and `TrustGraph.read` for errors."""
    import polars as pl  # slow to import, and only needed when a file is read

    file = Path(path)
    raw = _read_bytes(file)
    text = _unpack(file, raw, most_bytes)
    lines = _tidy(text)
    layout = _layout(lines)
    if lines.count(b"\n") + 1 == layout.has_header or not lines:
        raise GraphError(
            f"{file} holds no edges; it needs a line `sender receiver [weight]` for each"
        )
    table = _parse(file, text, lines, layout)
    if _UNDIRECTED.match(text):
        # Line by line both ways, so that the last weight still counts, whichever way it is given.
        back = table.rename({"sender": "receiver", "receiver": "sender"}).select(table.columns)
        table = pl.concat([table, back])[np.arange(2 * len(table)).reshape(2, -1).T.ravel()]
    names, senders, receivers = (_numbered if layout.integer_ids else _named)(table)
    weights = None
    if "weight" in layout.columns:
        last = pl.DataFrame({"sender": senders, "receiver": receivers, "weight": table["weight"]})
        last = last.unique(["sender", "receiver"], keep="last")
        senders, receivers, weights = (last[column].to_numpy() for column in last.columns)
    return EdgeList(
        num_nodes=int(max(senders.max(), receivers.max())) + 1 if names is None else len(names),
        senders=senders,
        receivers=receivers,
        weights=weights,
        names=names,
        origin={"graph": "file", "file": str(path), "sha256": hashlib.sha256(raw).hexdigest()},
    )


def _numbered(table: Any) -> tuple[tuple[str, ...] | None, Ints, Ints]:
    """Names, in the order of the ids, if these are not 0 to n - 1; and the ends, as numbers."""
    ids, places = np.unique(table.select("sender", "receiver").to_numpy(), return_inverse=True)
    senders, receivers = places.reshape(-1, 2).T
    numbered = ids[0] == 0 and ids[-1] == len(ids) - 1
    return None if numbered else tuple(map(str, ids.tolist())), senders, receivers


def _named(table: Any) -> tuple[tuple[str, ...] | None, Ints, Ints]:
    """Names in the order of appearance, line by line, and the ends, as numbers."""
    import polars as pl  # slow to import, and only needed when a file is read

    ids = table.select(pl.concat_list("sender", "receiver").explode()).to_series()
    ids = ids.unique(maintain_order=True)
    numbers = pl.Series(range(len(ids)), dtype=pl.Int64)
    senders, receivers = (
        table[end].replace_strict(ids, numbers).to_numpy() for end in ("sender", "receiver")
    )
    return tuple(ids.to_list()), senders, receivers


def _read_bytes(file: Path) -> bytes:
    """The content of an edge list, as it is."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise MissingDataError(
            f"there is no edge list at {file}; check the path or put the file there"
        ) from None
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}; give a readable file") from None


def _unpack(file: Path, raw: bytes, most_bytes: float) -> bytes:
    """Decompress if it is gzip, whatever its name; line ends become single newlines."""
    num_bytes = len(raw)
    if raw.startswith(b"\x1f\x8b"):
        chunks: list[bytes] = []
        num_bytes = 0
        try:
            with gzip.open(io.BytesIO(raw)) as stream:
                # read1 gives what there is before it complains; read would drop it.
                while num_bytes <= most_bytes and (chunk := stream.read1(1 << 16)):
                    chunks.append(chunk)
                    num_bytes += len(chunk)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            whole_lines = b"".join(chunks).rpartition(b"\n")[0]
            num_edges = sum(1 for line in whole_lines.split(b"\n") if line[:1] not in b"#%")
            raise DataError(
                f"{file} is truncated or damaged: {num_edges:,} edges could be read before it "
                "broke off; download it again"
            ) from None
        raw = b"".join(chunks)
    if num_bytes > most_bytes:
        raise GraphError(
            f"the edge list {file} has more than {most_bytes:,} bytes, too many to be read for a "
            "look; TrustGraph.read reads it all the same"
        )
    return raw.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")


def _tidy(text: bytes) -> bytes:
    """The lines with edges only: no comments, no empty lines, no blanks around them."""
    if b"#" in text or b"%" in text:
        text = _COMMENT_LINES.sub(b"", text)
    first_line = text.lstrip().partition(b"\n")[0]
    if b"," not in first_line and b";" not in first_line:
        text = text.replace(b"\t", b" ")
        while b"  " in text:
            text = text.replace(b"  ", b" ")
    for run, single in ((b" \n", b"\n"), (b"\n ", b"\n"), (b"\n\n", b"\n")):
        while run in text:
            text = text.replace(run, single)
    return text.strip()


def _layout(lines: bytes) -> _Layout:
    """Read separator, columns and kind of ids off the first two lines."""
    first, _, rest = lines.partition(b"\n")
    separator = next((mark for mark in ",;" if mark.encode() in first), " ")
    cells = _cells(first, separator)
    following = _cells(rest.partition(b"\n")[0], separator)
    words = [cell.lower() for cell in cells]
    columns = {
        name: next(column for column, word in enumerate(words) if word in known)
        for name, known in HEADERS.items()
        if known & set(words)
    }
    by_name = {"sender", "receiver"} <= columns.keys()
    if not by_name:
        columns = {"sender": 0, "receiver": 1} | ({"weight": 2} if len(cells) > 2 else {})
    has_header = by_name or (
        _are_integers(following[:2]) and not any(_is_number(cell) for cell in cells[:2])
    )
    data = following if has_header else cells
    ends = [columns["sender"], columns["receiver"]]
    ids = [data[column] for column in ends if column < len(data)]
    return _Layout(separator, has_header, columns, len(cells), _are_integers(ids))


def _parse(file: Path, text: bytes, lines: bytes, layout: _Layout) -> Any:
    """A polars table with columns sender, receiver and, if there is one, weight."""
    import polars as pl  # slow to import, and only needed when a file is read

    kinds = {"weight": pl.Float64}
    id_kind = pl.Int64 if layout.integer_ids else pl.String
    try:
        cells = pl.read_csv(
            lines,
            separator=layout.separator,
            has_header=False,
            skip_lines=int(layout.has_header),
            schema={f"column_{column}": pl.String for column in range(layout.num_columns)},
            quote_char=None if layout.separator == " " else '"',
        )
        table = cells.select(
            pl.col(f"column_{column}")
            .str.strip_chars()
            .cast(kinds.get(name, id_kind), strict=True)
            .alias(name)
            for name, column in layout.columns.items()
        )
    except pl.exceptions.PolarsError:
        _blame_a_line(file, text, layout)
    if table.null_count().sum_horizontal().item():
        _blame_a_line(file, text, layout)
    return table


def _blame_a_line(file: Path, text: bytes, layout: _Layout) -> NoReturn:
    """Find the first line that does not parse and say why."""
    numbered = enumerate(text.split(b"\n"), start=1)
    edges = [(number, line) for number, line in numbered if line.strip() and line[:1] not in b"#%"]
    for number, line in edges[layout.has_header :]:
        complaint = _complaint(_cells(line, layout.separator), layout)
        if complaint:
            shown = line.decode(errors="replace").strip()
            raise GraphError(f"line {number} of {file} is {shown!r}: {complaint}; correct it")
    raise GraphError(f"{file} does not parse as an edge list; save it as UTF-8 text")


def _complaint(cells: list[str], layout: _Layout) -> str | None:
    """What is wrong with a line, if anything."""
    if len(cells) < 2:
        return "an edge needs a sender and a receiver"
    if len(cells) != layout.num_columns:
        return f"it has {len(cells)} columns where the first line has {layout.num_columns}"
    found = {name: cells[column] for name, column in layout.columns.items()}
    ids = [found["sender"], found["receiver"]]
    if not all(ids):
        return "a node is missing"
    if layout.integer_ids and not _are_integers(ids):
        return "node ids must be integers (of 64 bits) as in the first line"
    if not _is_number(found.get("weight", "1")):
        return f"the weight {found['weight']!r} is not a number"
    return None


def _cells(line: bytes, separator: str) -> list[str]:
    """The columns of one line; good enough to look at, not for quoted separators."""
    text = line.decode(errors="replace")
    parts = text.split() if separator == " " else text.split(separator)
    return [part.strip().strip('"') for part in parts]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _are_integers(cells: list[str]) -> bool:
    return len(cells) == 2 and all(
        re.fullmatch(r"[+-]?\d+", cell) and _INT64.min <= int(cell) <= _INT64.max for cell in cells
    )
