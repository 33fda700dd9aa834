"""Object-relational mapping of a snapshot: frozen values as rows of SQLite, and back.

A table is described once: its columns are the fields of a frozen type. Snapshots share what did not
change, so a row is written only if its object is not the one that was written last: a push at
1,000,000 parameters writes what it moved, and arrays that stay, 8 MB each, are not touched.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, TypeAlias, get_type_hints

import msgspec

from oneway.methods.base import PAST_NOISE
from oneway.peer.groups import Bucket, Groups
from oneway.peer.late_labels import Waiting
from oneway.peer.store.average import ModelAverage
from oneway.peer.store.codecs import codec
from oneway.peer.store.history import UNKNOWN, Group, History, history_of, num_shared
from oneway.peer.store.snapshot import Contact, Journal, Snapshot
from oneway.protocol.fixed_point import Fixed, zeros
from oneway.protocol.layout import Layout
from oneway.protocol.messages import Life, Progress
from oneway.protocol.state import EdgeId, InEdge, KeptReceipt, OutEdge, PeerState, Settled
from oneway.records import Matrix, Vector

Change: TypeAlias = tuple[str, list[tuple[Any, ...]]]
"""A statement, and the parameters of each of its executions."""

NOTHING = Snapshot(PeerState.new(dim=0, ledger=0, boot=0))
"""What a store without rows holds: any other snapshot differs from it in everything."""

_AMOUNTS = ("holding", "minted", "gradient_steps", "clipped", "owed")
"""The arrays that a peer has once."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table of SQLite, and the part of a snapshot that is in it.

    Attributes:
        name: Of the table.
        columns: The type of each column, by name.
        num_keys: How many columns, the first ones, tell one row from another.
        rows: The values of a snapshot by what their row is known by; what another snapshot, the
            second argument, has as well may be left out.
        values: The columns of a value, besides those it is known by.
        defaults: What rows of an older release have in a column that is new.
        later: Whether stores exist without it: they get it when they are opened.
    """

    name: str
    columns: Mapping[str, Any]
    num_keys: int
    rows: Callable[[Snapshot, Snapshot], Mapping[Any, Any]]
    values: Callable[[Any], Iterable[Any]]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    later: bool = False

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

    def changes(self, before: Snapshot, after: Snapshot) -> list[Change]:
        """What turns the rows of one snapshot into those of another."""
        new = self.rows(after, before)
        old = {} if before is NOTHING else self.rows(before, after)
        if old is new:
            return []
        gone = [_as_tuple(key) for key in old if key not in new]
        fresh = [
            self._stored(_as_tuple(key), value)
            for key, value in new.items()
            if _differs(old.get(key), value)
        ]
        # First drop, then put: new arrays then take the pages of the old ones.
        both = ((self._drop, gone), (self._put, fresh))
        return [change for change in both if change[1]]

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
    def _drop(self) -> str:
        known = " AND ".join(f"{key} = ?" for key in self._keys)
        return f"DELETE FROM {self.name} WHERE {known}"

    def read(self, connection: sqlite3.Connection, dim: int) -> Iterator[dict[str, Any]]:
        """The rows of a database, in the order of insertion, or of the key if that is a number.

        A column that an older release did not have is left out: its value is the default.
        """
        there = self._columns_in(connection)
        if self.later and not there:
            return
        names = [name for name in self.columns if name in there]
        select = f"SELECT {', '.join(names)} FROM {self.name} ORDER BY rowid"
        for row in connection.execute(select):
            values = zip(names, row, strict=True)
            yield {name: codec(self.columns[name]).read(value, dim) for name, value in values}

    def upgrade(self, connection: sqlite3.Connection) -> None:
        """Add what the table of an older release lacks."""
        there = self._columns_in(connection)
        if not there:
            connection.execute(self.create)
            return
        for name in self.columns.keys() - there:
            write, default = codec(self.columns[name]).write, self.defaults[name]
            stored = write(default) if write else default
            [(default,)] = connection.execute("SELECT quote(?)", (stored,))
            connection.execute(f"ALTER TABLE {self.name} ADD COLUMN {name} DEFAULT {default}")

    def _columns_in(self, connection: sqlite3.Connection) -> set[str]:
        return {row[1] for row in connection.execute(f"PRAGMA table_info({self.name})")}


def _fields(kind: Any, *besides: str) -> dict[str, Any]:
    return {name: hint for name, hint in get_type_hints(kind).items() if name not in besides}


def _edges(name: str, kind: type, where: str, *besides: str) -> Table:
    """A table of edges: known by the key of the other peer and the epoch."""
    columns, edges = _fields(kind, *besides), attrgetter(where)
    return Table(
        name,
        columns,
        num_keys=2,
        rows=lambda snapshot, _: edges(snapshot),
        values=attrgetter(*list(columns)[2:]),
        defaults={
            it.name: it.default
            for it in msgspec.structs.fields(kind)
            if it.default is not msgspec.NODEFAULT
        },
    )


def _arrays(name: str, rows: Callable[[Snapshot, Snapshot], Mapping[str, Matrix]]) -> Table:
    """A table of arrays of any shape, known by their names."""
    columns = {"name": str, "shape": tuple[int, ...], "numbers": Vector}
    return Table(name, columns, 1, rows, lambda array: (array.shape, array), later=True)


def _own(snapshot: Snapshot, _: Snapshot) -> dict[int, tuple[object, ...]]:
    state = snapshot.state
    return {0: (state.ledger, state.boot, state.leaving, snapshot.journal, state.over)}


def _totals(snapshot: Snapshot, other: Snapshot) -> dict[tuple[bytes, int, int], Fixed]:
    rows = {}
    for name, edge in snapshot.state.out.items():
        theirs = other.state.out.get(name)
        if theirs is not edge:
            same = theirs.totals if theirs else {}
            for seq, total in edge.totals.items():
                if same.get(seq) is not total:
                    rows[(*name, seq)] = total
    return rows


def _groups(snapshot: Snapshot, other: Snapshot) -> dict[int, Group]:
    return snapshot.history.groups_from(num_shared(snapshot.history, other.history))


def _buckets(snapshot: Snapshot, _: Snapshot) -> Groups:
    return snapshot.groups


def _average(snapshot: Snapshot, _: Snapshot) -> dict[int, ModelAverage]:
    return {} if snapshot.average is None else {0: snapshot.average}


def _durable_memory(snapshot: Snapshot, _: Snapshot) -> Mapping[str, Vector]:
    # Noise that was stored could be taken off, and in two copies would go on in two ways.
    memory = snapshot.memory
    if PAST_NOISE not in memory:
        return memory
    return {name: array for name, array in memory.items() if name != PAST_NOISE}


TABLES = (
    Table(
        "peer",
        {"id": int, "ledger": int, "boot": int, "leaving": bool, "journal": Journal, "over": int},
        num_keys=1,
        rows=_own,
        values=tuple,
        defaults={"over": 0},
    ),
    Table(
        "amount",
        {"name": str, "units": Fixed},
        num_keys=1,
        rows=lambda snapshot, _: {name: getattr(snapshot.state, name) for name in _AMOUNTS},
        values=lambda units: (units,),
    ),
    Table(
        "contact",
        {"key": bytes, **_fields(Contact)},
        num_keys=1,
        rows=lambda snapshot, _: snapshot.contacts,
        values=attrgetter("name", "address"),
    ),
    _edges("out_edge", OutEdge, "state.out", "totals", "packed"),
    Table(
        "total",
        {"receiver": bytes, "epoch": int, "seq": int, "units": Fixed},
        num_keys=3,
        rows=_totals,
        values=lambda units: (units,),
    ),
    _edges("in_edge", InEdge, "state.in_", "packed"),
    _edges("settled", Settled, "state.settled"),
    Table(
        "life",
        {"key": bytes, **_fields(Life)},
        num_keys=1,
        rows=lambda snapshot, _: snapshot.state.lives,
        values=attrgetter("boot", "over", "leaving", "proof"),
        later=True,
    ),
    Table(
        "progress",
        {"key": bytes, "learned": int, "mark": bytes},
        num_keys=1,
        rows=lambda snapshot, _: snapshot.state.heard_progress,
        values=attrgetter("learned", "mark"),
        later=True,
    ),
    Table(
        "receipt",
        {"receiver": bytes, "sender": bytes, "epoch": int, **_fields(KeptReceipt)},
        num_keys=3,
        rows=lambda snapshot, _: snapshot.state.receipts,
        values=attrgetter("seq", "digest", "tag", "teller"),
        later=True,
    ),
    Table(
        "curve",
        {"first": int, **_fields(Group)},
        num_keys=1,
        rows=_groups,
        values=tuple,
        defaults={"base_sum": UNKNOWN, "alone_sum": UNKNOWN},
        later=True,
    ),
    _arrays("memory", _durable_memory),
    _arrays("measure", lambda snapshot, _: snapshot.measures),
    Table(
        "segment",
        {"name": str, "kind": str, "start": int, "stop": int},
        num_keys=1,
        rows=lambda snapshot, _: snapshot.state.layout.rows,
        values=tuple,
        later=True,
    ),
    Table("bucket", {"id": int, "counts": Bucket}, 1, _buckets, lambda it: (it,), later=True),
    Table(
        "average",
        {"id": int, **_fields(ModelAverage)},
        num_keys=1,
        rows=_average,
        values=attrgetter("boot", "count", "params"),
        later=True,
    ),
    Table(
        "ticket",
        {"id": str, **_fields(Waiting)},
        num_keys=1,
        rows=lambda snapshot, _: snapshot.tickets,
        values=attrgetter(*_fields(Waiting)),
        later=True,
    ),
)
_BY_NAME = {table.name: table for table in TABLES}


def changes(before: Snapshot, after: Snapshot) -> list[Change]:
    """What turns the rows of one snapshot into those of another; nothing if they are the same."""
    return [change for table in TABLES for change in table.changes(before, after)]


def read(connection: sqlite3.Connection, dim: int) -> Snapshot:
    """Return the snapshot in a database.

    Raises:
        ValueError: If the rows are not those of a snapshot with so many parameters.
        TypeError: If columns are missing.
        sqlite3.Error: If they cannot be read.
    """
    found = {table.name: list(table.read(connection, dim)) for table in TABLES}
    [peer] = found["peer"]
    journal = peer["journal"]
    amounts = {"owed": zeros(dim)} | {row["name"]: row["units"] for row in found["amount"]}
    state = PeerState(
        peer["ledger"],
        peer["boot"],
        **amounts,
        out=_out_edges(found["out_edge"], found["total"]),
        in_={(row["sender"], row["epoch"]): InEdge(**row) for row in found["in_edge"]},
        settled={(row["receiver"], row["epoch"]): Settled(**row) for row in found["settled"]},
        leaving=peer["leaving"],
        over=peer.get("over", 0),
        lives={row.pop("key"): Life(**row) for row in found["life"]},
        receipts={
            (row.pop("receiver"), row.pop("sender"), row.pop("epoch")): KeptReceipt(**row)
            for row in found["receipt"]
        },
        heard_progress={row.pop("key"): Progress(**row) for row in found["progress"]},
        layout=Layout.from_rows(
            {row["name"]: (row["kind"], row["start"], row["stop"]) for row in found["segment"]}
        ),
    )
    return Snapshot(
        state,
        journal,
        {row.pop("key"): Contact(**row) for row in found["contact"]},
        _history(found["curve"], journal),
        _arrays_of(found["memory"]),
        {row["id"]: row["counts"] for row in found["bucket"]},
        _arrays_of(found["measure"]),
        _kept_average(found["average"], state.boot),
        {row.pop("id"): Waiting(**row) for row in found["ticket"]},
    )


def _arrays_of(rows: Iterable[dict[str, Any]]) -> dict[str, Matrix]:
    return {row["name"]: row["numbers"].reshape(row["shape"]) for row in rows}


def read_history(connection: sqlite3.Connection) -> History:
    """Return how the loss went, and nothing else; errors are those of `read`."""
    [peer] = _BY_NAME["peer"].read(connection, 0)
    return _history(_BY_NAME["curve"].read(connection, 0), peer["journal"])


def _kept_average(rows: list[dict[str, Any]], boot: int) -> ModelAverage | None:
    """The average of the estimates, if the release that ran last has kept it up."""
    averages = [ModelAverage(row["boot"], row["count"], row["params"]) for row in rows]
    return averages[0] if averages and averages[0].boot == boot else None


def _history(rows: Iterable[dict[str, Any]], journal: Journal) -> History:
    return history_of({row.pop("first"): Group(**row) for row in rows}, journal.samples)


def _out_edges(rows: list[dict[str, Any]], totals: list[dict[str, Any]]) -> dict[EdgeId, OutEdge]:
    by_edge: dict[EdgeId, dict[int, Fixed]] = {}
    for row in totals:
        by_edge.setdefault((row["receiver"], row["epoch"]), {})[row["seq"]] = row["units"]
    out = {}
    for row in rows:
        name = row["receiver"], row["epoch"]
        edge = out[name] = OutEdge(**row, totals=by_edge.pop(name, {}))
        if edge.seq not in edge.totals or edge.acked not in edge.totals:
            raise ValueError("an edge lacks the total it stands at")
    if by_edge:
        raise ValueError("there are totals of an edge that does not exist")
    return out


def _as_tuple(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _differs(old: Any, new: Any) -> bool:
    return old is not new and not (isinstance(new, tuple) and old == new)
