"""Network addresses: `host:port`, with an IPv6 address in square brackets."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Literal, NamedTuple, TypeAlias

from oneway.errors import ConfigError
from oneway.sentences import shown

Kind: TypeAlias = Literal["ipv4", "ipv6", "name"]

_EXAMPLE = "for example 192.168.1.20:7701, [2001:db8::7]:7701 or peer.example.org:7701"

# Letters, digits and hyphens are all a host name may have; underscores exist in containers.
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")


class Address(NamedTuple):
    """Where a peer listens or is dialled; an IPv6 host has no brackets.

    >>> host, port = parse_address("[::1]:7701")
    >>> host, port, str(Address(host, port))
    ('::1', 7701, '[::1]:7701')
    """

    host: str
    port: int

    @property
    def kind(self) -> Kind | None:
        """What kind of host it is."""
        return host_kind(self.host)

    def __str__(self) -> str:
        return join_address(self.host, self.port)


def parse_address(text: str, lowest_port: int = 1) -> Address:
    """Read `host:port`.

    Args:
        text: The address.
        lowest_port: 0 where a free port may be asked for, which is when listening.

    Raises:
        ConfigError: It is not an address; says what is wrong and shows a correct one.
    """
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[")
    if not colon or not host or (bracketed and not host.endswith("]")):
        raise ConfigError(f"the address {shown(text)} is not host:port; {_EXAMPLE}")
    if not bracketed and ":" in host:
        raise ConfigError(
            f"the address {shown(text)} has more than one colon; an IPv6 address stands in "
            f"brackets, {_EXAMPLE}"
        )
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else None
    if number is None or not lowest_port <= number <= 65535:
        raise ConfigError(
            f"the port {shown(port if number is None else number)} is not a number from "
            f"{lowest_port} to 65535; {_EXAMPLE}"
        )
    bare = host[1:-1] if bracketed else host
    if bracketed != (":" in bare):
        raise ConfigError(f"only IPv6 addresses stand in brackets, not {shown(bare)}; {_EXAMPLE}")
    if host_kind(bare) is None:
        raise ConfigError(
            f"the host {shown(bare)} is neither a host name nor an IP address; {_EXAMPLE}"
        )
    return Address(bare, number)


def join_address(host: str, port: int) -> str:
    """Return `host:port`, or `[host]:port` for IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


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
