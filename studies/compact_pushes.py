"""What compact pushes cost in loss and save in bytes: peers in lockstep, with and without.

Ten protocol states learn scikit-learn's digits by softmax regression (650 parameters) over a random
one-way graph, a sample each per round, every push encoded, decoded and acknowledged; the audit must
find every unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import oneway as ow
from lib import Report, Scope, grid, run, spread, table, values
from oneway.models import SoftmaxRegression
from oneway.protocol.audit import discrepancy
from oneway.protocol.incoming import mint
from oneway.protocol.messages import Close, Compact, Data, Hello
from oneway.protocol.outgoing import answer, say
from oneway.protocol.replies import receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import PeerState
from oneway.protocol.transitions import descend, push, receive_push, trust
from oneway.records import Batch, Vector
from oneway.transport.wire import decode, encode

NUM_NODES = 10
LEARNING_RATE = 0.5
TASK = b"sixteen bytes :)"
PUSHES = ("in full", "compact")


class Lockstep:
    """Peers that say and hear everything at once, and how many bytes their pushes have."""

    def __init__(self, graph: ow.TrustGraph, dim: int, is_compact: bool) -> None:
        self.graph, self.sizes = graph, list[int]()
        self.keys = [bytes([node + 1]) * 32 for node in range(graph.num_nodes)]
        self.rules = [Rules(key, compact=is_compact, window=1) for key in self.keys]
        self.states = []
        for node in range(graph.num_nodes):
            state = mint(PeerState.new(dim, node + 1, boot=1 << 20), np.zeros(dim))
            for receiver in graph.receivers_of(node):
                state = trust(state, self.keys[receiver], epoch=(node + 1) << 20)
            self.states.append(state)
        for _ in range(3):  # hello, the first total, its acknowledgement
            self.exchange()

    def step(self, node: int, step: Vector) -> None:
        """Take a local step, and hand over half of what is held."""
        receivers = [self.keys[receiver] for receiver in self.graph.receivers_of(node)]
        shares = {key: 0.5 / len(receivers) for key in receivers}
        state = descend(self.states[node], step)
        self.states[node] = push(state, shares, self.rules[node])

    def exchange(self) -> None:
        """Say what every edge has to say, and take in the answers."""
        for sender, key in enumerate(self.keys):
            for edge in list(self.states[sender].out.values()):
                frame = encode(say(self.states[sender], edge, self.rules[sender]), TASK)
                word, receiver = decode(frame)[1], self.keys.index(edge.receiver)
                assert isinstance(word, Data | Compact | Hello | Close)
                if isinstance(word, Data | Compact):
                    self.sizes.append(len(frame))
                done = receive_push(self.states[receiver], key, word, self.rules[receiver])
                assert done.strike is None
                self.states[receiver] = done.state
                for reply in answer(done.state, key, word, self.rules[receiver]):
                    heard = receive_reply(
                        self.states[sender], edge.receiver, reply, self.rules[sender]
                    )
                    self.states[sender] = heard.state


@dataclass(frozen=True)
class Coded:
    """How pushes are made, and how many samples are learned."""

    name: str
    num_samples: int


@dataclass(frozen=True)
class CodedJob:
    """How pushes are made, with a seed."""

    case: Coded
    seed: int


def learned(job: CodedJob) -> list[dict[str, Any]]:
    """The mean loss before each sample was learned, and the bytes of a push."""
    features, labels = load_digits(return_X_y=True)
    features = (features / 16.0).astype(np.float32)
    model = SoftmaxRegression(num_classes=10)
    rng = np.random.default_rng(job.seed)
    order = np.concatenate([rng.permutation(len(labels)) for _ in range(2)])
    graph = ow.TrustGraph.random(num_nodes=NUM_NODES, max_receivers=3, seed=job.seed)
    network = Lockstep(graph, model.dim(features.shape[1]), job.case.name == "compact")
    network.sizes.clear()
    losses = []
    most = min(job.case.num_samples, len(order)) // NUM_NODES * NUM_NODES
    for rows in order[:most].reshape(-1, NUM_NODES):
        for node, row in enumerate(rows):
            state = network.states[node]
            sample = Batch(features[[row]], labels[[row]].astype(float))
            estimate = state.estimate
            assert estimate is not None
            losses.append(float(model.losses(estimate, sample)[0]))
            rate = LEARNING_RATE * min(1.0, state.mass)
            network.step(node, rate * model.gradient(estimate, sample))
        network.exchange()
    assert not discrepancy(network.states).any(), "a unit was lost or invented"
    return [{"loss": float(np.mean(losses)), "size": float(np.mean(network.sizes))}]


def compact_pushes(scope: Scope) -> Report:
    """Compare pushes in full and compact ones."""
    most = 200 if scope.quick else 2 * 1797
    jobs = [CodedJob(Coded(it, most), seed) for it in PUSHES for seed in scope.seeds]
    runs = grid(learned, jobs, scope.cache)
    rows = [
        [it, spread(values(runs, case=it)), f"{values(runs, 'size', case=it).mean():,.0f}"]
        for it in PUSHES
    ]
    caption = f"{NUM_NODES} peers, {most:,} samples; mean over seeds ± half the 95 % interval."
    shown = table(("pushes", "average loss", "bytes of a push"), rows, caption)
    return Report("Compact pushes", [], [__doc__ or "", shown], {"runs": runs})


if __name__ == "__main__":
    run(compact_pushes, seeds=5)
