"""An address of this machine for a peer of a test, which no test beside it is likely to take."""

from __future__ import annotations

import socket


def unused_address() -> str:
    """An address that the system chooses: the first free port of all is what others choose, too."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return "{}:{}".format(*server.getsockname())
