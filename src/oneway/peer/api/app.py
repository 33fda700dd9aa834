"""The routes of the local API; every answer is JSON but the metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from oneway.errors import DataError, OnewayError, WireError
from oneway.peer.api.access import is_own_host, shows_token
from oneway.peer.api.local_peer import LocalPeer
from oneway.peer.api.metrics import CONTENT_TYPE, prometheus
from oneway.peer.api.requests import MAX_BODY, parse_body, parse_sample, parse_samples

_INDEX = {
    "POST /predict": 'what is expected for {"x": {feature: value, ...}}, or {"samples": [...]}',
    "POST /learn": 'learn from {"x": {...}, "y": label}, or {"samples": [...]}; gives the loss',
    "GET /status": "how the peer is doing",
    "GET /metrics": "the same for Prometheus",
}

_SAMPLES_AT_ONCE = 100
"""After so many samples the peer's other tasks get their turn."""

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def make_app(peer: LocalPeer, host: str, token: str) -> Starlette:
    """Return the application; see `oneway.peer.api.api.build_app`."""
    routes = _Routes(peer)
    app = Starlette(
        routes=[
            Route("/", routes.index, methods=["GET"]),
            Route("/predict", routes.predict, methods=["POST"]),
            Route("/learn", routes.learn, methods=["POST"]),
            Route("/status", routes.status, methods=["GET"]),
            Route("/metrics", routes.metrics, methods=["GET"]),
        ],
        middleware=[Middleware(_Gate, host=host, token=token)],
        exception_handlers={
            HTTPException: _on_http_error,
            WireError: partial(_on_error, 400),
            DataError: partial(_on_error, 422),
            OnewayError: partial(_on_error, 503),
            ClientDisconnect: _on_disconnect,
            Exception: _on_bug,
        },
    )
    app.router.redirect_slashes = False
    return app


class _Gate:
    """Turns away who may not ask, before anything of a request is looked at."""

    def __init__(self, app: ASGIApp, host: str, token: str) -> None:
        self._app = app
        self._host = host
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, headers: Headers) -> Response | None:
        if not is_own_host(headers.get("host", ""), self._host):
            return _error(400, "the Host header names another host; ask for the peer's own address")
        if self._token and not shows_token(headers.get("authorization", ""), self._token):
            return _error(
                401,
                "the request does not show the token; send the header Authorization: Bearer TOKEN",
                {"WWW-Authenticate": "Bearer"},
            )
        return None


class _Routes:
    """What is asked, put to the peer; its functions are quick and are called directly."""

    def __init__(self, peer: LocalPeer) -> None:
        self._peer = peer

    async def index(self, request: Request) -> Response:
        return _json({"peer": self._peer.status().name, "routes": _INDEX})

    async def status(self, request: Request) -> Response:
        return _json(self._peer.status())

    async def metrics(self, request: Request) -> Response:
        text = prometheus(self._peer.status()).encode(errors="replace")
        return Response(text, headers=_HEADERS | {"Content-Type": CONTENT_TYPE})

    async def predict(self, request: Request) -> Response:
        return await _for_each(request, self._predict_one, needs_label=False)

    async def learn(self, request: Request) -> Response:
        return await _for_each(request, self._learn_one, needs_label=True)

    def _predict_one(self, x: Mapping[str, object], _: object) -> dict[str, object]:
        answer: dict[str, object] = {"prediction": self._peer.predict_one(x)}
        if self._peer.task.says_probabilities:
            answer["probabilities"] = self._peer.predict_proba_one(x)
        return answer

    def _learn_one(self, x: Mapping[str, object], y: object) -> dict[str, object]:
        answer: dict[str, object] = {"loss": self._peer.learn_one(x, y)}
        problem = self._peer.status().disk_problem
        if problem:
            answer["warning"] = f"learned, but not durable yet: {problem}"
        return answer


async def _for_each(
    request: Request,
    answer: Callable[[Mapping[str, object], object], dict[str, object]],
    *,
    needs_label: bool,
) -> Response:
    """Answer one sample, or several one by one: a bad one among them does not stop the others."""
    body = parse_body(await _read(request))
    samples = parse_samples(body)
    if samples is None:
        return _json(answer(*parse_sample(body, needs_label=needs_label)))
    results: list[dict[str, object]] = []
    for count, sample in enumerate(samples, start=1):
        try:
            results.append(answer(*parse_sample(sample, needs_label=needs_label)))
        except OnewayError as error:
            results.append({"error": str(error)})
        if count % _SAMPLES_AT_ONCE == 0:
            await asyncio.sleep(0)
    return _json({"results": results})


async def _read(request: Request) -> bytes:
    """Return the body.

    Raises:
        HTTPException: If it is too large, or not declared to be JSON. A web page cannot declare
            that without asking first, which is answered with no; so no page can make a peer learn.
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


def _json(answer: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        msgspec.json.encode(answer),
        status,
        headers=_HEADERS | {"Content-Type": "application/json"} | dict(headers or {}),
    )


def _error(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    return _json({"error": sentence}, status, headers)


async def _on_error(status: int, _: Request, error: Exception) -> Response:
    return _error(status, str(error))


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentence = error.detail
    if error.status_code == 404:
        sentence = "there is nothing at this path; GET / lists what there is"
    elif error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "another method")
        sentence = f"{request.method} cannot be used here; use {allowed}"
    return _error(error.status_code, sentence, error.headers)


async def _on_disconnect(_: Request, __: Exception) -> Response:
    return _error(400, "the body broke off")


async def _on_bug(_: Request, __: Exception) -> Response:
    return _error(500, "the peer failed to answer because of a mistake in oneway; please report it")
