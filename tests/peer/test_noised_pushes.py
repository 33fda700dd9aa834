"""What leaves a peer whose task has privacy: full batches with noise, and nothing else.

Two worlds in which a peer has different samples must say the same bytes as long as those samples
are in a batch that is not full: also while it passes on what others sent, idles, or leaves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from builders import replace
from town import BOOT, Town, config, key_of

from oneway.methods import Batches
from oneway.methods.base import PAST_NOISE, UNFINISHED
from oneway.peer.learner import Learner
from oneway.peer.node import Frame
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.store.store import Owner, PeerStore
from oneway.protocol.fixed_point import ONE
from oneway.protocol.messages import Data
from oneway.protocol.state import PeerState
from oneway.protocol.transitions import restart
from oneway.records import Vector
from oneway.tables import Number
from oneway.task.privacy import Privacy
from oneway.task.task import Task
from oneway.transport.wire import decode

SAMPLES = 16
PRIVATE = Task(
    "logistic",
    "y",
    (Number("u"), Number("v")),
    ("no", "yes"),
    method="ops",
    intercept=False,
)
TASKS = {
    name: dataclasses.replace(PRIVATE, **changes)
    for name, changes in {
        "ops": {"method": "ops"},
        "pull": {"method": "pull"},
        "relay": {"method": "relay"},
        "relay with momentum": {"method": "relay", "transforms": ("momentum",)},
        "tracking": {"method": "tracking"},
    }.items()
}
"""Whatever the method: what it makes of samples, it makes of noised sums."""
EDGES = {"carol": ("alice",), "alice": ("bob",), "bob": ()}


class Overheard(Town):
    """A town in which everything that is said is written down; its noise can be repeated."""

    def __init__(
        self,
        task: Task = PRIVATE,
        noise: int | None = 5,
        edges: Mapping[str, tuple[str, ...]] = EDGES,
    ) -> None:
        self.said: list[tuple[str, bytes, str, bytes]] = []
        self.noise = noise
        super().__init__(edges, task)
        self.exchange()

    def start(self, name: str, *arguments: object) -> None:
        super().start(name, *arguments)  # type: ignore[arg-type]
        if self.noise is not None:
            normals = np.random.default_rng([self.noise, *name.encode()])
            self.nodes[name].learner = Learner(self.task, normals=normals)

    def send(self, name: str, frames: Iterable[Frame]) -> None:
        for frame in frames:
            self.said.append((name, frame.peer, frame.via, frame.content))
            super().send(name, [frame])

    def learns(self, name: str, count: int, seed: int) -> None:
        """Learn from samples of its own, and let everybody speak after each."""
        rng = np.random.default_rng(seed)
        for _ in range(count):
            self.time += 0.01
            u, v = rng.normal(0.0, 5.0, 2).tolist()
            self.nodes[name].learn({"u": u, "v": v}, str(rng.choice(self.task.classes)))
            self.exchange()

    def idles(self) -> None:
        for seconds in (0.06, 0.06, 1.0, 40.0, 40.0):
            self.pass_time(seconds)

    def leaves(self, name: str) -> None:
        self.nodes[name].follow(config(name, EDGES[name], leaving=True))
        self.exchange()
        self.idles()
        assert self.nodes[name].is_drained

    def totals_of(self, name: str) -> list[Vector]:
        """What it handed over in all, whenever it said so: the numerator, and the mass."""
        words = [decode(content)[1] for who, _, _, content in self.said if who == name]
        return [word.total / ONE for word in words if isinstance(word, Data) and word.total.any()]


def story(seed: int, task: Task = PRIVATE) -> Overheard:
    """Alice has samples by the seed; carol's full batch arrives between them; alice leaves."""
    town = Overheard(task)
    town.learns("alice", 7, seed)
    town.learns("carol", SAMPLES, seed=0)
    town.learns("alice", SAMPLES - 8, seed + 1)
    town.idles()
    town.leaves("alice")
    return town


def test_the_defaults_are_noise_and_sixteen_samples():
    assert (PRIVATE.privacy, PRIVATE.samples_per_push) == (Privacy(), SAMPLES)


def test_what_is_said_depends_on_samples_only_through_the_sums_of_batches():
    """The experts of the two peers differ, since they saw the same two samples in another order."""
    rows = [({"u": 1.0, "v": -2.0}, "no"), ({"u": 0.3, "v": 2.5}, "yes")]
    worlds = []
    for order in (rows, rows[::-1]):
        town = Overheard(dataclasses.replace(PRIVATE, samples_per_push=2))
        for _ in range(4):
            for x, y in order:
                town.time += 0.01
                town.nodes["alice"].learn(x, y)
            town.exchange()
        town.idles()
        worlds.append(town)
    one, other = worlds
    assert one.said == other.said
    assert len(one.totals_of("alice")) >= 4
    memories = [town.nodes["alice"].snapshot.measures["personal.params"] for town in worlds]
    assert not np.allclose(*memories)


