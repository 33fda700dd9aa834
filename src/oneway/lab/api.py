"""A lab's HTTP API on this machine: what there is to see, and what one can do."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from oneway.errors import DataError, WireError
from oneway.lab.desk import Desk
from oneway.records.network import Command
from oneway.web.answers import HEADERS, as_error, as_json
from oneway.web.api import make_api, read_body
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
        desk: For `run_lab`.
    """

    url: str
    token: str
    desk: Desk


class LabApi:
    """Answers requests, in the event loop that it is made in."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._news = asyncio.Event()
        self._is_closing = False
        loop = asyncio.get_running_loop()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop was closed just now: nobody listens any more
                loop.call_soon_threadsafe(self._wake)

        desk.listen(tell)

    def app(self, token: str) -> Starlette:
        """The application to serve."""
        routes = [
            Route("/", self._index),
            Route("/frame", self._frame),
            Route("/references", self._references),
            Route("/commands", self._command, methods=["POST"]),
        ]
        return make_api(routes, HOST, token)

    def close(self) -> None:
        """Keep nobody waiting any more."""
        self._is_closing = True
        self._wake()

    async def _index(self, _: Request) -> Response:
        return as_json(INDEX)

    async def _frame(self, request: Request) -> Response:
        after = _whole(request.query_params.get("after", "0"))
        if "after" in request.query_params:
            with suppress(TimeoutError):
                async with asyncio.timeout(NEWS_SECONDS):
                    while self._desk.frame(after) is None and not self._is_closing:
                        await self._news.wait()
        return _if_any(self._desk.frame(after))

    async def _references(self, _: Request) -> Response:
        return _if_any(self._desk.references())

    async def _command(self, request: Request) -> Response:
        body = await read_body(request)
        try:
            command = msgspec.json.decode(body, type=Command)
        except msgspec.ValidationError as error:
            raise DataError(f"this is no command: {error}; GET / shows one") from None
        except msgspec.DecodeError as error:
            raise WireError(f"the body is not JSON: {error}") from None
        answer = self._desk.submit(command)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                done = await asyncio.wrap_future(answer)
        except TimeoutError:
            return as_error(
                503, f"the lab was busy for {ANSWER_SECONDS:g} s and did not do it; try again"
            )
        if done.outcome == "done":
            return as_json({"said": done.sentence})
        return as_error(422 if done.outcome == "refused" else 503, done.sentence)

    def _wake(self) -> None:
        # A fresh event for those who come later: an event that is set stays so.
        news, self._news = self._news, asyncio.Event()
        news.set()


@contextmanager
def open_desk() -> Iterator[LabServer]:
    """Serve a desk from a thread of its own, as long as the block lasts.

    Give its `desk` to `run_lab`. After the lab has ended the last frame is still shown.

    Raises:
        TransportError: If no port of this machine can be listened on.
    """
    desk, token = Desk(), secrets.token_urlsafe(24)
    listener = listen(HOST, 0, "the lab's API")
    url = url_of(HOST, listener)
    loop = asyncio.new_event_loop()
    stop, ready = asyncio.Event(), threading.Event()

    async def serve() -> None:
        api = LabApi(desk)
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(
                run(api.app(token), listener, ready.set), name="serve the lab's API"
            )
            await stop.wait()
            api.close()
            serving.cancel()

    def in_thread() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=in_thread, name="the lab's API", daemon=True)
    thread.start()
    ready.wait(NEWS_SECONDS)
    try:
        yield LabServer(url, token, desk)
    finally:
        desk.close()
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def _if_any(found: bytes | None) -> Response:
    return Response(status_code=204, headers=HEADERS) if found is None else as_json(found)


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise DataError(
            f"after is {text[:40]!r}; it must be the number of a frame, as 17"
        ) from None
