"""HTTP API for one's own machine: JSON in, JSON out, errors as one sentence."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from oneway.errors import DataError, OnewayError, WireError
from oneway.web.access_control import ApiAccess

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
MAX_BODY = 2**20
"""Bytes of a body: thousands of small samples."""
_log = logging.getLogger("oneway.web")


def as_json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value, or what is JSON already, as an answer that no cache keeps."""
    return Response(
        value if isinstance(value, bytes) else msgspec.json.encode(value),
        status,
        headers=HEADERS | {"Content-Type": "application/json"} | dict(headers or {}),
    )


def as_error(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a refusal with its reason, one sentence."""
    return as_json({"error": sentence}, status, headers)


def make_api(routes: Sequence[Route], host: str, token: str) -> Starlette:
    """Return an application whose errors become sentences.

    Args:
        routes: What it answers.
        host: The host it will be served on: requests for another host are refused.
        token: What every request has to show, as `Authorization: Bearer TOKEN`; empty for none.
    """
    app = Starlette(
        routes=list(routes),
        middleware=[Middleware(ApiAccess, host=host, token=token)],
        exception_handlers={
            HTTPException: _on_http_error,
            WireError: partial(_on_error, 400, ""),
            DataError: partial(_on_error, 422, ""),
            OnewayError: partial(_on_error, 503, ""),
            ClientDisconnect: partial(_on_error, 400, "the body broke off"),
            Exception: _on_bug,
        },
    )
    app.router.redirect_slashes = False
    return app


async def read_body(request: Request) -> bytes:
    """Return the body of a request, which must be JSON by its own account.

    Raises:
        HTTPException: If it is too large, or not declared to be JSON. A web page cannot declare
            that without asking first, which is answered with no; so no page can make us act.
    """
    declared = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if declared != "application/json":
        raise HTTPException(
            415, "the body must be JSON; send the header Content-Type: application/json"
        )
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise HTTPException(
                413, f"the body is larger than {MAX_BODY:,} bytes; send fewer samples at once"
            )
    return bytes(body)


async def _on_error(status: int, sentence: str, _: Request, error: Exception) -> Response:
    return as_error(status, sentence or str(error))


async def _on_bug(request: Request, error: Exception) -> Response:
    """Log the traceback, which goes to stderr unless the process logs elsewhere."""
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return as_error(
        500,
        f"internal error in oneway ({type(error).__name__}); the process that answered has logged "
        "the traceback to stderr; please report it",
    )


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentence = error.detail
    if error.status_code == 404:
        sentence = "there is nothing at this path; GET / lists what there is"
    elif error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "another method")
        sentence = f"{request.method} cannot be used here; use {allowed}"
    return as_error(error.status_code, sentence, error.headers)