@pytest.mark.parametrize("task", TASKS)
def test_nothing_that_is_said_depends_on_a_batch_that_is_not_full(task):
    """Not what is passed on of others, not what is said after a while, not what is left behind."""
    one, other = story(1, TASKS[task]), story(100, TASKS[task])
    assert one.said == other.said
    assert len(one.totals_of("alice")) >= 2, "alice passed on what carol sent"
    assert np.any(one.totals_of("alice")[-1][:-1])
    assert not one.state("alice").mass, "and left no mass behind"
    one.check_exact()


@pytest.mark.parametrize("samples", [1, 5, 8])
@pytest.mark.parametrize("task", TASKS)
def test_and_it_would_if_the_batch_were_full(samples, task):
    task = dataclasses.replace(TASKS[task], samples_per_push=samples)
    assert story(1, task).said != story(100, task).said


@pytest.mark.parametrize("task", TASKS)
def test_what_follows_a_full_batch_does_not_depend_on_the_samples_after_it(task):
    said = []
    for seed in (1, 100):
        town = Overheard(TASKS[task])
        town.learns("alice", SAMPLES, seed=0)
        town.learns("alice", SAMPLES - 1, seed)
        town.idles()
        town.leaves("alice")
        said.append(town.said)
        assert len(town.totals_of("alice")) >= 2
    assert said[0] == said[1]


@pytest.mark.parametrize("task", TASKS)
def test_all_that_is_said_is_made_of_noised_sums(task, monkeypatch):
    """Where the mechanism releases the same, the same is said to the last bit, forever after.

    Not by way of a parcel, a deposit, a tracker, the memory of a transform, or noise drawn again.
    """
    said = []
    for seed in (1, 100):
        release = np.random.default_rng(7).standard_normal
        monkeypatch.setattr(
            Batches,
            "_noised",
            lambda _, sums, _full, past, _rng, release=release: (release(sums.shape), past),
        )
        town = Overheard(TASKS[task], noise=None)
        town.learns("alice", SAMPLES + 3, seed)
        town.learns("carol", SAMPLES, seed=0)
        town.idles()
        town.learns("alice", 3 * SAMPLES, seed + 1)
        town.idles()
        town.leaves("alice")
        said.append([it for it in town.said if it[0] == "alice"])
        assert len(town.totals_of("alice")) >= 5
    assert said[0] == said[1]


@pytest.mark.parametrize("task", TASKS)
def test_two_receivers_together_are_told_no_more_than_one(task):
    """The noise is drawn for the batch, not for a receiver or a push: alike shares are equal."""
    town = Overheard(
        TASKS[task], noise=None, edges={"alice": ("bob", "carol"), "bob": (), "carol": ()}
    )
    town.learns("alice", 3 * SAMPLES, seed=1)
    town.idles()
    told = {
        name: [
            decode(content)[1].total.tolist()
            for _, peer, _, content in town.said
            if peer == key_of(name) and isinstance(decode(content)[1], Data)
        ]
        for name in ("bob", "carol")
    }
    assert len(told["bob"]) >= 3
    assert told["bob"] == told["carol"]


def test_a_peer_that_leaves_forgets_the_batch_that_will_never_be_full():
    town = Overheard()
    town.learns("alice", SAMPLES + 3, seed=0)
    assert {*UNFINISHED} <= town.nodes["alice"].snapshot.memory.keys()
    town.leaves("alice")
    assert not {*UNFINISHED} & town.nodes["alice"].snapshot.memory.keys()
    assert not {*UNFINISHED} & town.durable["alice"].memory.keys()


# The noise.


def first_push(noise: int | None) -> Vector:
    town = Overheard(noise=noise)
    town.learns("alice", SAMPLES, seed=0)
    return town.totals_of("alice")[0]


def test_two_starts_say_different_things_about_the_same_samples():
    """But with the same noise the same: that, and nothing else, is what differs."""
    *one, mass = first_push(noise=None)
    *other, same_mass = first_push(noise=None)
    assert mass == same_mass == 0.5
    assert np.all(np.abs(np.subtract(one, other)) > 1e-9)
    np.testing.assert_array_equal(first_push(noise=7), first_push(noise=7))


FIXED_RATE = dataclasses.replace(PRIVATE, learning_rate=0.1)
WIDE = dataclasses.replace(FIXED_RATE, features=tuple(Number(f"x{n}") for n in range(100)))


def release_of(
    count: int, memory: dict[str, np.ndarray], task: Task = FIXED_RATE, **more: object
) -> tuple[Vector, dict]:
    """What so many samples move a lone peer by, and its memory afterwards."""
    learner = Learner(task, **more)  # type: ignore[arg-type]
    town = Town({"alice": ()}, task)
    alice = town.nodes["alice"]
    alice.learner, alice.snapshot = learner, replace(alice.snapshot, memory=memory)
    for number in range(count):
        alice.learn({it.name: 0.1 * number for it in task.features}, "yes")
    state = alice.snapshot.state
    return state.gradient_steps[:-1] / ONE, dict(alice.snapshot.memory)


