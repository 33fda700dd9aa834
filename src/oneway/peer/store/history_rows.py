"""A peer's history as rows: a sample more writes one row, unless groups have to be merged.

A row says how many samples came before its group since the peer was made. So nothing else has to be
kept of a history, and nothing can disagree with its rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import msgspec

from oneway.peer.store.history import Group, History, history_of
from oneway.peer.store.statements import Change, put, select

TABLE = (
    "CREATE TABLE IF NOT EXISTS curve (first INTEGER PRIMARY KEY, samples, loss_sum, correct, time)"
)
"""Stores that were made by a release that kept no history lack it, and get it when opened."""

_VALUES = "samples, loss_sum, correct, time"
_PUT = put("curve", "first", _VALUES)
_DROP_ALL = "DELETE FROM curve"


def history_changes(before: History, after: History) -> Iterator[Change]:
    """What turns the rows of one history into those of another; nothing if they are the same."""
    if before is after:
        return
    kept = _num_kept(before, after)
    if kept is None:
        yield _DROP_ALL, [()]
        kept = 0
    starts = range(after.before + kept * after.width, after.before + after.samples, after.width)
    groups = zip(starts, after.groups_from(kept), strict=True)
    yield _PUT, [(first, *group) for first, group in groups]


def _num_kept(before: History, after: History) -> int | None:
    """How many rows of a history may stay as they are; None if it does not go on from the other."""
    same_start = (before.before, before.width) == (after.before, after.width)
    if not same_start or before.samples > after.samples:
        return None
    kept = len(before.full)
    # Shared groups are the same objects, which tuples notice without a look into them.
    if before.full is not after.full and before.full != after.full[:kept]:
        return None
    was_full = len(after.full) > kept and after.full[kept] is before.last
    return kept + was_full


def read_history(connection: sqlite3.Connection, samples: int) -> History:
    """Return the history in a database; one that begins now if it never kept one.

    Args:
        connection: To the database.
        samples: How many samples there were in all.

    Raises:
        ValueError: If the rows are not those of a history.
        sqlite3.Error: If they cannot be read.
    """
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'curve'").fetchall():
        return History(before=samples)
    found = list(select(connection, "curve", f"first, {_VALUES}"))
    # SQLite lets anything be in any column.
    rows = msgspec.convert(found, list[tuple[int, int, float, int, float]])
    return history_of({row[0]: Group(*row[1:]) for row in rows}, samples)
