"""Large text files, plain or compressed, in blocks of whole lines."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from oneway.errors import DataError, MissingDataError
from oneway.tables.encodings import blocks_as_utf8

BLOCK_BYTES = 16 * 2**20
LONGEST_RECORD_BYTES = 4 * BLOCK_BYTES
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
COMPRESSIONS = tuple(_OPENERS)


class OpenQuoteError(DataError):
    """A text file has a quote that is not closed within a few blocks."""


def line_blocks(path: Path, *, quoted: bool, block_bytes: int | None = None) -> Iterator[bytes]:
    """Read a text file, plain or compressed, in blocks that end at the end of a line.

    With `quoted`, a line end between double quotes is part of a cell, as in CSV. A block has about
    `block_bytes` (`BLOCK_BYTES` if not given) and is never empty. UTF-16 becomes UTF-8.

    Raises:
        MissingDataError: If there is no such file.
        OpenQuoteError: If a quote is not closed within a few blocks.
        DataError: If the file ends early or is damaged.
    """
    size = BLOCK_BYTES if block_bytes is None else block_bytes
    rest = b""
    for read in blocks_as_utf8(_raw_blocks(path, size)):
        block = rest + read
        end = _last_line_end(block, quoted)
        if end:
            yield block[:end]
        elif len(block) > max(LONGEST_RECORD_BYTES, 4 * size):
            raise OpenQuoteError(
                f"{path} has no line end outside quotes in {len(block) >> 20} MB; "
                "is it text, and is every quote closed?"
            )
        rest = block[end:]
    if rest:
        yield rest


def split_first_line(block: bytes) -> tuple[bytes, bytes]:
    """Split off the first line, line ends between double quotes not counted."""
    end = block.find(b"\n")
    while end >= 0 and block.count(b'"', 0, end) % 2:
        end = block.find(b"\n", end + 1)
    return (block, b"") if end < 0 else (block[: end + 1], block[end + 1 :])


def _last_line_end(block: bytes, quoted: bool) -> int:
    """The number of bytes up to and including the last line end that is not between quotes."""
    end = block.rfind(b"\n")
    if not quoted or b'"' not in block:
        return end + 1
    # A cell starts and ends with a quote and doubles those inside: outside, the count is even.
    quotes = block.count(b'"', 0, end + 1)
    while end >= 0 and quotes % 2:
        previous = block.rfind(b"\n", 0, end)
        quotes -= block.count(b'"', previous + 1, end)
        end = previous
    return end + 1


def _raw_blocks(path: Path, size: int) -> Iterator[bytes]:
    try:
        opener: Callable[..., IO[bytes]] = _OPENERS.get(path.suffix.lower(), open)
        with opener(path, "rb") as file:
            while block := file.read(size):
                yield block
    except FileNotFoundError:
        raise MissingDataError(f"{path} does not exist; check the path") from None
    except EOFError:
        raise DataError(
            f"{path} ends early: its compressed data is cut off; download it again"
        ) from None
    except (zlib.error, lzma.LZMAError, OSError) as error:
        raise DataError(
            f"{path} cannot be read ({error}); if it is damaged, download it again"
        ) from None
