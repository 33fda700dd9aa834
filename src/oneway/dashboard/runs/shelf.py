"""What the page knows about a folder of stored runs, shared by all who look at it."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from oneway import metrics, store
from oneway.errors import StoreError
from oneway.records import RunRecord
from oneway.store.catalogue import Catalogue, look
from oneway.store.entry import Entry, Stamp
from oneway.store.tables import in_short

FRESH_SECONDS = 2.5
"""Within this time nobody looks at the disk twice."""
_TURN_SECONDS = 0.5
"""How long losses are read at a time; the rest follows with the next look."""
_RECORDS_KEPT = 32


@dataclass(frozen=True)
class _Loss:
    """What was read of a run's arrays, or what is wrong with them."""

    stamp: Stamp
    average_loss: float | None = None
    rounds_done: int | None = None
    problem: str = ""


class Shelf:
    """A folder's runs with their average losses; may be used from several threads.

    Attributes:
        folder: Where the runs are.
        catalogue: What was found there last, average losses filled in as far as they are read.
        problem: Why the folder could not be looked at; empty if it could.
        version: Grows with every change.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the runs below a folder; `refresh` looks at it.

        Args:
            folder: Where the runs are.
            clock: Seconds that only grow.
        """
        self.folder = folder
        self.catalogue = Catalogue()
        self.problem = ""
        self.version = 0
        self._clock = clock
        self._looked_at = -math.inf
        self._found = Catalogue()
        self._losses: dict[str, _Loss] = {}
        self._records: OrderedDict[tuple[str, Stamp], RunRecord] = OrderedDict()
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Look at the folder again, unless somebody just did; reads some of the losses too."""
        with self._lock:
            if self._clock() - self._looked_at < FRESH_SECONDS:
                return
            try:
                self._found, problem = look(self.folder, self._found), ""
            except StoreError as error:
                self._found, problem = Catalogue(), str(error)
            self._read_losses(self._clock() + _TURN_SECONDS)
            seen = replace(self._found, entries=tuple(map(self._with_loss, self._found.entries)))
            if (seen, problem) != (self.catalogue, self.problem):
                self.catalogue, self.problem = seen, problem
                self.version += 1
            self._looked_at = self._clock()

    def read_all(self) -> None:
        """Look at the folder and read every loss.

        Raises:
            StoreError: If the folder cannot be looked at.
        """
        with self._lock:
            self._found = look(self.folder, self._found)
            self._read_losses(math.inf)
            entries = tuple(map(self._with_loss, self._found.entries))
            self.catalogue = replace(self._found, entries=entries)
            self.version += 1

    def record(self, name: str) -> RunRecord:
        """All of a run that is in the catalogue; the last few are remembered.

        Raises:
            StoreError: If it is not in the catalogue, or damaged.
        """
        entry = self.catalogue[name]
        if not entry.is_run:
            raise StoreError(f"{name} is a {entry.kind} and has no curves of its own")
        key = (name, entry.stamp)
        with self._lock:
            if key in self._records:
                self._records.move_to_end(key)
                return self._records[key]
        record = store.load(entry.path)
        with self._lock:
            self._records[key] = record
            while len(self._records) > _RECORDS_KEPT:
                self._records.popitem(last=False)
        return record

    def _read_losses(self, until: float) -> None:
        entries = [entry for entry in self._found.entries if entry.is_run and not entry.problem]
        names = {entry.name for entry in entries}
        self._losses = {name: loss for name, loss in self._losses.items() if name in names}
        for entry in entries:
            known = self._losses.get(entry.name)
            if known is None or known.stamp != entry.stamp:
                if self._clock() > until:
                    return
                self._losses[entry.name] = _read_loss(entry)

    def _with_loss(self, entry: Entry) -> Entry:
        loss = self._losses.get(entry.name)
        if loss is None or loss.stamp != entry.stamp:
            return entry
        if loss.problem:
            return replace(entry, problem=loss.problem)
        return replace(entry, average_loss=loss.average_loss, rounds_done=loss.rounds_done)


def as_plain(entry: Entry) -> dict[str, Any]:
    """An entry in terms JSON can hold."""
    plain = asdict(entry) | {
        "path": str(entry.path),
        "report": None if entry.report is None else str(entry.report),
    }
    del plain["stamp"]
    return plain


def _read_loss(entry: Entry) -> _Loss:
    try:
        sums, counts = store.load_losses(entry.path)
        with np.errstate(all="ignore"):
            loss = metrics.mean_loss(sums, counts)
    except StoreError as error:
        return _Loss(entry.stamp, problem=error.reason)
    except Exception as error:
        # One damaged run must not take the list down.
        return _Loss(entry.stamp, problem=f"{in_short(error)}; run it again")
    return _Loss(entry.stamp, loss if math.isfinite(loss) else None, len(sums))
