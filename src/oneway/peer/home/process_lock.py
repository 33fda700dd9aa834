"""One at a time: file locks that the kernel releases, however the process ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oneway.errors import ConfigError


@contextmanager
def hold(path: Path, what: str) -> Iterator[None]:
    """Hold the lock; the file says which process does.

    The file stays when the lock is released: to remove it would let a third process lock a new
    file while a second one still waits for the old.

    Raises:
        ConfigError: If another process holds it, or the file cannot be opened.
    """
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise ConfigError(f"cannot open {path}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            process = _written(path)
            by = f"process {process}" if process else "another process"
            stop = f"stop it first: kill {process}" if process else "stop it first"
            raise ConfigError(f"{what} is already running as {by}; {stop}") from None
        os.truncate(number, 0)
        os.pwrite(number, f"{os.getpid()}\n".encode(), 0)
        try:
            yield
        finally:
            os.truncate(number, 0)
    finally:
        os.close(number)


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Wait until no other process or thread holds the lock, and hold it; the file stays.

    Whoever holds it must not ask for it again: that would wait for ever.

    Raises:
        ConfigError: If the file cannot be opened, or the disk cannot lock files.
    """
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ConfigError(f"cannot open {path}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX)
        except OSError as error:
            raise ConfigError(f"cannot lock {path}: {error.strerror}") from error
        yield
    finally:
        os.close(number)


def holder(path: Path) -> int | None:
    """Return the id of the process that holds the lock; None if none does."""
    process = _written(path)
    # Only a process that lives is worth trying the lock for: a process that starts at this very
    # moment would find it taken.
    if process is None or not _lives(process):
        return None
    try:
        number = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return process
    finally:
        os.close(number)
    return None


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
