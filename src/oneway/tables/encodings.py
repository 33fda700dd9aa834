"""Text encodings of data files, sniffed: UTF-8, UTF-16 with its mark, and Windows-1252.

A byte order mark decides about a whole source. Without one every line is UTF-8 or, if it is not
valid, Windows-1252, which older programs write: line by line, so that a stream need not be known to
its end. No byte is without a meaning there; only a NUL shows that something is no text.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Literal, TypeAlias

Encoding: TypeAlias = Literal["utf-8", "utf-16-le", "utf-16-be"]

_MARKS: dict[bytes, Encoding] = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


def encoding_of(start: bytes) -> tuple[Encoding, int]:
    """The encoding of a source by its first bytes, and how many of these are a mark.

    >>> encoding_of("é".encode("utf-16")), encoding_of(b"a,b")
    (('utf-16-le', 2), ('utf-8', 0))
    """
    for mark, encoding in _MARKS.items():
        if start.startswith(mark):
            return encoding, len(mark)
    return "utf-8", 0


def line_end(encoding: Encoding) -> bytes:
    """What ends a line."""
    return "\n".encode(encoding)


def split_lines(data: bytes, encoding: Encoding) -> list[bytes]:
    """Split bytes after every line end; the last one may lack it. Lines begin at whole letters."""
    if encoding == "utf-8":
        # Not str.splitlines: it would also split at the line ends that Unicode knows.
        return BytesIO(data).readlines()
    end, lines, start = line_end(encoding), [], 0
    found = data.find(end)
    while found >= 0:
        if found % 2 == 0:  # otherwise it is half of one letter and half of the next
            lines.append(data[start : found + 2])
            start = found + 2
        found = data.find(end, found + 1)
    return [*lines, data[start:]] if start < len(data) else lines


def as_utf8(line: bytes, encoding: Encoding = "utf-8") -> bytes:
    """A line of a source in UTF-8; as it is if it is that."""
    if encoding != "utf-8":
        return line.decode(encoding, errors="replace").encode()
    if not line.isascii():
        try:
            line.decode()
        except UnicodeDecodeError:
            return _windows(line).encode()
    return line


def lines_as_utf8(block: bytes) -> bytes:
    """A block of whole lines, each as `as_utf8` has it."""
    if block.isascii():
        return block
    try:
        block.decode()
    except UnicodeDecodeError:
        return b"".join(map(as_utf8, BytesIO(block).readlines()))
    return block


def blocks_as_utf8(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The blocks of a source; one in UTF-16 becomes UTF-8, without its mark."""
    decoder: codecs.IncrementalDecoder | None = None
    for number, block in enumerate(blocks):
        encoding, mark = encoding_of(block) if number == 0 else ("utf-8", 0)
        if encoding != "utf-8":
            decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
            block = block[mark:]
        yield block if decoder is None else decoder.decode(block).encode()


def _windows(line: bytes) -> str:
    try:
        return line.decode("cp1252")
    except UnicodeDecodeError:
        return line.decode("latin-1")  # five bytes that Windows-1252 leaves free
