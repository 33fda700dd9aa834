"""Cache of a folder's catalogue of stored runs, with average losses, shared by all open pages."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from oneway import metrics, store
from oneway.errors import StoreError
from oneway.records import RunRecord
from oneway.store.catalogue import Catalogue, look
from oneway.store.entry import Entry

FRESH_SECONDS = 2.5
"""The folder is scanned at most once within this time."""
RECORDS_KEPT = 32
TURN_SECONDS = 0.5
"""How long losses are read at a time; the rest follows with the next look."""


class CatalogueCache:
    """A folder's runs with their average losses; may be used from several threads.

    Attributes:
        folder: Where the runs are.
        catalogue: What was found there last, average losses filled in as far as they are read.
        problem: Why the folder could not be looked at; empty if it could.
        version: Grows with every change.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
        self.catalogue = Catalogue()
        self.problem = ""
        self.version = 0
        self._clock = clock
        self._looked_at = -math.inf
        self._load = lru_cache(RECORDS_KEPT)(lambda path, _: store.load(path))
        self._lock = threading.Lock()

    def refresh(self, seconds: float = TURN_SECONDS) -> None:
        """Scan the folder again, unless it was just scanned; losses are read for some seconds."""
        with self._lock:
            if self._clock() - self._looked_at < FRESH_SECONDS:
                return
            until = self._clock() + seconds
            try:
                # An entry that has not changed is taken from the last look, with its loss.
                found = look(self.folder, self.catalogue)
            except StoreError as error:
                self._publish(Catalogue(), str(error))
            else:
                entries = tuple(
                    _with_loss(entry) if _lacks_loss(entry) and self._clock() <= until else entry
                    for entry in found.entries
                )
                self._publish(replace(found, entries=entries), "")
            self._looked_at = self._clock()

    def record(self, name: str) -> RunRecord:
        """All of a run that is in the catalogue; the last few are remembered.

        Raises:
            StoreError: If it is not in the catalogue, or damaged.
        """
        entry = self.catalogue[name]
        if not entry.is_run:
            raise StoreError(f"{name} is a {entry.kind} and has no curves of its own")
        return self._load(entry.path, entry.stamp)

    def _publish(self, catalogue: Catalogue, problem: str) -> None:
        if (catalogue, problem) != (self.catalogue, self.problem):
            self.catalogue, self.problem = catalogue, problem
            self.version += 1


def as_plain(entry: Entry) -> dict[str, Any]:
    """An entry in terms JSON can hold."""
    plain: dict[str, Any] = msgspec.to_builtins(replace(entry, stamp=()), enc_hook=str)
    del plain["stamp"]
    return plain


def _lacks_loss(entry: Entry) -> bool:
    return entry.is_run and not entry.problem and entry.rounds_done is None


def _with_loss(entry: Entry) -> Entry:
    """An entry with what its arrays say; only damage is told, a bug of ours is raised."""
    try:
        sums, counts = store.load_losses(entry.path)
    except StoreError as error:
        return replace(entry, problem=error.reason)
    with np.errstate(all="ignore"):
        loss = metrics.mean_loss(sums, counts)
    return replace(entry, average_loss=loss if math.isfinite(loss) else None, rounds_done=len(sums))
