"""What the machine does to a peer: disk, key file, clock, port, process."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import stat
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from oneway.peer.home.home import Home
from oneway.peer.identity.address import parse_address

Port: TypeAlias = Literal["free", "taken", "elsewhere", "forbidden"]
"""Whether a peer can listen at its address.

It can; somebody does already; the address is not one of this machine; this user may not.
"""


@dataclass(frozen=True)
class MachineFacts:
    """What `doctor` has to know of the machine.

    Attributes:
        now: The time of the system's clock.
        process: The process that runs the peer; None if none does.
        newest_file: When a file of the peer was last written, by the clock of that moment.
        disk_free: Bytes that the peer's disk has left; None if that cannot be found out.
        folder: Where the peer's files are.
        folder_writable: Whether files can be made there.
        key_path: Where the secret key is.
        key_mode: The permissions of its file; None if there is no file.
        port: Whether the peer's address can be listened on.
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


def examine(home: Home, now: float) -> MachineFacts:
    """Look at the machine; changes nothing.

    Raises:
        ConfigError: If peer.toml cannot be read.
    """
    return MachineFacts(
        now=now,
        process=home.running_process(),
        newest_file=_newest(home),
        disk_free=_disk_free(home.folder),
        folder=home.folder,
        folder_writable=os.access(home.folder, os.W_OK | os.X_OK),
        key_path=home.key_path,
        key_mode=_mode(home.key_path),
        port=_port(home.config().listen),
    )


def _newest(home: Home) -> float:
    """Return when the status or the store was last written; 0 if never."""
    written = [home.status_path, *home.folder.glob(f"{home.store_path.name}*")]
    return max((_modified(path) for path in written), default=0.0)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _disk_free(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _mode(path: Path) -> int | None:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None


def _port(listen: str) -> Port:
    host, port = parse_address(listen)
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
            # As ZeroMQ does: connections that are still closing are no obstacle.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except PermissionError:
        return "forbidden"
    except OSError as error:
        return "taken" if error.errno == errno.EADDRINUSE else "elsewhere"
    return "free"
