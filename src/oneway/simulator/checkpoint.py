"""Checkpoints of a simulation: its complete state on disk, replaced as a whole, and resumed from.

A folder holds `checkpoint.json`, which says of which run and round it is and names the files with
the arrays. That file is replaced last, atomically: a crash leaves the checkpoint before, or the new
one, and files that nobody names, which the next one removes. Whatever else is in the folder stays.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

import msgspec
import numpy as np
from filelock import FileLock, Timeout

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
_LOCK = "checkpoint.lock"
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


class _Manifest(msgspec.Struct):
    """What `checkpoint.json` holds."""

    format: int
    rounds: Annotated[int, msgspec.Meta(ge=0)]
    seconds: float
    files: dict[str, str]
    run: Any


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

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other runs out of the folder, by a lock that ends with this process at the latest.

        Raises:
            StoreError: Another run has it.
        """
        lock = FileLock(self.folder / _LOCK, timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise StoreError(
                f"another run uses the checkpoint in {self.folder}; wait for its end, or name "
                "another folder"
            ) from None
        except (OSError, NotImplementedError):
            pass  # A disk that cannot lock files can hold a checkpoint.
        try:
            yield
        finally:
            lock.release()

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
            manifest = _Manifest(_FORMAT, stored.num_rounds, stored.seconds, names, self._identity)
            text = json.dumps(msgspec.structs.asdict(manifest), indent=1)
            write_atomically(self.folder / _MANIFEST, text)
            own = _names_of_files(names)
            for path in self.folder.iterdir():
                if own.fullmatch(path.name) and path.name not in names.values() and path.is_file():
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(
                f"the checkpoint in {self.folder} cannot be written ({error.strerror or error}); "
                "make room there and let nothing else change its files, or name another folder"
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
            found = msgspec.convert(json.loads(path.read_text("utf-8")), _Manifest)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise self._damaged(_MANIFEST, error) from None
        if found.format != _FORMAT:
            raise StoreError(
                f"the checkpoint in {self.folder} has format {shown(found.format)} and this "
                f"release reads {_FORMAT}; delete {_MANIFEST} there to start from the first round"
            )
        found_apart = differences(found.run, self._identity)
        if found_apart:
            raise StoreError(
                f"the checkpoint in {self.folder} is of another run: {_told(found_apart)}; name "
                f"another folder, or delete {_MANIFEST} there"
            )

        def read(name: str) -> Snapshot:
            try:
                path = self.folder / found.files[name]
                # Opened here: of a damaged file NumPy would leave that open.
                with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                    return {each: file[each] for each in file.files}
            except MemoryError as error:
                raise StoreError(
                    f"{found.files[name]} of the checkpoint in {self.folder} does not fit into "
                    f"memory ({error}); make room there"
                ) from None
            except Exception as error:  # whatever NumPy and zipfile make of damaged bytes
                raise self._damaged(found.files.get(name, name), error) from None

        return Stored(found.rounds, found.seconds), read

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
            f"{name} of the checkpoint in {self.folder} is damaged ({error}); delete {_MANIFEST} "
            "there to start from the first round"
        )


def _names_of_files(pieces: Iterable[str]) -> re.Pattern[str]:
    """What files are called that hold such pieces, and those that a crash left half-written."""
    names = "|".join(map(re.escape, pieces))
    return re.compile(rf"({names})-\d+\.(npz|draft)|\.{re.escape(_MANIFEST)}\.[0-9a-f]{{8}}")


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
