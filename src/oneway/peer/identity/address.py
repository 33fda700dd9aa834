"""Where a peer listens or is dialled: `host:port`, with IPv6 addresses in brackets."""

from __future__ import annotations

from oneway.errors import ConfigError
from oneway.sentences import shown
from oneway.transport.address import host_kind

_EXAMPLE = "for example 192.168.1.20:7701, [2001:db8::7]:7701 or peer.example.org:7701"


def parse_address(text: str) -> tuple[str, int]:
    """Return the host, without brackets, and the port.

    Raises:
        ConfigError: If it is not an address; says what is wrong and shows a correct one.

    >>> parse_address("[::1]:7701")
    ('::1', 7701)
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or (host.startswith("[") and not host.endswith("]")):
        raise ConfigError(f"the address {shown(text)} is not host:port; {_EXAMPLE}")
    if not host.startswith("[") and ":" in host:
        raise ConfigError(
            f"the address {shown(text)} has more than one colon; an IPv6 address stands in "
            f"brackets, {_EXAMPLE}"
        )
    if not (port.isascii() and port.isdigit() and len(port) <= 5):
        raise ConfigError(f"the port {shown(port)} is not a number from 1 to 65535; {_EXAMPLE}")
    bracketed = host.startswith("[")
    bare = host[1:-1] if bracketed else host
    if bracketed != (":" in bare):
        raise ConfigError(f"only IPv6 addresses stand in brackets, not {shown(bare)}; {_EXAMPLE}")
    check_host(bare)
    return bare, check_port(int(port))


def check_host(host: str) -> str:
    """Return a host name, an IPv4 or an IPv6 address.

    Raises:
        ConfigError: If it is none of them.
    """
    # The transport's own rule: what a card may name, it must be able to dial.
    if host_kind(host) is None:
        raise ConfigError(
            f"the host {shown(host)} is neither a host name nor an IP address; {_EXAMPLE}"
        )
    return host


def check_port(port: int) -> int:
    """Return a port that can be dialled.

    Raises:
        ConfigError: If it is not from 1 to 65535.
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
        raise ConfigError(f"the port {shown(port)} is not a number from 1 to 65535; {_EXAMPLE}")
    return port


def join_address(host: str, port: int) -> str:
    """Return `host:port`, or `[host]:port` for IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
