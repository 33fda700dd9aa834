"""HTTP access control: which hosts, origins and tokens may use what is served to one's own machine.

Other machines need a token. Web pages of other sites never get in: such a page can make a browser
send requests to 127.0.0.1, under a name of its own that it had resolved to that address; the
request then shows that name in its Host header, or the page's site in its Origin header.

Starlette is imported where it is needed: a peer without its extra checks addresses too.
"""

from __future__ import annotations

import re
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from oneway.errors import ConfigError
from oneway.transport.address import host_kind, is_wildcard

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

SHORTEST_TOKEN = 16

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST_HEADER = re.compile(
    r"(\[(?P<ipv6>[0-9a-f.]*:[0-9a-f:.]*)\]|(?P<name>[a-z0-9_.-]+))(:(?P<port>[0-9]{1,5}))?"
)
_YEAR = 365 * 24 * 3600
_TOKEN_FORM = """<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">
<title>oneway</title><meta name="color-scheme" content="light dark">
<body style="font-family: system-ui; max-width: 30rem; margin: 4rem auto; padding: 0 1rem">
<h1>Token required</h1><p>%s</p>
<form><label>Token <input name="token" type="password" autofocus autocomplete="off"></label>
<button>Open</button></form>"""


def check_bind(host: str, token: str, what: str = "the local API") -> None:
    """Check that a host may be listened on with this token; empty is none.

    Args:
        host: Where to listen.
        token: What every request has to show.
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
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        # A name: where it leads is for others to say, and they may change their mind.
        return False


def is_own_host(header: str, host: str) -> bool:
    """Return whether a Host header is for the host that is listened on, or for this machine.

    Its port may be any: through a tunnel it is another. Nothing but a port may follow the host.

    >>> is_own_host("localhost:8701", "127.0.0.1"), is_own_host("page.example:80", "127.0.0.1")
    (True, False)
    >>> is_own_host("127.0.0.1:page.example", "127.0.0.1")
    False
    """
    parts = _HOST_HEADER.fullmatch(header.lower())
    if parts is None or not 0 < int(parts["port"] or 80) < 2**16:
        return False
    # Every interface has many names; check_bind saw to it that there is a token, and no page
    # knows that.
    return is_wildcard(host) or (parts["ipv6"] or parts["name"]) in _LOOPBACK | {host.lower()}


class ApiAccess:
    """ASGI middleware of an API: own Host and Origin headers, and the bearer token if any."""

    def __init__(self, app: ASGIApp, host: str, token: str) -> None:
        self._app = app
        self._host = host
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it before anything else of it is looked at."""
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        from starlette.datastructures import Headers

        from oneway.web.api import as_error

        headers = Headers(scope=scope)
        host = _only(headers, "host").lower()
        if not is_own_host(host, self._host):
            return as_error(400, "the Host header names another host; ask for the address served")
        if _is_from_elsewhere(headers, host):
            return as_error(
                403,
                "the Origin header is that of another site's page; it must be the address served, "
                "or missing: ask from a program, not from a page",
            )
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        if self._token and not (
            _is_token(shown.strip(), self._token) and scheme.lower() == "bearer"
        ):
            return as_error(
                401,
                "the request does not show the token; send the header Authorization: Bearer TOKEN",
                {"WWW-Authenticate": "Bearer"},
            )
        return None


class PageAccess:
    """ASGI middleware of pages, their files and their WebSocket: Host, Origin, and token.

    A page of ours changes whom a peer trusts, so no other site's page may use it. The token is
    shown once in the address, from then on in a cookie.
    """

    def __init__(self, app: ASGIApp, host: str, port: int, token: str) -> None:
        self._app = app
        self._host = host
        self._token = token
        # Cookies do not know ports: two pages on one machine must not share theirs.
        self._cookie = f"oneway-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it."""
        refusal = self._refusal(scope) if scope["type"] in ("http", "websocket") else None
        if refusal is not None and scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        await (refusal or self._app)(scope, receive, _unframed(send))

    def _refusal(self, scope: Scope) -> Response | None:
        from starlette.datastructures import Headers
        from starlette.responses import PlainTextResponse

        headers = Headers(scope=scope)
        host = _only(headers, "host").lower()
        if not is_own_host(host, self._host):
            return PlainTextResponse(
                "This address is not that of the page; open the one that oneway printed.\n", 400
            )
        if _is_from_elsewhere(headers, host):
            return PlainTextResponse("Another site's page may not use this one.\n", 403)
        if self._token and not _is_token(self._shown(headers.get("cookie", "")), self._token):
            return self._login(scope)
        return None

    def _shown(self, cookies: str) -> str:
        try:
            morsel = SimpleCookie(cookies).get(self._cookie)
        except CookieError:
            return ""
        return morsel.value if morsel is not None else ""

    def _login(self, scope: Scope) -> Response:
        """Take the token from the address, or ask for it."""
        from starlette.responses import HTMLResponse, RedirectResponse

        asked = parse_qsl(scope.get("query_string", b"").decode("latin-1"))
        shown = dict(asked).get("token")
        if shown is None:
            return HTMLResponse(_TOKEN_FORM % "This page is open to those who know its token.", 401)
        if not _is_token(shown, self._token):
            return HTMLResponse(_TOKEN_FORM % "That is not the token of this page.", 401)
        rest = urlencode([(name, value) for name, value in asked if name != "token"])
        # Without the token in it, so that it stays out of bookmarks and screenshots.
        path = "/" + scope["path"].lstrip("/")  # two slashes would lead to another host
        answer = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
        answer.set_cookie(
            self._cookie, self._token, max_age=_YEAR, httponly=True, samesite="strict", path="/"
        )
        return answer


def _is_token(shown: str, token: str) -> bool:
    """Whether this is the token, in a time that tells nothing about it."""
    return compare_digest(shown.encode(), token.encode())


def _is_from_elsewhere(headers: Headers, host: str) -> bool:
    """Whether a page of another site sent the request; `host` is our Host header."""
    own = (f"http://{host}", f"https://{host}")
    return any(origin.lower() not in own for origin in headers.getlist("origin"))


def _only(headers: Headers, name: str) -> str:
    """The one header of this name; nothing if there are more: which one would others believe?"""
    found = headers.getlist(name)
    return found[0] if len(found) == 1 else ""


def _unframed(send: Send) -> Send:
    """Let no page show ours in a frame, where clicks meant for it would be clicks on ours."""
    from starlette.datastructures import MutableHeaders

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-Frame-Options"] = "DENY"
            headers.setdefault("Content-Security-Policy", "frame-ancestors 'none'")
        await send(message)

    return sent
