"""Startup check: why `run` would refuse this peer, found out without changing or locking it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from oneway.errors import KeyFileError, OnewayError, StoreError
from oneway.peer.home.home import Home
from oneway.peer.learner import Learner
from oneway.peer.store.snapshot import Snapshot

# The checks of a start one by one, as `PeerStore.open` also writes.
from oneway.peer.store.store import Owner, check_owner, read_owned, refuse_remains


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
