"""Transport of frames between peers: the interface, the registry, fault injection and ZeroMQ.

A transport of one's own is a subclass of `Transport` and one call, from anywhere:

    oneway.transport.TRANSPORTS.register(listen, "carrier-pigeon")

where `listen` is a `Listen`; `transport = "carrier-pigeon"` in peer.toml chooses it, or
`Peer(folder, transport=listen)`. Nothing here loads ZeroMQ until a peer listens with it.
"""

from __future__ import annotations

from collections.abc import Callable

from oneway.protocol.state import Key
from oneway.transport.address import Address, parse_address
from oneway.transport.base import (
    TRANSPORTS,
    Arrival,
    ConnectionLimits,
    Link,
    LinkState,
    Listen,
    Losses,
    Transport,
    Via,
)
from oneway.transport.faults import Faults, Faulty


def listen_zeromq(
    secret_key: bytes, address: str, *, limits: ConnectionLimits, clock: Callable[[], float]
) -> Transport:
    """The default transport: encrypted TCP by ZeroMQ, imported when first used."""
    from oneway.transport.zeromq import ZeroMQ

    return ZeroMQ(secret_key, address, limits=limits, clock=clock)


TRANSPORTS.register(listen_zeromq, "zeromq")

__all__ = [
    "TRANSPORTS",
    "Address",
    "Arrival",
    "ConnectionLimits",
    "Faults",
    "Faulty",
    "Key",
    "Link",
    "LinkState",
    "Listen",
    "Losses",
    "Transport",
    "Via",
    "parse_address",
]
