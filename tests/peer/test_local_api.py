from __future__ import annotations

import asyncio
import math
import signal
from collections.abc import Mapping
from itertools import count
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
from builders import make_status
from plain import PLAIN

from oneway.export import FittedModel
from oneway.export.json_format import from_json
from oneway.peer.api.app import MOST_SAMPLES, build_app
from oneway.peer.learner import Learner
from oneway.peer.offline import is_shared
from oneway.peer.service import serve
from oneway.records.curve import Curve
from oneway.records.status import Status
from oneway.tables import Number
from oneway.task.task import Task
from oneway.web.endpoint import Endpoint

LOGISTIC = Task("logistic", "occupied", (Number("light"), Number("co2")), ("no", "yes"), **PLAIN)
TOKEN = "0123456789abcdef"
LIMIT_SECONDS = 240.0

STATUS = make_status(samples=3, average_loss=0.5)

CURVE = Curve(width=2, samples=3, loss_sums=(1.5, 0.25), correct=(1, 1), times=(1.0, 2.0), before=7)


class FakePeer:
    """Expects the sum of the scaled features, the shared model its opposite; remembers lessons."""

    def __init__(self, task: Task, failure: Exception | None = None) -> None:
        self.task = task
        self.taught: list[tuple[dict[str, object], object]] = []
        self._failure = failure

    def model(self, *, momentary: bool = False, durable: bool = False) -> FittedModel:
        if self._failure:
            raise self._failure
        params = np.ones(self.task.dim)
        params[-1] = 0.0
        return Learner(self.task).fitted(-params if momentary else params, samples=3)

    def answering(self, model: str) -> FittedModel:
        return self.model(momentary=is_shared(model))

    def learn_one(self, x: Mapping[str, object], y: object) -> float:
        if self._failure:
            raise self._failure
        self.task.encoder.vector(x)
        self.task.encoder.label_value(y)
        self.taught.append((dict(x), y))
        return 0.5

    node = SimpleNamespace(disk_problem="")

    def disclosed_status(self) -> Status:
        return STATUS

    def disclosed_curve(self) -> Curve:
        return CURVE


@pytest.fixture
def peer() -> FakePeer:
    return FakePeer(LOGISTIC)


def ask(
    peer: FakePeer,
    method: str,
    path: str,
    body: object = None,
    *,
    host: str = "127.0.0.1",
    token: str = "",
    url: str = "http://127.0.0.1:8701",
    **more: object,
) -> httpx.Response:
    """Send one request to the application, without a network."""

    async def request() -> httpx.Response:
        transport = httpx.ASGITransport(build_app(peer, host, token), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=url) as client:
            if body is not None:
                more["json"] = body
            return await client.request(method, path, **more)

    return asyncio.run(request())


def error_of(response: httpx.Response) -> str:
    assert response.headers["content-type"] == "application/json"
    assert list(response.json()) == ["error"]
    assert "Traceback" not in response.text
    return response.json()["error"]


GOOD = {"light": 3, "co2": "1.5"}

# --- predicting and learning ---


def test_a_classifier_predicts_a_class_and_how_probable_each_is(peer):
    answer = ask(peer, "POST", "/predict", {"x": GOOD})
    assert answer.status_code == 200
    said = answer.json()
    assert said["prediction"] == "yes"
    assert said["probabilities"]["no"] == pytest.approx(1 / (1 + math.exp(4.5)), rel=1e-12)
    assert sum(said["probabilities"].values()) == 1.0


def test_the_model_is_given_out_to_whoever_may_ask(peer):
    for momentary, sign in (("", 1.0), ("?momentary=true", -1.0)):
        answer = ask(peer, "GET", f"/model{momentary}")
        assert answer.status_code == 200
        assert answer.json()["coefficients"] == {"(intercept)": 0.0, "light": sign, "co2": sign}
        assert from_json(answer.content).params.tolist() == [sign, sign, 0.0]
    assert ask(peer, "GET", "/model", token=TOKEN).status_code == 401
    assert ask(peer, "GET", "/model?momentary=7").status_code == 422


def test_to_learn_builds_no_status_and_says_when_the_disk_fails(peer, monkeypatch):
    monkeypatch.delattr(FakePeer, "disclosed_status")
    body = {"samples": [{"x": GOOD, "y": "yes"}] * 2}
    assert ask(peer, "POST", "/learn", body).json() == {"results": [{"loss": 0.5}] * 2}
    peer.node = SimpleNamespace(disk_problem="the disk is full")
    assert (
        "the disk is full" in ask(peer, "POST", "/learn", {"x": GOOD, "y": "yes"}).json()["warning"]
    )


@pytest.mark.parametrize("path", ["/predict", "/learn"])
def test_the_samples_of_one_request_are_bounded(peer, path):
    body = {"samples": [1] * MOST_SAMPLES}
    assert len(ask(peer, "POST", path, body).json()["results"]) == MOST_SAMPLES
    refused = ask(peer, "POST", path, {"samples": [1] * 60_000})
    assert refused.status_code == 422
    assert "60,000 samples" in error_of(refused)
    assert peer.taught == []


