"""A lab over HTTP: every command acts on real processes, and everything is seen in the frames."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import msgspec
import pytest

import oneway as ow
from oneway.errors import ConfigError, LabOverError
from oneway.lab.api import LabServer, serve_api
from oneway.lab.command_queue import CommandQueue
from oneway.lab.problem import Problem
from oneway.lab.result import Result
from oneway.lab.run import Conditions, run_lab
from oneway.records.network import (
    EdgeView,
    Finish,
    Kill,
    NetworkFrame,
    PeerView,
    ReferenceCurve,
)
from oneway.testing.records import make_frame

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


# Without any lab: what a command queue and its API promise.


def test_only_who_shows_the_token_is_answered(server: LabServer):
    assert len(server.token) >= 24
    assert httpx.get(f"{server.url}/frame").status_code == 401
    assert server.url.startswith("http://127.0.0.1:")


def test_the_index_lists_what_there_is(client: httpx.Client):
    assert set(client.get("/").json()) == {"GET /frame", "GET /references", "POST /commands"}
    assert client.get("/nothing").status_code == 404


def test_before_the_first_frame_there_is_nothing_to_see(client: httpx.Client):
    assert client.get("/frame").status_code == 204
    assert client.get("/references").status_code == 204


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


def test_references_are_there_once_they_are_computed(server: LabServer, client: httpx.Client):
    curve = ReferenceCurve(
        algorithm="ops", arrows=4, one_way=2, samples=[1, 2], average_loss=[0.5, 0.25]
    )
    server.queue.publish_references([curve])
    found = msgspec.json.decode(client.get("/references").content, type=list[ReferenceCurve])
    assert found == [curve]


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


def test_who_waits_for_a_frame_is_answered_when_the_lab_goes_away(monkeypatch):
    monkeypatch.setattr("oneway.lab.api.NEWS_SECONDS", 2 * PATIENCE)
    with ThreadPoolExecutor(1) as pool:
        with serve_api() as server:
            client = client_of(server)
            server.queue.publish(make_frame(number=1))
            asked = asked_for_frames(server.queue)
            waiting = pool.submit(client.get, "/frame", params={"after": 1})
            assert asked.wait(PATIENCE)
        assert waiting.result(PATIENCE).status_code == 204
        client.close()


def asked_for_frames(queue: CommandQueue) -> threading.Event:
    """Set when somebody asks for a frame; the API does nothing else before that one waits."""
    asked, usual = threading.Event(), queue.frame

    def frame_after(after: int = 0, seconds: float = 0.0) -> bytes | None:
        asked.set()
        return usual(after, seconds)

    queue.frame = frame_after
    return asked


# With a lab of real processes.


class Visitor:
    """Somebody who watches a lab and acts on it, over HTTP alone."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self.frames: list[NetworkFrame] = []

    def do(self, **command: object) -> str:
        answer = self._client.post("/commands", json=command)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["said"])

    def refused(self, **command: object) -> str:
        answer = self._client.post("/commands", json=command)
        assert answer.status_code == 422, answer.text
        return str(answer.json()["error"])

    def until(self, holds: Callable[[NetworkFrame], bool], what: str) -> NetworkFrame:
        deadline = time.monotonic() + PATIENCE
        while True:
            after = self.frames[-1].number if self.frames else 0
            answer = self._client.get("/frame", params={"after": after})
            if answer.status_code == 200:
                self.frames.append(msgspec.json.decode(answer.content, type=NetworkFrame))
                assert self.frames[-1].mass.is_exact, self.frames[-1].mass.problems
                if holds(self.frames[-1]):
                    return self.frames[-1]
            assert time.monotonic() < deadline, f"it never came to this: {what}"


def peer(frame: NetworkFrame, name: str) -> PeerView:
    return next(peer for peer in frame.peers if peer.name == name)


def edge(frame: NetworkFrame, sender: str, receiver: str) -> EdgeView | None:
    pair = (sender, receiver)
    return next((edge for edge in frame.edges if (edge.sender, edge.receiver) == pair), None)


@pytest.fixture
def ring() -> Problem:
    """Four peers in a ring, and a way back from 2 to 1; rows are left over for newcomers."""
    table = ow.streams.synthetic(num_samples=2000, num_features=3, seed=1).table
    graph = ow.TrustGraph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (2, 1)])
    return Problem.deal(table, graph, samples=400, seed=2, learning_rate=0.2)


def test_everything_one_can_do_to_a_lab_is_done_and_seen(tmp_path: Path, ring: Problem):
    results: list[Result] = []
    folder = tmp_path / "lab"

    def run(queue: CommandQueue) -> None:
        results.append(run_lab(folder, ring, Conditions(rate=20.0), queue=queue, stay=True))

    with serve_api() as server, client_of(server) as client:
        lab = threading.Thread(target=run, args=(server.queue,), daemon=True)
        lab.start()
        visitor = Visitor(client)
        try:
            visit(visitor, client)
            assert visitor.do(do="finish") == "the lab is finishing"
            last = visitor.until(lambda seen: seen.phase == "done", "the lab is done")
        finally:
            client.post("/commands", json={"do": "finish"})
            lab.join(PATIENCE)
        assert client.post("/commands", json={"do": "kill", "peer": "peer0"}).status_code == 503
    [result] = results
    assert result.audit.is_exact
    assert last.result_is_exact is True
    assert last.result[0] == "mass 5 x 2^40 = 5,497,558,138,880 units: exact"
    assert (last.mass.in_flight, last.mass.total, last.acts) == (0, 5 << 40, False)
    assert {seen.phase for seen in visitor.frames} >= {"learning", "finishing", "done"}
    assert not result.complete
    assert (result.peers[0].restarts, result.peers[4].samples > 0) == (1, True)


