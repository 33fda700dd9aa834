"""When a commit of a large model waits for one with more in it, and that nothing else waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest
from plain import PLAIN_TOML
from town import SAMPLE, TASK, Town, quiet

from oneway.lab.ports import Ports
from oneway.peer.home.home import Home
from oneway.peer.peer import Peer
from oneway.peer.runtime import WAIT_SECONDS, CommitPace
from oneway.peer.store import large
from oneway.peer.store.store import read_snapshot
from oneway.tables.rows import Position, Row


@pytest.fixture
def large_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every model for a large one."""
    monkeypatch.setattr(large, "LARGE", 1)


def town_with_a_push_under_way() -> tuple[Town, CommitPace]:
    town = quiet(ann=["bob"], bob=[])
    node = town.nodes["ann"]
    pace = CommitPace(node)
    node.learn(SAMPLE, "yes")
    assert pace.wait == 0.0  # a push is to be said
    town.send("ann", commit(node, pace))
    assert any(edge.in_flight for edge in node.durable.state.out.values())
    return town, pace


def commit(node, pace: CommitPace) -> list:
    pace.begin()
    return node.committed(node.begin())


@pytest.mark.usefixtures("large_models")
def test_a_step_waits_for_the_answer_to_the_push_before_but_not_for_long():
    town, pace = town_with_a_push_under_way()
    node = town.nodes["ann"]
    node.learn(SAMPLE, "no")
    assert pace.has_stepped
    assert 0.0 < pace.wait <= WAIT_SECONDS
    town.time += 1.01 * WAIT_SECONDS
    assert pace.wait == 0.0


@pytest.mark.usefixtures("large_models")
def test_without_an_answer_to_wait_for_a_step_is_committed_at_once():
    town = quiet(ann=[])
    pace = CommitPace(town.nodes["ann"])
    town.nodes["ann"].learn(SAMPLE, "no")
    assert pace.has_stepped
    assert pace.wait == 0.0


@pytest.mark.usefixtures("large_models")
def test_the_samples_of_an_unfinished_batch_share_a_commit():
    town = Town({"ann": []}, replace(TASK, samples_per_push=3))
    town.exchange()
    node, pace = town.nodes["ann"], CommitPace(town.nodes["ann"])
    node.ensure_minted()
    commit(node, pace)
    for _ in range(2):
        node.learn(SAMPLE, "no")
        assert not pace.has_stepped
        assert pace.wait > 0.0
    node.learn(SAMPLE, "no")
    assert pace.has_stepped
    assert pace.wait == 0.0


def test_commits_of_small_models_never_wait():
    town, pace = town_with_a_push_under_way()
    town.nodes["ann"].learn(SAMPLE, "no")
    assert pace.wait == 0.0


def test_an_answer_that_makes_room_and_the_next_push_share_a_commit():
    town, _ = town_with_a_push_under_way()
    node = town.nodes["ann"]
    node.learn(SAMPLE, "no")
    [before] = node.snapshot.state.out.values()
    town.time += 1.0
    town.exchange()
    [after] = node.snapshot.state.out.values()
    assert (after.acked, after.seq) >= (before.seq, before.seq + 1)


@pytest.mark.usefixtures("large_models")
def test_every_row_of_a_stream_is_learned_once_and_durable_when_the_peer_stops(tmp_path):
    task = tmp_path / "task.toml"
    text = PLAIN_TOML.replace("samples_per_push = 1", "samples_per_push = 4")
    task.write_text(
        f'label = "y"\nmodel = "logistic"\nclasses = ["no", "yes"]\n{text}[features]\nu = {{}}\n'
    )
    ports = Ports()
    home = Home.create(tmp_path / "ann", "ann", task, ports.reserve())

    async def rows() -> AsyncGenerator[Row, None]:
        for number in range(1, 23):
            yield Row({"u": 1.0, "y": "yes"}, number, Position(number, 0, number, number, 0))

    async def live() -> int:
        peer = Peer(home.folder)
        running = asyncio.create_task(peer.run(rows()))
        async with asyncio.timeout(240):
            while peer.node.snapshot.journal.samples < 22:
                await asyncio.sleep(0.01)
        peer.stop()
        await running
        return peer.node.snapshot.journal.samples

    with ports:
        assert asyncio.run(live()) == 22
    found = read_snapshot(home.folder / "peer.sqlite")
    assert found.journal.samples == found.journal.position.num_rows == 22
    assert found.memory["batch.count"].tolist() == [[2.0]]
