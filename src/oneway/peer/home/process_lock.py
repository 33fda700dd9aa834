"""File locks, which the kernel releases however a process ends: one process runs a peer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from oneway.errors import ConfigError

PATIENCE_SECONDS = 60.0
"""How long to wait for one's turn: a change takes milliseconds, even if many make one."""
_PRIVATE = 0o600
"""Whoever can open a lock file can lock it."""


@contextmanager
def hold(path: Path, what: str) -> Iterator[None]:
    """Hold the lock; the file, which stays, says which process does.

    Raises:
        ConfigError: If another process holds it, or the file cannot be opened.
    """
    with _acquired(FileLock(path, timeout=0, mode=_PRIVATE), what):
        try:
            path.write_text(f"{os.getpid()}\n")
        except OSError as error:
            raise ConfigError(f"cannot write {path}: {error.strerror}") from error
        try:
            yield
        finally:
            with suppress(OSError):
                path.write_text("")


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Wait until no other process or thread holds the lock, and hold it; the file stays.

    Raises:
        ConfigError: If the file cannot be opened, stays locked, or the disk cannot lock files.
    """
    lock = FileLock(path, timeout=PATIENCE_SECONDS, mode=_PRIVATE, poll_interval=0.01)
    with _acquired(lock, "a change"):
        yield


def holder(path: Path) -> int | None:
    """Return the id of the process that holds the lock; None if none does."""
    process = _written(path)
    # Without a process that lives the lock is not tried: one that starts at this very moment would
    # find it taken.
    if process is None or not _lives(process):
        return None
    try:
        with FileLock(path, timeout=0, mode=_PRIVATE):
            return None
    except (Timeout, PermissionError):
        return process
    except OSError:
        return None


def close_to_others(path: Path) -> None:
    """Let only the owner open a file, if it is one of ours; a copy may have lost its mode."""
    with suppress(OSError):
        # Looked at, not opened: to close a database would release this process's locks on it.
        status = path.stat()
        if status.st_uid == os.geteuid() and status.st_mode & 0o077:
            path.chmod(_PRIVATE)


def _acquired(lock: BaseFileLock, what: str) -> AbstractContextManager[object]:
    path = Path(lock.lock_file)
    try:
        return lock.acquire()
    except Timeout:
        process = _written(path)
        if process is not None and _lives(process):
            raise ConfigError(
                f"{what} is already running as process {process}; stop it first: kill {process}"
            ) from None
        raise ConfigError(
            f"{path} is locked by another process; try again, or run fuser {path} to find it"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot lock {path}: {error.strerror}") from error


def _written(path: Path) -> int | None:
    """The process id that a lock file holds."""
    try:
        text = path.read_text().strip()
    except (OSError, ValueError):
        return None
    return int(text) if text.isdecimal() and int(text) > 0 else None


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True
