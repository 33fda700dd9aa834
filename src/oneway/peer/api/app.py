"""The routes of the local API; every answer is JSON but the metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from oneway.errors import OnewayError
from oneway.peer.api.local_peer import LocalPeer
from oneway.peer.api.metrics import CONTENT_TYPE, prometheus
from oneway.peer.api.requests import parse_body, parse_sample, parse_samples
from oneway.web.answers import HEADERS, as_json
from oneway.web.api import make_api, read_body

_INDEX = {
    "POST /predict": 'what is expected for {"x": {feature: value, ...}}, or {"samples": [...]}',
    "POST /learn": 'learn from {"x": {...}, "y": label}, or {"samples": [...]}; gives the loss',
    "GET /status": "how the peer is doing",
    "GET /curve": "how its loss went since it was made, in groups of samples",
    "GET /task": "what is learned: features in order, label, classes, model",
    "GET /metrics": "the status for Prometheus",
}

_SAMPLES_AT_ONCE = 100
"""After so many samples the peer's other tasks get their turn."""


def make_app(peer: LocalPeer, host: str, token: str) -> Starlette:
    """Return the application; see `oneway.peer.api.api.build_app`."""
    routes = _Routes(peer)
    return make_api(
        [
            Route("/", routes.index, methods=["GET"]),
            Route("/predict", routes.predict, methods=["POST"]),
            Route("/learn", routes.learn, methods=["POST"]),
            Route("/status", routes.status, methods=["GET"]),
            Route("/curve", routes.curve, methods=["GET"]),
            Route("/task", routes.task, methods=["GET"]),
            Route("/metrics", routes.metrics, methods=["GET"]),
        ],
        host,
        token,
    )


class _Routes:
    """What is asked, put to the peer; its functions are quick and are called directly."""

    def __init__(self, peer: LocalPeer) -> None:
        self._peer = peer

    async def index(self, request: Request) -> Response:
        return as_json({"peer": self._peer.status().name, "routes": _INDEX})

    async def status(self, request: Request) -> Response:
        return as_json(self._peer.status())

    async def curve(self, request: Request) -> Response:
        return as_json(self._peer.curve())

    async def task(self, request: Request) -> Response:
        return as_json(self._peer.task.fields())

    async def metrics(self, request: Request) -> Response:
        text = prometheus(self._peer.status()).encode(errors="replace")
        return Response(text, headers=HEADERS | {"Content-Type": CONTENT_TYPE})

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
    body = parse_body(await read_body(request))
    samples = parse_samples(body)
    if samples is None:
        return as_json(answer(*parse_sample(body, needs_label=needs_label)))
    results: list[dict[str, object]] = []
    for count, sample in enumerate(samples, start=1):
        try:
            results.append(answer(*parse_sample(sample, needs_label=needs_label)))
        except OnewayError as error:
            results.append({"error": str(error)})
        if count % _SAMPLES_AT_ONCE == 0:
            await asyncio.sleep(0)
    return as_json({"results": results})
