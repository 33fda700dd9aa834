"""What a referee tried against the promise of privacy, each of which once broke or weakened it."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from contextlib import closing

import numpy as np
import pytest
from town import BOOT, SAMPLE, TASK, Town, config, key_of
from unused_address import unused_address

import oneway as ow
from oneway.errors import ConfigError, OnewayError
from oneway.methods import Batches
from oneway.peer.home.home import Home
from oneway.peer.home.own_privacy import OwnPrivacy
from oneway.peer.identity.card import Card
from oneway.peer.learner import Learner
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.trust import admit_one, send_to
from oneway.protocol.incoming import mint
from oneway.protocol.rules import Rules
from oneway.protocol.state import PeerState
from oneway.task.privacy import Privacy

PRIVATE = dataclasses.replace(TASK, privacy=Privacy(), samples_per_push=4)
BATCHED = dataclasses.replace(TASK, samples_per_push=4)
TOML = (
    'label = "late"\nclasses = ["no", "yes"]\nmodel = "logistic"\nlearning_rate = 0.3\n'
    "samples_per_push = 4\n[privacy]\nepsilon = 8.0\n[features]\nrain = {}\n"
)
EDGES = {"alice": ("bob",), "bob": ()}


def count_of(town: Town) -> int:
    """How many samples wait in alice's batch."""
    memory = town.nodes["alice"].snapshot.memory
    return int(np.sum(memory.get("batch.count", 0)))


def restart(town: Town, snapshot, **options) -> None:
    town.power_off("alice")
    town.time += 1.0
    town.power_on("alice", snapshot, config("alice", EDGES["alice"], **options))


def test_a_batch_that_a_forgotten_life_may_have_pushed_is_not_pushed_again_by_learn_one():
    town = Town(EDGES, PRIVATE)
    town.pass_time(1.0)
    town.learn("alice", 3)
    backup = town.durable["alice"]
    town.learn("alice", 1)
    town.pass_time(1.0)
    restart(town, backup)
    assert count_of(town) == 3
    assert town.nodes["alice"].unanswered, "nobody has told yet that those three were pushed"
    town.nodes["alice"].learn(SAMPLE, "yes")
    assert count_of(town) == 1, "only what is new, so that nothing was noised twice"


def test_a_batch_goes_on_after_a_start_once_all_receivers_have_answered():
    town = Town(EDGES, PRIVATE)
    town.pass_time(1.0)
    town.learn("alice", 3)
    restart(town, town.durable["alice"])
    town.pass_time(1.0)
    assert count_of(town) == 3
    town.nodes["alice"].learn(SAMPLE, "yes")
    assert count_of(town) == 0, "full"


@pytest.mark.parametrize(
    ("task", "before", "after"),
    [
        (BATCHED, OwnPrivacy(), OwnPrivacy(epsilon=1.0)),  # what was summed is not clipped
        (BATCHED, OwnPrivacy(epsilon=1.0), OwnPrivacy()),  # there would be no noise at all
        (PRIVATE, OwnPrivacy(epsilon=1.0), OwnPrivacy()),  # there would be less than was said
    ],
)
def test_a_batch_is_not_pushed_under_another_promise_than_its_samples_came_with(
    task, before, after
):
    town = Town(EDGES, task)
    restart(town, town.durable["alice"], privacy=before)
    town.pass_time(5.0)
    town.learn("alice", 3)
    restart(town, town.durable["alice"], privacy=before)
    assert count_of(town) == 3, "the same promise"
    restart(town, town.durable["alice"], privacy=after)
    assert count_of(town) == 0


@pytest.mark.parametrize(("delta", "is_enough"), [(1e-6, True), (1e-5, True), (0.01, False)])
def test_an_epsilon_that_is_small_since_delta_is_large_does_not_count(delta, is_enough):
    task = dataclasses.replace(TASK, privacy=Privacy(epsilon=1.0, delta=delta))
    own = OwnPrivacy(require_epsilon=1.0)
    if is_enough:
        own.check(task)
    else:
        with pytest.raises(ConfigError, match="at most 1 at delta 1e-05"):
            own.check(task)


