"""A peer as a library: learn and predict in river's manner, durable in the end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Semaphore

import pytest
import threadpoolctl
from plain import PLAIN_TOML
from unused_address import unused_address

import oneway as ow
from oneway.errors import OnewayError
from oneway.methods import METHODS
from oneway.peer.home.home import Home
from oneway.peer.node import Node
from oneway.peer.offline import stored_model, stored_personal
from oneway.peer.store.store import read_snapshot

TASK = f"""
{PLAIN_TOML}label = "late"
classes = ["no", "yes"]
model = "logistic"
learning_rate = 0.3
[features]
rain = {{}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "task.toml").write_text(TASK)
    home = Home.create(tmp_path / "alice", "alice", tmp_path / "task.toml", unused_address())
    return home.folder


def test_a_peer_learns_and_predicts_one_sample_at_a_time(folder):
    with ow.Peer(folder) as peer:
        first = peer.learn_one({"rain": 1.0}, "yes")
        for _ in range(50):
            peer.learn_one({"rain": 1.0}, "yes")
            peer.learn_one({"rain": -1.0}, "no")
        assert peer.learn_one({"rain": 1.0}, "yes") < 0.5 * first
        assert peer.predict_one({"rain": 2.0}) == "yes"
        assert peer.predict_one({"rain": -2.0}) == "no"
        probabilities = peer.predict_proba_one({"rain": 2.0})
        assert sum(probabilities.values()) == pytest.approx(1.0)
        assert probabilities["yes"] > 0.8
        assert peer.status().samples == 102
    assert read_snapshot(folder / "peer.sqlite").journal.samples == 102


def test_a_peer_leaves_the_threads_and_the_event_loop_of_its_host_alone(folder):
    def blas() -> list[int]:
        found = threadpoolctl.threadpool_info()
        return [it["num_threads"] for it in found if it["user_api"] == "blas"]

    def handler(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None: ...

    async def host() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(handler)
        peer, listens = ow.Peer(folder), asyncio.Event()
        running = asyncio.create_task(peer.run(ready=listens.set))
        async with asyncio.timeout(240):
            await listens.wait()
            assert loop.get_exception_handler() is handler
            assert blas() == before
            peer.stop()
            await running
        peer.close()

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = blas()
        asyncio.run(host())


def test_a_closed_peer_says_so_and_can_be_opened_again(folder):
    peer = ow.Peer(folder)
    peer.close()
    for use in (peer.start, lambda: peer.learn_one({"rain": 1.0}, "yes")):
        with pytest.raises(OnewayError, match="closed; open it again"):
            use()
    with ow.Peer(folder) as again:
        again.learn_one({"rain": 1.0}, "yes")


def test_a_peer_at_rest_does_not_write_its_status_again_and_again(folder, monkeypatch):
    monkeypatch.setattr("oneway.peer.runtime.TICK_SECONDS", 0.001)
    monkeypatch.setattr("oneway.peer.runtime.STATUS_SECONDS", 0.0)
    monkeypatch.setattr("oneway.peer.runtime.REST_SECONDS", 1e6)
    written = []
    monkeypatch.setattr(Home, "write_status", lambda _, status: written.append(status.samples))
    ticks = Semaphore(0)
    tick = Node.tick
    monkeypatch.setattr(Node, "tick", lambda node: (tick(node), ticks.release())[0])

    def let_it_tick() -> None:
        for _ in range(20):
            assert ticks.acquire(timeout=240)

    with ow.Peer(folder) as peer:
        while not peer.node.snapshot.state.has_minted or not peer.node.is_on_disk:
            let_it_tick()
        let_it_tick()
        before = len(written)
        let_it_tick()
        assert len(written) == before
        peer.learn_one({"rain": 1.0}, "yes")
        while 1 not in written:
            let_it_tick()


@pytest.mark.parametrize(
    "method", [name for name in METHODS if METHODS[name].exchange != "average"]
)
def test_the_model_on_the_disk_predicts_like_the_peer_whatever_its_method_sends(folder, method):
    home = Home.open(folder)
    home.task_path.write_text(TASK.replace('method = "ops"', f'method = "{method}"'))
    peer = ow.Peer(folder)
    for _ in range(5):
        peer.learn_one({"rain": 1.0}, "yes")
    mine, shared = (
        peer.predict_proba_one({"rain": 2.0}, model=it) for it in ("personal", "shared")
    )
    peer.close()
    assert stored_model(home).predict_proba_one({"rain": "2.0"}) == shared
    assert stored_personal(home).predict_proba_one({"rain": "2.0"}) == mine
    assert (mine == shared) == (method == "local")
