"""Ports that belong to a lab as long as it lasts, also while the peer of a port is down."""

from __future__ import annotations

import socket
from types import TracebackType

from oneway.errors import ConfigError
from oneway.peer.identity.address import join_address

HOST = "127.0.0.1"
FIRST, LAST = 20_000, 32_000
"""Below the ports that systems give to outgoing connections, one of which could else take over."""


class Ports:
    """Reserves ports on loopback; `close` gives them back.

    A reserved port is bound but not listened on. Bound without SO_REUSEADDR, it is refused to
    every other lab; with the option set afterwards, the peer (whose socket has it too) may bind
    the same port and listen.
    """

    def __init__(self) -> None:
        self._held: list[socket.socket] = []
        self._next = FIRST

    def reserve(self) -> str:
        """An address that nobody else uses, `host:port`.

        Raises:
            ConfigError: If all ports are taken.
        """
        while self._next < LAST:
            port = self._next
            self._next += 1
            holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                holder.bind((HOST, port))
            except OSError:
                holder.close()
                continue
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._held.append(holder)
            return join_address(HOST, port)
        raise ConfigError(
            f"no port from {FIRST} to {LAST - 1} is free on {HOST}; end the programs that use them"
        )

    def close(self) -> None:
        """Give all ports back."""
        for holder in self._held:
            holder.close()
        self._held.clear()

    def __enter__(self) -> Ports:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
