"""Who may open a page: only our own pages talk to us, and a token lets other machines in.

A page of ours changes whom a peer trusts. So a request must be for our own host, may not come from
somebody else's page (`Origin`), and must know the token, if there is one: once in the address,
from then on in a cookie.
"""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from oneway.web.access import is_own_host, is_token

_YEAR = 365 * 24 * 3600
_ASK = """<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">
<title>oneway</title><meta name="color-scheme" content="light dark">
<body style="font-family: system-ui; max-width: 30rem; margin: 4rem auto; padding: 0 1rem">
<h1>A token, please</h1><p>%s</p>
<form><label>Token <input name="token" type="password" autofocus autocomplete="off"></label>
<button>Open</button></form>"""


class Door:
    """Middleware for pages, their files and their WebSocket.

    Attributes:
        app: What is behind the door.
    """

    def __init__(self, app: ASGIApp, host: str, port: int, token: str) -> None:
        self.app = app
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
        await (refusal or self.app)(scope, receive, _unframed(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not is_own_host(host, self._host):
            return PlainTextResponse(
                "This address is not that of the page; open the one that oneway printed.\n", 400
            )
        if origin is not None and _place(origin) != host.strip().lower():
            return PlainTextResponse("Another site's page may not use this one.\n", 403)
        if self._token and not is_token(self._shown(headers), self._token):
            return self._at_the_door(scope)
        return None

    def _shown(self, headers: Headers) -> str:
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return ""
        return morsel.value if morsel is not None else ""

    def _at_the_door(self, scope: Scope) -> Response:
        """Take the token from the address, or ask for it."""
        asked = parse_qsl(scope.get("query_string", b"").decode("latin-1"))
        shown = dict(asked).get("token")
        if shown is None:
            return HTMLResponse(_ASK % "This page is open to those who know its token.", 401)
        if not is_token(shown, self._token):
            return HTMLResponse(_ASK % "That is not the token of this page.", 401)
        rest = urlencode([(name, value) for name, value in asked if name != "token"])
        # Without the token in it, so that it stays out of bookmarks and screenshots.
        path = "/" + scope["path"].lstrip("/")  # two slashes would lead to another host
        answer = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
        answer.set_cookie(
            self._cookie, self._token, max_age=_YEAR, httponly=True, samesite="strict", path="/"
        )
        return answer


def _place(origin: str) -> str:
    """The host and port of an Origin header; nothing if it is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _unframed(send: Send) -> Send:
    """Let no page show ours in a frame, where clicks meant for it would be clicks on ours."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-Frame-Options"] = "DENY"
            if "Content-Security-Policy" not in headers:
                headers["Content-Security-Policy"] = "frame-ancestors 'none'"
        await send(message)

    return sent
