"""A snapshot as rows of SQLite: what to write so that one snapshot becomes the next, and back.

Snapshots are frozen values that share what did not change. A row is written only if its object is
not the one that was written last, so that a push at 1,000,000 parameters writes what it moved and
no more: arrays that stay as they are, 8 MB each, are not touched.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec
import numpy as np

from oneway.peer.store import history_rows
from oneway.peer.store.history import History
from oneway.peer.store.snapshot import Contact, Journal, Snapshot
from oneway.peer.store.statements import Change, put, select
from oneway.protocol.fixed_point import Fixed
from oneway.protocol.state import EdgeId, InEdge, OutEdge, OutPhase, PeerState, Settled

SCHEMA = (
    "CREATE TABLE owner (key BLOB, task BLOB, dim)",
    "CREATE TABLE peer (id INTEGER PRIMARY KEY, ledger, boot, leaving, journal)",
    "CREATE TABLE amount (name TEXT, units BLOB, UNIQUE (name))",
    "CREATE TABLE contact (key BLOB, name TEXT, address TEXT, UNIQUE (key))",
    "CREATE TABLE out_edge (receiver BLOB, epoch, session, phase TEXT, seq, acked, ledger,"
    " granted, their_boot, UNIQUE (receiver, epoch))",
    # The key is not the table: rows of megabytes would be slow to move about in an index.
    "CREATE TABLE total (receiver BLOB, epoch, seq, units BLOB, UNIQUE (receiver, epoch, seq))",
    "CREATE TABLE in_edge (sender BLOB, epoch, heard BLOB, seq, tag BLOB, session, granted,"
    " closed, UNIQUE (sender, epoch))",
    "CREATE TABLE settled (receiver BLOB, epoch, ledger, seq, total BLOB, their_boot,"
    " UNIQUE (receiver, epoch))",
    history_rows.TABLE,
)

LATER_TABLES = (history_rows.TABLE,)
"""What stores lack that were made before; made only where it is missing."""

NOTHING = Snapshot(PeerState.new(dim=0, ledger=0, boot=0))
"""What a store without rows holds: any other snapshot differs from it in everything."""

_AMOUNTS = ("holding", "minted", "gradient_steps", "clipped")
"""The arrays that a peer has once."""

_Name = TypeVar("_Name")
_Value = TypeVar("_Value")


_PUT_PEER = put("peer", "id", "ledger, boot, leaving, journal")
_PUT_AMOUNT = put("amount", "name", "units")
_PUT_CONTACT = put("contact", "key", "name, address")
_DROP_CONTACT = "DELETE FROM contact WHERE key = ?"
_OUT = "session, phase, seq, acked, ledger, granted, their_boot"
_PUT_OUT = put("out_edge", "receiver, epoch", _OUT)
_DROP_OUT = "DELETE FROM out_edge WHERE receiver = ? AND epoch = ?"
_PUT_TOTAL = put("total", "receiver, epoch, seq", "units")
_DROP_TOTAL = "DELETE FROM total WHERE receiver = ? AND epoch = ? AND seq = ?"
_IN = "heard, seq, tag, session, granted, closed"
_PUT_IN = put("in_edge", "sender, epoch", _IN)
_DROP_IN = "DELETE FROM in_edge WHERE sender = ? AND epoch = ?"
_SETTLED = "ledger, seq, total, their_boot"
_PUT_SETTLED = put("settled", "receiver, epoch", _SETTLED)
_DROP_SETTLED = "DELETE FROM settled WHERE receiver = ? AND epoch = ?"


def changes(before: Snapshot, after: Snapshot) -> list[Change]:
    """What turns the rows of one snapshot into those of another; nothing if they are the same."""
    return [change for change in _all_changes(before, after) if change[1]]


def _all_changes(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    old, new = before.state, after.state
    if before is NOTHING or _own(before) != _own(after):
        yield _PUT_PEER, [_peer_row(after)]
    amounts = [(name, getattr(old, name), getattr(new, name)) for name in _AMOUNTS]
    yield _PUT_AMOUNT, [(name, _blob(now)) for name, then, now in amounts if now is not then]
    yield _DROP_CONTACT, [(key,) for key in _gone(before.contacts, after.contacts)]
    yield (
        _PUT_CONTACT,
        [
            (key, contact.name, contact.address)
            for key, contact in _changed(before.contacts, after.contacts)
        ],
    )
    yield from _out_changes(old.out, new.out)
    yield _DROP_IN, list(_gone(old.in_, new.in_))
    yield _PUT_IN, [_in_row(edge) for _, edge in _changed(old.in_, new.in_)]
    yield _DROP_SETTLED, list(_gone(old.settled, new.settled))
    yield _PUT_SETTLED, [_settled_row(end) for _, end in _changed(old.settled, new.settled)]
    yield from history_rows.history_changes(before.history, after.history)


def _out_changes(
    before: Mapping[EdgeId, OutEdge], after: Mapping[EdgeId, OutEdge]
) -> Iterator[Change]:
    gone = list(_gone(before, after))
    changed = list(_changed(before, after))
    stale = [(*name, seq) for name in gone for seq in before[name].totals]
    fresh = []
    for name, edge in changed:
        then = before[name].totals if name in before else {}
        stale += [(*name, seq) for seq in _gone(then, edge.totals)]
        fresh += [(*name, seq, _blob(total)) for seq, total in _changed(then, edge.totals)]
    yield _DROP_OUT, gone
    yield _PUT_OUT, [_out_row(edge) for _, edge in changed]
    # First drop, then put: the new totals then take the pages of the old ones.
    yield _DROP_TOTAL, stale
    yield _PUT_TOTAL, fresh


def _gone(before: Mapping[_Name, Any], after: Mapping[_Name, Any]) -> Iterator[_Name]:
    if before is not after:
        yield from (name for name in before if name not in after)


def _changed(
    before: Mapping[_Name, _Value], after: Mapping[_Name, _Value]
) -> Iterator[tuple[_Name, _Value]]:
    if before is not after:
        yield from (item for item in after.items() if before.get(item[0]) is not item[1])


def _own(snapshot: Snapshot) -> tuple[int, int, bool, Journal]:
    state = snapshot.state
    return state.ledger, state.boot, state.leaving, snapshot.journal


def _peer_row(snapshot: Snapshot) -> tuple[Any, ...]:
    ledger, boot, leaving, journal = _own(snapshot)
    # As MessagePack, since SQLite has no NaN, and a sum of losses may be one.
    return 0, ledger, boot, leaving, msgspec.msgpack.encode(journal)


def _out_row(edge: OutEdge) -> tuple[Any, ...]:
    return (
        edge.receiver,
        edge.epoch,
        edge.session,
        edge.phase.value,
        edge.seq,
        edge.acked,
        edge.ledger,
        edge.granted,
        edge.their_boot,
    )


def _in_row(edge: InEdge) -> tuple[Any, ...]:
    return (
        edge.sender,
        edge.epoch,
        _blob(edge.heard),
        edge.seq,
        edge.tag,
        edge.session,
        edge.granted,
        edge.closed,
    )


def _settled_row(end: Settled) -> tuple[Any, ...]:
    return end.receiver, end.epoch, end.ledger, end.seq, _blob(end.total), end.their_boot


def _blob(amount: Fixed) -> memoryview:
    return np.ascontiguousarray(amount, dtype="<i8").data


def read(connection: sqlite3.Connection, dim: int) -> Snapshot:
    """Return the snapshot in a database with this `SCHEMA`.

    Raises:
        ValueError: If the rows are not those of a snapshot with so many parameters.
        sqlite3.Error: If they cannot be read.
    """
    [(ledger, boot, leaving)] = select(connection, "peer", "ledger, boot, leaving")
    journal = _read_journal(connection)
    amounts = select(connection, "amount", "name, units")
    state = PeerState(
        ledger,
        boot,
        **{name: _array(units, dim) for name, units in amounts},
        out=_read_out(connection, dim),
        in_=_read_in(connection, dim),
        settled=_read_settled(connection, dim),
        leaving=bool(leaving),
    )
    contacts = select(connection, "contact", "key, name, address")
    return Snapshot(
        state,
        journal,
        {key: Contact(name, address) for key, name, address in contacts},
        history_rows.read_history(connection, journal.samples),
    )


def read_history(connection: sqlite3.Connection) -> History:
    """Return how the loss went, and nothing else.

    Raises:
        ValueError: If the rows are not those of a history.
        sqlite3.Error: If they cannot be read.
    """
    return history_rows.read_history(connection, _read_journal(connection).samples)


def _read_journal(connection: sqlite3.Connection) -> Journal:
    [(journal,)] = select(connection, "peer", "journal")
    return msgspec.msgpack.decode(journal, type=Journal)


def _read_out(connection: sqlite3.Connection, dim: int) -> dict[EdgeId, OutEdge]:
    totals: dict[EdgeId, dict[int, Fixed]] = {}
    for receiver, epoch, seq, units in select(connection, "total", "receiver, epoch, seq, units"):
        totals.setdefault((receiver, epoch), {})[seq] = _array(units, dim)
    out = {}
    for row in select(connection, "out_edge", f"receiver, epoch, {_OUT}"):
        receiver, epoch, session, phase, seq, acked, *rest = row
        history = totals.pop((receiver, epoch), {})
        if seq not in history or acked not in history:
            raise ValueError("an edge lacks the total it stands at")
        edge = OutEdge(receiver, epoch, session, OutPhase(phase), history, seq, acked, *rest)
        out[receiver, epoch] = edge
    if totals:
        raise ValueError("there are totals of an edge that does not exist")
    return out


def _read_in(connection: sqlite3.Connection, dim: int) -> dict[EdgeId, InEdge]:
    in_ = {}
    for row in select(connection, "in_edge", f"sender, epoch, {_IN}"):
        sender, epoch, heard, seq, tag, session, granted, closed = row
        edge = InEdge(
            sender, epoch, _array(heard, dim), seq, tag, session, granted, closed=bool(closed)
        )
        in_[sender, epoch] = edge
    return in_


def _read_settled(connection: sqlite3.Connection, dim: int) -> dict[EdgeId, Settled]:
    return {
        (receiver, epoch): Settled(receiver, epoch, ledger, seq, _array(total, dim), their_boot)
        for receiver, epoch, ledger, seq, total, their_boot in select(
            connection, "settled", f"receiver, epoch, {_SETTLED}"
        )
    }


def _array(blob: bytes, dim: int) -> Fixed:
    if len(blob) != 8 * (dim + 1):
        raise ValueError(f"an array has {len(blob)} bytes instead of {8 * (dim + 1)}")
    return np.frombuffer(blob, dtype="<i8").astype(np.int64, copy=False)
