"""The client of a peer's local API against the real application, served on a socket."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager

import numpy as np
import pytest
from plain import PLAIN
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp

from oneway.errors import DataError, TransportError
from oneway.export import FittedModel
from oneway.peer.api.app import build_app
from oneway.peer.api.client import PeerClient
from oneway.peer.learner import Learner
from oneway.records.curve import Curve
from oneway.records.status import Status
from oneway.task.task import Feature, Task
from oneway.testing.records import make_status
from oneway.web.listening import listen
from oneway.web.server import run

TOKEN = "0123456789abcdef"
LIMIT_SECONDS = 60.0
CURVE = Curve(samples=2, loss_sums=(0.7, 0.5), correct=(0, 1), times=(1.0, 2.0))
LOGISTIC = Task("logistic", "occupied", (Feature("light"),), ("no", "yes"), **PLAIN)
STATUS = make_status(samples=3, average_loss=0.5, recent_loss=0.4, accuracy=0.9, commits=5)
RIDGE = Task("ridge", "price", (Feature("light"),), **PLAIN)


@pytest.fixture(autouse=True)
def patient_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no peer that does not answer."""
    monkeypatch.setattr("oneway.peer.api.client._SECONDS", LIMIT_SECONDS)


class FakePeer:
    """Expects light."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def model(self, *, momentary: bool = False, durable: bool = False) -> FittedModel:
        return Learner(self.task).fitted(np.array([-1.0 if momentary else 1.0, 0.0]), peer="fake")

    def learn_one(self, x: Mapping[str, object], y: object) -> float:
        raise NotImplementedError

    def status(self) -> Status:
        return STATUS

    def curve(self) -> Curve:
        return CURVE


@contextmanager
def served(app: Callable[[str], ASGIApp]) -> Iterator[str]:
    """Serve an application from a thread; its address."""
    listener = listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    ready, ended = threading.Event(), threading.Event()

    async def serve() -> None:
        serving = asyncio.create_task(run(app(url), listener, ready.set))
        while not ended.is_set():
            await asyncio.sleep(0.01)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    thread = threading.Thread(target=asyncio.run, args=[serve()])
    thread.start()
    try:
        assert ready.wait(LIMIT_SECONDS)
        yield url
    finally:
        ended.set()
        thread.join(LIMIT_SECONDS)


@contextmanager
def asking(peer: FakePeer, token: str = "", shown: str = "") -> Iterator[PeerClient]:
    with (
        served(lambda _: build_app(peer, "127.0.0.1", token)) as url,
        closing(PeerClient(url, shown)) as client,
    ):
        yield client


def test_status_and_curve_arrive_as_they_were_said():
    with asking(FakePeer(LOGISTIC)) as client:
        assert client.status() == STATUS
        assert client.curve() == CURVE


def test_a_prediction_comes_with_probabilities_if_the_model_says_them():
    with asking(FakePeer(LOGISTIC)) as client:
        found = client.predict({"light": "3"})
        assert (found.label, list(found.probabilities)) == ("yes", ["no", "yes"])
        assert found.is_live
    with asking(FakePeer(RIDGE)) as client:
        found = client.predict({"light": "3.25"})
        assert (found.label, dict(found.probabilities)) == ("3.25", {})


def test_the_model_arrives_as_it_is():
    with asking(FakePeer(LOGISTIC)) as client:
        for momentary in (False, True):
            there, here = FakePeer(LOGISTIC).model(momentary=momentary), client.model(momentary)
            assert (here.params == there.params).all()
            assert here.encoder == there.encoder
            assert (here.model, here.origin) == (there.model, there.origin)


def test_a_sample_that_is_none_is_a_data_error_in_the_peers_words():
    with (
        asking(FakePeer(LOGISTIC)) as client,
        pytest.raises(DataError, match="'light' is 'abc'; it must be a finite number"),
    ):
        client.predict({"light": "abc"})


def test_the_token_is_shown_and_its_lack_is_told_with_the_flag_that_brings_it():
    with asking(FakePeer(LOGISTIC), TOKEN, shown=TOKEN) as client:
        assert client.status() == STATUS
    with (
        asking(FakePeer(LOGISTIC), TOKEN) as client,
        pytest.raises(TransportError, match=r"wants a token.*--api-token-file"),
    ):
        client.status()


def test_nobody_there_is_one_sentence():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    with closing(PeerClient(url)) as client, pytest.raises(TransportError, match="does not answer"):
        client.status()


@pytest.mark.parametrize("code", [200, 404])
def test_something_else_that_answers_is_told_apart(code: int):
    with (
        served(lambda _: PlainTextResponse("a printer", code)) as url,
        closing(PeerClient(url)) as client,
        pytest.raises(TransportError, match="is no local API of a peer"),
    ):
        client.status()


@pytest.mark.parametrize("url", ["nonsense", "http://[", "file:///etc/passwd"])
def test_an_address_that_is_none_is_told(url: str):
    with pytest.raises(TransportError), closing(PeerClient(url)) as client:
        client.status()
