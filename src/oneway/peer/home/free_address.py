"""Where a new peer on this machine may listen."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

from oneway.errors import ConfigError
from oneway.peer.home.config_file import read_config
from oneway.peer.identity.address import join_address

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
        if address not in taken and _is_free(port):
            return address
    raise ConfigError(
        f"no port from {FIRST_PORT} to {FIRST_PORT + _PORTS_TO_TRY - 1} is free; "
        "choose one with --listen HOST:PORT"
    )


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As ZeroMQ does: connections that are still closing are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


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
