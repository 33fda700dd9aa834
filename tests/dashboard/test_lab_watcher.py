"""The watcher and the client against a real HTTP server that speaks as a lab does."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import aclosing

import msgspec
import pytest
from builders import make_frame, make_peer_view
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from oneway.dashboard.lab.client import LabClient
from oneway.dashboard.lab.frame_text import (
    mass_note,
)
from oneway.dashboard.lab.watcher import LabWatcher
from oneway.errors import DataError, OnewayError, TransportError
from oneway.lab.api import LabServer, serve_api
from oneway.records import MASS_UNITS
from oneway.records.network import (
    Command,
    Kill,
    MassView,
    NetworkFrame,
    ReferenceCurve,
)
from oneway.web.api import as_json, make_api, read_body
from oneway.web.listening import listen, url_of
from oneway.web.server import run

TOKEN = "0123456789abcdef"
LIMIT_SECONDS = 240.0


@pytest.fixture(autouse=True)
def patient_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no lab that does not answer."""
    monkeypatch.setattr("oneway.dashboard.lab.client._SECONDS", 2 * LIMIT_SECONDS)


def frame(number: int, samples: int, loss: float | None = 0.5) -> NetworkFrame:
    peer = make_peer_view(name="ada", samples=samples, average_loss=loss, recent_loss=loss)
    return make_frame(number=number, seconds=float(number), peers=[peer], disagreement=0.1)


class FakeLab:
    """Answers as a lab does."""

    def __init__(self) -> None:
        self.frame: NetworkFrame | None = None
        self.references: list[ReferenceCurve] | None = None
        self.done: list[Command] = []

    async def _frame(self, request: Request) -> Response:
        # A lab makes one wait for news; this one says at once that there is none.
        after = int(request.query_params["after"])
        is_news = self.frame is not None and self.frame.number > after
        return as_json(self.frame) if is_news else Response(status_code=204)

    async def _references(self, _: Request) -> Response:
        return Response(status_code=204) if self.references is None else as_json(self.references)

    async def _command(self, request: Request) -> Response:
        command = msgspec.json.decode(await read_body(request), type=Command)
        if isinstance(command, Kill) and command.peer != "ada":
            raise DataError(f"there is no peer {command.peer!r}")
        self.done.append(command)
        return as_json({"said": "done"})

    def app(self) -> object:
        routes = [
            Route("/frame", self._frame),
            Route("/references", self._references),
            Route("/commands", self._command, methods=["POST"]),
        ]
        return make_api(routes, "127.0.0.1", TOKEN)


def with_lab(lab: FakeLab, look, token: str = TOKEN):
    """Run `look(watcher, stop)` against the lab."""

    async def whole():
        async with asyncio.timeout(LIMIT_SECONDS):
            listener = listen("127.0.0.1", 0)
            url = url_of("127.0.0.1", listener)
            started = asyncio.Event()
            serving = asyncio.create_task(run(lab.app(), listener, started.set))
            await started.wait()

            async def stop() -> None:
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)

            async with aclosing(LabClient(url, token)) as client:
                await look(LabWatcher(client), stop)
            await stop()

    asyncio.run(whole())


def test_a_frame_is_seen_as_soon_as_the_lab_shows_it_and_no_news_is_no_problem(monkeypatch):
    asked = threading.Event()
    # So long that a busy machine cannot be taken for a lab that keeps its news to itself.
    monkeypatch.setattr("oneway.lab.api.NEWS_SECONDS", LIMIT_SECONDS)

    async def look(server: LabServer) -> None:
        async with (
            asyncio.timeout(3 * LIMIT_SECONDS),
            aclosing(LabClient(server.url, server.token)) as client,
        ):
            watcher = LabWatcher(client)
            server.queue.publish(frame(1, 10))
            await watcher.look()
            usual = server.queue.frame
            server.queue.frame = lambda *known: asked.set() or usual(*known)
            began = time.monotonic()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(watcher.look())
                assert await asyncio.to_thread(asked.wait, LIMIT_SECONDS)
                server.queue.publish(frame(2, 20))
            assert watcher.frame.number == 2
            assert time.monotonic() - began < LIMIT_SECONDS - 1.0
            monkeypatch.setattr("oneway.lab.api.NEWS_SECONDS", 0.1)
            await watcher.look()
            assert (watcher.frame.number, watcher.problem) == (2, "")

    with serve_api() as server:
        asyncio.run(look(server))


def test_a_lab_that_is_gone_is_told_and_what_was_seen_stays():
    lab = FakeLab()
    lab.frame = frame(1, 10)

    async def look(watcher, stop):
        await watcher.look()
        await stop()
        await watcher.look()
        assert "the lab does not answer" in watcher.problem
        assert watcher.frame is not None

    with_lab(lab, look)


def test_a_command_reaches_the_lab_and_a_refusal_comes_back_as_its_sentence():
    lab = FakeLab()

    async def look(watcher, stop):
        assert await watcher.client.do(Kill("ada")) == "done"
        assert lab.done == [Kill("ada")]
        with pytest.raises(OnewayError, match=r"^there is no peer 'eve'$"):
            await watcher.client.do(Kill("eve"))
        await stop()
        with pytest.raises(TransportError, match="does not answer"):
            await watcher.client.do(Kill("ada"))

    with_lab(lab, look)


def test_the_mark_of_the_mass_is_good_only_if_the_books_are():
    good = MassView(held=MASS_UNITS, in_flight=0, brought=MASS_UNITS, is_exact=True)
    bad = MassView(
        held=MASS_UNITS - 1, in_flight=0, brought=MASS_UNITS, is_exact=False, problems=["a unit"]
    )
    assert mass_note(good)[1] == "good"
    assert mass_note(bad) == ("\u2717 not exact: a unit", "bad")
