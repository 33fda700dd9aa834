"""Who may use what is served to one's own machine.

Other machines: only with a token. Web pages in a browser on this machine: never, but our own. A
page can make the browser send requests to 127.0.0.1, under a name of its own that it had resolved
to that address; such a request shows that name in its Host header.
"""

from __future__ import annotations

from hmac import compare_digest
from ipaddress import ip_address

from oneway.errors import ConfigError
from oneway.transport.address import host_kind, is_wildcard

SHORTEST_TOKEN = 16

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def check_bind(host: str, token: str, what: str = "the local API") -> None:
    """Check that a host may be listened on with this token; empty is none.

    Args:
        host: Where to listen.
        token: What everybody has to show.
        what: What would be served there, for the message.

    Raises:
        ConfigError: If it is no host, or other machines could reach it and there is no token, or
            a poor one.
    """
    if host_kind(host) is None:
        raise ConfigError(
            f"the host {host[:80]!r} is neither a host name nor an IP address; for example "
            "127.0.0.1, 192.168.1.20 or localhost"
        )
    if not token:
        if not is_loopback(host):
            raise ConfigError(
                f"{what} on {host[:80]!r} could be used by other machines, and there is no token; "
                "listen on 127.0.0.1, or give a token that every request has to show"
            )
        return
    visible = all("!" <= letter <= "~" for letter in token)
    if len(token) < SHORTEST_TOKEN or not visible:
        # The token itself is a secret: an error message may end up in a log.
        raise ConfigError(
            f"the token of {what} has {len(token)} characters; it must have at least "
            f"{SHORTEST_TOKEN}, all of them visible ASCII characters and no spaces, for example "
            "what openssl rand -hex 16 prints"
        )


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        # A name: where it leads is for others to say, and they may change their mind.
        return False


def is_own_host(header: str, host: str) -> bool:
    """Return whether a Host header is for the host that is listened on, or for this machine.

    >>> is_own_host("localhost:8701", "127.0.0.1"), is_own_host("page.example:80", "127.0.0.1")
    (True, False)
    """
    # Every interface has many names; check_bind saw to it that there is a token, and no page
    # knows that.
    return is_wildcard(host) or _named(header) in _LOOPBACK | {host.lower()}


def is_token(shown: str, token: str) -> bool:
    """Return whether what somebody showed is the token, in a time that tells nothing about it."""
    return compare_digest(shown.encode(), token.encode())


def shows_token(authorization: str, token: str) -> bool:
    """Return whether an Authorization header shows the token."""
    scheme, _, credentials = authorization.partition(" ")
    return is_token(credentials.strip(), token) and scheme.lower() == "bearer"


def _named(header: str) -> str:
    """Return the host in a Host header, without port and brackets."""
    name = header.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]
