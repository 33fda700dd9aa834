"""What is stored below a folder: runs, labs, demos and reproductions.

Only `run.json` is read of a run; what does not change is not read again. Nothing outside the folder
is ever looked at: symbolic links are not followed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from oneway.errors import StoreError
from oneway.store.entry import Entry, Kind, Stamp
from oneway.store.layout import ARRAYS, PANELS, REPORT, RESULT, RUNS, SUMMARY
from oneway.store.reading import read_demo, read_lab, read_reproduction, read_run
from oneway.store.tables import in_short

DEEPEST = 8
"""How many folders within folders are looked into."""
MOST_FOLDERS = 50_000
MOST_ENTRIES = 10_000


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
    walk = _Walk(root, {entry.path: entry for entry in before.entries} if before else {})
    entries = tuple(sorted(walk.entries(), key=lambda entry: entry.name))
    return Catalogue(entries, walk.cut_short)


@dataclass
class _Inside:
    """What is directly in a folder."""

    path: Path
    files: dict[str, os.DirEntry[str]] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)

    def stamp(self, *names: str) -> Stamp:
        """Changes when one of these files does."""
        found = [self.files[name].stat(follow_symlinks=False) for name in names if self.has(name)]
        return tuple((status.st_mtime_ns, status.st_size) for status in found)

    def has(self, *names: str) -> bool:
        return all(name in self.files for name in names)


@dataclass
class _Walk:
    """One look at everything below a folder."""

    root: Path
    known: Mapping[Path, Entry]
    cut_short: bool = False
    _num_folders: int = 0
    _num_entries: int = 0

    def entries(self) -> Iterator[Entry]:
        yield from self._below(self.root, 0, "simulation", "")

    def _below(self, path: Path, depth: int, kind: Kind, owner: str) -> Iterator[Entry]:
        if self._num_folders >= MOST_FOLDERS or self._num_entries >= MOST_ENTRIES:
            self.cut_short = True
            return
        self._num_folders += 1
        try:
            inside = _inside(path)
            entry = self._entry(inside, kind, owner)
        except OSError:
            # Closed to us, or gone since its folder was read.
            return
        folders: Iterable[str] = inside.folders
        if entry is not None:
            self._num_entries += 1
            yield entry
            # What belongs to a lab or a demo is in one place; the peers' folders are no runs.
            folders = [RUNS] if entry.kind in ("lab", "demo") and not entry.is_run else []
            kind, owner = entry.kind, entry.name
        if depth >= DEEPEST:
            self.cut_short = self.cut_short or bool(folders)
            return
        for name in folders:
            if name in inside.folders:
                yield from self._below(path / name, depth + 1, kind, owner)

    def _entry(self, inside: _Inside, kind: Kind, owner: str) -> Entry | None:
        """What a folder is, if it is something."""
        if inside.has(SUMMARY):
            stamp = inside.stamp(SUMMARY, ARRAYS)
            return self._same(inside, stamp) or _read(
                read_run, self._blank(inside, stamp, kind, owner)
            )
        if inside.has(RESULT, "task.toml"):
            stamp = inside.stamp(RESULT)
            return self._same(inside, stamp) or _read(
                read_lab, self._blank(inside, stamp, "lab", owner)
            )
        if inside.has(REPORT, "loss.png") and RUNS in inside.folders:
            stamp = inside.stamp(REPORT)
            return self._same(inside, stamp) or _read(
                read_demo, self._blank(inside, stamp, "demo", owner)
            )
        if {"cells", PANELS} <= set(inside.folders) or (
            "cells" in inside.folders and _has_cells(inside.path / "cells")
        ):
            stamp = inside.stamp(REPORT)
            return self._same(inside, stamp) or _read(
                read_reproduction, self._blank(inside, stamp, "reproduction", owner)
            )
        return None

    def _same(self, inside: _Inside, stamp: Stamp) -> Entry | None:
        before = self.known.get(inside.path)
        return before if before is not None and before.stamp == stamp else None

    def _blank(self, inside: _Inside, stamp: Stamp, kind: Kind, owner: str) -> Entry:
        relative = inside.path.relative_to(self.root)
        name = relative.as_posix() if relative.parts else inside.path.resolve().name or "/"
        return Entry(
            # Names that are no UTF-8 could not be sent to anybody.
            name=os.fsencode(name).decode("utf-8", "replace"),
            path=inside.path,
            kind=kind,
            stamp=stamp,
            modified=stamp[0][0] / 1e9 if stamp else inside.path.stat().st_mtime,
            belongs_to=owner,
        )


def _read(reader: Callable[[Entry], Entry], blank: Entry) -> Entry:
    """Complete an entry; whatever is wrong with it, the others are listed too."""
    try:
        return reader(blank)
    except OSError:
        raise
    except Exception as error:
        problem = f"it cannot be read ({in_short(error)}); make it again"
        return replace(blank, is_run=reader is read_run, problem=problem)


def _inside(path: Path) -> _Inside:
    inside = _Inside(path)
    with os.scandir(path) as found:
        for item in found:
            if item.name.startswith("."):
                continue
            if item.is_dir(follow_symlinks=False):
                inside.folders.append(item.name)
            elif item.is_file(follow_symlinks=False):
                inside.files[item.name] = item
    return inside


def _has_cells(path: Path) -> bool:
    """Whether a reproduction has begun here: cells are named by 24 hexadecimal digits."""
    with os.scandir(path) as found:
        first = next((item.name for item in found), "")
    return len(first) == 28 and first.endswith(".npz")
