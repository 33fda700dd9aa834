"""Labels that come later: each is learned from once, also by a process that is killed."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from plain import PLAIN_TOML
from real_peers import PATIENCE
from town import LIMITS, SAMPLE, TASK, Town, config, quiet
from unused_address import unused_address

import oneway as ow
from oneway.errors import DataError, TicketError
from oneway.peer.api.app import build_app
from oneway.peer.home.config_file import write_config
from oneway.peer.home.home import Home
from oneway.peer.home.limits import Limits
from oneway.peer.sample_stream import SampleStream
from oneway.peer.store.store import read_snapshot
from oneway.records import Batch

OWN = f"""
{PLAIN_TOML}label = "late"
classes = ["no", "yes"]
model = "logistic"
learning_rate = 0.3
[features]
rain = {{}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "task.toml").write_text(OWN)
    home = Home.create(tmp_path / "alice", "alice", tmp_path / "task.toml", unused_address())
    return home.folder


def the_only(town: Town):
    return town.nodes["a"]


def test_the_loss_is_that_of_the_prediction_and_the_gradient_that_of_the_model_it_meets():
    """Against the formulas, with other samples in between."""
    town, other = quiet(a=[]), quiet(a=[])
    node, twin = the_only(town), the_only(other)
    model = TASK.build_model()
    batch = Batch(np.array([[1.0, -2.0]]), np.array([1.0]))
    for _ in range(3):
        node.learn({"u": 0.5, "v": 1.0}, "no")
        twin.learn({"u": 0.5, "v": 1.0}, "no")
    made = node.late.predict(SAMPLE)
    predicted = node.settled.copy()
    assert made.prediction == node.learner.fitted(predicted).predict_one(SAMPLE)
    for _ in range(5):
        node.learn({"u": -1.0, "v": 0.3}, "yes")
        twin.learn({"u": -1.0, "v": 0.3}, "yes")
    before = node.snapshot
    loss = node.late.tell(made.id, "yes")
    assert loss == pytest.approx(model.loss(predicted, batch), rel=1e-12)
    assert loss != pytest.approx(model.loss(twin.estimate, batch), rel=1e-3)
    twin.learn(SAMPLE, "yes")  # the same step as of a sample that comes now
    np.testing.assert_array_equal(node.snapshot.state.holding, twin.snapshot.state.holding)
    after = node.snapshot
    assert after.journal.samples == before.journal.samples + 1
    assert after.journal.loss_sum == pytest.approx(before.journal.loss_sum + loss, rel=1e-12)
    right = made.prediction == "yes"
    assert after.journal.correct == before.journal.correct + right
    assert not after.tickets


def test_a_label_is_told_once_and_a_bad_one_may_be_told_again():
    node = the_only(quiet(a=[]))
    made = node.late.predict(SAMPLE)
    with pytest.raises(DataError, match="label 'y' is 'maybe'"):
        node.late.tell(made.id, "maybe")
    node.late.tell(made.id, "no")
    before = node.snapshot
    for stranger in (made.id, "4711", ""):
        with pytest.raises(TicketError, match="no prediction waits under the ticket"):
            node.late.tell(stranger, "no")
    assert node.snapshot is before


def test_a_sample_that_cannot_be_used_gets_no_ticket():
    node = the_only(quiet(a=[]))
    before = node.snapshot
    with pytest.raises(DataError, match="v"):
        node.late.predict({"u": 1.0})
    assert node.snapshot is before


def test_a_prediction_alone_moves_no_model_and_says_nothing():
    town = quiet(a=["b"], b=["a"])
    node = town.nodes["a"]
    before = node.snapshot.state
    for _ in range(5):
        node.late.predict(SAMPLE)
    assert node.snapshot.state is before
    assert town.exchange() == 0
    assert town.durable["a"].tickets == node.snapshot.tickets


def with_limits(node, **limits):
    chosen = dataclasses.replace(LIMITS, **limits)
    node.follow(dataclasses.replace(node.config, limits=chosen))
    return node


def test_as_many_wait_as_the_limits_say_and_as_long():
    town = quiet(a=[])
    node = with_limits(the_only(town), open_tickets=2, ticket_days=1.0)
    first, second = node.late.predict(SAMPLE), node.late.predict(SAMPLE)
    with pytest.raises(TicketError, match="2 predictions wait for their labels"):
        node.late.predict(SAMPLE)
    node.late.tell(first.id, "yes")
    town.time += 0.6 * 86400
    third = node.late.predict(SAMPLE)
    town.time += 0.6 * 86400
    with pytest.raises(TicketError, match="1 days ago"):
        node.late.tell(second.id, "yes")
    node.late.tell(third.id, "yes")
    node.late.predict(SAMPLE)
    town.time += 2 * 86400
    node.tick()  # nobody needs to ask: what is too old goes from the store
    assert not node.snapshot.tickets


