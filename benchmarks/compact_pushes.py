"""What compact pushes cost in loss and save in bytes: peers in lockstep, exact, int8 and int4.

Ten protocol states learn scikit-learn's digits by softmax regression (650 parameters) over a random
one-way graph, a sample each per round, every push encoded, decoded and acknowledged; the audit must
find every unit. Then the milliseconds that a push of 1,000,000 parameters takes to pack and unpack.

    python benchmarks/compact_pushes.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_digits

import oneway as ow
from oneway.models import SoftmaxRegression
from oneway.protocol.audit import discrepancy
from oneway.protocol.compact import FORMATS, Codes, Format, pack, unpack
from oneway.protocol.fixed_point import fixed
from oneway.protocol.incoming import mint
from oneway.protocol.layout import Layout
from oneway.protocol.messages import Compact, Data
from oneway.protocol.outgoing import answer, say
from oneway.protocol.replies import receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import PeerState
from oneway.protocol.transitions import descend, push, receive_push, trust
from oneway.records import Batch
from oneway.transport.wire import decode, encode

NUM_NODES, PASSES, SEEDS = 10, 2, 5
LEARNING_RATE = 0.5
TASK = b"sixteen bytes :)"
DIM = 1_000_000
REPEATS = 20


class Lockstep:
    """Peers that say and hear everything at once, and how many bytes their pushes have."""

    def __init__(self, graph: ow.TrustGraph, dim: int, made: Format) -> None:
        self.graph, self.sizes = graph, list[int]()
        self.keys = [bytes([node + 1]) * 32 for node in range(graph.num_nodes)]
        self.rules = [Rules(key, format=made, window=1) for key in self.keys]
        self.states = []
        for node in range(graph.num_nodes):
            state = mint(PeerState.new(dim, node + 1, boot=1 << 20), np.zeros(dim))
            for receiver in graph.receivers_of(node):
                state = trust(state, self.keys[receiver], epoch=(node + 1) << 20)
            self.states.append(state)
        for _ in range(3):  # hello, the first total, its acknowledgement
            self.exchange()

    def step(self, node: int, step: np.ndarray) -> None:
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


def learned(made: Format, seed: int) -> tuple[float, float]:
    """The mean loss before each sample was learned, and the bytes of a push."""
    features, labels = load_digits(return_X_y=True)
    features = (features / 16.0).astype(np.float32)
    model = SoftmaxRegression(num_classes=10)
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(len(labels)) for _ in range(PASSES)])
    graph = ow.TrustGraph.random(num_nodes=NUM_NODES, max_receivers=3, seed=seed)
    network = Lockstep(graph, model.dim(features.shape[1]), made)
    network.sizes.clear()
    losses = []
    for rows in order[: len(order) // NUM_NODES * NUM_NODES].reshape(-1, NUM_NODES):
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
    return float(np.mean(losses)), float(np.mean(network.sizes))


def milliseconds(work: Callable[[], object]) -> float:
    """The processor time that some work takes, the median over some repetitions."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1e3 * float(np.median(times))


def main() -> None:
    """Print losses and sizes, then times."""
    print(f"digits, {NUM_NODES} peers, {PASSES} passes, {SEEDS} seeds")
    for made in FORMATS:
        losses, sizes = zip(*(learned(made, seed) for seed in range(SEEDS)), strict=True)
        error = np.std(losses, ddof=1) / np.sqrt(SEEDS)
        print(f"{made:5}  loss {np.mean(losses):.4f} +- {error:.4f}  {np.mean(sizes):,.0f} bytes")
    rng, layout = np.random.default_rng(0), Layout()
    model = rng.normal(size=DIM) / 20
    base = fixed(30 * model, 30.0)
    part = fixed((model + rng.normal(size=DIM) / 500) / 4, 0.25)
    kinds: tuple[Codes, ...] = ("int8", "int4")
    for code in kinds:
        packed = pack(layout, part, 1, base, code, 1000.0)
        packing = milliseconds(lambda code=code: pack(layout, part, 1, base, code, 1000.0))
        unpacking = milliseconds(lambda packed=packed: unpack(layout, base, packed))
        size = len(packed.codes) + len(packed.exponents)
        print(f"{DIM:,} {code}: {size:,} bytes, pack {packing:.1f} ms, unpack {unpacking:.1f} ms")


if __name__ == "__main__":
    main()
