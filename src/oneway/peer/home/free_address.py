"""Port probing: whether an address can be listened on, and the first one that is free."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from oneway.errors import ConfigError
from oneway.peer.home.config_file import read_config
from oneway.transport.address import join_address, parse_address

Port: TypeAlias = Literal["free", "taken", "elsewhere", "forbidden"]
"""Whether a peer can listen at its address.

It can; somebody does already; the address is not one of this machine; this user may not.
"""

HOST = "127.0.0.1"
FIRST_PORT = 7701
_PORTS_TO_TRY = 1000
_NEIGHBOURS_TO_ASK = 1000


def free_address(folder: Path) -> str:
    """Return the first address from 127.0.0.1:7701 on that no program and no neighbour uses.

    Neighbours are peers in folders beside this one: they may not be running yet.

    Raises:
        ConfigError: If all ports are taken.
    """
    taken = set(_addresses_beside(folder))
    for port in range(FIRST_PORT, FIRST_PORT + _PORTS_TO_TRY):
        address = join_address(HOST, port)
        if address not in taken and probe(address) == "free":
            return address
    raise ConfigError(
        f"no port from {FIRST_PORT} to {FIRST_PORT + _PORTS_TO_TRY - 1} is free; "
        "choose one with --listen HOST:PORT"
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
        paths = sorted(folder.resolve().parent.glob("*/peer.toml"))[:_NEIGHBOURS_TO_ASK]
    except OSError:
        return
    for path in paths:
        try:
            yield read_config(path).listen
        except ConfigError:
            continue
