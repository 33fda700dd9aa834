"""The settled model: an average of the last estimates, durable, and what it is good for."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import PLAIN, PLAIN_TOML
from town import SAMPLE, Town, config
from unused_address import unused_address

import oneway as ow
from oneway.peer.home.home import Home
from oneway.peer.offline import stored_model
from oneway.peer.store.average import HORIZON, with_estimate
from oneway.peer.store.store import read_snapshot
from oneway.records import Batch
from oneway.task.task import Task
from oneway.testing.records import replace

TASK = f"""
{PLAIN_TOML}label = "late"
classes = ["false", "true"]
model = "logistic"
learning_rate = 0.3
[features]
rain = {{ center = 1.0, scale = 2.0 }}
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "task.toml").write_text(TASK)
    return Home.create(tmp_path / "alice", "alice", tmp_path / "task.toml", unused_address())


def taught(home: Home, count: int) -> ow.Peer:
    peer = ow.Peer(home.folder)
    for number in range(count):
        peer.learn_one({"rain": float(number % 5)}, number % 3 == 0)
    return peer


def teach(town: Town, label: str) -> None:
    """Let alice learn, and everybody speak."""
    town.time += 1e-3
    town.nodes["alice"].learn(SAMPLE, label)
    town.exchange()


@settings(max_examples=20, deadline=None)
@given(count=st.integers(1, 3 * HORIZON), seed=st.integers(0, 1000))
def test_the_average_is_that_of_all_estimates_by_their_weights(count, seed):
    estimates = np.random.default_rng(seed).normal(size=(count, 3))
    average = None
    for estimate in estimates:
        average = with_estimate(average, estimate, boot=1)
    assert average is not None
    steps = [max(4.0 / (number + 3.0), 0.01) for number in range(1, count + 1)]
    weights = [
        step * float(np.prod([1.0 - later for later in steps[index + 1 :]]))
        for index, step in enumerate(steps)
    ]
    assert sum(weights) == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(average.params, weights @ estimates, rtol=0, atol=1e-12)
    # Half of the weight is on the last sixth of them, or on the last 69 of many.
    recent = max(1, min(count // 6 + 1, 70))
    assert sum(weights[-recent:]) > 0.4


def test_before_anything_was_averaged_it_is_the_estimate_itself():
    town = Town({"alice": [], "bob": []})
    alice = town.nodes["alice"]
    assert alice.snapshot.average is None
    assert np.array_equal(alice.settled, alice.estimate)
    alice.learn(SAMPLE, "yes")
    assert np.array_equal(alice.settled, alice.estimate)
    alice.learn(SAMPLE, "no")
    assert not np.array_equal(alice.settled, alice.estimate)


def test_a_peer_without_a_stream_averages_what_it_is_sent():
    town = Town({"alice": ["bob"], "bob": []})
    seen = []
    for label in ("yes", "no", "yes", "yes"):
        teach(town, label)
        seen.append(town.nodes["bob"].estimate)
    bob = town.nodes["bob"]
    assert bob.snapshot.journal.samples == 0
    average = bob.snapshot.average
    assert average is not None
    assert average.count > 1
    low, high = np.min(seen, axis=0), np.max(seen, axis=0)
    assert ((low <= bob.settled) & (bob.settled <= high)).all()
    assert not np.array_equal(bob.settled, bob.estimate)


def test_predictions_are_by_the_settled_model_unless_the_moment_is_asked_for(home):
    with closing(taught(home, 40)) as peer:
        settled, moment = peer.model(), peer.model(momentary=True)
        assert np.array_equal(settled.params, peer.node.settled)
        assert np.array_equal(moment.params, peer.node.estimate)
        row = {"rain": 2.5}
        assert peer.predict_proba_one(row) == settled.predict_proba_one(row)
        assert peer.predict_proba_one(row, momentary=True) == moment.predict_proba_one(row)
        assert peer.predict_proba_one(row) != peer.predict_proba_one(row, momentary=True)
        assert isinstance(peer.predict_one(row), bool)
        assert list(peer.predict_proba_one(row)) == [False, True]
        assert settled.origin["samples"] == 40
        assert settled.origin["task"] == peer.task.fingerprint.hex()
        slope = peer.coefficients["rain"]
        score = peer.coefficients["(intercept)"] + 2.5 * slope
        assert peer.predict_proba_one(row)[True] == pytest.approx(1 / (1 + np.exp(-score)))
        loss = peer.learn_one(row, True)
    # What is suffered while learning is suffered by the estimate that learns.
    assert loss == pytest.approx(-np.log(moment.predict_proba_one(row)[True]), abs=1e-3)


@pytest.mark.parametrize("momentary", [False, True])
def test_what_is_handed_out_is_what_is_durable(momentary):
    town = Town({"alice": []})
    alice = town.nodes["alice"]
    assert np.array_equal(alice.durable_model(momentary=momentary)[0], alice.learner.start)
    for label in ("yes", "yes", "no"):
        teach(town, label)
    said, samples = alice.durable_model(momentary=momentary)
    assert samples == 3
    assert np.array_equal(said, alice.estimate if momentary else alice.settled)
    alice.learn(SAMPLE, "no")  # on no disk yet
    assert np.array_equal(alice.durable_model(momentary=momentary)[0], said)
    town.exchange()
    assert alice.durable_model(momentary=momentary)[1] == 4
    assert not np.array_equal(alice.durable_model(momentary=momentary)[0], said)


def test_it_is_durable_and_goes_on_in_the_next_life(home):
    with closing(taught(home, 30)) as peer:
        said, count = peer.node.settled, peer.node.snapshot.average.count
    assert np.array_equal(stored_model(home).params, said)
    with closing(ow.Peer(home.folder)) as peer:
        assert np.array_equal(peer.node.settled, said)
        assert read_snapshot(home.store_path).average.boot == peer.node.snapshot.state.boot
        peer.learn_one({"rain": 1.0}, True)
        assert peer.node.snapshot.average.count == count + 1


def test_a_restored_backup_has_the_average_that_belongs_to_it(home):
    with closing(taught(home, 20)) as peer:
        said = peer.node.settled
    backup = home.store_path.read_bytes()
    with closing(taught(home, 20)):
        pass
    home.store_path.with_name("peer.sqlite-wal").unlink(missing_ok=True)
    home.store_path.write_bytes(backup)
    with closing(ow.Peer(home.folder)) as peer:
        assert np.array_equal(peer.node.settled, said)


def test_a_store_of_a_release_without_it_begins_with_the_estimate(home):
    with closing(taught(home, 20)) as peer:
        estimate = peer.node.estimate
    with closing(sqlite3.connect(home.store_path)) as connection:
        connection.execute("DROP TABLE average")
    assert np.array_equal(stored_model(home).params, estimate)
    with closing(ow.Peer(home.folder)) as peer:
        assert np.array_equal(peer.node.settled, estimate)
        peer.learn_one({"rain": 1.0}, True)
        assert peer.node.snapshot.average.count == 1
    assert read_snapshot(home.store_path).average.count == 1


def test_an_average_that_an_older_release_did_not_keep_up_is_not_served(home):
    with closing(taught(home, 20)):
        pass
    with closing(sqlite3.connect(home.store_path)) as connection, connection:
        connection.execute("UPDATE peer SET boot = boot + 1")
    assert read_snapshot(home.store_path).average is None
    with closing(ow.Peer(home.folder)) as peer:
        assert np.array_equal(peer.node.settled, peer.node.estimate)


def test_a_peer_that_has_handed_everything_over_still_knows_its_settled_model():
    town = Town({"alice": ["bob"], "bob": ["alice"]})
    for label in ("yes", "no", "no", "yes", "yes"):
        teach(town, label)
    before = town.nodes["alice"].settled
    town.nodes["alice"].follow(replace(config("alice", ["bob"]), leaving=True))
    for _ in range(20):
        town.pass_time(1.0)
    assert town.nodes["alice"].is_drained
    assert np.abs(town.nodes["alice"].settled - before).max() < 1.0


def test_it_jumps_far_less_and_predicts_no_worse_on_a_real_stream():
    table = ow.streams.load("flights")
    names = ["a", "b", "c", "d"]
    stream = table.deal(num_nodes=4, seed=7, resample=4 * 250)
    task = Task.of(table, learning_rate=0.2, **PLAIN)
    town = Town({"a": ["b"], "b": ["c"], "c": ["d", "a"], "d": ["a"]}, task=task)
    model = task.build_model()
    probes = table.features[np.arange(0, len(table), len(table) // 50)].astype(np.float64)
    losses, jumps = np.zeros(2), np.zeros(2)
    last: dict[str, list[np.ndarray]] = {}
    for round_index in range(stream.num_rounds):
        _, batch = stream.batch(round_index)
        for name, features, label in zip(names, batch.features, batch.labels, strict=True):
            node = town.nodes[name]
            served = [node.estimate, node.settled]
            shares = [model.probabilities(params, probes)[:, 1] for params in served]
            if round_index >= stream.num_rounds // 3:
                one = Batch(features[None, :].astype(np.float64), np.array([label]))
                losses += [model.losses(params, one)[0] for params in served]
                jumps += [np.abs(x - y).mean() for x, y in zip(shares, last[name], strict=True)]
            last[name] = shares
            raw = {
                feature.name: value * feature.scale + feature.center
                for feature, value in zip(task.features, features.tolist(), strict=True)
            }
            node.learn(raw, task.encoder.label_name(label))
        town.time += 1
        town.exchange()
    assert losses[1] < losses[0]
    assert jumps[1] < 0.1 * jumps[0]