def visit(visitor: Visitor, client: httpx.Client) -> None:
    seen = visitor.until(lambda now: all(p.samples > 5 for p in now.peers), "all learn")
    assert {p.state for p in seen.peers} == {"up"}
    assert seen.messages_per_second > 0
    assert seen.bytes_per_second > 50 * seen.messages_per_second

    assert visitor.do(do="kill", peer="peer0") == "peer0 was killed"
    seen = visitor.until(lambda now: peer(now, "peer0").state == "down", "it is down")
    assert "peer0 is down" in visitor.refused(do="kill", peer="peer0")
    assert "did you mean 'peer0'" in visitor.refused(do="kill", peer="pear0")
    assert "runs already" in visitor.refused(do="restart", peer="peer1")
    before = peer(seen, "peer0").samples
    since = seen.seconds
    visitor.until(lambda now: now.seconds > since + 1.5, "it stays down")
    assert peer(visitor.frames[-1], "peer0").state == "down"
    assert visitor.do(do="restart", peer="peer0") == "peer0 was started again"
    visitor.until(lambda now: peer(now, "peer0").samples > before + 5, "it learns again")

    assert "was cut" in visitor.do(do="cut", one="peer1", other="peer2")
    visitor.until(lambda now: bool((e := edge(now, "peer1", "peer2")) and e.cut), "it is cut")
    assert "is cut already" in visitor.refused(do="cut", one="peer2", other="peer1")
    assert "no line to cut" in visitor.refused(do="cut", one="peer0", other="peer2")
    # Trust ends while nothing passes; healed, both ends still find out how much had arrived.
    assert visitor.do(do="distrust", sender="peer2", receiver="peer1").startswith("peer2 no longer")
    visitor.until(lambda now: edge(now, "peer2", "peer1") is None, "the edge is gone")
    assert "was healed" in visitor.do(do="heal", one="peer1", other="peer2")
    assert "nothing to heal" in visitor.refused(do="heal", one="peer1", other="peer2")
    refusal = visitor.refused(do="distrust", sender="peer2", receiver="peer1")
    assert "peer2 does not send to peer1" in refusal
    assert "peer3" in refusal
    seen = visitor.until(lambda now: bool(edge(now, "peer1", "peer2")), "one way is left")
    assert not edge(seen, "peer1", "peer2").cut
    assert "already" in visitor.refused(do="trust", sender="peer1", receiver="peer2")
    assert "itself" in visitor.refused(do="trust", sender="peer1", receiver="peer1")
    visitor.do(do="trust", sender="peer1", receiver="peer3")
    count = visitor.until(lambda now: bool(edge(now, "peer1", "peer3")), "trusted")
    at = edge(count, "peer1", "peer3").arrived
    visitor.until(lambda now: edge(now, "peer1", "peer3").arrived > at, "a push arrives")

    assert "1.5" in visitor.refused(do="set_loss", loss=1.5)
    assert "20% of the messages" in visitor.do(do="set_loss", loss=0.2)
    assert visitor.until(lambda now: now.loss_rate == 0.2, "messages are lost")

    assert "there is a peer peer1 already" in visitor.refused(
        do="add_peer", name="peer1", receivers=[], senders=[]
    )
    assert "did you mean 'peer3'" in visitor.refused(
        do="add_peer", name="dora", receivers=["peer33"], senders=[]
    )
    said = visitor.do(do="add_peer", name="", receivers=[], senders=[])
    assert said.startswith("peer4 joined with 400 samples, sends to peer")
    seen = visitor.until(
        lambda now: len(now.peers) == 5 and peer(now, "peer4").samples > 0, "it learns"
    )
    assert seen.mass.brought == 5 << 40
    assert seen.disagreement is not None
    assert len([e for e in seen.edges if "peer4" in (e.sender, e.receiver)]) == 2
    visitor.until(lambda _: client.get("/references").status_code == 200, "simulations are done")


def test_a_lab_that_stays_says_that_all_is_learned_and_a_peer_that_ends_by_itself_is_down(
    tmp_path: Path, ring: Problem
):
    results: list[Result] = []
    short = Problem.deal(ring.table, ring.graph, samples=30, seed=2)

    def run(queue: CommandQueue) -> None:
        results.append(run_lab(tmp_path / "lab", short, Conditions(), queue=queue, stay=True))

    with serve_api() as server, client_of(server) as client:
        lab = threading.Thread(target=run, args=(server.queue,), daemon=True)
        lab.start()
        visitor = Visitor(client)
        try:
            seen = visitor.until(
                lambda now: now.phase == "all samples are learned from", "nothing is left"
            )
            assert all(p.finished and p.samples == 30 for p in seen.peers)
            status = (tmp_path / "lab" / "peer3" / "status.json").read_bytes()
            os.kill(msgspec.json.decode(status)["pid"], signal.SIGTERM)
            visitor.until(lambda now: peer(now, "peer3").state == "down", "it ended")
            assert any("peer3 ended by itself" in event for event in visitor.frames[-1].events)
            assert visitor.do(do="restart", peer="peer3") == "peer3 was started again"
            visitor.until(lambda now: peer(now, "peer3").state == "up", "it is back")
            visitor.until(lambda now: peer(now, "peer3").finished, "it has nothing left either")
        finally:
            client.post("/commands", json={"do": "finish"})
            lab.join(PATIENCE)
    [result] = results
    assert result.complete
    assert result.audit.is_exact
    assert server.queue.finished_by_command
