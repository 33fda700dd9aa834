"""Marker files: every folder that a command makes says which command made it, and its files.

`--force` replaces only folders with a marker of the same command, and deletes only files that the
marker names: a file of the user in such a folder is never deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from oneway.files.atomic import write_atomically

MARKER = "oneway.json"


class Marker(msgspec.Struct, frozen=True):
    """The content of a marker file.

    Attributes:
        made_by: The command, such as "lab"; "part of lab" for a folder inside such a folder.
        when: ISO time.
        files: Patterns of the files that the command writes, relative to the folder; a `*` does
            not match a slash.
    """

    made_by: str
    when: str
    files: tuple[str, ...]

    def knows(self, relative: Path) -> bool:
        """Whether the command writes a file of this name."""
        return any(
            len(relative.parts) == len(parts) and all(map(fnmatchcase, relative.parts, parts))
            for parts in (pattern.split("/") for pattern in (MARKER, *self.files))
        )


def part_of(command: str) -> str:
    """What a marker in a subfolder of a command's folder says."""
    return f"part of {command}"


def mark(folder: Path, made_by: str, files: Iterable[str]) -> None:
    """Write the marker of a folder.

    Raises:
        OSError: If it cannot be written.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    content = msgspec.json.encode(Marker(made_by, now, tuple(files)))
    write_atomically(folder / MARKER, msgspec.json.format(content, indent=2) + b"\n")


def read_marker(folder: Path) -> Marker | None:
    """The marker of a folder; None if it has none that can be read."""
    try:
        return msgspec.json.decode((folder / MARKER).read_bytes(), type=Marker)
    except (OSError, msgspec.MsgspecError):
        return None


def unknown_files(folder: Path, command: str) -> list[Path]:
    """The files in a folder, at any depth, that the command did not write."""
    return [path for path, is_known in _files(folder, command) if not is_known]


def clear(folder: Path, command: str) -> None:
    """Delete the files that the command wrote, and the folders that are empty then.

    Raises:
        OSError: If a file cannot be deleted.
    """
    for path, is_known in list(_files(folder, command)):
        if is_known:
            path.unlink()
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
            path.rmdir()


def _files(folder: Path, command: str) -> Iterator[tuple[Path, bool]]:
    """Every file below a folder, and whether the nearest marker above it knows it."""
    markers = {folder: read_marker(folder)}
    for path in sorted(folder.rglob("*")):
        is_folder = path.is_dir() and not path.is_symlink()
        home = next(parent for parent in path.parents if parent in markers)
        if is_folder:
            if (path / MARKER).exists():
                markers[path] = read_marker(path)
            continue
        marker = markers[home]
        maker = command if home == folder else part_of(command)
        is_own = marker is not None and marker.made_by == maker
        yield path, marker is not None and is_own and marker.knows(path.relative_to(home))
