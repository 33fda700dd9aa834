"""Object-relational mapping of a snapshot: frozen values as rows of SQLite, and back.

A table is described once: its columns are the fields of a frozen type. Snapshots share what did not
change, so a row is written only if its object is not the one that was written last: a push at
1,000,000 parameters writes what it moved, and arrays that stay, 8 MB each, are not touched.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, get_type_hints

from oneway.methods.base import PAST_NOISE
from oneway.peer.groups import Bucket
from oneway.peer.store.average import ModelAverage
from oneway.peer.store.history import Group, History, history_of, num_shared
from oneway.peer.store.large import checksum, is_large, stored_amounts, with_holding
from oneway.peer.store.snapshot import Contact, Journal, Snapshot
from oneway.peer.store.table import Change, Overwrite, Rows, Table
from oneway.peer.store.totals import HEARD, LINKS, TOTALS, StoredTotals
from oneway.protocol.fixed_point import Fixed, zeros
from oneway.protocol.layout import Layout
from oneway.protocol.messages import Life, Progress
from oneway.protocol.state import EdgeId, InEdge, KeptReceipt, OutEdge, PeerState, Settled
from oneway.records import Matrix, Vector


def _fields(kind: Any, *besides: str) -> dict[str, Any]:
    return {name: hint for name, hint in get_type_hints(kind).items() if name not in besides}


def _each(rows: Callable[[Snapshot], Mapping[Any, Any]]) -> Rows:
    """The rows of either of two snapshots."""
    return lambda before, after: (rows(before), rows(after))


def _edges(
    name: str,
    kind: type,
    where: str,
    *besides: str,
    values: Callable[[Any], Iterable[Any]] | None = None,
) -> Table:
    """A table of edges: known by the key of the other peer and the epoch."""
    columns, edges = _fields(kind, *besides), attrgetter(where)
    return Table(
        name,
        columns,
        num_keys=2,
        rows=_each(edges),
        values=values or attrgetter(*list(columns)[2:]),
    )


def _arrays(name: str, rows: Callable[[Snapshot], Mapping[str, Matrix]]) -> Table:
    """A table of arrays of any shape, known by their names."""
    columns = {"name": str, "shape": tuple[int, ...], "numbers": Vector}
    return Table(name, columns, 1, _each(rows), lambda array: (array.shape, array))


def _own(snapshot: Snapshot) -> dict[int, tuple[object, ...]]:
    state = snapshot.state
    own = (state.ledger, state.boot, state.leaving, snapshot.journal, state.over)
    return {0: (*own, checksum(state))}


def _groups(before: Snapshot, after: Snapshot) -> tuple[dict[int, Group], dict[int, Group]]:
    shared = num_shared(before.history, after.history)
    return before.history.groups_from(shared), after.history.groups_from(shared)


def _in_edge(edge: InEdge) -> tuple[Any, ...]:
    # What is large is in a table of its own.
    heard = edge.heard[:0] if is_large(len(edge.heard) - 1) else edge.heard
    return (heard, *_BESIDES_HEARD(edge))


_BESIDES_HEARD = attrgetter(*list(_fields(InEdge, "packed"))[3:])


def _average(snapshot: Snapshot) -> dict[int, ModelAverage]:
    return {} if snapshot.average is None else {0: snapshot.average}


def _durable_memory(snapshot: Snapshot) -> Mapping[str, Vector]:
    # Noise that was stored could be taken off, and in two copies would go on in two ways.
    memory = snapshot.memory
    if PAST_NOISE not in memory:
        return memory
    return {name: array for name, array in memory.items() if name != PAST_NOISE}


TABLES = (
    Table(
        "peer",
        {
            "id": int,
            "ledger": int,
            "boot": int,
            "leaving": bool,
            "journal": Journal,
            "over": int,
            "checksum": bytes,
        },
        num_keys=1,
        rows=_each(_own),
        values=tuple,
    ),
    Table(
        "amount",
        {"name": str, "units": Fixed},
        num_keys=1,
        rows=_each(lambda snapshot: stored_amounts(snapshot.state)),
        values=lambda units: (units,),
        in_place=True,
    ),
    Table(
        "contact",
        {"key": bytes, **_fields(Contact)},
        num_keys=1,
        rows=_each(attrgetter("contacts")),
        values=attrgetter("name", "address"),
    ),
    _edges("out_edge", OutEdge, "state.out", "totals", "packed"),
    TOTALS,
    HEARD,
    LINKS,
    _edges("in_edge", InEdge, "state.in_", "packed", values=_in_edge),
    _edges("settled", Settled, "state.settled"),
    Table(
        "life",
        {"key": bytes, **_fields(Life)},
        num_keys=1,
        rows=_each(attrgetter("state.lives")),
        values=attrgetter("boot", "over", "leaving", "proof"),
    ),
    Table(
        "progress",
        {"key": bytes, "learned": int, "mark": bytes},
        num_keys=1,
        rows=_each(attrgetter("state.heard_progress")),
        values=attrgetter("learned", "mark"),
    ),
    Table(
        "receipt",
        {"receiver": bytes, "sender": bytes, "epoch": int, **_fields(KeptReceipt)},
        num_keys=3,
        rows=_each(attrgetter("state.receipts")),
        values=attrgetter("seq", "digest", "tag", "teller"),
    ),
    Table(
        "curve",
        {"first": int, **_fields(Group)},
        num_keys=1,
        rows=_groups,
        values=tuple,
    ),
    _arrays("memory", _durable_memory),
    _arrays("measure", attrgetter("measures")),
    Table(
        "segment",
        {"name": str, "kind": str, "start": int, "stop": int},
        num_keys=1,
        rows=_each(lambda snapshot: snapshot.state.layout.rows),
        values=tuple,
    ),
    Table(
        "bucket",
        {"id": int, "counts": Bucket},
        1,
        _each(attrgetter("groups")),
        lambda it: (it,),
    ),
    Table(
        "average",
        {"id": int, **_fields(ModelAverage)},
        num_keys=1,
        rows=_each(_average),
        values=attrgetter("count", "params"),
    ),
)
_BY_NAME = {table.name: table for table in TABLES}


def changes(before: Snapshot, after: Snapshot) -> list[Change | Overwrite]:
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
    nothing = zeros(dim)
    amounts: dict[str, Any] = {
        # All arrays of zeros share one, which takes no memory.
        row["name"]: row["units"] if row["units"].any() else nothing
        for row in found["amount"]
    }
    layout = Layout.from_rows(
        {row["name"]: (row["kind"], row["start"], row["stop"]) for row in found["segment"]}
    )
    sent, heard = (
        StoredTotals(layout, found[name], [row for row in found["link"] if row["outward"] is out])
        for name, out in (("total", True), ("heard", False))
    )
    state = PeerState(
        peer["ledger"],
        peer["boot"],
        **{**amounts, "holding": nothing},
        out=_out_edges(found["out_edge"], sent),
        in_=_in_edges(found["in_edge"], heard),
        settled={(row["receiver"], row["epoch"]): Settled(**row) for row in found["settled"]},
        leaving=peer["leaving"],
        over=peer["over"],
        lives={row.pop("key"): Life(**row) for row in found["life"]},
        receipts={
            (row.pop("receiver"), row.pop("sender"), row.pop("epoch")): KeptReceipt(**row)
            for row in found["receipt"]
        },
        heard_progress={row.pop("key"): Progress(**row) for row in found["progress"]},
        layout=layout,
    )
    return Snapshot(
        with_holding(state, amounts, peer["checksum"]),
        journal,
        {row.pop("key"): Contact(**row) for row in found["contact"]},
        _history(found["curve"]),
        _arrays_of(found["memory"]),
        {row["id"]: row["counts"] for row in found["bucket"]},
        _arrays_of(found["measure"]),
        *(ModelAverage(row["count"], row["params"]) for row in found["average"]),
    )


def _arrays_of(rows: Iterable[dict[str, Any]]) -> dict[str, Matrix]:
    return {row["name"]: row["numbers"].reshape(row["shape"]) for row in rows}


def read_history(connection: sqlite3.Connection) -> History:
    """Return how the loss went, and nothing else; errors are those of `read`."""
    return _history(_BY_NAME["curve"].read(connection, 0))


def _history(rows: Iterable[dict[str, Any]]) -> History:
    return history_of({row.pop("first"): Group(**row) for row in rows})


def _out_edges(rows: Iterable[dict[str, Any]], totals: StoredTotals) -> dict[EdgeId, OutEdge]:
    out = {}
    for row in rows:
        name = row["receiver"], row["epoch"]
        out[name] = OutEdge(**row, totals=totals.take(name, row["acked"], row["seq"]))
    totals.check_empty()
    return out


def _in_edges(rows: Iterable[dict[str, Any]], totals: StoredTotals) -> dict[EdgeId, InEdge]:
    in_ = {}
    for row in rows:
        name = row["sender"], row["epoch"]
        if not len(row["heard"]):
            row["heard"] = totals.take(name, row["seq"], row["seq"])[row["seq"]]
        in_[name] = InEdge(**row)
    totals.check_empty()
    return in_
