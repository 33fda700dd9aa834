"""Listening sockets: bound, or one sentence that says why not and names a free port."""

from __future__ import annotations

import errno
import socket
from contextlib import closing

from oneway.errors import TransportError
from oneway.transport.address import join_address


def listen(host: str, port: int, what: str = "the local API") -> socket.socket:
    """Return a socket bound to an address of this machine.

    Args:
        host: A name or an address, without brackets.
        port: 0 for any that is free.
        what: What will be served, for the message.

    Raises:
        TransportError: If that cannot be listened on; names a port that is free.
    """
    address = join_address(host, port)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, _, _, _, place = found[0]
        return _bound(family, place)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            with closing(_bound(family, (place[0], 0))) as other:
                free = other.getsockname()[1]
            raise TransportError(
                f"{what} cannot listen on {address}: another program does; choose another "
                f"port, {free} is free"
            ) from error
        raise TransportError(
            f"{what} cannot listen on {address}: {error.strerror}; choose an address of "
            "this machine and a port from 1024 on, such as 127.0.0.1:8701"
        ) from error


def url_of(host: str, listener: socket.socket) -> str:
    """Where a browser or a program finds what is served on a socket."""
    return f"http://{join_address(host, listener.getsockname()[1])}"


def _bound(family: int, place: tuple[object, ...]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Connections of a server that has just stopped are no obstacle.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
    except BaseException:
        listener.close()
        raise
    return listener