def test_large_models_have_room_for_fewer():
    assert Limits().tickets_for(50) == 10_000
    assert Limits().tickets_for(100_000) == 83
    assert Limits().tickets_for(10**8) == 16


def test_a_ticket_survives_a_restart_and_is_told_once_there():
    town = quiet(a=["b"], b=["a"])
    made = town.nodes["a"].late.predict(SAMPLE)
    town.exchange()
    settings = town.nodes["a"].config
    town.power_on("a", town.power_off("a"), settings)
    town.pass_time(1.0)
    loss = town.nodes["a"].late.tell(made.id, "yes")
    assert loss == pytest.approx(np.log(2), rel=1e-3)
    town.exchange()
    town.power_on("a", town.power_off("a"), settings)
    town.pass_time(1.0)
    with pytest.raises(TicketError, match="no prediction waits"):
        town.nodes["a"].late.tell(made.id, "yes")


def test_a_restored_backup_drops_tickets_that_a_forgotten_life_may_have_told():
    """Its receivers tell that more was learned; whether this label was in it, nobody knows."""
    town = quiet(a=["b"], b=["a"])
    node = town.nodes["a"]
    made = node.late.predict(SAMPLE)
    town.exchange()
    backup = town.durable["a"]
    node.late.tell(made.id, "yes")
    town.exchange()
    town.power_off("a")
    town.power_on("a", backup, config("a", ["b"]))
    town.pass_time(1.0)
    restored = town.nodes["a"]
    assert restored.snapshot.journal.forgotten == 1
    with pytest.raises(TicketError, match="no prediction waits"):
        restored.late.tell(made.id, "yes")
    fresh = restored.late.predict(SAMPLE)
    restored.late.tell(fresh.id, "yes")
    town.exchange()
    town.check_books()


def test_a_store_of_an_older_release_gets_the_table_and_keeps_what_it_has(folder):
    with ow.Peer(folder) as peer:
        peer.learn_one({"rain": 1.0}, "yes")
    with sqlite3.connect(folder / "peer.sqlite") as connection:
        connection.execute("DROP TABLE ticket")
    connection.close()
    with ow.Peer(folder) as peer:
        made = peer.predict_later({"rain": 1.0})
        assert peer.status().open_tickets == 1
        peer.tell(made, "yes")
        assert peer.status().samples == 2


@pytest.mark.parametrize("runs", [True, False])
def test_a_ticket_is_on_the_disk_when_it_is_handed_out_and_gone_when_it_was_told(folder, runs):
    peer = ow.Peer(folder)
    if runs:
        peer.__enter__()
    made = peer.predict_later({"rain": 2.5})
    stored = read_snapshot(folder / "peer.sqlite").tickets
    assert list(stored) == [made.id]
    np.testing.assert_array_equal(stored[made.id].features, [2.5])
    assert stat.S_IMODE((folder / "peer.sqlite").stat().st_mode) == 0o600
    peer.tell(made.id, "yes")
    after = read_snapshot(folder / "peer.sqlite")
    assert not after.tickets
    assert after.journal.samples == 1
    peer.__exit__(None, None, None) if runs else peer.close()


PROGRAM = """
import sys, oneway as ow
from oneway.errors import TicketError
with ow.Peer(sys.argv[1]) as peer:
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "predict":
            print(peer.predict_later({"rain": 1.0}).id, flush=True)
        else:
            try:
                print("learned", peer.tell(rest[0], "yes"), flush=True)
            except TicketError as error:
                print("refused", error, flush=True)
"""


class Process:
    """A program around a peer, which is asked by lines and killed without a warning."""

    def __init__(self, folder: Path) -> None:
        self.it = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, line: str) -> str:
        self.it.stdin.write(line + "\n")
        self.it.stdin.flush()
        return self.it.stdout.readline().strip()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.it.send_signal(signal.SIGKILL)
        self.it.wait(PATIENCE)
        self.it.stdin.close()
        self.it.stdout.close()


def test_killed_right_after_an_answer_a_process_neither_forgets_a_ticket_nor_learns_it_twice(
    folder,
):
    with Process(folder) as first:
        ticket, other = first.ask("predict"), first.ask("predict")
    with Process(folder) as second:
        assert second.ask(f"tell {ticket}").startswith("learned 0.69")
    with Process(folder) as third:
        assert third.ask(f"tell {ticket}").startswith("refused no prediction waits under")
        assert third.ask(f"tell {other}").startswith("learned")
    stored = read_snapshot(folder / "peer.sqlite")
    assert (stored.journal.samples, len(stored.tickets)) == (2, 0)


async def while_it_runs(
    peer: ow.Peer, use: Callable[[ow.Peer], Awaitable[None]], *samples: Any, **options: Any
) -> None:
    """Use a peer that listens; if it cannot run, or does not, this fails instead of waiting."""
    listening = asyncio.Event()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
        tasks.create_task(peer.run(*samples, **options, ready=listening.set))
        await listening.wait()
        await use(peer)
        peer.stop()


