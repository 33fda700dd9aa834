"""Peers in lockstep, round by round as a simulation is, and both compared."""

from __future__ import annotations

from itertools import count

import numpy as np
from plain import PLAIN

import oneway as ow
from oneway.methods import Method
from oneway.models import MODELS
from oneway.peer.home.config import PeerConfig, Receiver, Sender
from oneway.peer.home.limits import Limits
from oneway.peer.identity.card import Card
from oneway.peer.learner import Learner
from oneway.peer.measuring import weights_in
from oneway.peer.node import Node
from oneway.peer.store.snapshot import Snapshot
from oneway.protocol.audit import discrepancy, expected_holding
from oneway.protocol.fixed_point import ONE
from oneway.protocol.state import PeerState
from oneway.records import Batch
from oneway.tables import Number
from oneway.task.task import Task
from oneway.testing.memory_network import MemoryNetwork

NUM_NODES, NUM_FEATURES, NUM_ROUNDS = 5, 4, 40
NAMES = [f"x{index}" for index in range(NUM_FEATURES)]


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
            limits=Limits(clip="off", pushes_per_second=1e6),
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
        """Every peer learns from its sample and pushes; then all is received.

        The mean loss of the shared models, l2 term included, as the simulator has it.
        """
        self.time += 1e-3
        stack = np.array([node.estimate for node in self.nodes])
        losses = self.task.build_model().losses(stack, Batch(features, labels))
        for node, row, label in zip(self.nodes, features.tolist(), labels.tolist(), strict=True):
            node.learn(dict(zip(NAMES, row, strict=True)), label)
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
        features=tuple(Number(name) for name in NAMES),
        **{"learning_rate": 0.1} | PLAIN | learning,
    )


def check_same(
    task: Task,
    seed: int,
    simulated: Method | None = None,
    noise_seed: int | None = None,
    graph: ow.TrustGraph | None = None,
    off: float = 1e-9,
) -> None:
    """Real nodes over the memory transport, and the reference engine, end with the same numbers.

    Both draw the same noise, unless the peers get a seed of their own for it. Books are in whole
    units: where masses are small, estimates are off by more.
    """
    graph = graph or ow.TrustGraph.random(num_nodes=NUM_NODES, max_receivers=4, seed=seed)
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
        personal=bool(method.payload),
    )
    estimates = np.array([node.estimate for node in lockstep.nodes])
    np.testing.assert_allclose(losses, run.losses, rtol=0, atol=off)
    np.testing.assert_allclose(estimates, run.estimates, rtol=0, atol=off)
    if method.has_mass:
        # A simulated node keeps its mass within bounds after the exchange, a peer before it pushes.
        kept = [node._kept_mass(node.snapshot.state) for node in lockstep.nodes]
        held = np.array([state.holding for state in kept]) / ONE
        np.testing.assert_allclose(held[:, -1], run.masses, rtol=0, atol=1e-9)
        np.testing.assert_allclose(held[:, : NUM_FEATURES + 1], run.numerators, rtol=0, atol=1e-9)
    if method.payload:
        check_personal(lockstep, run, off)
    for node in lockstep.nodes:
        state = node.snapshot.state
        np.testing.assert_array_equal(state.holding, expected_holding(state))
    assert not discrepancy(node.snapshot.state for node in lockstep.nodes).any()


def check_personal(lockstep: Lockstep, run: ow.Run, off: float = 1e-9) -> None:
    """Yours, shared and alone of every round, and experts and weights in the end, are the same."""
    curves = [node.snapshot.history.curve() for node in lockstep.nodes]
    for column, name in enumerate(("loss_sums", "shared_sums", "alone_sums")):
        found = np.sum([getattr(curve, name) for curve in curves], axis=0)
        np.testing.assert_allclose(found, run.personal.sums[:, column], rtol=0, atol=off)
        sums = [sum(getattr(curve, name)) for curve in curves]
        np.testing.assert_allclose(sums, run.personal.node_sums[:, column], rtol=0, atol=off)
    weights = [weights_in(node.snapshot.measures) for node in lockstep.nodes]
    np.testing.assert_allclose(weights, run.personal.weights, rtol=0, atol=off)
