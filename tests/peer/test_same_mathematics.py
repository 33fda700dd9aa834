"""Peers in lockstep compute what the simulator computes: one mathematics under both."""

from __future__ import annotations

import math
from itertools import count

import numpy as np
import pytest

import oneway as ow
from oneway.peer.home.config import PeerConfig, Receiver, Sender
from oneway.peer.home.limits import Limits
from oneway.peer.identity.card import Card
from oneway.peer.node import Node
from oneway.peer.store.snapshot import Snapshot
from oneway.protocol.audit import discrepancy
from oneway.protocol.fixed_point import ONE
from oneway.protocol.state import PeerState
from oneway.task.task import Feature, Task
from oneway.testing.memory import MemoryNetwork

NUM_NODES, NUM_FEATURES, NUM_ROUNDS = 12, 4, 150
NAMES = [f"x{index}" for index in range(NUM_FEATURES)]


class Lockstep:
    """Peers over the memory transport that learn, push and receive in rounds."""

    def __init__(self, graph: ow.TrustGraph, task: Task) -> None:
        self.time = 0.0
        self.task = task
        self.network = MemoryNetwork()
        self.keys = [bytes([index]) * 32 for index in range(graph.num_nodes)]
        self.ends = [self.network.endpoint(key) for key in self.keys]
        self.nodes = [self.node(graph, index) for index in range(graph.num_nodes)]
        for index, end in enumerate(self.ends):
            end.admit(None)
            for receiver in graph.receivers_of(index):
                end.dial(self.keys[receiver], self.ends[receiver].address)

    def node(self, graph: ow.TrustGraph, index: int) -> Node:
        shares = graph.mixing().toarray()[index]
        cards = [Card(key, "127.0.0.1", 7700, f"n{j}") for j, key in enumerate(self.keys)]
        config = PeerConfig(
            f"n{index}",
            "127.0.0.1:7700",
            keep=float(shares[index]),
            receivers=tuple(Receiver(cards[j], shares[j]) for j in graph.receivers_of(index)),
            senders=tuple(Sender(self.keys[j]) for j in graph.senders_of(index)),
            limits=Limits(clip=0.0, pushes_per_second=1e6),
        )
        epochs = count(1)
        return Node(
            self.task,
            secret=bytes([index + 1]) * 32,
            config=config,
            snapshot=Snapshot(PeerState.new(self.task.dim, ledger=index + 1, boot=1)),
            clock=lambda: self.time,
            wall_clock=lambda: 1.7e9 + self.time,
            new_epoch=lambda: next(epochs),
        )

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


@pytest.mark.parametrize(
    ("model", "step", "simulated", "cap_step"),
    [
        ("logistic", "paper", ow.models.LogisticRegression(), False),
        ("logistic", "mass", ow.models.LogisticRegression(), math.inf),
        ("hinge", "capped", ow.models.Hinge(), True),  # no curvature: the cap is by mass alone
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_peers_in_lockstep_reproduce_the_simulators_push_sum(
    model, step, simulated, cap_step, seed
):
    graph = ow.TrustGraph.random(num_nodes=NUM_NODES, max_receivers=4, seed=seed)
    features, labels = samples(seed)
    task = Task(
        model=model,
        label="y",
        classes=("-1", "1"),
        features=tuple(Feature(name) for name in NAMES),
        learning_rate=0.1,
        step=step,
    )
    lockstep = Lockstep(graph, task)
    lockstep.exchange()  # edges open before the first round
    losses = [lockstep.round(*row) for row in zip(features, labels, strict=True)]

    run = ow.simulate(
        ow.OnlinePushSum(0.1, cap_step=cap_step),
        simulated,
        ow.Stream.from_arrays(features, labels),
        graph,
        engine="reference",
    )
    held = np.array([node.snapshot.state.holding for node in lockstep.nodes]) / ONE
    np.testing.assert_allclose(held[:, -1], run.masses, rtol=0, atol=1e-9)
    np.testing.assert_allclose(held[:, :-1], run.numerators, rtol=0, atol=1e-9)
    np.testing.assert_allclose(losses, run.losses, rtol=0, atol=1e-9)
    assert not discrepancy(node.snapshot.state for node in lockstep.nodes).any()
