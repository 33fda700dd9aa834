"""The file of a store: whether it is one, and connections to it."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path

from oneway.errors import StoreError
from oneway.peer.store.large import is_large

APPLICATION_ID = int.from_bytes(b"1way")
"""By which a peer's store is told from any other SQLite file, `file` included."""

VERSION = 3
"""Of the tables in it."""

_ROOM = 65536
"""Where a disk has fewer bytes left, it is full to SQLite: the index of its log grows by 32768."""

_LARGE_PAGES = 65536
"""Bytes of a page where models are large."""

_LOG_BYTES, _LARGE_LOG_BYTES = 4 * 2**20, 64 * 2**20
"""Above this the log is written back into the file, and begun anew.

An array that is written with every commit is written back once for all of them.
"""

_LOG_KEPT = 4
"""Above so many times this it is also cut short when it is begun anew."""


def refusal(path: Path, why: str) -> StoreError:
    """The error for a file that cannot be used."""
    return StoreError(
        f"{path} {why}; it was left untouched: move it away, together with {log_of(path).name} if "
        "there is one, then restore a backup or start anew; anew means a new ledger, and the mass "
        "that the old one held is lost to the network"
    )


def failure(path: Path, error: sqlite3.Error | OSError, remedy: str = "") -> StoreError:
    """The error for a file that cannot be read or written at the moment."""
    if _is_for_want_of_room(path, error):
        return StoreError(f"the disk of {path} is full; free some room{remedy}")
    reason = error.strerror if isinstance(error, OSError) else error
    return StoreError(
        f"cannot read or write {path}: {reason}; see that it may be written, that its disk has "
        f"room and works, and that no other program has it locked{remedy}"
    )


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error is due to what is in the file, and not to the disk or the moment."""
    return _code(error) in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _is_for_want_of_room(path: Path, error: sqlite3.Error | OSError) -> bool:
    if _code(error) == sqlite3.SQLITE_FULL or getattr(error, "errno", 0) == errno.ENOSPC:
        return True
    # That the index of its log cannot grow is an input or output error to SQLite, also then.
    return (
        _code(error) == sqlite3.SQLITE_IOERR
        and path.parent.is_dir()
        and shutil.disk_usage(path.parent).free < _ROOM
    )


def _code(error: Exception) -> int:
    # The last byte says what kind it is, the others where it happened. What is not from SQLite
    # itself, such as text that is not UTF-8, has no code.
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF


def check_format(path: Path, connection: sqlite3.Connection) -> None:
    """Check that a database is a store of this version.

    Raises:
        StoreError: If it is not; says what to do.
        sqlite3.Error: If the file is not a database.
    """
    [(application,)] = connection.execute("PRAGMA application_id").fetchall()
    if application != APPLICATION_ID:
        raise refusal(path, "is not the store of a peer")
    [(version,)] = connection.execute("PRAGMA user_version").fetchall()
    if version != VERSION:
        raise StoreError(
            f"{path} has version {version} and this oneway reads version {VERSION}; it was left "
            "untouched: run the peer with the release of oneway that wrote it"
        )


def page_size(dim: int) -> int:
    """The size of a page, in bytes, for a model of so many parameters."""
    # An array is a chain of pages: with few large ones, commits of large models take half as long
    # or less. For small models every page is mostly other rows, so they had better be small.
    return _LARGE_PAGES if is_large(dim) else 4096


def log_of(path: Path) -> Path:
    """SQLite's log of what is not yet in the file itself; they belong together."""
    return path.with_name(f"{path.name}-wal")


def is_whole(path: Path) -> bool:
    """Whether everything is in the file itself, none of it in a log beside it."""
    log = log_of(path)
    return not log.exists() or log.stat().st_size == 0


def connect_to_read(path: Path, *, alone: bool) -> sqlite3.Connection:
    """A connection that cannot change the file.

    The file is never opened but by SQLite: to close it in a process that has it open already would
    release the locks of that process.

    Args:
        path: The file.
        alone: That no other process has it open; then not even a file beside it is made.
    """
    mode = "immutable=1" if alone and is_whole(path) else "mode=ro"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None)


def connect_to_write(path: Path) -> sqlite3.Connection:
    """A connection whose commits are on the disk when they return."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        # Readers do not stop the writer, and a commit is one write to the end of the log.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        # On macOS an ordinary fsync does not reach the disk.
        connection.execute("PRAGMA fullfsync = ON")
        # Some builds of SQLite overwrite what is deleted with zeros: 8 MB for an acknowledgement.
        connection.execute("PRAGMA secure_delete = OFF")
        [(page_bytes,)] = connection.execute("PRAGMA page_size").fetchall()
        log_bytes = _LARGE_LOG_BYTES if page_bytes == _LARGE_PAGES else _LOG_BYTES
        connection.execute(f"PRAGMA wal_autocheckpoint = {log_bytes // page_bytes}")
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_KEPT * log_bytes}")
    except BaseException:
        connection.close()
        raise
    return connection
