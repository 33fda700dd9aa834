"""The API of a lab: what its command queue promises, without any lab."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from builders import make_frame

from oneway.errors import ConfigError, LabOverError
from oneway.lab.api import LabServer, serve_api
from oneway.lab.run import CommandQueue
from oneway.records.network import Finish, Kill

PATIENCE = 300.0


def client_of(server: LabServer) -> httpx.Client:
    return httpx.Client(
        base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}, timeout=PATIENCE
    )


@pytest.fixture
def server() -> Iterator[LabServer]:
    with serve_api() as server:
        yield server


@pytest.fixture
def client(server: LabServer) -> Iterator[httpx.Client]:
    with client_of(server) as client:
        yield client


def test_only_who_shows_the_token_is_answered(server: LabServer):
    assert len(server.token) >= 24
    assert httpx.get(f"{server.url}/frame").status_code == 401
    assert server.url.startswith("http://127.0.0.1:")


def test_who_knows_a_frame_waits_for_a_newer_one(
    server: LabServer, client: httpx.Client, monkeypatch
):
    # So long that only news can end the waiting.
    monkeypatch.setattr("oneway.lab.api.NEWS_SECONDS", 2 * PATIENCE)
    server.queue.publish(make_frame(number=1))
    assert client.get("/frame").json()["number"] == 1
    with ThreadPoolExecutor(1) as pool:
        asked = asked_for_frames(server.queue)
        waiting = pool.submit(client.get, "/frame", params={"after": 1})
        assert asked.wait(PATIENCE)
        server.queue.publish(make_frame(number=2))
        assert waiting.result(PATIENCE).json()["number"] == 2
    monkeypatch.setattr("oneway.lab.api.NEWS_SECONDS", 0.05)
    assert client.get("/frame", params={"after": 2}).status_code == 204
    answer = client.get("/frame", params={"after": "soon"})
    assert answer.status_code == 422
    assert "after is 'soon'" in answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (b"{", 400, "the body is not JSON"),
        (b'{"do": "explode"}', 422, "this is no command: Invalid value 'explode'"),
        (b'{"do": "kill"}', 422, "missing required field `peer`"),
        (b'{"do": "set_loss", "loss": "much"}', 422, "Expected `float`, got `str`"),
    ],
)
def test_what_is_no_command_gets_a_sentence(client: httpx.Client, body, status, sentence):
    answer = client.post("/commands", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert sentence in answer.json()["error"]


def test_a_command_is_answered_by_the_thread_that_owns_the_lab(server: LabServer, client):
    done: list[tuple[object, int]] = []

    def carry_out(command: object) -> str:
        done.append((command, threading.get_ident()))
        if command == Kill("bob"):
            raise ConfigError("there is no peer 'bob'; there are ann")
        return "ann was killed"

    with ThreadPoolExecutor(2) as pool:
        asked = [
            pool.submit(client.post, "/commands", json={"do": "kill", "peer": name})
            for name in ("ann", "bob")
        ]
        deadline = time.monotonic() + PATIENCE
        while not all(one.done() for one in asked):
            assert time.monotonic() < deadline
            server.queue.wait(0.05)
            server.queue.serve(carry_out)
        answers = {one.result().status_code: one.result().json() for one in asked}
    assert answers == {
        200: {"said": "ann was killed"},
        422: {"error": "there is no peer 'bob'; there are ann"},
    }
    assert {thread for _, thread in done} == {threading.get_ident()}


def test_a_queue_that_is_closed_answers_every_command(server: LabServer, client: httpx.Client):
    left = server.queue.submit(Kill("ann"))
    server.queue.publish(make_frame(number=7, phase="done"))
    server.queue.close()
    assert isinstance(left.exception(PATIENCE), LabOverError)
    answer = client.post("/commands", json={"do": "finish"})
    assert answer.status_code == 503
    assert "finishing or over" in answer.json()["error"]
    assert client.get("/frame").json()["phase"] == "done"


def test_a_command_that_nobody_waits_for_any_more_is_not_carried_out():
    queue = CommandQueue()
    queue.submit(Kill("ann")).cancel()
    queue.serve(lambda _: pytest.fail("it was carried out"))
    queue.submit(Finish())
    queue.serve(lambda _: "the lab is finishing")
    assert queue.finished_by_command


def test_an_answer_that_comes_too_late_says_whether_the_command_began(
    server: LabServer, client: httpx.Client, monkeypatch
):
    monkeypatch.setattr("oneway.lab.api.ANSWER_SECONDS", 0.2)
    answer = client.post("/commands", json={"do": "kill", "peer": "ann"})
    assert answer.status_code == 503
    assert "try again" in answer.json()["error"]
    server.queue.serve(lambda _: pytest.fail("it was carried out"))
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.post, "/commands", json={"do": "kill", "peer": "ann"})

        def carry_out(_: object) -> str:
            # Longer than the answer is waited for.
            assert "do not repeat it" in asked.result(PATIENCE).json()["error"]
            return "ann was killed"

        done = False
        while not done:
            server.queue.wait(PATIENCE)
            done = bool(server.queue._commands)
            server.queue.serve(carry_out)


def asked_for_frames(queue: CommandQueue) -> threading.Event:
    """Set when somebody asks for a frame; the API does nothing else before that one waits."""
    asked, usual = threading.Event(), queue.frame

    def frame_after(after: int = 0, seconds: float = 0.0) -> bytes | None:
        asked.set()
        return usual(after, seconds)

    queue.frame = frame_after
    return asked
