"""Turns away who may not ask an API, before anything of a request is looked at."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from oneway.web.access import is_own_host, shows_token
from oneway.web.answers import as_error


class Gate:
    """Middleware: the Host header must be ours, and the token must be shown if there is one."""

    def __init__(self, app: ASGIApp, host: str, token: str) -> None:
        self._app = app
        self._host = host
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        refusal = self._refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, headers: Headers) -> Response | None:
        if not is_own_host(headers.get("host", ""), self._host):
            return as_error(400, "the Host header names another host; ask for the address served")
        if self._token and not shows_token(headers.get("authorization", ""), self._token):
            return as_error(
                401,
                "the request does not show the token; send the header Authorization: Bearer TOKEN",
                {"WWW-Authenticate": "Bearer"},
            )
        return None
