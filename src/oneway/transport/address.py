"""Addresses as people write them: `host:port`, with an IPv6 number in square brackets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Literal, TypeAlias

from oneway.errors import TransportError

Kind: TypeAlias = Literal["ipv4", "ipv6", "name"]

# Letters, digits and hyphens are all a host name may have; underscores exist in containers.
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")


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
    bracketed = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if bracketed else host
    kind = host_kind(bare)
    if kind is not None and bracketed == (kind == "ipv6"):
        return Address(bare, int(digits), kind)
    raise TransportError(
        f"address {text!r} names no host that can be reached; write a host name, an IPv4 number, "
        "or an IPv6 number in square brackets, then a colon and the port"
    )


def host_kind(host: str) -> Kind | None:
    """What kind of host this is, an IPv6 number without its brackets; None if it is none.

    >>> host_kind("::1"), host_kind("my_container"), host_kind("256.0.0.1")
    ('ipv6', 'name', None)
    """
    try:
        if ":" in host:
            # A zone, as in fe80::1%eth0, has a meaning on one machine only.
            return "ipv6" if "%" not in host and IPv6Address(host) else None
        # What has only digits and dots is a number with a mistake, and not a name to look up.
        if re.fullmatch(r"[0-9.]+", host):
            return "ipv4" if IPv4Address(host) else None
    except AddressValueError:
        return None
    is_name = len(host) <= 253 and all(_LABEL.fullmatch(label) for label in host.split("."))
    return "name" if is_name else None


def is_wildcard(host: str) -> bool:
    """Whether a host means "every interface of this machine": to listen on, not to dial.

    >>> is_wildcard("0.0.0.0"), is_wildcard("::"), is_wildcard("127.0.0.1"), is_wildcard("a.org")
    (True, True, False, False)
    """
    if ":" in host:
        return IPv6Address(host).is_unspecified
    return bool(re.fullmatch(r"[0-9.]+", host)) and IPv4Address(host).is_unspecified
