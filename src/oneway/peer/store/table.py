"""Table of SQLite as a description: which rows a snapshot has in it, and what changes them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from functools import cache, cached_property, partial
from operator import attrgetter
from types import UnionType
from typing import Any, NamedTuple, TypeAlias, get_args, get_origin

import msgspec
import numpy as np
from numpy.typing import NDArray

from oneway.peer.store.snapshot import Snapshot
from oneway.protocol.state import PeerState


class Codec(NamedTuple):
    """How SQLite holds values of a type.

    Attributes:
        affinity: Of their column.
        write: Makes of a value what is stored; None if it is stored as it is.
        read: Makes the value of what is stored, given the number of parameters.
    """

    affinity: str
    write: Callable[[Any], Any] | None
    read: Callable[[Any, int], Any]


@cache
def codec(kind: Any) -> Codec:
    """The codec of a type."""
    if get_origin(kind) is np.ndarray:
        [number] = get_args(get_args(kind)[1])
        dtype: np.dtype[Any] = np.dtype(number).newbyteorder("<")
        return Codec("BLOB", partial(_blob, dtype), partial(_array, dtype))
    if is_dataclass(kind) or get_origin(kind) in (tuple, dict):
        # As MessagePack, since SQLite has no NaN, and a sum of losses may be one.
        return Codec(
            "", msgspec.msgpack.encode, lambda stored, _: msgspec.msgpack.decode(stored, type=kind)
        )
    if isinstance(kind, UnionType):
        return Codec("", None, lambda stored, _: msgspec.convert(stored, kind))
    return Codec(
        "BLOB" if kind is bytes else "TEXT" if issubclass(kind, str) else "",
        attrgetter("value") if issubclass(kind, StrEnum) else None,
        lambda stored, _: msgspec.convert(stored, kind, strict=kind is not bool),
    )


def _blob(dtype: np.dtype[Any], array: NDArray[Any]) -> memoryview | bytes:
    flat = np.ascontiguousarray(array, dtype).reshape(-1)
    return flat.data if len(flat) else b""


def _array(dtype: np.dtype[Any], stored: bytes, dim: int) -> NDArray[Any]:
    # Of what is exact, every array is a vector and a mass; an empty one is stored elsewhere.
    if dtype.kind == "i" and len(stored) not in (0, 8 * (dim + 1)):
        raise ValueError(f"an array has {len(stored)} bytes instead of {8 * (dim + 1)}")
    return np.frombuffer(stored, dtype).astype(dtype.newbyteorder("="), copy=False)


class Change(NamedTuple):
    """A statement, and the parameters of each of its executions."""

    statement: str
    parameters: list[tuple[Any, ...]]

    def make(self, connection: sqlite3.Connection) -> None:
        """Execute it, in a transaction that is under way."""
        connection.executemany(self.statement, self.parameters)


class Overwrite(NamedTuple):
    """A large array, written in place: over one that is as long, or else over zeros.

    Attributes:
        table, column: Where it is.
        find: The statement that finds the row.
        key: By which it does.
        array: As it is stored.
        zeros: Puts the row with as many zeros.
    """

    table: str
    column: str
    find: str
    key: tuple[Any, ...]
    array: memoryview
    zeros: Change

    def make(self, connection: sqlite3.Connection) -> None:
        """Write it, in a transaction that is under way."""
        if not self._is_written(connection):
            self.zeros.make(connection)
            self._is_written(connection)

    def _is_written(self, connection: sqlite3.Connection) -> bool:
        for (number,) in connection.execute(self.find, self.key).fetchall():
            with connection.blobopen(self.table, self.column, number) as blob:
                if len(blob) == self.array.nbytes:
                    blob.write(self.array.cast("B"))
                    return True
        return False


Rows: TypeAlias = Callable[[Snapshot, Snapshot], tuple[Mapping[Any, Any], Mapping[Any, Any]]]
"""From two snapshots to the rows of both."""

IN_PLACE_BYTES = 1 << 18
"""Arrays of so many bytes are large enough to be written in place."""

NOTHING = Snapshot(PeerState.new(dim=0, ledger=0, boot=0))
"""What a store without rows holds: any other snapshot differs from it in everything."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table of SQLite, and the part of a snapshot that is in it.

    Attributes:
        name: Of the table.
        columns: The type of each column, by name.
        num_keys: How many columns, the first ones, tell one row from another.
        rows: The values of two snapshots, the earlier one first, by what their rows are known by;
            what both have may be left out.
        values: The columns of a value, besides those it is known by.
        in_place: Whether the last column has arrays that are written over where they are, if they
            are large: a statement makes three copies of them on the way.
    """

    name: str
    columns: Mapping[str, Any]
    num_keys: int
    rows: Rows
    values: Callable[[Any], Iterable[Any]]
    in_place: bool = False

    @cached_property
    def _names(self) -> str:
        return ", ".join(self.columns)

    @cached_property
    def _keys(self) -> list[str]:
        return list(self.columns)[: self.num_keys]

    @property
    def create(self) -> str:
        """The statement that makes the table."""
        columns = [f"{name} {codec(kind).affinity}".strip() for name, kind in self.columns.items()]
        if [self.columns[key] for key in self._keys] == [int]:
            columns[0] = f"{self._keys[0]} INTEGER PRIMARY KEY"
        else:
            columns.append(f"UNIQUE ({', '.join(self._keys)})")
        return f"CREATE TABLE {self.name} ({', '.join(columns)})"

    def changes(self, before: Snapshot, after: Snapshot) -> list[Change | Overwrite]:
        """What turns the rows of one snapshot into those of another."""
        old, new = self.rows(before, after)
        if old is new:
            return []
        if before is NOTHING:
            old = {}
        gone = [_as_tuple(key) for key in old if key not in new]
        fresh: list[tuple[Any, ...]] = []
        over: list[Overwrite] = []
        for key, value in new.items():
            if _differs(old.get(key), value):
                row = self._stored(_as_tuple(key), value)
                if self.in_place and row[-1].nbytes >= IN_PLACE_BYTES:
                    over.append(self._overwrite(row))
                else:
                    fresh.append(row)
        # First drop, then put: new arrays then take the pages of the old ones.
        both = (Change(self._drop, gone), Change(self._put, fresh))
        return [*(change for change in both if change.parameters), *over]

    def _overwrite(self, row: tuple[Any, ...]) -> Overwrite:
        column, array = list(self.columns)[-1], row[-1]
        zeros = Change(self._put_zeros, [(*row[:-1], array.nbytes)])
        return Overwrite(self.name, column, self._find, row[: self.num_keys], array, zeros)

    def _stored(self, key: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        row = [*key, *self.values(value)]
        for index, write in self._writers:
            row[index] = write(row[index])
        return tuple(row)

    @cached_property
    def _writers(self) -> list[tuple[int, Callable[[Any], Any]]]:
        """The columns that SQLite cannot hold as they are."""
        writers = [codec(kind).write for kind in self.columns.values()]
        return [(index, write) for index, write in enumerate(writers) if write is not None]

    @cached_property
    def _put(self) -> str:
        anew = [f"{name} = excluded.{name}" for name in self.columns if name not in self._keys]
        # Not REPLACE, which would free and write again every page of a row, the unchanged ones too.
        return (
            f"INSERT INTO {self.name} ({self._names}) VALUES ({', '.join('?' * len(self.columns))})"
            f" ON CONFLICT ({', '.join(self._keys)}) DO UPDATE SET {', '.join(anew)}"
        )

    @cached_property
    def _put_zeros(self) -> str:
        return self._put.replace("?)", "zeroblob(?))", 1)

    @cached_property
    def _drop(self) -> str:
        return f"DELETE FROM {self.name} WHERE {self._known}"

    @cached_property
    def _find(self) -> str:
        return f"SELECT rowid FROM {self.name} WHERE {self._known}"

    @cached_property
    def _known(self) -> str:
        return " AND ".join(f"{key} = ?" for key in self._keys)

    def read(self, connection: sqlite3.Connection, dim: int) -> Iterator[dict[str, Any]]:
        """The rows of a database, in the order of insertion, or of the key if that is a number."""
        for row in connection.execute(f"SELECT {self._names} FROM {self.name} ORDER BY rowid"):
            values = zip(self.columns.items(), row, strict=True)
            yield {name: codec(kind).read(value, dim) for (name, kind), value in values}


def _as_tuple(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _differs(old: Any, new: Any) -> bool:
    return old is not new and not (isinstance(new, tuple) and old == new)
