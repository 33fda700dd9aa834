"""File locks, which the kernel releases however a process ends: one process runs a peer.

Whoever can open a file can lock it, if only to read: a lock file is its owner's alone, or any user
of the machine could keep a peer from starting.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from oneway.errors import ConfigError

PATIENCE_SECONDS = 60.0
"""How long to wait for one's turn: a change takes milliseconds, even if many make one."""
_PRIVATE = 0o600


@contextmanager
def hold(path: Path, what: str) -> Iterator[None]:
    """Hold the lock; the file, which stays, says which process does.

    Raises:
        ConfigError: If another process holds it, or the file cannot be opened, or is another
            user's.
    """
    _check_own(path)
    with _acquired(FileLock(path, timeout=0, mode=_PRIVATE), what):
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
def in_turn(path: Path, patience: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Wait until no other process or thread holds the lock, and hold it; the file stays.

    Raises:
        ConfigError: If the file cannot be opened, is another user's, or stays locked, or the disk
            cannot lock files.
    """
    _check_own(path)
    lock = FileLock(path, timeout=patience, mode=_PRIVATE, poll_interval=0.01)
    with _acquired(lock, "a change"):
        yield


def holder(path: Path) -> int | None:
    """Return the id of the process that holds the lock; None if none does.

    Raises:
        ConfigError: If only another user can know.
    """
    try:
        process = _written(path)
    except PermissionError as error:
        raise ConfigError(
            f"{path} cannot be read ({error.strerror}); only the user who runs the peer can see "
            "whether it runs: be that user"
        ) from None
    # Only a process that lives is worth trying the lock for: a process that starts at this very
    # moment would find it taken.
    if process is None or not _lives(process):
        return None
    try:
        with FileLock(path, timeout=0, mode=_PRIVATE):
            return None
    except (Timeout, PermissionError):
        return process
    except OSError:
        return None


def check_folder(folder: Path) -> None:
    """Check that not every user can put files into a folder in the place of ours.

    Raises:
        ConfigError: If they can, or it cannot be looked at.
    """
    try:
        mode = stat.S_IMODE(folder.stat().st_mode)
    except OSError as error:
        raise ConfigError(f"cannot look into {folder}: {error.strerror}") from error
    if mode & 0o002:
        raise ConfigError(
            f"the folder {folder} has mode {mode:04o}, so every user of this machine can replace "
            f"the peer's files; only those who may speak for the peer may write there: "
            f"chmod o-w {folder}"
        )


def close_to_others(path: Path) -> None:
    """Let only the owner open a file, if it is one of ours; a copy may have lost its mode."""
    with suppress(OSError):
        # Looked at, not opened: to close a database would release this process's locks on it.
        status = path.stat()
        if status.st_uid == os.geteuid() and status.st_mode & 0o077:
            path.chmod(_PRIVATE)


def _check_own(path: Path) -> None:
    """Refuse a lock file that another user has put there; close our own to others.

    Raises:
        ConfigError: If it is a link, no ordinary file, or another user's.
    """
    try:
        status = path.lstat()
    except OSError:
        # It is not there, or opening it will say what is wrong.
        return
    if not stat.S_ISREG(status.st_mode):
        kind = "a link" if path.is_symlink() else "not a file"
        raise ConfigError(
            f"cannot lock {path}: it is {kind}, and a lock is an ordinary file; remove it: "
            f"rm {path}"
        )
    if status.st_uid != os.geteuid():
        raise ConfigError(
            f"cannot lock {path}: it belongs to user {status.st_uid} and you are user "
            f"{os.geteuid()}; a lock must belong to the user who runs the peer: run the peer as "
            f"that user, or remove it: rm {path}"
        )
    close_to_others(path)


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
        # A peer writes its process into the file at once. Who could open it when it was open to
        # all may still hold it.
        raise ConfigError(
            f"{path} is locked by a program that does not say who it is; try again, and if it "
            f"stays so, end what fuser {path} names, or remove the file: rm {path}"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot lock {path}: {error.strerror}") from error


def _written(path: Path) -> int | None:
    """The id of a process in a file; nothing is followed or waited for.

    Raises:
        PermissionError: If we may not read it.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except PermissionError:
        raise
    except OSError:
        return None
    try:
        text = os.read(number, 20).strip()
    except OSError:
        return None
    finally:
        os.close(number)
    return int(text) if text.isdigit() and int(text) > 0 else None


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True
