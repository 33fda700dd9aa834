"""Data sets that are known by name: the registry, where their files live, whether they are here.

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
from oneway.models import LabelKind
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
    """A data set that is known by name.

    Attributes:
        name: What to call it, as in `oneway data fetch NAME`.
        about: What it is.
        rows: How many rows (or edges).
        licence: Under which it may be used.
        load: Returns the `Table`, or the `TrustGraph`. Its keyword arguments are what `load` of
            `oneway` passes on: any of `task` (see `LabelKind`), `label`, `features`, and those of
            its own, such as `seed` and `samples`.
        kind: A table of samples, or a trust graph.
        label_kind: What the labels of a table are, unless `load` takes `task`.
        url: Where it is downloaded from; empty if it needs no fetching.
        files: What is downloaded.
        alternatives: Other files that will do instead, best first.
        locate: Finds its files if they are not in the data folder; empty if they are missing.
        comes_with: Where it comes from if it needs no fetching, as the end of a sentence.
    """

    name: str
    about: str
    rows: int
    licence: str
    load: Callable[..., Any]
    kind: Literal["table", "graph"] = "table"
    label_kind: LabelKind = "binary"
    url: str = ""
    files: tuple[DataFile, ...] = ()
    alternatives: tuple[str, ...] = ()
    locate: Callable[[], tuple[Path, ...]] | None = None
    comes_with: str = "it comes with the package that registers it"

    @property
    def note(self) -> str:
        """How to get it, in a sentence."""
        if self.url:
            return f"oneway data fetch {self.name}"
        return f"{self.name} needs no fetching: {self.comes_with}"

    @property
    def takes(self) -> frozenset[str]:
        """The keyword arguments of `load`."""
        return frozenset(signature(self.load).parameters)

    def places(self, folder: Path | None = None) -> list[tuple[Path, ...]]:
        """Files that will do, best first, wherever the data folder is; each tuple is complete."""
        if self.locate is not None:
            return [found] if (found := self.locate()) else []
        base = data_folder() if folder is None else folder
        files = tuple(base / file.path for file in self.files)
        return [files, *((base / other,) for other in self.alternatives)]

    def find(self, folder: Path | None = None) -> tuple[Path, ...]:
        """Return all its files, or the best one that will do instead.

        Raises:
            MissingDataError: If one is not there; says where to put it and how to download it.
        """
        places = self.places(folder)
        for paths in places:
            if all(path.is_file() for path in paths):
                return paths
        if not self.url:
            raise MissingDataError(f"{self.name} is not on this machine: {self.comes_with}")
        missing = next(path for path in places[0] if not path.is_file())
        base = data_folder() if folder is None else folder
        raise MissingDataError(
            f"{missing} is missing; download it with the command `{self.note}`, or put it there "
            f"by hand (from {self.url}), or set ONEWAY_DATA to the folder that holds "
            f"{missing.relative_to(base)}"
        )


@dataclass(frozen=True)
class Status:
    """A data set, and whether it is on this machine.

    Attributes:
        data_set: What it is.
        present: Whether it can be loaded now.
        found: The files of it that are there.
        where: The folder its files belong in.
    """

    data_set: DataSet
    present: bool
    found: tuple[Path, ...]
    where: Path


DATASETS: Registry[DataSet] = Registry("data set")


def catalogue(folder: Path | None = None) -> tuple[Status, ...]:
    """List the known data sets and whether they are in `folder` (default: the data folder)."""
    return tuple(info(name, folder) for name in DATASETS)


def info(name: str, folder: Path | None = None) -> Status:
    """Say what a data set is and whether it is in `folder` (default: the data folder).

    Raises:
        ConfigError: If there is no such data set; suggests the nearest name.
    """
    data_set = DATASETS[name]
    places = data_set.places(folder)
    files = [path for paths in places for path in paths]
    return Status(
        data_set,
        present=any(all(path.is_file() for path in paths) for paths in places),
        found=tuple(path for path in files if path.is_file()),
        where=files[0].parent if files else folder or data_folder(),
    )


def names_of(kind: Literal["table", "graph"]) -> tuple[str, ...]:
    """The names of all tables, or of all trust graphs."""
    return tuple(name for name, data_set in DATASETS.items() if data_set.kind == kind)
