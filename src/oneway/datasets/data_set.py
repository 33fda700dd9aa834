"""Data sets that are known by name: functions in a registry, and where their files are.

A data set is one file with one registration, here or in a user's own package:

    DATASETS.register(DataSet("bikes", about="...", rows=731, licence="CC0", load=load_bikes))
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any, Literal

from oneway.errors import MissingDataError
from oneway.files.folders import data_folder
from oneway.registry import Registry


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class DataFile:
    """A file of a data set.

    Attributes:
        path: Relative to the data folder.
        member: What it is called inside the archive that is downloaded.
        sha256: Its digest: a download with another one is refused. None if it is not known; such a
            file is checked only by TLS.
        digest: Computes it: the SHA-256 of the file, or of its content where the same content is
            published in several forms.
    """

    path: str
    member: str
    sha256: str | None = None
    digest: Callable[[Path], str] = file_sha256


@dataclass(frozen=True)
class DataSet:
    """A function that returns a table or a trust graph, under a name.

    Attributes:
        name: As in `oneway data fetch NAME`.
        about: A description, in a line.
        rows: How many rows (or edges).
        licence: Of the data.
        load: Returns the `Table`, or the `TrustGraph`. `oneway.load` passes on the options that it
            takes, such as `seed`, `samples` and `task` (see `LabelKind`).
        kind: A table of samples, or a trust graph.
        url: Where its files are downloaded from; empty if it needs no fetching.
        files: What is downloaded.
        alternatives: Other files that will do instead, best first.
        package_files: Finds its files in an installed package; empty if they are missing.
        comes_with: Where it comes from if it needs no fetching, as the end of a sentence.
    """

    name: str
    about: str
    rows: int
    licence: str
    load: Callable[..., Any]
    kind: Literal["table", "graph"] = "table"
    url: str = ""
    files: tuple[DataFile, ...] = ()
    alternatives: tuple[str, ...] = ()
    package_files: Callable[[], tuple[Path, ...]] | None = None
    comes_with: str = "it comes with the package that registers it"

    @property
    def how_to_get(self) -> str:
        """The command that fetches it, or a sentence that it needs none."""
        if self.url:
            return f"oneway data fetch {self.name}"
        return f"{self.name} needs no fetching: {self.comes_with}"

    @property
    def takes(self) -> frozenset[str]:
        """The keyword arguments of `load`."""
        return frozenset(signature(self.load).parameters)

    def folder(self, data: Path | None = None) -> Path:
        """The folder that its files belong in; `data` is the data folder if it is not the usual."""
        base = data_folder() if data is None else data
        return (base / self.files[0].path).parent if self.files else base

    def present_files(self, data: Path | None = None) -> tuple[Path, ...]:
        """Those of its files that are here, alternatives included."""
        places = [path for paths in self._places(data) for path in paths]
        return tuple(path for path in places if path.is_file())

    def is_here(self, data: Path | None = None) -> bool:
        """Whether it can be loaded."""
        return any(all(path.is_file() for path in paths) for paths in self._places(data))

    def find(self, data: Path | None = None) -> tuple[Path, ...]:
        """Return all its files, or the best one that will do instead.

        Raises:
            MissingDataError: If one is not there; says where to put it and how to download it.
        """
        places = self._places(data)
        for paths in places:
            if all(path.is_file() for path in paths):
                return paths
        if not self.url:
            raise MissingDataError(f"{self.name} is not on this machine: {self.comes_with}")
        missing = next(path for path in places[0] if not path.is_file())
        base = data_folder() if data is None else data
        raise MissingDataError(
            f"{missing} is missing; download it with the command `{self.how_to_get}`, or put it "
            f"there by hand (from {self.url}), or set ONEWAY_DATA to the folder that holds "
            f"{missing.relative_to(base)}"
        )

    def _places(self, data: Path | None) -> list[tuple[Path, ...]]:
        """Files that will do, best first; each tuple is complete."""
        if self.package_files is not None:
            return [found] if (found := self.package_files()) else []
        base = data_folder() if data is None else data
        files = tuple(base / file.path for file in self.files)
        return [files, *((base / other,) for other in self.alternatives)]


DATASETS: Registry[DataSet] = Registry("data set")


def names_of(kind: Literal["table", "graph"]) -> tuple[str, ...]:
    """The names of all tables, or of all trust graphs."""
    return tuple(name for name, data_set in DATASETS.items() if data_set.kind == kind)
