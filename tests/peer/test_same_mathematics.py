"""Peers in lockstep compute what the simulator computes: one core under both drivers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np
import pytest
from plain import PLAIN

import oneway as ow
from oneway.errors import TaskError
from oneway.methods import METHODS, STEP_RULES, AutoRate, Gradients, Method, State
from oneway.methods.base import PAST_NOISE
from oneway.models import MODELS
from oneway.peer.home.config import PeerConfig, Receiver, Sender
from oneway.peer.home.limits import Limits
from oneway.peer.identity.card import Card
from oneway.peer.learner import Learner
from oneway.peer.node import Node
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.store.store import Owner, PeerStore
from oneway.peer.telemetry import Activity, status_of
from oneway.protocol.audit import discrepancy, expected_holding
from oneway.protocol.fixed_point import ONE
from oneway.protocol.state import PeerState
from oneway.records import Segment
from oneway.task.privacy import Privacy
from oneway.task.task import Feature, Task
from oneway.testing.memory_network import MemoryNetwork
from oneway.testing.records import replace

NUM_NODES, NUM_FEATURES, NUM_ROUNDS = 12, 4, 100
NAMES = [f"x{index}" for index in range(NUM_FEATURES)]


@dataclass(frozen=True)
class Parcels(Method):
    """Gradients travel in a parcel; half of it is laid down at every stop, the rest goes on."""

    name = "parcels"
    payload = (
        Segment("numerator", "split"),
        Segment("mass", "split", is_vector=False),
        Segment("parcel", "forwarded"),
        Segment("count", "forwarded", is_vector=False),
    )

    def local_step(self, state: State, gradients: Gradients, rng: np.random.Generator) -> State:
        segments = dict(state.segments)
        parcel = segments["parcel"] + gradients.values
        rate = self.rate(gradients.index)
        segments["numerator"] = segments["numerator"] - rate * 0.5 * parcel
        segments["parcel"] = 0.5 * parcel
        segments["count"] = 0.5 * (segments["count"] + 1.0)
        return replace(state, segments=segments)


@dataclass(frozen=True)
class Averages(Method):
    """Receivers average the models that arrive with their own."""

    name = "averages"
    payload = (Segment("model", "copied"),)


class Uphill(ow.models.LogisticRegression):
    """Starts somewhere else than at zeros."""

    name = "uphill"

    def init(self, num_features: int, rng: np.random.Generator) -> np.ndarray:
        return np.linspace(-2.0, 3.0, self.dim(num_features))


@pytest.fixture(autouse=True)
def extensions(monkeypatch) -> None:
    """A method with a forwarded and one with a copied segment, and a model with a start."""
    monkeypatch.setitem(METHODS._entries, "parcels", Parcels)
    monkeypatch.setitem(METHODS._entries, "averages", Averages)
    monkeypatch.setitem(MODELS._entries, "uphill", Uphill)


class Dealt:
    """The normal numbers that a simulation draws for one of its nodes, release by release."""

    def __init__(self, seed: int, node: int) -> None:
        self._rng, self._node = np.random.default_rng(seed), node

    def standard_normal(self, size: tuple[int, int]) -> np.ndarray:
        assert size[0] == 1, "a peer is one row"
        everybody = self._rng.standard_normal((NUM_NODES, size[1]))
        return everybody[self._node : self._node + 1]


class Lockstep:
    """Peers over the memory transport that learn, push and receive in rounds."""

    def __init__(self, graph: ow.TrustGraph, task: Task, seed: int = 0) -> None:
        self.time = 0.0
        self.task = task
        self.seed = seed
        self.network = MemoryNetwork()
        mixing = task.build_method().shares(graph)
        self.shares = np.eye(graph.num_nodes) if mixing is None else mixing.toarray()
        self.keys = [bytes([index]) * 32 for index in range(graph.num_nodes)]
        self.ends = [self.network.endpoint(key) for key in self.keys]
        self.nodes = [self.node(index) for index in range(graph.num_nodes)]
        for index, end in enumerate(self.ends):
            end.admit(None)
            for receiver in self.others(self.shares[index], index):
                end.dial(self.keys[receiver], self.ends[receiver].address)

    def others(self, shares: np.ndarray, own: int) -> list[int]:
        return [int(other) for other in np.flatnonzero(shares) if other != own]

    def node(self, index: int, snapshot: Snapshot | None = None) -> Node:
        shares = self.shares[index]
        cards = [Card(key, "127.0.0.1", 7700, f"n{j}") for j, key in enumerate(self.keys)]
        receivers = self.others(shares, index)
        config = PeerConfig(
            f"n{index}",
            "127.0.0.1:7700",
            keep=float(shares[index]) if receivers else 0.5,
            receivers=tuple(Receiver(cards[j], float(shares[j])) for j in receivers),
            senders=tuple(Sender(self.keys[j]) for j in self.others(self.shares[:, index], index)),
            limits=Limits(clip=0.0, pushes_per_second=1e6),
        )
        epochs = count(1)
        width = Learner(self.task).layout.width
        node = Node(
            self.task,
            secret=bytes([index + 1]) * 32,
            config=config,
            snapshot=snapshot or Snapshot(PeerState.new(width, ledger=index + 1, boot=1)),
            key=self.keys[index],
            clock=lambda: self.time,
            wall_clock=lambda: 1.7e9 + self.time,
            new_epoch=lambda: next(epochs),
        )
        node.learner = Learner(self.task, normals=Dealt(self.seed, index))
        return node

    def exchange(self) -> None:
        """Commit, send, deliver and receive, until there is nothing to say."""
        while True:
            for node, end in zip(self.nodes, self.ends, strict=True):
                batch = node.begin()
                for frame in [] if batch is None else node.committed(batch):
                    (end.push if frame.via == "push" else end.reply)(frame.peer, frame.content)
            if not self.network.in_flight:
                return
            self.network.deliver_all()
            for node, end in zip(self.nodes, self.ends, strict=True):
                while (arrival := end.receive_now()) is not None:
                    node.take(arrival)

    def round(self, features: np.ndarray, labels: np.ndarray) -> float:
        """Every peer learns from its sample and pushes; then all is received. The mean loss."""
        self.time += 1e-3
        losses = [
            node.learn(dict(zip(NAMES, row, strict=True)), label)
            for node, row, label in zip(self.nodes, features.tolist(), labels.tolist(), strict=True)
        ]
        self.exchange()
        return float(np.mean(losses))


def samples(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(NUM_ROUNDS, NUM_NODES, NUM_FEATURES))
    truth = rng.normal(size=NUM_FEATURES)
    noise = rng.normal(size=(NUM_ROUNDS, NUM_NODES))
    return features, np.where(features @ truth + noise > 0, 1.0, -1.0)


def task_with(**learning: object) -> Task:
    model = learning.pop("model", "logistic")
    return Task(
        model=model,
        label="y",
        classes=("-1", "1") if MODELS[model].labels != "number" else (),
        features=tuple(Feature(name) for name in NAMES),
        **{"learning_rate": 0.1} | PLAIN | learning,
    )


def check_same(
    task: Task, seed: int, simulated: Method | None = None, noise_seed: int | None = None
) -> None:
    """Real nodes over the memory transport, and the reference engine, end with the same numbers.

    Both draw the same noise, unless the peers get a seed of their own for it.
    """
    graph = ow.TrustGraph.random(num_nodes=NUM_NODES, max_receivers=4, seed=seed)
    features, labels = samples(seed)
    lockstep = Lockstep(graph, task, seed if noise_seed is None else noise_seed)
    lockstep.exchange()  # edges open before the first round
    losses = [lockstep.round(*row) for row in zip(features, labels, strict=True)]

    method = simulated or task.build_method()
    run = ow.simulate(
        method,
        task.build_model(),
        ow.Stream.from_arrays(features, labels),
        graph,
        seed=seed,
        engine="reference",
    )
    estimates = np.array([node.estimate for node in lockstep.nodes])
    np.testing.assert_allclose(losses, run.losses, rtol=0, atol=1e-9)
    np.testing.assert_allclose(estimates, run.estimates, rtol=0, atol=1e-9)
    if method.has_mass:
        held = np.array([node.snapshot.state.holding for node in lockstep.nodes]) / ONE
        np.testing.assert_allclose(held[:, -1], run.masses, rtol=0, atol=1e-9)
        np.testing.assert_allclose(held[:, : NUM_FEATURES + 1], run.numerators, rtol=0, atol=1e-9)
    for node in lockstep.nodes:
        state = node.snapshot.state
        np.testing.assert_array_equal(state.holding, expected_holding(state))
    assert not discrepancy(node.snapshot.state for node in lockstep.nodes).any()


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", [*METHODS, "parcels", "averages"])
def test_peers_in_lockstep_reproduce_the_simulator_whatever_the_method(name, seed):
    task = task_with(method=name, step="paper")
    if METHODS[name].exchange == "average":
        with pytest.raises(TaskError, match=f"method {name}"):
            Learner(task)
        return
    check_same(task, seed)


@pytest.mark.parametrize("step", STEP_RULES)
def test_peers_in_lockstep_reproduce_the_simulator_whatever_the_step_rule(step):
    check_same(task_with(step=step), seed=3)


@pytest.mark.parametrize("model", ["logistic", "hinge", "ridge", "uphill"])
def test_peers_in_lockstep_reproduce_the_simulator_whatever_the_model(model):
    check_same(task_with(model=model, step="curvature"), seed=4)


def test_peers_in_lockstep_keep_the_memory_of_transforms():
    learning = {"transforms": ("clip", "momentum"), "options": {"momentum": {"beta": 0.7}}}
    check_same(task_with(schedule="inverse-sqrt", **learning), seed=5)


@pytest.fixture
def passing_on(monkeypatch) -> None:
    """Peers hand over in every round, as nodes of the simulator do, not only when they have news.

    A peer waits for a full batch or for something that moves it, for bandwidth's sake.
    """
    monkeypatch.setattr("oneway.peer.push_pace.MOVED", -1.0)
    monkeypatch.setattr("oneway.peer.push_pace.IDLE_SECONDS", 0.0)


PRIVATE = {
    "the defaults": {"privacy": Privacy(), "samples_per_push": 16},
    "batches only": {"samples_per_push": 7},
    "noise only": {"privacy": Privacy()},
    "independent noise": {"privacy": Privacy(band=1, epsilon=20.0), "samples_per_push": 3},
    "a short band": {"privacy": Privacy(band=3, clip=0.7), "samples_per_push": 5},
}


@pytest.mark.usefixtures("passing_on")
@pytest.mark.parametrize("private", PRIVATE.values(), ids=PRIVATE)
@pytest.mark.parametrize(
    "name",
    ["ops", "relay", "tracking", "pull", "dol-symm", "dol-asymm", "local", "parcels", "averages"],
)
def test_peers_in_lockstep_reproduce_the_simulator_with_batches_and_noise(name, private):
    check_same(task_with(method=name, **private), seed=6)


@pytest.mark.usefixtures("passing_on")
@pytest.mark.parametrize("step", STEP_RULES)
def test_peers_in_lockstep_reproduce_noised_batches_whatever_the_step_rule(step):
    private = {"privacy": Privacy(epsilon=4.0), "samples_per_push": 4}
    check_same(task_with(step=step, schedule="inverse-sqrt", **private), seed=7)


@pytest.mark.usefixtures("passing_on")
def test_peers_in_lockstep_keep_the_memory_of_transforms_and_of_batches():
    learning = {"transforms": ("clip", "momentum"), "options": {"momentum": {"beta": 0.7}}}
    check_same(task_with(samples_per_push=6, privacy=Privacy(), **learning), seed=8)


@pytest.mark.usefixtures("passing_on")
@pytest.mark.parametrize("private", [{}, PRIVATE["the defaults"]], ids=["plain", "the defaults"])
@pytest.mark.parametrize("name", ["ops", "relay", "tracking", "pull", "dol-symm", "local"])
def test_peers_in_lockstep_choose_the_rates_that_the_simulator_chooses(name, private):
    check_same(task_with(method=name, learning_rate="auto", **private), seed=9)


@pytest.mark.parametrize("model", ["hinge", "ridge"])
def test_peers_in_lockstep_choose_their_rates_whatever_the_model(model):
    check_same(task_with(model=model, learning_rate="auto", step="curvature"), seed=9)


@pytest.mark.usefixtures("passing_on")
def test_peers_in_lockstep_forget_and_restart_when_the_simulator_does():
    learning = {"transforms": ("forget", "restart"), "options": {"restart": {"sure": 0.5}}}
    check_same(task_with(method="relay", learning_rate="auto", **learning), seed=9)


def test_a_peer_says_where_its_learning_rate_restarted():
    """Every sample asks for the same, so that updates keep pointing one way."""
    task = task_with(
        learning_rate="auto", samples_per_push=2, transforms=("restart",), intercept=False
    )
    lockstep = Lockstep(ow.TrustGraph.complete(2), task)
    lockstep.exchange()
    for _ in range(40):
        lockstep.round(np.full((2, NUM_FEATURES), 0.01), np.ones(2))
    told = status_of(lockstep.nodes[0], lockstep.ends[0], Activity()).restarts
    assert told
    assert all(mark % 2 == 0 for mark in told)
    assert told[-1] <= 40


@pytest.mark.usefixtures("passing_on")
def test_the_comparison_fails_for_another_rate():
    chosen = task_with(learning_rate="auto")
    another = ow.OnlinePushSum(AutoRate(2.0, 0.39), "curvature")
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_same(chosen, seed=9, simulated=another)


@pytest.mark.usefixtures("passing_on")
def test_the_comparison_fails_for_another_noise():
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_same(task_with(privacy=Privacy()), seed=6, noise_seed=7)


@pytest.mark.usefixtures("passing_on")
@pytest.mark.parametrize("change", [{"samples_per_push": 15}, {"privacy": Privacy(epsilon=8.1)}])
def test_the_comparison_fails_for_other_batches(change):
    private = PRIVATE["the defaults"]
    another = task_with(**private | change).build_method()
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_same(task_with(**private), seed=6, simulated=another)


@pytest.mark.parametrize(
    ("name", "another"),
    [
        ("ops", ow.NaiveGossip(0.1)),
        ("parcels", ow.OnlinePushSum(0.1)),
        ("averages", ow.NaiveGossip(0.1)),
        ("averages", ow.Isolated(0.1)),
    ],
)
def test_the_comparison_fails_for_another_method(name, another):
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_same(task_with(method=name, step="paper"), seed=1, simulated=another)


@pytest.mark.parametrize("private", [PLAIN, {"privacy": Privacy(), "samples_per_push": 3}])
@pytest.mark.parametrize("name", ["ops", "relay", "tracking", "parcels", "averages", "local"])
def test_what_a_peer_holds_survives_a_restart_whatever_the_method(name, private, tmp_path):
    """Segments that are in no books, and what a method keeps to itself, are read back.

    But not the noise of the past: every start begins a new sequence.
    """
    rate = 0.1 if name in ("ops", "parcels") else "auto"
    task = task_with(
        **private | {"method": name, "transforms": ("momentum",), "learning_rate": rate}
    )
    graph = ow.TrustGraph.random(num_nodes=4, max_receivers=2, seed=1)
    features, labels = samples(1)
    lockstep = Lockstep(graph, task)
    lockstep.exchange()
    for row in zip(features[:20, :4], labels[:20, :4], strict=True):
        lockstep.round(*row)
    for index, node in enumerate(lockstep.nodes):
        owner = Owner(lockstep.keys[index], task.fingerprint, node.snapshot.state.dim)
        path = tmp_path / f"{index}.db"
        PeerStore.create(path, owner, node.snapshot).close()
        store = PeerStore.open(path, owner)
        saved = store.load()
        store.close()
        assert saved.state.layout.rows == node.snapshot.state.layout.rows
        np.testing.assert_array_equal(saved.state.holding, node.snapshot.state.holding)
        assert saved.memory.keys() == node.snapshot.memory.keys() - {PAST_NOISE}
        for key, array in saved.memory.items():
            np.testing.assert_array_equal(array, node.snapshot.memory[key])
        again = lockstep.node(index, saved)
        np.testing.assert_array_equal(again.estimate, node.estimate)
