"""Local HTTP API, for the application beside the peer: predict, learn, look.

Every answer is JSON but the metrics. It needs the extra `serve`; a peer that does not serve runs
without.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from oneway.errors import ConfigError, DataError, OnewayError, WireError
from oneway.export.json_format import to_json
from oneway.files.validation import convert
from oneway.peer.api.prometheus import CONTENT_TYPE, prometheus
from oneway.peer.offline import PERSONAL, is_shared
from oneway.peer.peer import Peer
from oneway.sentences import shown
from oneway.web.access_control import check_bind
from oneway.web.api import HEADERS, as_json, make_api, read_body
from oneway.web.endpoint import DEFAULT_HOST

_INDEX = {
    "POST /predict": 'what is expected for {"x": {feature: value, ...}}, or {"samples": [...]}; '
    "by the peer's personal model, with ?model=shared by the network's",
    "POST /learn": 'learn from {"x": {...}, "y": label}, or {"samples": [...]}; gives the loss',
    "GET /status": "how the peer is doing",
    "GET /curve": "how its loss went since it was made, in groups of samples",
    "GET /model": "the shared model to take home: coefficients by feature, parameters, origin; "
    "settled, with ?momentary=true that of this moment",
    "GET /task": "what is learned: features in order, label, classes, model",
    "GET /metrics": "the status for Prometheus",
}

_SHAPE = '{"x": {feature: value, ...}}, with "y": label to learn'
MOST_SAMPLES = 10_000
"""Samples of one request."""
_SLICE_SECONDS = 0.01
"""After so long the peer's other tasks get their turn."""


def build_app(peer: Peer, host: str = DEFAULT_HOST, token: str = "") -> Starlette:
    """Return the web application of a peer.

    Args:
        peer: Whom the requests are for.
        host: The host it will be served on: requests for another host are refused.
        token: What every request has to show, as `Authorization: Bearer TOKEN`; empty for none.

    Raises:
        ConfigError: If other machines could reach it and there is no token.
    """
    check_bind(host, token)
    routes = _Routes(peer)
    return make_api(
        [
            Route("/", routes.index, methods=["GET"]),
            Route("/predict", routes.predict, methods=["POST"]),
            Route("/learn", routes.learn, methods=["POST"]),
            Route("/status", routes.status, methods=["GET"]),
            Route("/curve", routes.curve, methods=["GET"]),
            Route("/model", routes.model, methods=["GET"]),
            Route("/task", routes.task, methods=["GET"]),
            Route("/metrics", routes.metrics, methods=["GET"]),
        ],
        host,
        token,
    )


class _Routes:
    """What is asked, put to the peer; its functions are quick and are called directly."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    async def index(self, request: Request) -> Response:
        return as_json({"peer": self._peer.disclosed_status().name, "routes": _INDEX})

    async def status(self, request: Request) -> Response:
        return as_json(self._peer.disclosed_status())

    async def curve(self, request: Request) -> Response:
        return as_json(self._peer.disclosed_curve())

    async def task(self, request: Request) -> Response:
        return as_json(self._peer.task.fields())

    async def metrics(self, request: Request) -> Response:
        text = prometheus(self._peer.disclosed_status())
        return Response(text, headers=HEADERS | {"Content-Type": CONTENT_TYPE})

    async def model(self, request: Request) -> Response:
        momentary = _wants_momentary(request)
        return as_json(to_json(self._peer.model(momentary=momentary, durable=True)))

    async def predict(self, request: Request) -> Response:
        wanted = request.query_params.get("model", PERSONAL)
        try:
            is_shared(wanted)
        except ConfigError as error:
            raise DataError(str(error)) from None
        model = self._peer.answering(wanted)
        return await _for_each(request, lambda x, _: model.answer(x), _parse_unlabelled)

    async def learn(self, request: Request) -> Response:
        return await _for_each(request, self._learn_one, _parse_labelled)

    def _learn_one(self, x: Mapping[str, object], y: object) -> dict[str, object]:
        answer: dict[str, object] = {"loss": self._peer.learn_one(x, y)}
        problem = self._peer.node.disk_problem
        if problem:
            answer["warning"] = f"learned, but not durable yet: {problem}"
        return answer


def _wants_momentary(request: Request) -> bool:
    asked = request.query_params.get("momentary", "false")
    if asked.lower() not in ("true", "false"):
        raise DataError(
            f"momentary is {shown(asked)}; it must be true, for the model of this moment, or false"
        )
    return asked.lower() == "true"


async def _for_each(
    request: Request,
    answer: Callable[[Mapping[str, object], object], dict[str, object]],
    parse: Callable[[object], tuple[Mapping[str, object], object]],
) -> Response:
    """Answer one sample, or several one by one: a bad one among them does not stop the others."""
    body = _parse_body(await read_body(request))
    samples = _parse_samples(body)
    if samples is None:
        return as_json(answer(*parse(body)))
    results: list[dict[str, object]] = []
    slice_end = monotonic() + _SLICE_SECONDS
    for sample in samples:
        try:
            results.append(answer(*parse(sample)))
        except OnewayError as error:
            results.append({"error": str(error)})
        if monotonic() >= slice_end:
            await asyncio.sleep(0)
            slice_end = monotonic() + _SLICE_SECONDS
    return as_json({"results": results})


@dataclass(frozen=True)
class _Unlabelled:
    x: Annotated[
        dict[str, Any],
        Meta(description=_SHAPE, extra={"rule": f"an object of features, as in {_SHAPE}"}),
    ]


@dataclass(frozen=True)
class _Labelled(_Unlabelled):
    y: Annotated[Any, Meta(description=_SHAPE)]


@dataclass(frozen=True)
class _Several:
    samples: Annotated[list[Any], Meta(extra={"rule": f"a list of {_SHAPE}"})]


def _parse_body(body: bytes) -> Mapping[str, object]:
    """Return the JSON object that a body holds; every mistake is one sentence."""
    try:
        value = msgspec.json.decode(body)
    except RecursionError:
        raise WireError("the body is nested too deeply; a sample is flat") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise WireError(f"the body is not JSON: {error}; send {_SHAPE}") from None
    if not isinstance(value, dict):
        raise DataError(f"the body is {shown(value)}; it must be an object, such as {_SHAPE}")
    return value


def _parse_samples(body: Mapping[str, object]) -> list[object] | None:
    """Return the samples of a body that has several; None if it is one sample itself."""
    if "samples" not in body:
        return None
    samples = convert(body, _Several, "the body", DataError).samples
    if len(samples) > MOST_SAMPLES:
        raise DataError(
            f"the body has {len(samples):,} samples; it must have at most {MOST_SAMPLES:,}: send "
            "the others in further requests"
        )
    return samples


def _parse_labelled(sample: object) -> tuple[Mapping[str, object], object]:
    """Return the features and the label of a sample."""
    labelled = convert(sample, _Labelled, "the sample", DataError)
    return labelled.x, labelled.y


def _parse_unlabelled(sample: object) -> tuple[Mapping[str, object], object]:
    """Return the features of a sample, and no label."""
    if isinstance(sample, dict) and "y" in sample:
        raise DataError("the sample has a label y, which a prediction does not use; remove it")
    return convert(sample, _Unlabelled, "the sample", DataError).x, None
