"""File locks, which the kernel releases however a process ends: one process runs a peer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from oneway.errors import ConfigError


@contextmanager
def hold(path: Path, what: str) -> Iterator[None]:
    """Hold the lock; the file, which stays, says which process does.

    Raises:
        ConfigError: If another process holds it, or the file cannot be opened.
    """
    with _acquired(FileLock(path, timeout=0, mode=0o644), what):
        try:
            path.write_text(f"{os.getpid()}\n")
        except OSError as error:
            raise ConfigError(f"cannot write {path}: {error.strerror}") from error
        try:
            yield
        finally:
            # What stays is the id of a process that does not hold the lock: nobody believes it.
            with suppress(OSError):
                path.write_text("")


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Wait until no other process or thread holds the lock, and hold it; the file stays.

    Raises:
        ConfigError: If the file cannot be opened, or the disk cannot lock files.
    """
    with _acquired(FileLock(path, mode=0o600, poll_interval=0.01), "a change"):
        yield


def holder(path: Path) -> int | None:
    """Return the id of the process that holds the lock; None if none does."""
    process = _written(path)
    # Only a process that lives is worth trying the lock for: a process that starts at this very
    # moment would find it taken.
    if process is None or not _lives(process):
        return None
    try:
        with FileLock(path, timeout=0):
            return None
    except (Timeout, PermissionError):
        return process
    except OSError:
        return None


def _acquired(lock: BaseFileLock, what: str) -> AbstractContextManager[object]:
    path = Path(lock.lock_file)
    try:
        return lock.acquire()
    except Timeout:
        process = _written(path)
        by = f"process {process}" if process else "another process"
        stop = f"stop it first: kill {process}" if process else "stop it first"
        raise ConfigError(f"{what} is already running as {by}; {stop}") from None
    except OSError as error:
        raise ConfigError(f"cannot lock {path}: {error.strerror}") from error


def _written(path: Path) -> int | None:
    try:
        text = path.read_bytes()[:20].strip()
    except OSError:
        return None
    return int(text) if text.isdigit() and int(text) > 0 else None


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True
