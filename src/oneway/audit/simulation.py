"""The attackers in a simulation: an engine that keeps what one sender hands to whom."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oneway.audit.observed import Observed
from oneway.errors import ConfigError
from oneway.methods import Method, State
from oneway.models import Model, RidgeRegression
from oneway.privacy.canaries import Canaries, Evidence, membership
from oneway.privacy.reconstruction import Steps, steps_between
from oneway.records import Matrix, Vector
from oneway.simulator.exchange import Exchange
from oneway.simulator.measurements import Measurements
from oneway.simulator.network import Network
from oneway.simulator.reference_engine import ReferenceEngine
from oneway.streams import Stream
from oneway.topology import TrustGraph

RECEIVER = "one curious receiver"
COALITION = "everybody else together"
SMALL = 1e-3
"""The length of a canary's features: its curvature shortens no step."""
FAR = 1e6
"""The label of a canary: the model is always wrong by this much, so that every gradient is at the
clip, or SMALL * FAR long if there is none."""


class _Watched(ReferenceEngine):
    """Keeps, for every round, what a sender held before and after its step, and what came in."""

    victim = 0
    receiver: int | None = None

    def begin(self, victim: int, receiver: int | None) -> None:
        self.victim, self.receiver = victim, receiver
        self.before: list[Matrix] = []
        self.after: list[Matrix] = []
        self.guesses: list[Matrix] = []
        self.masses: list[float] = []

    def exchanged(self, exchange: Exchange, state: State) -> State:
        """Note what the sender hands out, as those who get it can tell."""
        first, method = self.method.payload[0].name, self.method
        # All that the sender held before came from them, or stayed from what they saw last.
        self.before.append(self._held.segments[first][self.victim])
        self.after.append(state.segments[first][self.victim])
        self.masses.append(float(method.masses(state)[self.victim]))
        if self.receiver is not None:
            self.guesses.append(method.estimate(state)[self.receiver])
        return super().exchanged(exchange, state)


def watch(
    method: Method,
    model: Model,
    stream: Stream,
    graph: TrustGraph,
    victim: int,
    seed: int,
    tick: Callable[[int], None] = lambda _: None,
) -> list[Observed]:
    """Run a simulation; what one receiver of a sender, and all others together, know of its steps.

    Raises:
        ConfigError: The method sends nothing.
        OnewayError: The simulation cannot be run.
    """
    if not method.payload:
        raise ConfigError(
            f"method {method.name} sends nothing, so that nobody can read anything from it; audit "
            "a method that does, for example ops"
        )
    network = Network(method, graph, stream)
    engine = _Watched(method, model, stream, Measurements.blank(stream.num_rounds), seed)
    mixing = next(network.stretches(0, 1))[2]
    receiver, kept = None, 0.0
    if mixing is not None:
        shares = mixing[[victim], :].toarray()[0]
        kept = float(shares[victim])
        shares[victim] = 0.0
        if shares.any():
            receiver = int(shares.argmax())
    engine.begin(victim, receiver)
    for first in range(0, stream.num_rounds, 100):
        last = min(first + 100, stream.num_rounds)
        for begin, end, shares in network.stretches(first, last):
            engine.advance(begin, end, shares)
        tick(last)
    before, after = np.array(engine.before), np.array(engine.after)
    masses, indices = np.array(engine.masses), np.arange(stream.num_rounds)
    divisor = masses[:, None] if method.has_mass else np.ones((len(masses), 1))
    result = [Observed(COALITION, Steps(before - after, before / divisor), masses, indices)]
    if receiver is not None:
        # The mass it is handed tells it all masses; what model came in with them, it must guess.
        inflow = np.zeros(len(masses))
        inflow[1:] = masses[1:] - kept * masses[:-1]
        guesses = np.vstack([np.zeros((1, before.shape[1])), np.array(engine.guesses)[:-1]])
        steps = steps_between(after / divisor, masses, inflow, guesses)
        result.insert(0, Observed(RECEIVER, steps, masses[1:], indices[1:]))
    return result


def canary_test(
    method: Method,
    dim: int,
    graph: TrustGraph,
    victim: int,
    count: int,
    delta: float,
    seed: int,
    tick: Callable[[int], None] = lambda _: None,
) -> Evidence:
    """Play the membership test with a method, for models of so many parameters.

    The canaries are samples of a least-squares model without intercept, whose gradients have a
    known direction and the largest length that the clip allows; a sample of zeros has no contents.
    What is clipped, noised, stepped and handed out is that of the method, whatever the model.

    Args:
        method: With its batches and noise.
        dim: As many as the model that is audited has.
        graph: Who sends to whom.
        victim: Whose samples the canaries are.
        count: How many canaries about.
        delta: At which epsilon is bounded.
        seed: Of the coins, the directions and the noise.
        tick: Told how many rounds are done.
    """
    batches = method.batches
    samples = 1 if batches is None else batches.samples
    per_batch = min(samples, dim)
    num_batches = max(2, -(-count // per_batch))
    rng = np.random.default_rng([seed, 2023])
    canaries = Canaries.drawn(num_batches, per_batch, dim, rng)
    stream = _stream_of(canaries, samples, num_batches, graph.num_nodes, victim)
    model = RidgeRegression(l2=0.0, intercept=False)
    seen = watch(method, model, stream, graph, victim, seed, tick)[-1]
    last = np.arange(samples - 1, stream.num_rounds, samples)
    lengths: Vector = seen.lengths(method, None)
    largest = SMALL * FAR if batches is None else min(SMALL * FAR, batches.clip)
    if batches is None and method.rule.needs_curvature:
        lengths = seen.lengths(method, np.full(len(lengths), SMALL**2))
    # The label is far above every prediction, so that gradients point against the directions.
    released = -seen.steps.values[last] / (lengths[last, None] * largest)
    return membership(canaries, released, 1 if batches is None else batches.band, delta)


def _stream_of(
    canaries: Canaries, samples: int, num_batches: int, num_nodes: int, victim: int
) -> Stream:
    """Samples without contents for everybody, and the canaries that are in for the victim."""
    per_batch = len(canaries.present) // num_batches
    features = np.zeros((1 + len(canaries.present), canaries.directions.shape[1]))
    features[1:] = SMALL * canaries.directions
    rows = np.zeros((num_batches, samples, num_nodes), np.int64)
    own = np.where(canaries.present, 1 + np.arange(len(canaries.present)), 0)
    rows[:, :per_batch, victim] = own.reshape(num_batches, per_batch)
    labels = np.full(len(features), FAR)
    labels[0] = 0.0
    return Stream(features, labels, rows.reshape(num_batches * samples, num_nodes))
