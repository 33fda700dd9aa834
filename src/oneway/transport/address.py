"""Addresses as people write them: `host:port`, with an IPv6 number in square brackets."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from oneway.errors import TransportError

Kind: TypeAlias = Literal["ipv4", "ipv6", "name"]

# Letters, digits, hyphens and dots are all a host name may have; underscores exist in containers.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}\Z")


@dataclass(frozen=True)
class Address:
    """Where a peer listens.

    >>> parse_address("[::1]:7001")
    Address(host='::1', port=7001, kind='ipv6')
    >>> str(parse_address("[::1]:7001")), str(parse_address("localhost:7001"))
    ('[::1]:7001', 'localhost:7001')
    """

    host: str
    port: int
    kind: Kind

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if self.kind == "ipv6" else f"{self.host}:{self.port}"


def parse_address(text: str, lowest_port: int = 1) -> Address:
    """Read `host:port`.

    Args:
        text: The address, say `192.0.2.7:7001`, `[2001:db8::7]:7001` or `peer.example.org:7001`.
        lowest_port: 0 where a free port may be asked for, which is when listening.

    Raises:
        TransportError: It is not an address.
    """
    host, colon, digits = text.rpartition(":")
    if not colon or not (digits.isascii() and digits.isdigit()):
        raise TransportError(
            f"address {text!r} has no port; write host:port, as in 192.0.2.7:7001 or [::1]:7001"
        )
    if len(digits) > 5 or not lowest_port <= int(digits) <= 65535:
        raise TransportError(
            f"address {text!r} has port {digits[:20]}, but ports are {lowest_port} to 65535; "
            "write the port the peer listens on"
        )
    if host.startswith("[") and host.endswith("]"):
        if (number := _ip_number(host[1:-1])) is not None and number.version == 6:
            return Address(host[1:-1], int(digits), "ipv6")
    elif (number := _ip_number(host)) is not None and number.version == 4:
        return Address(host, int(digits), "ipv4")
    # What has only digits and dots is a number with a mistake, and not a name to look up.
    elif _NAME.match(host) and not re.fullmatch(r"[0-9.]+", host):
        return Address(host, int(digits), "name")
    raise TransportError(
        f"address {text!r} names no host that can be reached; write a host name, an IPv4 number, "
        "or an IPv6 number in square brackets, then a colon and the port"
    )


def _ip_number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
