"""A lab over HTTP: every command acts on real processes, and everything is seen in the frames."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import msgspec
import pytest

import oneway as ow
from oneway.lab.api import LabServer, serve_api
from oneway.lab.problem import Problem
from oneway.lab.result import Result
from oneway.lab.run import CommandQueue, Conditions, run_lab
from oneway.records.network import EdgeView, NetworkFrame, PeerView

PATIENCE = 300.0


def client_of(server: LabServer) -> httpx.Client:
    return httpx.Client(
        base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}, timeout=PATIENCE
    )


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
            visit(visitor, client, folder)
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
    assert any("ended by itself" in event for event in result.events)
    assert (last.mass.in_flight, last.mass.total, last.acts) == (0, 5 << 40, False)
    assert {seen.phase for seen in visitor.frames} >= {"learning", "finishing", "done"}
    assert not result.complete
    assert (result.peers[0].restarts, result.peers[4].samples > 0) == (1, True)


def visit(visitor: Visitor, client: httpx.Client, folder: Path) -> None:
    visitor.until(lambda now: all(p.samples > 5 for p in now.peers), "all learn")
    seen = visitor.until(lambda now: now.messages_per_second > 0, "messages pass")
    assert {p.state for p in seen.peers} == {"up"}
    assert seen.bytes_per_second > 50 * seen.messages_per_second

    assert visitor.do(do="kill", peer="peer0") == "peer0 was killed"
    seen = visitor.until(lambda now: peer(now, "peer0").state == "down", "it is down")
    assert "peer0 is down" in visitor.refused(do="kill", peer="peer0")
    assert "did you mean 'peer0'" in visitor.refused(do="kill", peer="pear0")
    before = peer(seen, "peer0").samples
    assert visitor.do(do="restart", peer="peer0") == "peer0 was started again"
    visitor.until(lambda now: peer(now, "peer0").samples > before + 5, "it learns again")

    # A peer that ends by itself is down, and can be restarted.
    status = (folder / "peer3" / "status.json").read_bytes()
    os.kill(msgspec.json.decode(status)["pid"], signal.SIGTERM)
    visitor.until(lambda now: peer(now, "peer3").state == "down", "it ended")
    visitor.do(do="restart", peer="peer3")
    visitor.until(lambda now: peer(now, "peer3").state == "up", "it is back")

    assert "was cut" in visitor.do(do="cut", one="peer1", other="peer2")
    visitor.until(lambda now: bool((e := edge(now, "peer1", "peer2")) and e.cut), "it is cut")
    # Trust ends while nothing passes; healed, both ends still find out how much had arrived.
    assert visitor.do(do="distrust", sender="peer2", receiver="peer1").startswith("peer2 no longer")
    visitor.until(lambda now: edge(now, "peer2", "peer1") is None, "the edge is gone")
    assert "was healed" in visitor.do(do="heal", one="peer1", other="peer2")
    seen = visitor.until(lambda now: bool(edge(now, "peer1", "peer2")), "one way is left")
    assert not edge(seen, "peer1", "peer2").cut
    visitor.do(do="trust", sender="peer1", receiver="peer3")
    count = visitor.until(lambda now: bool(edge(now, "peer1", "peer3")), "trusted")
    at = edge(count, "peer1", "peer3").arrived
    visitor.until(lambda now: edge(now, "peer1", "peer3").arrived > at, "a push arrives")

    assert "20% of the messages" in visitor.do(do="set_loss", loss=0.2)
    assert visitor.until(lambda now: now.loss_rate == 0.2, "messages are lost")

    said = visitor.do(do="add_peer", name="", receivers=[], senders=[])
    assert said.startswith("peer4 joined with 400 samples, sends to peer")
    seen = visitor.until(
        lambda now: len(now.peers) == 5 and peer(now, "peer4").samples > 0, "it learns"
    )
    assert seen.mass.brought == 5 << 40
    assert seen.disagreement is not None
    assert len([e for e in seen.edges if "peer4" in (e.sender, e.receiver)]) == 2
    visitor.until(lambda _: client.get("/references").status_code == 200, "simulations are done")
