"""The runs below a folder, shared by all open pages."""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path

from oneway import store
from oneway.errors import StoreError
from oneway.records import RunRecord
from oneway.store import Entry

_RECORDS_CACHED = 32


class StoredRuns:
    """What is stored below a folder; may be used from several threads.

    Attributes:
        folder: Where the runs are.
        entries: By name, as found last.
        problem: Why the folder cannot be read; empty if it can.
    """

    def __init__(self, folder: Path) -> None:
        """Scan the folder once.

        Raises:
            StoreError: If there is no such folder.
        """
        self.folder = folder
        self.entries = {entry.name: entry for entry in store.find_runs(folder)}
        self.problem = ""
        self._load = lru_cache(_RECORDS_CACHED)(lambda path, _modified: store.load(path))
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Scan the folder again."""
        with self._lock:
            try:
                found = store.find_runs(self.folder)
                self.problem = ""
            except StoreError as error:
                found, self.problem = [], str(error)
            self.entries = {entry.name: entry for entry in found}

    def __getitem__(self, name: str) -> Entry:
        """The entry of this name.

        Raises:
            StoreError: If there is none; a name is never taken for a path.
        """
        if name not in self.entries:
            raise StoreError(f"there is no stored run {name!r}; it may have been moved or deleted")
        return self.entries[name]

    def members_of(self, entry: Entry) -> list[Entry]:
        """The runs that belong to a lab or a demo."""
        return [other for other in self.entries.values() if other.belongs_to == entry.name]

    def record(self, name: str) -> RunRecord:
        """All of a run; the last few are cached.

        Raises:
            StoreError: If it is not there, has no curves, or is damaged.
        """
        entry = self[name]
        if not entry.is_run:
            raise StoreError(f"{name} is a {entry.kind} and has no curves of its own")
        return self._load(entry.path, entry.modified)
