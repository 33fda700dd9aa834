"""Port probing: whether an address can be listened on, and one that is free."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias
from zlib import crc32

from oneway.errors import ConfigError
from oneway.peer.home.config_file import read_config
from oneway.transport.address import join_address, parse_address

Port: TypeAlias = Literal["free", "taken", "elsewhere", "forbidden"]
"""Whether a peer can listen at its address.

It can; somebody does already; the address is not one of this machine; this user may not.
"""

HOST = "127.0.0.1"
PORTS = range(20_000, 30_000)
"""Below those that systems hand out to connections."""


def free_address(folder: Path) -> str:
    """Return an address of this machine that no program uses, and no peer in another folder.

    Peers that do not run at the moment have their ports too, wherever their folders are. So the
    folder's path decides at which port the search begins; peers beside this one are asked.

    Raises:
        ConfigError: If all ports are taken.
    """
    taken = set(_addresses_beside(folder))
    first = crc32(os.fsencode(folder.resolve()))
    for step in range(len(PORTS)):
        address = join_address(HOST, PORTS[(first + step) % len(PORTS)])
        if address not in taken and probe(address) == "free":
            return address
    raise ConfigError(
        f"no port from {PORTS[0]} to {PORTS[-1]} is free; choose one with --listen HOST:PORT"
    )


def probe(address: str) -> Port:
    """Return whether an address can be listened on, by trying."""
    host, port = parse_address(address)
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            # As ZeroMQ does: connections that are still closing are no obstacle.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
    except PermissionError:
        return "forbidden"
    except OSError as error:
        return "taken" if error.errno == errno.EADDRINUSE else "elsewhere"
    return "free"


def _addresses_beside(folder: Path) -> Iterator[str]:
    try:
        paths = sorted(folder.resolve().parent.glob("*/peer.toml"))
    except OSError:
        return
    for path in paths:
        try:
            yield read_config(path).listen
        except ConfigError:
            continue
