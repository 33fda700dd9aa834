"""The rows of a source, each with the place to go on after it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from oneway.tables.format import Values

CHECKED_BYTES = 4096
"""How much of the last row a position remembers."""


class Position(msgspec.Struct, frozen=True):
    """The place in a file right after a row; to be stored, and to go on from after a restart.

    Attributes:
        offset: Where the next row starts, in bytes.
        last_offset: Where the row before started.
        num_rows: How many rows lie before, the bad ones included.
        num_lines: How many lines lie before.
        checksum: Of the header and the beginning of the row before, to know the file by.
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
    """A row as it stands in the source; whether it makes a sample is for the task to say.

    Attributes:
        values: Column -> text (CSV) or JSON value.
        line: Where the row starts, counted from 1.
        position: Where to go on after it.
    """

    values: Values
    line: int
    position: Position


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be parsed.

    Attributes:
        line: Where it starts, counted from 1.
        reason: What is wrong with it.
        position: Where to go on after it.
    """

    line: int
    reason: str
    position: Position
