"""Result folder: finished runs as small files, so that a stopped sweep continues where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from oneway.errors import StoreError
from oneway.files.atomic import write_atomically
from oneway.simulator.run import Run

R = TypeVar("R")
_PACKAGE = Path(__file__).parents[1]


class ResultFolder(Generic[R]):
    """Results of one dataclass as JSON files, by key. A file that cannot be read is ignored.

    Args:
        folder: Where results are stored, made if it does not exist; None to store none.
        kind: The dataclass.

    Raises:
        StoreError: The folder cannot be made.
    """

    def __init__(self, folder: Path | None, kind: type[R]) -> None:
        self.folder, self.kind = folder, kind
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise _unwritable(folder, error) from error

    def get(self, key: str) -> R | None:
        """The result with this key, or None."""
        if self.folder is None or not key:
            return None
        try:
            content = (self.folder / f"{key}.json").read_bytes()
            return msgspec.convert(json.loads(content), self.kind)
        except (OSError, ValueError):
            return None

    def put(self, key: str, result: R) -> None:
        """Store a result, unless its key is empty.

        Raises:
            StoreError: It cannot be written.
        """
        if self.folder is None or not key:
            return
        path, content = self.folder / f"{key}.json", json.dumps(asdict(result))  # type: ignore[call-overload]
        try:
            write_atomically(path, content.encode())
        except OSError as error:
            raise _unwritable(path, error) from error


def key_of(described: Mapping[str, Any]) -> str:
    """A hash of all that determines a result, with this package's source code.

    Empty if the description names something by its address in memory, such as a lambda: that may
    be something else in another process.
    """
    text = json.dumps({**described, "source": source_hash()}, sort_keys=True, default=repr)
    return "" if " at 0x" in text else hashlib.sha256(text.encode()).hexdigest()[:24]


@cache
def source_hash() -> str:
    """A hash of all Python files of this package."""
    found = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        found.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def whole(run: Run) -> Run:
    """The run, if Ctrl-C did not end it early: an incomplete run must not be stored."""
    if not run.record.complete:
        raise KeyboardInterrupt
    return run


def _unwritable(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"cannot store finished runs in {path}: {error.strerror or error}; choose another folder"
    )