def test_the_local_api_hands_out_tickets_and_takes_labels(folder):
    async def talk(peer: ow.Peer) -> None:
        transport = httpx.ASGITransport(build_app(peer))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            made = (await client.post("/predict?later", json={"x": {"rain": 1.0}})).json()
            assert made["prediction"] == "yes"
            assert made["probabilities"]["yes"] == 0.5
            assert list(read_snapshot(folder / "peer.sqlite").tickets) == [made["ticket"]]
            told = {"ticket": made["ticket"], "y": "no"}
            answer = await client.post("/tell", json=told)
            assert answer.json()["loss"] == pytest.approx(np.log(2))
            assert not read_snapshot(folder / "peer.sqlite").tickets
            again = await client.post("/tell", json=told)
            assert again.status_code == 422
            assert "no prediction waits" in again.json()["error"]
            several = {"samples": [{"x": {"rain": 1.0}}, {"x": {}}, {"x": {"rain": -1.0}}]}
            found = (await client.post("/predict?later", json=several)).json()["results"]
            assert [("ticket" in it, "error" in it) for it in found] == [
                (True, False), (False, True), (True, False),
            ]  # fmt: skip
            labels = [{"ticket": found[0]["ticket"], "y": "yes"}, {"ticket": 7, "y": "yes"}]
            told = (await client.post("/tell", json={"samples": labels})).json()["results"]
            assert "loss" in told[0]
            assert "ticket in the label is 7" in told[1]["error"]
            assert peer.status().open_tickets == 1

    peer = ow.Peer(folder)
    asyncio.run(while_it_runs(peer, talk))
    peer.close()


ROWS = """id,rain,late
1,1.0,
2,-1.0,
1,,yes
3,0.5,
2,,no
2,,no
,1.0,yes
3,0.1,
9,1.0,yes
"""


def run_stream(folder: Path, source: Path) -> ow.Peer:
    peer = ow.Peer(folder)
    stream = SampleStream(str(source), late_labels="id")
    stream.check_columns(peer.task)
    journal = lambda: peer.node.snapshot.journal  # noqa: E731
    samples = stream.samples(journal, peer.task, lambda _: None, once=False)

    async def until_over(peer: ow.Peer) -> None:
        while not peer.status().finished:
            await asyncio.sleep(0.01)

    asyncio.run(while_it_runs(peer, until_over, samples, late_labels="id"))
    return peer


def test_in_a_stream_a_row_without_a_label_waits_for_one_that_tells_it(folder, tmp_path):
    source = tmp_path / "rows.csv"
    source.write_text(ROWS)
    peer = run_stream(folder, source)
    journal = peer.node.snapshot.journal
    # Told twice, nameless, waiting already, and never predicted: four rows are skipped.
    assert (journal.samples, journal.skipped, journal.position.num_rows) == (2, 4, 9)
    assert list(peer.node.snapshot.tickets) == ["3"]
    assert "ticket '9'" in peer.node.last_skipped
    peer.close()
    with source.open("a") as file:
        file.write("3,,yes\n")
    again = run_stream(folder, source)
    assert again.node.snapshot.journal.samples == 3
    assert not again.node.snapshot.tickets
    again.close()


def test_a_stream_without_the_column_is_told_before_anything_is_learned(folder, tmp_path):
    source = tmp_path / "rows.csv"
    source.write_text("rain,late\n1.0,yes\n")
    task = Home.open(folder).task()
    with pytest.raises(DataError, match="id"):
        SampleStream(str(source), late_labels="id").check_columns(task)


def test_of_a_group_that_had_all_its_samples_no_label_is_learned(tmp_path):
    text = OWN.replace('privacy = "none"\n', "").replace("samples_per_push = 1", "")
    text += '[privacy]\nunit = "group"\ngroup = "who"\nrecords_per_group = 1\n'
    (tmp_path / "task.toml").write_text(text)
    home = Home.create(tmp_path / "bob", "bob", tmp_path / "task.toml", unused_address())
    peer = ow.Peer(home.folder)
    first, second = (peer.predict_later({"rain": 1.0, "who": "Ada"}) for _ in range(2))
    with pytest.raises(DataError, match="'who' is missing"):
        peer.predict_later({"rain": 1.0})
    peer.tell(first, "yes")
    with pytest.raises(DataError, match="no more are used"):
        peer.tell(second, "yes")
    peer.close()


def test_the_limits_of_tickets_stand_in_the_file_and_are_followed(folder):
    home = Home.open(folder)
    settings = home.config()
    limits = dataclasses.replace(settings.limits, open_tickets=1)
    write_config(dataclasses.replace(settings, limits=limits), home.config_path)
    assert "open_tickets = 1" in home.config_path.read_text()
    peer = ow.Peer(folder)
    peer.predict_later({"rain": 1.0})
    with pytest.raises(TicketError, match="1 predictions wait"):
        peer.predict_later({"rain": 1.0})
    peer.close()
