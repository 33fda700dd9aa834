"""Memory limits: what this machine has left, and refusing at once what cannot fit."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from zipfile import ZipFile

from oneway.errors import OnewayError

_MEMINFO = Path("/proc/meminfo")
_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""What a container may use, of all that the machine has."""

_HARMLESS = 2**28
"""Bytes that any zip file may unpack to."""
_MOST_PACKED = 100
"""Beyond that, the largest ratio of unpacked to packed size; that of real data is about 10."""


def available_memory() -> float:
    """Available memory in bytes; inf if unknown."""
    return min(_free(), *map(_limit, _LIMITS))


def require_memory(
    needed: float, what: str, error: type[OnewayError], *, remedy: str, flag_remedy: str = ""
) -> None:
    """Refuse what needs more memory than there is, before any of it is taken.

    Args:
        needed: About how many bytes.
        what: What needs them, with the value that makes it large: the beginning of a sentence.
        error: The class of what is raised.
        remedy: What to do instead, in Python.
        flag_remedy: The same at the command line, if it is something else there.

    Raises:
        OnewayError: Of the class `error`, with the memory that is needed and that there is.
    """
    available = available_memory()
    if needed > available:
        raise error(
            f"{what} needs about {spoken_bytes(needed)} of memory, and this machine has "
            f"{spoken_bytes(available)} left",
            remedy=remedy,
            flag_remedy=flag_remedy or remedy,
        )


def require_unpacked(path: Path, error: type[OnewayError]) -> None:
    """Refuse a zip file that unpacks to far more than its size, or to more than there is memory.

    A zip file declares the size of its members, and `zipfile` yields no more than that.

    Raises:
        OnewayError: Of the class `error`.
        BadZipFile: If it is not a zip file.
        OSError: If it cannot be read.
    """
    with ZipFile(path) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    packed = path.stat().st_size
    if unpacked > max(_HARMLESS, _MOST_PACKED * packed):
        raise error(
            f"{path} has {spoken_bytes(packed)} and would unpack to {spoken_bytes(unpacked)}, and "
            f"a file may unpack to {_MOST_PACKED} times its size",
            remedy="if you trust its origin, write it uncompressed, with numpy.savez",
        )
    require_memory(unpacked, f"{path}, unpacked,", error, remedy="use a part of it")


def spoken_bytes(count: float) -> str:
    """A number of bytes in its largest unit.

    >>> spoken_bytes(999), spoken_bytes(2.5e9), spoken_bytes(4.81e14)
    ('999 bytes', '2.5 GB', '481 TB')
    """
    for unit, size in (("EB", 1e18), ("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:,.3g} {unit}" if count < 1e3 * size else f"{count:.1e} bytes"
    return f"{count:,.0f} bytes"


def _free() -> float:
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB$", _MEMINFO.read_text(), re.MULTILINE)
        if found:
            return 1024.0 * int(found[1])
    except OSError:
        pass  # not Linux
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return math.inf


def _limit(path: Path) -> float:
    try:
        return float(path.read_text())
    except (OSError, ValueError):
        return math.inf  # no such limit, or the word max
