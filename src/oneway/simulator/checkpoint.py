"""Checkpoints of a simulation: its complete state on disk, replaced as a whole, and resumed from.

A folder holds `checkpoint.json`, which says of which run and round it is and names the files with
the arrays. That file is replaced last, atomically: a crash leaves the checkpoint before, or the new
one, and files that nobody names, which the next one removes.
"""

from __future__ import annotations

import json
import os
import re
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from oneway.errors import ConfigError, StoreError
from oneway.files.atomic import sync_folder, write_atomically
from oneway.files.paths import as_path
from oneway.sentences import shown
from oneway.simulator.snapshots import Reader, Snapshot

CHECKPOINT_SECONDS = 60.0
"""Seconds between two checkpoints, unless told otherwise."""
_PAUSE = 10.0
"""So many times as long as the last one took is waited until the next, at least."""
_MOST_TOLD = 2
"""So many differences to another run are told."""
_FORMAT = 1
_MANIFEST = "checkpoint.json"
_MEASURED = "measurements"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""Where a function lies in memory, which Python tells with its name."""


class Resumable(Protocol):
    """What can say all that it has to know to go on."""

    def snapshots(self) -> Iterator[tuple[str, Snapshot]]:
        """Pieces by name; each may be thrown away before the next one is asked for."""

    def restore_from(self, read: Reader) -> None:
        """Go on from pieces, to be read by name."""


@dataclass(frozen=True)
class Stored:
    """What a checkpoint says.

    Attributes:
        num_rounds: How many rounds were done.
        seconds: How long they took.
    """

    num_rounds: int
    seconds: float


class Checkpoint:
    """The checkpoint of one run.

    Args:
        folder: Where it is; made if it is not there.
        seconds: How long to wait between two of them, at least.
        identity: All that the numbers of the run follow from, in terms JSON can hold.

    Raises:
        ConfigError: The folder cannot be made, or the seconds are no number from 0 on.
    """

    def __init__(self, folder: Path | str, seconds: float, identity: Mapping[str, Any]) -> None:
        rule = "name a folder for checkpoints"
        self.folder = as_path(folder, "checkpoint", ConfigError, rule)
        if not (isinstance(seconds, int | float) and 0 <= seconds < np.inf):
            raise ConfigError(
                f"checkpoint_seconds is {seconds!r}; it must be a number of seconds, 0 or more"
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"the folder {self.folder} for checkpoints cannot be made "
                f"({error.strerror or error}); {rule} that can be"
            ) from None
        self._seconds = float(seconds)
        self._identity = json.loads(_ADDRESS.sub("", json.dumps(identity)))
        self._last, self._cost = time.monotonic(), 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is time for the next one."""
        pause = max(self._seconds, _PAUSE * self._cost if self._seconds else 0.0)
        return time.monotonic() - self._last >= pause

    def save(self, stored: Stored, measured: Snapshot, run: Resumable) -> None:
        """Replace the checkpoint.

        Raises:
            StoreError: It cannot be written.
        """
        began = time.monotonic()
        try:
            names = {
                name: self._write(name, stored.num_rounds, arrays)
                for name, arrays in _all(measured, run.snapshots())
            }
            sync_folder(self.folder)
            manifest = {
                "format": _FORMAT,
                "rounds": stored.num_rounds,
                "seconds": stored.seconds,
                "files": names,
                "run": self._identity,
            }
            write_atomically(self.folder / _MANIFEST, json.dumps(manifest, indent=1))
            for path in (*self.folder.glob("*.npz"), *self.folder.glob("*.draft")):
                if path.name not in names.values():
                    path.unlink()
        except OSError as error:
            raise StoreError(
                f"the checkpoint in {self.folder} cannot be written ({error.strerror or error}); "
                "make room there, or name another folder"
            ) from None
        self._last = time.monotonic()
        self._cost = self._last - began

    def load(self) -> tuple[Stored, Reader] | None:
        """The checkpoint that is there, and how to read its pieces; None if there is none.

        Raises:
            StoreError: It is damaged, or that of another run.
        """
        path = self.folder / _MANIFEST
        try:
            found = json.loads(path.read_text("utf-8"))
            stored = Stored(int(found["rounds"]), float(found["seconds"]))
            names, identity, kind = dict(found["files"]), found["run"], found["format"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise self._damaged(_MANIFEST, error) from None
        if kind != _FORMAT:
            raise StoreError(
                f"the checkpoint in {self.folder} has format {shown(kind)} and this release reads "
                f"{_FORMAT}; delete it to start from the first round"
            )
        found_apart = differences(identity, self._identity)
        if found_apart:
            raise StoreError(
                f"the checkpoint in {self.folder} is of another run: {_told(found_apart)}; name "
                "another folder, or delete this one"
            )

        def read(name: str) -> Snapshot:
            try:
                path = self.folder / names[name]
                # Opened here: of a damaged file NumPy would leave that open.
                with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                    return {each: file[each] for each in file.files}
            except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
                raise self._damaged(names.get(name, name), error) from None

        return stored, read

    def _write(self, name: str, num_rounds: int, arrays: Snapshot) -> str:
        path = self.folder / f"{name}-{num_rounds}.npz"
        draft = path.with_suffix(".draft")
        with draft.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        return path.name

    def _damaged(self, name: str, error: Exception) -> StoreError:
        return StoreError(
            f"{name} of the checkpoint in {self.folder} is damaged ({error}); delete the folder to "
            "start from the first round"
        )


def differences(there: Any, here: Any, name: str = "") -> list[tuple[str, Any, Any]]:
    """In what two values of JSON differ: names and both values.

    >>> differences({"seed": 1, "model": {"l2": 0.1}}, {"seed": 1, "model": {"l2": 0.2}})
    [('model.l2', 0.1, 0.2)]
    """
    if isinstance(there, dict) and isinstance(here, dict):
        return [
            each
            for key in sorted({*there, *here})
            for each in differences(there.get(key), here.get(key), f"{name}.{key}".lstrip("."))
        ]
    return [] if there == here else [(name, there, here)]


def _told(found: list[tuple[str, Any, Any]]) -> str:
    """The first differences in words; checksums only where nothing else tells."""
    sums = ("checksum", "learning_rates", "features")
    first = sorted(found, key=lambda it: it[0].rpartition(".")[2] in sums)[:_MOST_TOLD]
    return " and ".join(
        f"{name} is {shown(there)} there and {shown(here)} here" for name, there, here in first
    )


def _all(
    measured: Snapshot, others: Iterable[tuple[str, Snapshot]]
) -> Iterator[tuple[str, Snapshot]]:
    yield _MEASURED, measured
    yield from others
