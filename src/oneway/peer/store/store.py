"""The durable state of a peer: one SQLite file, every commit atomic, and on the disk on return."""

from __future__ import annotations

import logging
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from oneway.errors import StoreError
from oneway.files.atomic import sync_folder
from oneway.peer.identity.keys import key_text
from oneway.peer.store import schema
from oneway.peer.store.file import (
    APPLICATION_ID,
    VERSION,
    check_format,
    connect_to_read,
    connect_to_write,
    failure,
    is_damage,
    is_whole,
    log_of,
    page_size,
    refusal,
)
from oneway.peer.store.large import PUT_OFF, put_off
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.store.table import NOTHING
from oneway.protocol.layout import Layout
from oneway.protocol.stamps import RANDOM_BITS, first_stamp
from oneway.protocol.state import PeerState
from oneway.protocol.transitions import restart
from oneway.records.curve import Curve

_log = logging.getLogger("oneway.peer")


class Owner(NamedTuple):
    """Whose store it is: the peer's public key, its task's fingerprint, its model's size."""

    key: bytes
    task: bytes
    dim: int


class PeerStore:
    """All that a peer must never forget.

    One process at a time may have it open (`home` holds the lock); any process may
    `read_snapshot` or `read_curve`. Threads that commit wait for each other.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, committed: Snapshot) -> None:
        self._path = path
        self._connection = connection
        self._committed = self._latest = committed
        self._commits_put_off = 0
        # A commit that its caller gave up on may still be under way when the next one comes.
        self._writing = threading.Lock()

    @classmethod
    def create(cls, path: Path, owner: Owner, snapshot: Snapshot) -> PeerStore:
        """Make a new store that holds a snapshot. It appears whole, or not at all.

        Only the user who makes it may read it.

        Raises:
            StoreError: If there is something already, or the store cannot be written.
        """
        draft = path.with_name(f"{path.name}-draft")
        try:
            refuse_remains(path)
            draft.unlink(missing_ok=True)
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL, 0o600))
            try:
                _fill(draft, owner, snapshot)
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)
            sync_folder(path.parent)
            return cls(path, connect_to_write(path), snapshot)
        except (OSError, sqlite3.Error) as error:
            raise failure(path, error) from error

    @classmethod
    def open(cls, path: Path, owner: Owner) -> PeerStore:
        """Open the store of this peer. A file that is refused is not written to.

        Raises:
            StoreError: If it is missing, foreign, damaged, another peer's or another task's.
        """
        found, snapshot = read_owned(path, alone=True)
        check_owner(path, found, owner)
        try:
            connection = connect_to_write(path)
        except sqlite3.Error as error:
            raise failure(path, error) from error
        return cls(path, connection, snapshot)

    def load(self) -> Snapshot:
        """The last snapshot that is durable."""
        return self._committed

    def commit(self, snapshot: Snapshot) -> None:
        """Make a snapshot durable, whole or not at all.

        Raises:
            StoreError: If it cannot be written; the last one stays, and a later one may succeed.
        """
        with self._writing:
            is_due = self._commits_put_off >= PUT_OFF
            written = snapshot if is_due else put_off(self._committed, snapshot)
            try:
                self._write(written)
            except sqlite3.Error as error:
                raise failure(self._path, error) from error
            self._latest = snapshot
            self._commits_put_off = 0 if written is snapshot else self._commits_put_off + 1

    def _write(self, snapshot: Snapshot) -> None:
        changes = schema.changes(self._committed, snapshot)
        with self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            for change in changes:
                change.make(connection)
        # Only now: what a failed commit would have changed is a change from the last good one.
        self._committed = snapshot

    def close(self) -> None:
        """Close the file; everything is in it already, but for what was put off."""
        try:
            if self._latest is not self._committed:
                self._write(self._latest)
        except sqlite3.Error as error:
            _log.warning("%s", failure(self._path, error, ", or predictions settle anew"))
        finally:
            self._connection.close()


def begin_life(path: Path, owner: Owner, layout: Layout) -> PeerStore:
    """Make or open the store of a peer, in a new life that is told apart from all before.

    Raises:
        StoreError: If it is damaged, cannot be written, or is another peer's or another task's.
    """
    boot = new_stamp()
    if not path.exists():
        ledger = 1 + secrets.randbelow(1 << 61)
        return PeerStore.create(
            path, owner, Snapshot(PeerState.new(layout.width, ledger, boot, layout))
        )
    store = PeerStore.open(path, owner)
    saved = store.load()
    # Durable before the first word: this life must never be mistaken for another.
    store.commit(replace(saved, state=restart(saved.state, boot)))
    return store


def new_stamp() -> int:
    """A number that no other life, edge or prediction of this peer has."""
    return first_stamp(time.time_ns(), secrets.randbits(RANDOM_BITS))


def read_snapshot(path: Path) -> Snapshot:
    """Read the last durable snapshot of a peer, running or not, without disturbing it.

    Raises:
        StoreError: If there is no store, or it is foreign or damaged.
    """
    return read_owned(path, alone=False)[1]


def read_curve(path: Path) -> Curve:
    """Read how the loss of a peer went, running or not, and nothing else, however large its model.

    Raises:
        StoreError: If there is no store, or it is foreign or damaged.
    """
    with _reading(path, alone=False) as connection:
        return schema.read_history(connection).curve()


def read_owned(path: Path, *, alone: bool) -> tuple[Owner, Snapshot]:
    """Read whose store it is, and its last durable snapshot.

    Args:
        path: The file.
        alone: Whether no process can write to it meanwhile: then every page is checked too.

    Raises:
        StoreError: If there is no store, or it is foreign or damaged.
    """
    with _reading(path, alone=alone) as connection:
        if alone:
            _check_pages(connection)
        [row] = connection.execute("SELECT key, task, dim FROM owner")
        owner = Owner(*row)
        snapshot = schema.read(connection, owner.dim)
    return owner, snapshot


def check_owner(path: Path, found: Owner, wanted: Owner) -> None:
    """Make sure that a store belongs to this peer and this task.

    Raises:
        StoreError: If it is another peer's or another task's, or its model has another size.
    """
    if found.key != wanted.key:
        raise StoreError(
            f"{path} belongs to the peer {key_text(found.key)}, and this is {key_text(wanted.key)}"
            "; it was left untouched: put the key file back that belongs to it, or move it away"
        )
    if found.task != wanted.task:
        raise StoreError(
            f"{path} belongs to another task ({found.task.hex()}, this one is {wanted.task.hex()}"
            "); it was left untouched: put the task.toml back that it was started with, or make a "
            "new peer for the new task"
        )
    if found.dim != wanted.dim:
        raise refusal(
            path, f"holds a model of {found.dim} parameters, and the task has {wanted.dim}"
        )


def refuse_remains(path: Path) -> None:
    """Make sure that nothing of an older store is where a new one is to be made.

    Raises:
        StoreError: If there is a file, or the log of one that is gone.
    """
    if path.exists() or path.is_symlink():
        raise StoreError(
            f"{path} exists already, and a store is never overwritten; move it away first"
        )
    if not is_whole(path):
        # SQLite would play the log of the old store into the new one.
        log = log_of(path)
        raise StoreError(
            f"there is {log} without its {path.name}, the other half of a store; put that back, or "
            f"move {log.name} to where it went"
        )


def _fill(path: Path, owner: Owner, snapshot: Snapshot) -> None:
    """Write an empty file directly, with no log that could be left behind."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {page_size(owner.dim)}")
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")
        with connection:
            connection.execute("BEGIN")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("CREATE TABLE owner (key BLOB, task BLOB, dim)")
            for table in schema.TABLES:
                connection.execute(table.create)
            connection.execute("INSERT INTO owner VALUES (?, ?, ?)", owner)
            for change in schema.changes(NOTHING, snapshot):
                change.make(connection)


@contextmanager
def _reading(path: Path, *, alone: bool) -> Iterator[sqlite3.Connection]:
    """A connection to a store as of one moment; whatever is wrong with it is a `StoreError`."""
    try:
        if not path.exists():
            raise StoreError(f"there is no {path}; restore a backup, or start the peer anew")
        with closing(connect_to_read(path, alone=alone)) as connection:
            # One transaction: everything is read from the same moment.
            connection.execute("BEGIN")
            check_format(path, connection)
            yield connection
    except sqlite3.Error as error:
        if is_damage(error):
            raise refusal(path, f"is damaged ({error})") from error
        raise failure(path, error) from error
    except OSError as error:
        raise failure(path, error) from error
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise refusal(path, f"is damaged ({error})") from error


def _check_pages(connection: sqlite3.Connection) -> None:
    [(found,)] = connection.execute("PRAGMA quick_check(1)").fetchall()
    if found != "ok":
        raise ValueError(found)