def test_beside_a_stream_learn_one_waits_until_it_is_known_where_that_goes_on(tmp_path):
    """Else the new samples make up for the forgotten ones, and the stream is learned again."""
    (tmp_path / "task.toml").write_text(TOML)
    home = Home.create(tmp_path / "alice", "alice", tmp_path / "task.toml", unused_address())
    send_to(home, Card(key_of("bob"), "127.0.0.1", 1, "bob"), 1.0)

    async def stream():
        await asyncio.sleep(60.0)
        yield None

    async def run() -> None:
        with closing(ow.Peer(home.folder)) as peer:
            running = asyncio.create_task(peer.run(stream()))
            async with asyncio.timeout(240):
                while peer._runtime is None or not peer._runtime.awaited:
                    await asyncio.sleep(0.01)
                with pytest.raises(OnewayError, match="waits for bob to tell"):
                    peer.learn_one({"rain": 1.0}, "yes")
                while peer._runtime.awaited:
                    await asyncio.sleep(0.05)
            peer.learn_one({"rain": 1.0}, "yes")
            peer.stop()
            await running

    asyncio.run(run())


def test_lives_of_a_few_samples_fill_a_batch_together(tmp_path):
    """A program that opens its peer, learns a little and ends, over and over."""
    (tmp_path / "task.toml").write_text(TOML)
    homes = [
        Home.create(tmp_path / name, name, tmp_path / "task.toml", unused_address())
        for name in ("alice", "bob")
    ]
    alice, bob = homes
    host, _, port = bob.config().listen.rpartition(":")
    send_to(alice, Card(bob.keys().public, host, int(port), "bob"), 1.0)
    admit_one(bob, alice.keys().public)
    with ow.Peer(bob.folder):
        for life in range(5):
            with ow.Peer(alice.folder) as peer:
                peer.learn_one({"rain": 1.0}, "yes")
                assert int(peer.node.snapshot.memory["batch.count"][0, 0]) == (life + 1) % 4


class Fixed:
    """Noise that is the same number everywhere, and counts how often it was drawn."""

    def __init__(self, value: float) -> None:
        self.value, self.draws = value, 0

    def standard_normal(self, size):
        self.draws += 1
        return np.full(size, self.value)


def test_a_batch_whose_noised_step_does_not_fit_is_spent_and_not_noised_again():
    normals = Fixed(1e12)
    # A rate that is chosen would bound the step, however large the noise.
    learner = Learner(dataclasses.replace(PRIVATE, learning_rate=0.1), normals=normals)
    state = mint(PeerState.new(PRIVATE.dim, 1, BOOT, learner.layout), learner.start)
    known = Snapshot(state, memory=learner.resumed({}))
    for seen in range(8):
        lesson = learner.learn(state, known, learner.start, SAMPLE, "yes", Rules(secret=b""))
        assert not lesson.released
        assert lesson.state is state
        known = known.with_sample(lesson, time=0.0)
        memory = known.memory
        assert memory["batch.count"] == (seen + 1) % 4
    assert normals.draws == 2
    assert not memory["batch.sum"].any()


@pytest.mark.parametrize("value", [1e200, 1e308, math.inf, math.nan])
def test_a_gradient_too_long_to_be_measured_counts_and_adds_nothing(value):
    batches = Batches(samples=4, clip=1.0, noise=1.0)
    gradients = np.array([[value, 0.5], [3.0, 4.0]])
    with np.errstate(over="ignore", invalid="ignore"):
        _, _, after = batches.add(gradients, None, {}, np.random.default_rng(0))
    np.testing.assert_allclose(after["sum"], [[0.0, 0.0], [0.6, 0.8]])
    np.testing.assert_array_equal(after["count"], [[1.0], [1.0]])
