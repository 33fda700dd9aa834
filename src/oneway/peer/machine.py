"""What a start of a peer would find on this machine: disk, key, clock, port, process and store."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from oneway.errors import KeyFileError, OnewayError, StoreError
from oneway.peer.home.free_address import Port, probe
from oneway.peer.home.home import Home
from oneway.peer.learner import Learner
from oneway.peer.store.file import failure
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.store.store import Owner, check_owner, read_owned, refuse_remains
from oneway.records.status import Status


@dataclass(frozen=True)
class Stored:
    """What `doctor` has to know of the durable state.

    Attributes:
        mass: omega.
        mass_limit: More mass than this a peer of the task cannot come to hold.
        samples: Samples learned from.
        skipped: Samples that could not be used.
    """

    mass: float
    mass_limit: float
    samples: int
    skipped: int


@dataclass(frozen=True)
class Startup:
    """What a start would come upon.

    Attributes:
        key_problem: Why the key would be refused, in the words of `run`; empty if it would not.
        store_problem: The same of the durable state, and of the task it must go with.
        stored: What the durable state says; None if there is none, or it is refused.
    """

    key_problem: str = ""
    store_problem: str = ""
    stored: Stored | None = None


FULL_DISK = 10**6
"""A disk with fewer bytes left is full: a commit, a status and its predecessor need room."""

_LATE_SECONDS = 10.0
"""A peer that runs writes its status every few seconds."""


def free_bytes(folder: Path) -> int | None:
    """Free space of the disk of a folder; None if unknown."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def last_status(home: Home, now: float) -> Status | None:
    """Read the last status of a peer; add that its disk is full if it could not write that itself.

    Args:
        home: Its folder.
        now: Seconds since 1970.
    """
    status = home.status()
    if status is None or status.disk_problem or now - status.time < _LATE_SECONDS:
        return status
    free = free_bytes(home.folder)
    if free is None or free >= FULL_DISK or home.running_process() is None:
        return status
    problem = str(failure(home.status_path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
    return replace(status, disk_problem=problem, disk_problem_since=status.time)


def check_startup(home: Home) -> Startup:
    """Go through what a start does before it listens."""
    key, key_problem = None, ""
    try:
        key = home.keys().public
    except KeyFileError as error:
        key_problem = str(error)
    try:
        return Startup(key_problem, "", _stored(home, key))
    except OnewayError as error:
        return Startup(key_problem, str(error))


def _stored(home: Home, key: bytes | None) -> Stored | None:
    task, path = home.task(), home.store_path
    width = Learner(task).layout.width
    if not path.exists():
        refuse_remains(path)
        return None
    found, snapshot = _read_beside(home)
    check_owner(path, found, Owner(key or found.key, task.fingerprint, width))
    if not os.access(path, os.W_OK):
        raise StoreError(f"{path} may not be written; let its user: chmod u+rw {path}")
    journal = snapshot.journal
    return Stored(snapshot.state.mass, task.impossible_mass, journal.samples, journal.skipped)


def _read_beside(home: Home) -> tuple[Owner, Snapshot]:
    """Read the store, page by page if no process can write to it meanwhile."""
    if home.running_process() is None:
        try:
            return read_owned(home.store_path, alone=True)
        except StoreError:
            if home.running_process() is None:
                raise
            # It was started just now: what was read may be half of a commit.
    return read_owned(home.store_path, alone=False)


@dataclass(frozen=True)
class MachineFacts:
    """What `doctor` has to know of the machine.

    Attributes:
        process: The process that runs the peer; None if none does.
        newest_file: When a file of the peer was last written, by the clock of that moment.
        disk_free: Bytes that the peer's disk has left; None if that cannot be found out.
        key_mode: The permissions of the key's file; None if there is no file.
        port: Whether the peer's address can be listened on.
        startup: What the next start would come upon.
    """

    now: float
    process: int | None
    newest_file: float
    disk_free: int | None
    folder: Path
    folder_writable: bool
    key_path: Path
    key_mode: int | None
    port: Port
    startup: Startup = field(default_factory=Startup)


def examine(home: Home, now: float) -> MachineFacts:
    """Look at the machine; changes nothing.

    Raises:
        ConfigError: If peer.toml cannot be read.
    """
    written = [home.status_path, *home.folder.glob(f"{home.store_path.name}*")]
    times = [facts.st_mtime for facts in map(_stat, written) if facts is not None]
    key = _stat(home.key_path)
    return MachineFacts(
        now=now,
        process=home.running_process(),
        newest_file=max(times, default=0.0),
        disk_free=free_bytes(home.folder),
        folder=home.folder,
        folder_writable=os.access(home.folder, os.W_OK | os.X_OK),
        key_path=home.key_path,
        key_mode=None if key is None else stat.S_IMODE(key.st_mode),
        port=probe(home.config().listen),
        startup=check_startup(home),
    )


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
