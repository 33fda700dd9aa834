"""What the clip costs without an attack, and what it is worth with one liar among fifty peers.

The liar is honest about mass and lies about its model: whatever it hands over, the model in it is
far away in the wrong direction. Test loss of the honest peers' models at the end, and their average
online loss, for several limits relative to the own model (default 0.5), in rounds over
protocol states in memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace

import oneway as ow
from lib import Report, Scope, grid, run, spread, table, values
from oneway.protocol.fixed_point import fixed
from oneway.protocol.incoming import mint
from oneway.protocol.outgoing import answer, say
from oneway.protocol.replies import receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import PeerState
from oneway.protocol.transitions import descend, push, receive_push, trust
from oneway.records import Batch

NUM_PEERS, NUM_FEATURES = 50, 10
CLIPS = (math.inf, 1.0, 0.5, 0.3, 0.1)
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
        honest = (state for index, state in enumerate(self.states) if index != self.liar)
        models = [state.estimate for state in honest if state.mass > 0]
        return float(np.mean([self.model.loss(it, batch) for it in models if it is not None]))


@dataclass(frozen=True)
class Clipped:
    """A clip, with or without a liar, for some rounds."""

    clip: float
    lies: bool
    num_rounds: int

    @property
    def name(self) -> str:
        """All that determines it."""
        return repr(self)


@dataclass(frozen=True)
class LiarJob:
    """A clip with a seed."""

    case: Clipped
    seed: int


def suffer(job: LiarJob) -> list[dict[str, Any]]:
    """Test loss and online loss of the honest peers."""
    network = Network(job.seed, job.case.clip, lies=job.case.lies)
    for _ in range(job.case.num_rounds):
        network.round()
    return [{"test": network.test_loss(), "online": float(np.mean(network.losses))}]


def liar(scope: Scope) -> Report:
    """Measure what one liar costs under several clips."""
    rounds = 5 if scope.quick else 300
    cases = {(clip, lies): Clipped(clip, lies, rounds) for clip in CLIPS for lies in (False, True)}
    # Seeds from 1, as in the numbers that the documents quote.
    jobs = [LiarJob(case, seed + 1) for case in cases.values() for seed in scope.seeds]
    runs = grid(suffer, jobs, scope.cache)
    rows = [
        [f"{clip:g}"]
        + [
            spread(values(runs, column, case=cases[clip, lies].name))
            for lies in (False, True)
            for column in ("test", "online")
        ]
        for clip in CLIPS
    ]
    heading = ("clip", "test, no liar", "online, no liar", "test, one liar", "online, one liar")
    caption = f"{NUM_PEERS} peers, {rounds} rounds; mean over seeds ± half the 95 % interval."
    return Report("One liar", [], [__doc__ or "", table(heading, rows, caption)], {"runs": runs})


if __name__ == "__main__":
    run(liar, seeds=3)
