"""Memoised results: finished runs in a folder, by a hash of all that determines them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from oneway.errors import StoreError
from oneway.files.atomic import write_atomically
from oneway.simulator.executors import Executor, Job
from oneway.simulator.run import Run

P = TypeVar("P")
R = TypeVar("R")
_KEY, _SUM = "key", "checksum"
"""Where a file says whose result it is, and the hash of the rest."""


class ResultFolder(Generic[R]):
    """Results of one type as JSON files; this process alone writes them, wherever runs are made.

    What cannot be read, is not of that type, or is of another run, is as if it were not there.
    """

    suffix = ".json"

    def __init__(self, folder: Path | None, kind: Any) -> None:
        """Use a folder, and make it if it is not there.

        Args:
            folder: Where results are kept; None to keep none.
            kind: The type of a result: a dataclass, or a dict of them.

        Raises:
            StoreError: There cannot be such a folder.
        """
        self.folder, self.kind = folder, kind
        if folder is not None:
            _tried(lambda: folder.mkdir(parents=True, exist_ok=True), folder)

    def get(self, key: str) -> R | None:
        """A result; None if it has to be computed."""
        if self.folder is None or not key:
            return None
        try:
            return self.read((self.folder / f"{key}{self.suffix}").read_bytes(), key)
        except Exception:  # not there, or damaged in whatever way
            return None

    def put(self, key: str, result: R) -> None:
        """Keep a result, whole or not at all.

        Raises:
            StoreError: It cannot be written.
        """
        if self.folder is not None and key:
            path, content = self.folder / f"{key}{self.suffix}", self.written(result, key)
            _tried(lambda: write_atomically(path, content), path)

    def results(
        self, keys: Mapping[P, str], job: Callable[[P], Job], executor: Executor
    ) -> Iterator[tuple[P, R]]:
        """Every result with what it is of: first what is kept, then what is computed and kept now.

        Args:
            keys: What results are of, each with its key.
            job: Computes one of them, and returns what it is of beside it.
            executor: Where jobs run.
        """
        missing = []
        for place, key in keys.items():
            known = self.get(key)
            if known is None:
                missing.append(place)
            else:
                yield place, known
        if missing:
            for place, found in executor.results(map(job, missing)):
                self.put(keys[place], found)
                yield place, found

    def read(self, content: bytes, key: str) -> R:
        """The result in a file.

        Raises:
            ValueError: It is damaged, or another run's.
        """
        stored = json.loads(content)
        if not isinstance(stored, dict):
            raise ValueError("no result")
        # Files of before had no key, and no checksum.
        if stored.pop(_KEY, key) != key:
            raise ValueError("the result of another run")
        told = stored.pop(_SUM, None)
        if told is not None and told != _checksum(stored):
            raise ValueError("a damaged result")
        result: R = msgspec.convert(stored, self.kind)
        return result

    def written(self, result: R, key: str) -> bytes:
        """The content of a result's file."""
        plain = (
            {name: asdict(it) if is_dataclass(it) else it for name, it in result.items()}  # type: ignore[arg-type]
            if isinstance(result, Mapping)
            else asdict(result)  # type: ignore[call-overload]
        )
        return json.dumps({_KEY: key, _SUM: _checksum(plain), **plain}).encode()


def key_of(described: Mapping[str, Any]) -> str:
    """A hash of all that determines a result, this package's version included.

    Nothing if the description names something by its place in memory, such as a function without a
    name: it may be another thing in another process.
    """
    described = {"version": version("oneway"), **described}
    text = json.dumps(described, sort_keys=True, default=repr)
    return "" if " at 0x" in text else hashlib.sha256(text.encode()).hexdigest()[:24]


def _checksum(plain: Mapping[str, Any]) -> str:
    # A number that was read is written as it was.
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()[:16]


def whole(run: Run) -> Run:
    """The run, if Ctrl-C did not end it early: a part must not be remembered as if it were all."""
    if not run.record.complete:
        raise KeyboardInterrupt
    return run


def _tried(write: Callable[[], None], path: Path) -> None:
    try:
        write()
    except OSError as error:
        raise StoreError(
            f"cannot keep finished runs in {path}: {error.strerror or error}; choose another folder"
        ) from error
