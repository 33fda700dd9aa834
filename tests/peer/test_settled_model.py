"""The settled model: an average of the last estimates, durable, and what it is good for."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from builders import replace
from hypothesis import given
from hypothesis import strategies as st
from plain import PLAIN_TOML
from town import SAMPLE, Town, config
from unused_address import unused_address

import oneway as ow
from oneway.errors import ConfigError
from oneway.peer.home.home import Home
from oneway.peer.offline import stored_model
from oneway.peer.store.average import HORIZON, with_estimate

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


@given(count=st.integers(1, 3 * HORIZON), seed=st.integers(0, 1000))
def test_the_average_is_that_of_all_estimates_by_their_weights(count, seed):
    estimates = np.random.default_rng(seed).normal(size=(count, 3))
    average = None
    for estimate in estimates:
        average = with_estimate(average, estimate)
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


def test_what_answers_is_what_is_measured(home):
    """By default a peer answers personally, and `learn_one` returns the loss of that answer."""
    with closing(taught(home, 40)) as peer:
        row = {"rain": 2.5}
        said = peer.predict_proba_one(row)
        assert said != peer.predict_proba_one(row, model="shared")
        assert peer.predict_one(row) == (said[True] >= 0.5)
        assert peer.learn_one(row, True) == pytest.approx(-np.log(said[True]), rel=1e-12)
        with pytest.raises(ConfigError, match="momentary"):
            peer.predict_one(row, model="momentary")


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
        peer.learn_one({"rain": 1.0}, True)
        assert peer.node.snapshot.average.count == count + 1


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
