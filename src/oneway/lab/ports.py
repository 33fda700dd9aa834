"""Port reservation: ports that belong to a lab as long as it lasts, also while a peer is down."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from oneway.errors import ConfigError
from oneway.transport.address import join_address

HOST = "127.0.0.1"
FIRST, LAST = 20_000, 32_000
"""Below the ports that systems give to outgoing connections, one of which could else take over."""


class Ports(ExitStack):
    """Reserves ports on loopback; `close`, or the end of a `with` block, gives them back.

    A reserved port is bound but not listened on. Bound without SO_REUSEADDR, it is refused to
    every other lab; with the option set afterwards, the peer (whose socket has it too) may bind
    the same port and listen.
    """

    def __init__(self) -> None:
        super().__init__()
        self._untried = iter(range(FIRST, LAST))

    def reserve(self) -> str:
        """An address that no other program uses, `host:port`.

        Raises:
            ConfigError: If all ports are taken.
        """
        for port in self._untried:
            holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                holder.bind((HOST, port))
            except OSError:
                holder.close()
                continue
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.enter_context(holder)
            return join_address(HOST, port)
        raise ConfigError(
            f"no port from {FIRST} to {LAST - 1} is free on {HOST}; end the programs that use them"
        )
