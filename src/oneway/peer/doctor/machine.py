"""What the machine does to a peer: disk, key file, clock, port, process, and what is stored."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from oneway.peer.doctor.startup import Startup, check_startup
from oneway.peer.home.free_address import Port, probe
from oneway.peer.home.home import Home


@dataclass(frozen=True)
class MachineFacts:
    """What `doctor` has to know of the machine.

    Attributes:
        process: The process that runs the peer; None if none does.
        newest_file: When a file of the peer was last written, by the clock of that moment.
        disk_free: Bytes that the peer's disk has left; None if that cannot be found out.
        key_mode: The permissions of the key's file; None if there is no file.
        port: Whether the peer's address can be listened on.
        startup: What the next start would come upon.
    """

    now: float
    process: int | None
    newest_file: float
    disk_free: int | None
    folder: Path
    folder_writable: bool
    key_path: Path
    key_mode: int | None
    port: Port
    startup: Startup = field(default_factory=Startup)


def examine(home: Home, now: float) -> MachineFacts:
    """Look at the machine; changes nothing.

    Raises:
        ConfigError: If peer.toml cannot be read.
    """
    disk_free = None
    with suppress(OSError):
        disk_free = shutil.disk_usage(home.folder).free
    written = [home.status_path, *home.folder.glob(f"{home.store_path.name}*")]
    times = [facts.st_mtime for facts in map(_stat, written) if facts is not None]
    key = _stat(home.key_path)
    return MachineFacts(
        now=now,
        process=home.running_process(),
        newest_file=max(times, default=0.0),
        disk_free=disk_free,
        folder=home.folder,
        folder_writable=os.access(home.folder, os.W_OK | os.X_OK),
        key_path=home.key_path,
        key_mode=None if key is None else stat.S_IMODE(key.st_mode),
        port=probe(home.config().listen),
        startup=check_startup(home),
    )


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
