"""What the clip costs without an attack, and what it is worth with one liar among fifty peers.

The liar is honest about mass and lies about its model: whatever it hands over, the model in it is
far away in the wrong direction. Test loss of the honest peers' models at the end, and their average
online loss, for several limits relative to the own model (the peer's default is 0.5); each line is
a mean over seeds, in rounds over states in memory.

    python benchmarks/liar.py
"""

from __future__ import annotations

import math

import numpy as np

import oneway as ow
from oneway.protocol.fixed_point import fixed
from oneway.protocol.incoming import mint
from oneway.protocol.outgoing import answer, say
from oneway.protocol.replies import receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import PeerState
from oneway.protocol.transitions import descend, push, receive_push, trust
from oneway.records import Batch
from oneway.testing.records import replace

NUM_PEERS, NUM_ROUNDS, NUM_FEATURES = 50, 300, 10
CLIPS = (math.inf, 1.0, 0.5, 0.3, 0.1)
SEEDS = (1, 2, 3)
LIE = 20.0
"""Length of the liar's model, against the direction of the truth."""


class Network:
    """Fifty states that exchange messages in rounds, one of which may lie."""

    def __init__(self, seed: int, clip: float, *, lies: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.graph = ow.TrustGraph.random(num_nodes=NUM_PEERS, max_receivers=5, seed=seed)
        self.mixing = self.graph.mixing().toarray()
        self.model = ow.models.LogisticRegression()
        self.dim = self.model.dim(NUM_FEATURES)
        self.truth = self.rng.normal(size=NUM_FEATURES)
        self.liar = 0 if lies else None
        self.keys = [index.to_bytes(32, "little") for index in range(NUM_PEERS)]
        self.rules = [Rules(key, clip=clip) for key in self.keys]
        self.states = [self.start(index) for index in range(NUM_PEERS)]
        self.losses: list[float] = []
        self.exchange()

    def start(self, index: int) -> PeerState:
        """One unit of mass at a model of zeros, and an edge to every receiver."""
        state = mint(PeerState.new(self.dim, index + 1, 1), np.zeros(self.dim))
        for receiver in self.graph.receivers_of(index):
            state = trust(state, self.keys[receiver], 1)
        return state

    def samples(self, count: int) -> Batch:
        """Labels that follow a logistic model with the true parameters."""
        features = self.rng.normal(size=(count, NUM_FEATURES))
        noise = self.rng.logistic(size=count)
        return Batch(features, np.where(features @ self.truth + noise > 0, 1.0, -1.0))

    def exchange(self) -> None:
        """Deliver what everybody has to say, and the answers, until the edges are at rest."""
        for _ in range(2):
            for index in range(NUM_PEERS):
                for edge in list(self.states[index].out.values()):
                    message = say(self.states[index], edge, self.rules[index])
                    there = self.keys.index(edge.receiver)
                    me = self.keys[index]
                    done = receive_push(self.states[there], me, message, self.rules[there])
                    self.states[there] = done.state
                    for reply in answer(done.state, me, message, self.rules[there]):
                        back = receive_reply(
                            self.states[index], edge.receiver, reply, self.rules[index]
                        )
                        self.states[index] = back.state

    def round(self) -> None:
        """Everybody learns from one sample, or lies, and pushes."""
        batch = self.samples(NUM_PEERS)
        for index, state in enumerate(self.states):
            one = Batch(batch.features[[index]], batch.labels[[index]])
            if index == self.liar:
                lie = -LIE * np.append(self.truth, 0.0) / np.linalg.norm(self.truth)
                told = fixed(lie * state.mass) - state.holding
                told[-1] = 0
                state = replace(
                    state,
                    holding=state.holding + told,
                    gradient_steps=state.gradient_steps - told,
                )
            else:
                params = state.estimate
                assert params is not None
                self.losses.append(self.model.loss(params, one))
                bounds = self.model.curvature_bounds(one.features)
                assert bounds is not None
                step = min(0.3, 0.5 * state.mass / float(bounds[0]))
                state = descend(state, step * self.model.gradient(params, one))
            shares = {self.keys[r]: self.mixing[index, r] for r in self.graph.receivers_of(index)}
            self.states[index] = push(state, shares, self.rules[index])
        self.exchange()

    def test_loss(self) -> float:
        """The mean loss of the honest peers' models on new samples."""
        batch = self.samples(2_000)
        honest = [state for index, state in enumerate(self.states) if index != self.liar]
        return float(
            np.mean([self.model.loss(state.estimate, batch) for state in honest if state.mass > 0])
        )


def measure(clip: float, *, lies: bool) -> tuple[float, float]:
    """Test loss and online loss of the honest peers, means over the seeds."""
    tests, online = [], []
    for seed in SEEDS:
        network = Network(seed, clip, lies=lies)
        for _ in range(NUM_ROUNDS):
            network.round()
        tests.append(network.test_loss())
        online.append(float(np.mean(network.losses)))
    return float(np.mean(tests)), float(np.mean(online))


if __name__ == "__main__":
    print(f"{NUM_PEERS} peers, {NUM_ROUNDS} rounds, {len(SEEDS)} seeds")
    print("clip      no liar: test  online   one liar: test  online")
    for clip in CLIPS:
        quiet, attacked = measure(clip, lies=False), measure(clip, lies=True)
        print(
            f"{clip:<8}  {quiet[0]:13.4f}  {quiet[1]:.4f}  {attacked[0]:14.4f}  {attacked[1]:.4f}",
            flush=True,
        )
