"""Catalogue: what is stored below a folder, runs, labs, demos and reproductions.

Only `run.json` is read of a run; what does not change is not read again. Nothing outside the folder
is ever looked at: symbolic links are not followed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from oneway.errors import StoreError
from oneway.store.entry import (
    PANELS,
    REPORT,
    RESULT,
    RUNS,
    Entry,
    Kind,
    Stamp,
    read_demo,
    read_lab,
    read_reproduction,
    read_run,
)
from oneway.store.run_folder import ARRAYS, SUMMARY

DEEPEST = 8
"""How many folders within folders are looked into."""
MOST_FOLDERS = 50_000
MOST_ENTRIES = 10_000

_Recognised: TypeAlias = tuple[Kind | None, Callable[[Entry], Entry], tuple[str, ...]]
"""What a folder is (None: what it belongs to), how to read it, and the files it changes with."""


@dataclass(frozen=True)
class Catalogue:
    """What was found.

    Attributes:
        entries: In the order of their names.
        cut_short: Whether there were too many folders or runs to see all.
    """

    entries: tuple[Entry, ...] = ()
    cut_short: bool = False

    def __getitem__(self, name: str) -> Entry:
        """The entry of this name.

        Raises:
            StoreError: If there is none: a name is never taken for a path.
        """
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise StoreError(
            f"there is no stored run {name[:200]!r}; it may have been moved or deleted"
        )

    def members_of(self, entry: Entry) -> list[Entry]:
        """The runs that belong to a lab or a demo."""
        return [other for other in self.entries if other.belongs_to == entry.name]


def find_runs(folder: Path | str) -> list[Entry]:
    """List what is stored below a folder; a damaged run is listed with its problem.

    Raises:
        StoreError: If there is no such folder, or it cannot be read.
    """
    return list(look(folder).entries)


def look(folder: Path | str, before: Catalogue | None = None) -> Catalogue:
    """List what is stored below a folder.

    Args:
        folder: Where to look.
        before: What was found last time; what has not changed is taken from it.

    Raises:
        StoreError: If there is no such folder, or it cannot be read.
    """
    root = Path(folder)
    _check_folder(root)
    known = {entry.path: entry for entry in before.entries} if before else {}
    entries: list[Entry] = []
    cut_short, num_folders = False, 0
    waiting: list[tuple[Path, int, Kind, str]] = [(root, 0, "simulation", "")]
    while waiting:
        path, depth, kind, owner = waiting.pop()
        if num_folders >= MOST_FOLDERS or len(entries) >= MOST_ENTRIES:
            cut_short = True
            break
        num_folders += 1
        try:
            inside = _Inside.of(path)
            entry = _entry(inside, root, kind, owner, known.get(path))
        except OSError:
            # Closed to us, or gone since its folder was read.
            continue
        folders = inside.folders
        if entry is not None:
            entries.append(entry)
            # What belongs to a lab or a demo is in one place; the peers' folders are no runs.
            has_runs = entry.kind in ("lab", "demo") and not entry.is_run and RUNS in folders
            folders = [RUNS] if has_runs else []
            kind, owner = entry.kind, entry.name
        if depth < DEEPEST:
            waiting += [(path / name, depth + 1, kind, owner) for name in folders]
        elif folders:
            cut_short = True
    return Catalogue(tuple(sorted(entries, key=lambda entry: entry.name)), cut_short)


def _check_folder(root: Path) -> None:
    try:
        with os.scandir(root):
            pass
    except OSError as error:
        reason = {
            FileNotFoundError: f"there is no folder {root}",
            NotADirectoryError: f"{root} is no folder",
        }
        raise StoreError(
            f"{reason.get(type(error), f'{root} cannot be opened: {error.strerror}')}; "
            "name a folder with stored runs, or make one: "
            "oneway simulate --data synthetic --out runs/first"
        ) from None


@dataclass
class _Inside:
    """What is directly in a folder; links and hidden names aside."""

    path: Path
    files: dict[str, os.DirEntry[str]] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, path: Path) -> _Inside:
        inside = cls(path)
        with os.scandir(path) as found:
            for item in found:
                if item.name.startswith("."):
                    continue
                if item.is_dir(follow_symlinks=False):
                    inside.folders.append(item.name)
                elif item.is_file(follow_symlinks=False):
                    inside.files[item.name] = item
        return inside

    def stamp(self, *names: str) -> Stamp:
        """Changes when one of these files does."""
        found = [self.files[name].stat(follow_symlinks=False) for name in names if self.has(name)]
        return tuple((status.st_mtime_ns, status.st_size) for status in found)

    def has(self, *names: str) -> bool:
        return all(name in self.files for name in names)


def _entry(
    inside: _Inside, root: Path, kind: Kind, owner: str, before: Entry | None
) -> Entry | None:
    """What a folder is, if it is something; as before if it has not changed."""
    recognised = _recognised(inside)
    if recognised is None:
        return None
    own_kind, read, files = recognised
    stamp = inside.stamp(*files)
    if before is not None and before.stamp == stamp:
        return before
    relative = inside.path.relative_to(root)
    name = relative.as_posix() if relative.parts else inside.path.resolve().name or "/"
    return read(
        Entry(
            # Names that are no UTF-8 could not be sent to anybody.
            name=os.fsencode(name).decode("utf-8", "replace"),
            path=inside.path,
            kind=own_kind or kind,
            stamp=stamp,
            modified=stamp[0][0] / 1e9 if stamp else inside.path.stat().st_mtime,
            belongs_to=owner,
        )
    )


def _recognised(inside: _Inside) -> _Recognised | None:
    if inside.has(SUMMARY):
        return None, read_run, (SUMMARY, ARRAYS)
    if inside.has(RESULT, "task.toml"):
        return "lab", read_lab, (RESULT,)
    if inside.has(REPORT, "loss.png") and RUNS in inside.folders:
        return "demo", read_demo, (REPORT,)
    if "cells" in inside.folders and (
        PANELS in inside.folders or _has_cells(inside.path / "cells")
    ):
        return "reproduction", read_reproduction, (REPORT,)
    return None


def _has_cells(path: Path) -> bool:
    """Whether a reproduction has begun here: cells are named by 24 hexadecimal digits."""
    with os.scandir(path) as found:
        first = next((item.name for item in found), "")
    return len(first) == 28 and first.endswith(".npz")