def test_other_tasks_get_their_turn_however_slow_predictions_are(peer, monkeypatch):
    clock = count()  # a second for every look
    monkeypatch.setattr("oneway.peer.api.app.monotonic", lambda: float(next(clock)))
    turns = []

    async def others() -> None:
        while True:
            turns.append(None)
            await asyncio.sleep(0)

    async def both() -> httpx.Response:
        task = asyncio.create_task(others())
        transport = httpx.ASGITransport(build_app(peer))
        url = "http://127.0.0.1:8701"
        async with httpx.AsyncClient(transport=transport, base_url=url) as client:
            answer = await client.post("/predict", json={"samples": [{"x": GOOD}] * 99})
        task.cancel()
        return answer

    assert len(asyncio.run(both()).json()["results"]) == 99
    assert len(turns) >= 99


def test_of_several_samples_the_bad_ones_get_an_error_and_the_others_are_learned_from(peer):
    samples = [{"x": GOOD, "y": "no"}, {"x": {"light": 1}, "y": "no"}, 7, {"x": GOOD, "y": "yes"}]
    answer = ask(peer, "POST", "/learn", {"samples": samples})
    first, second, third, fourth = answer.json()["results"]
    assert answer.status_code == 200
    assert first == fourth == {"loss": 0.5}
    assert "no feature 'co2'" in second["error"]
    assert "the sample is 7" in third["error"]
    assert [y for _, y in peer.taught] == ["no", "yes"]


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        ("/predict", {"x": {"light": 1}}, "the sample has no feature 'co2'"),
        ("/predict", {"x": {"light": 1, "co2": "high"}}, "feature 'co2' is 'high'"),
        (
            "/predict",
            {"x": [1, 2]},
            "x in the sample is a list of 2; it must be an object of features",
        ),
        ("/predict", {}, "the sample has no x"),
        ("/predict", [{"x": GOOD}], "the body is a list of 1; it must be an object"),
        ("/predict", {"x": GOOD, "y": "no"}, "a label y, which a prediction does not use"),
        ("/predict", {"X": GOOD}, "the sample has no key 'X', did you mean 'x'?"),
        (
            "/predict",
            {"samples": {"x": GOOD}},
            "samples in the body is a table of 1; it must be a list",
        ),
        ("/predict", {"samples": [], "x": GOOD}, "the body has no key 'x'"),
        ("/learn", {"x": GOOD}, "the sample has no y"),
        ("/learn", {"x": GOOD, "y": None}, "label 'occupied' is None"),
        ("/learn", {"x": GOOD, "y": "maybe"}, "must be one of 'no', 'yes'"),
        ("/learn", {"x": GOOD, "y": "no", "z": 1}, "the sample has no key 'z'"),
    ],
)
def test_a_sample_that_breaks_a_rule_gets_a_sentence(peer, path, body, sentence):
    answer = ask(peer, "POST", path, body)
    assert answer.status_code == 422
    assert sentence in error_of(answer)
    assert peer.taught == []


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff", b'{"x": NaN}', b'{"x": "\xff"}', b"[" * 100_000, b'{"x": 1e999}'],
    ids=["empty", "cut off", "binary", "NaN", "not UTF-8", "deeply nested", "too large a number"],
)
def test_a_body_that_is_not_json_gets_a_sentence(peer, content):
    json_type = {"Content-Type": "application/json"}
    answer = ask(peer, "POST", "/learn", content=content, headers=json_type)
    assert answer.status_code == 400
    assert error_of(answer).startswith("the body is ")


# --- who may ask ---


@pytest.mark.parametrize("path", ["/", "/status", "/metrics", "/nothing"])
@pytest.mark.parametrize(
    "shown",
    ["", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, f"Bearer x {TOKEN}"],
)
def test_without_the_token_every_path_is_closed(peer, path, shown):
    headers = {"Authorization": shown} if shown else {}
    answer = ask(peer, "GET", path, token=TOKEN, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer TOKEN" in error_of(answer)


# --- the real server ---


async def served(peer, started: asyncio.Future[str]) -> None:
    await serve(peer, Endpoint("127.0.0.1", 0), started.set_result)


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_the_real_server_answers_until_it_is_cancelled(peer, capfd):
    async def scenario() -> None:
        async with asyncio.timeout(LIMIT_SECONDS):
            handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
            started = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(served(peer, started))
            url = await started
            async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
                answer = await client.post("/learn", json={"x": GOOD, "y": "yes"})
                assert answer.json() == {"loss": 0.5}
                assert "server" not in answer.headers
                assert (await client.get("/metrics")).status_code == 200
                installed = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
                assert installed == handlers
                # The client still holds its connection open: that must not hold up the end.
                await stop(task)
                with pytest.raises(httpx.TransportError):
                    await client.get("/status")

    asyncio.run(scenario())
    assert peer.taught == [(GOOD, "yes")]
    assert capfd.readouterr() == ("", "")


def test_a_request_that_never_ends_does_not_hold_up_the_end(peer, capfd):
    async def scenario() -> None:
        async with asyncio.timeout(LIMIT_SECONDS):
            started = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(served(peer, started))
            host, port = (await started).removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(
                b"POST /learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n"
            )
            # Only when somebody reads the body does the server ask for it.
            assert b"100" in await reader.readline()
            await stop(task)
            writer.close()

    asyncio.run(scenario())
    assert capfd.readouterr() == ("", "")
