"""Local HTTP API of a lab: its frames, its reference curves, and its commands."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from oneway.errors import DataError, LabOverError, OnewayError, WireError
from oneway.lab.run import CommandQueue
from oneway.records.network import Command
from oneway.web.api import HEADERS, as_error, as_json, make_api, read_body
from oneway.web.listening import listen, url_of
from oneway.web.server import run

HOST = "127.0.0.1"
NEWS_SECONDS = 2.0
"""How long a request for a newer frame is kept waiting."""

ANSWER_SECONDS = 60.0
"""How long a lab may take to carry out a command; it does one at a time."""

INDEX = {
    "GET /frame": "the lab at this moment; ?after=N waits for a frame with a higher number",
    "GET /references": "what the simulator makes of the same samples, once it is computed",
    "POST /commands": 'do something, as {"do": "kill", "peer": "peer0"}',
}


@dataclass(frozen=True)
class LabServer:
    """Where a lab can be watched.

    Attributes:
        url: Of the API.
        token: What every request has to show, as `Authorization: Bearer TOKEN`.
        queue: For `run_lab`.
    """

    url: str
    token: str
    queue: CommandQueue


@contextmanager
def serve_api() -> Iterator[LabServer]:
    """Serve a lab's API from a thread of its own, as long as the block lasts.

    Give its `queue` to `run_lab`. After the lab has ended the last frame is still shown.

    Raises:
        TransportError: If no port of this machine can be listened on.
    """
    queue, token, ready = CommandQueue(), secrets.token_urlsafe(24), threading.Event()
    listener = listen(HOST, 0, "the lab's API")
    url = url_of(HOST, listener)
    loop = asyncio.new_event_loop()
    serving = loop.create_task(run(_app(queue, token), listener, ready.set))

    def in_thread() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(asyncio.wait([serving]))

    thread = threading.Thread(target=in_thread, name="the lab's API", daemon=True)
    thread.start()
    ready.wait(NEWS_SECONDS)
    try:
        yield LabServer(url, token, queue)
    finally:
        queue.close()
        queue.end_waiting()
        loop.call_soon_threadsafe(serving.cancel)
        thread.join()


def _app(queue: CommandQueue, token: str) -> Starlette:
    def frame(request: Request) -> Response:
        # Not a coroutine, so it may wait: Starlette calls it in a thread.
        if "after" not in request.query_params:
            return _if_any(queue.frame())
        return _if_any(queue.frame(_whole(request.query_params["after"]), NEWS_SECONDS))

    async def command(request: Request) -> Response:
        answer = queue.submit(_command(await read_body(request)))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return as_json({"said": await asyncio.wrap_future(answer)})
        except TimeoutError:
            if answer.cancelled():
                outcome = "did not begin it; try again"
            else:
                outcome = "is still at it; do not repeat it, the events say when it is done"
            return as_error(503, f"the lab was busy for {ANSWER_SECONDS:g} s and {outcome}")
        except OnewayError as error:
            return as_error(503 if isinstance(error, LabOverError) else 422, str(error))

    routes = [
        Route("/", lambda _: as_json(INDEX)),
        Route("/frame", frame),
        Route("/references", lambda _: _if_any(queue.references)),
        Route("/commands", command, methods=["POST"]),
    ]
    return make_api(routes, HOST, token)


def _command(body: bytes) -> Command:
    try:
        command: Command = msgspec.json.decode(body, type=Command)
    except msgspec.ValidationError as error:
        raise DataError(f"this is no command: {error}; GET / shows one") from None
    except msgspec.DecodeError as error:
        raise WireError(f"the body is not JSON: {error}") from None
    return command


def _if_any(found: bytes | None) -> Response:
    return Response(status_code=204, headers=HEADERS) if found is None else as_json(found)


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise DataError(
            f"after is {text[:40]!r}; it must be the number of a frame, as 17"
        ) from None