class Zeros:
    """No noise at all."""

    def standard_normal(self, size: tuple[int, int]) -> np.ndarray:
        return np.zeros(size)


def test_the_noise_of_a_peer_is_as_large_as_the_task_promises():
    """The standard deviation over 1,000 numbers, to within seven of its own standard errors."""
    batches = WIDE.build_method().batches
    assert batches is not None
    expected = WIDE.learning_rate * batches.clip * batches.noise
    exact, _ = release_of(SAMPLES, {}, WIDE, normals=Zeros())
    noise = np.array([release_of(SAMPLES, {}, WIDE)[0] - exact for _ in range(10)])
    error = expected / np.sqrt(noise.size)
    assert np.sqrt(np.mean(noise**2)) == pytest.approx(expected, abs=7 * error / np.sqrt(2))
    assert np.mean(noise) == pytest.approx(0.0, abs=7 * error)


# Crashes, stores and backups.


def test_a_kill_between_a_full_batch_and_its_commit_leaves_no_trace_outside():
    """The batch is repeated with new noise, and nobody has heard of the old."""
    town = Overheard(noise=None)
    town.learns("alice", SAMPLES - 1, seed=0)
    before = len(town.said)
    alice = town.nodes["alice"]
    alice.learn({"u": 1.0, "v": 2.0}, "yes")
    lost = alice.snapshot.state.gradient_steps
    assert lost.any(), "the batch is full, and in memory the step is taken"
    assert not town.network.in_flight
    saved = town.power_off("alice")
    assert not saved.state.gradient_steps.any()
    assert saved.memory["batch.count"].item() == SAMPLES - 1

    town.power_on("alice", saved, config("alice", ["bob"]))
    town.idles()
    assert not town.totals_of("alice"), "what the kill took away was never said"
    town.nodes["alice"].learn({"u": 1.0, "v": 2.0}, "yes")
    again = town.state("alice").gradient_steps
    assert np.all(lost[:-1] != again[:-1])
    town.idles()
    assert len(town.said) > before
    first = town.totals_of("alice")[0]
    np.testing.assert_allclose(first[:-1], -0.5 * again[:-1] / ONE, rtol=0, atol=1e-11)


def in_bytes(numbers: np.ndarray) -> Iterable[bytes]:
    for number in numbers.ravel().tolist():
        yield np.array(number).astype("<f8").tobytes()
        yield np.array(number).astype(">f8").tobytes()


def test_the_noise_of_the_past_is_in_no_file_of_the_store(tmp_path: Path):
    town = Overheard(noise=None)
    alice = town.nodes["alice"]
    owner = Owner(key_of("alice"), PRIVATE.fingerprint, alice.snapshot.state.dim)
    path = tmp_path / "store.db"
    PeerStore.create(path, owner, alice.snapshot).close()
    drawn: list[np.ndarray] = []
    with closing(PeerStore.open(path, owner)) as store:
        for seed in range(3):
            town.learns("alice", SAMPLES, seed)
            store.commit(alice.snapshot)
            drawn.append(alice.snapshot.memory[PAST_NOISE].ravel()[: PRIVATE.dim])
            files = b"".join(each.read_bytes() for each in sorted(tmp_path.iterdir()))
            assert all(np.all(numbers != 0.0) for numbers in drawn)
            found = [form for form in in_bytes(np.array(drawn)) if form in files]
            assert not found
            # The search does find what is there.
            assert (
                alice.snapshot.state.holding[0].item().to_bytes(8, "little", signed=True) in files
            )
    with closing(PeerStore.open(path, owner)) as store:
        assert PAST_NOISE not in store.load().memory


def test_every_start_begins_a_new_sequence_of_noise(tmp_path: Path):
    """What a stored peer says next takes back nothing of the noise that it had before."""
    _, memory = release_of(SAMPLES, {}, normals=np.random.default_rng(1))
    assert np.any(memory[PAST_NOISE])
    state = PeerState.new(PRIVATE.dim, ledger=1, boot=BOOT)
    owner = Owner(key_of("alice"), PRIVATE.fingerprint, state.dim)
    path = tmp_path / "store.db"
    PeerStore.create(path, owner, Snapshot(restart(state, BOOT + 1), memory=memory)).close()
    with closing(PeerStore.open(path, owner)) as store:
        kept = dict(store.load().memory)
    assert {*UNFINISHED} <= kept.keys()
    anew, _ = release_of(SAMPLES, kept, normals=np.random.default_rng(2))
    fresh, _ = release_of(SAMPLES, {}, normals=np.random.default_rng(2))
    np.testing.assert_array_equal(anew, fresh)
    continued, _ = release_of(SAMPLES, memory, normals=np.random.default_rng(2))
    assert np.all(continued != fresh), "which it would, with the memory of its noise"
