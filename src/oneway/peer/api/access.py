"""Who may use the local API.

Other machines: only with a token. Web pages in a browser on this machine: never. A page can make
the browser send requests to 127.0.0.1, under a name of its own that it had resolved to that
address; such a request shows that name in its Host header.
"""

from __future__ import annotations

from hmac import compare_digest
from ipaddress import ip_address

from oneway.errors import ConfigError
from oneway.peer.identity.address import check_host, is_wildcard
from oneway.peer.shown import shown

SHORTEST_TOKEN = 16

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def check_bind(host: str, token: str) -> None:
    """Check that a host may be listened on with this token; empty is none.

    Raises:
        ConfigError: If it is no host, or other machines could reach it and there is no token, or
            a poor one.
    """
    check_host(host)
    if not token:
        if not is_loopback(host):
            raise ConfigError(
                f"the local API on {shown(host)} could be used by other machines, and there is no "
                "token; listen on 127.0.0.1, or give a token that every request has to show"
            )
        return
    visible = all("!" <= letter <= "~" for letter in token)
    if len(token) < SHORTEST_TOKEN or not visible:
        # The token itself is a secret: an error message may end up in a log.
        raise ConfigError(
            f"the token of the local API has {len(token)} characters; it must have at least "
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


def shows_token(authorization: str, token: str) -> bool:
    """Return whether an Authorization header shows the token."""
    scheme, _, credentials = authorization.partition(" ")
    same = compare_digest(credentials.strip().encode(), token.encode())
    return scheme.lower() == "bearer" and same


def _named(header: str) -> str:
    """Return the host in a Host header, without port and brackets."""
    name = header.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]
