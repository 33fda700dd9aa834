"""The attackers in a simulation: an engine that keeps what one sender hands to whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from oneway.audit.inference import Explanation, StepInference
from oneway.audit.observed import Observed
from oneway.errors import ConfigError
from oneway.methods import Method, State
from oneway.methods.auto_rate import SQUARES
from oneway.models import Model, RidgeRegression
from oneway.privacy.canaries import Canaries, Evidence, membership
from oneway.records import Bools, Ints, Matrix, Vector
from oneway.simulator.exchange import Exchange
from oneway.simulator.measurements import Measurements
from oneway.simulator.network import Network
from oneway.simulator.reference_engine import ReferenceEngine
from oneway.streams import Stream
from oneway.topology import TrustGraph

RECEIVER = "one curious receiver"
COALITION = "everybody else together"
CONFIDENCE = 0.95
SMALL = 1e-3
"""The length of a canary's features: its curvature shortens no step."""
FAR = 1e6
"""The label of a canary: the model is always wrong by this much, so that every gradient is at the
clip, or SMALL * FAR long if there is none."""


@dataclass(frozen=True, eq=False)
class _Event:
    """One exchange: rows are the sender and the receiver, whose own things it knows anyway.

    Attributes:
        held: What both held before.
        sent: What both handed out.
        round_index: In which round.
        learned: Whether a batch of the sender is full with it, which is no secret.
        weights: By kind of segment, which share of what the sender held it kept, and with which
            weight the others' came in.
        squares: What the sender chooses its learning rate by, before and after.
    """

    held: State
    sent: State
    round_index: int
    learned: bool
    weights: dict[str, tuple[float, float]]
    squares: tuple[float, float]


class _Watched(ReferenceEngine):
    """Keeps, for every round, what a sender held, what it handed out and what came in."""

    def begin(self, victim: int, receiver: int | None) -> None:
        self.victim, self.receiver = victim, receiver
        self.events: list[_Event] = []
        self.start = _only(self.held, victim)
        self._known: tuple[Exchange | None, dict[str, tuple[float, float]]] = (None, {})
        had = np.cumsum(self.stream.rows[:, victim] >= 0)
        full = had // (self.method.batches.samples if self.method.batches else 1)
        self.learned = np.diff(full, prepend=0) > 0

    def learn(self, round_index: int) -> tuple[Ints, Vector, Bools | None]:
        """Remember what all held before they learn."""
        self._before = self.held
        return super().learn(round_index)

    def exchanged(self, exchange: Exchange, state: State, round_index: int) -> State:
        """Note what the sender hands out, as those who get it can tell."""
        sent = self.method.before_push(state, self.rng)
        first = not self.events or self.events[-1].round_index != round_index
        # All that the sender held before came from the others, or stayed from what they saw last.
        self.events.append(
            _Event(
                self._rows(self._before if first else state),
                self._rows(sent),
                round_index,
                first and bool(self.learned[round_index]),
                self._weights(exchange),
                (self._squares(self._before), self._squares(state)),
            )
        )
        return exchange.apply(sent)

    def _squares(self, state: State) -> float:
        return float(state.memory[SQUARES][self.victim, 0]) if self.method.auto else 0.0

    def _rows(self, state: State) -> State:
        nodes = [self.victim, self.victim if self.receiver is None else self.receiver]
        return State({name: array[nodes] for name, array in state.segments.items()}, {})

    def _weights(self, exchange: Exchange) -> dict[str, tuple[float, float]]:
        if self._known[0] is not exchange:
            rows = {
                kind: matrix[[self.victim], :].toarray()[0]
                for kind, matrix in exchange.matrices.items()
            }
            self._known = (
                exchange,
                {
                    kind: (float(row[self.victim]), float(row.sum() - row[self.victim]))
                    for kind, row in rows.items()
                },
            )
        return self._known[1]


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
    engine = _run(method, model, stream, graph, victim, seed, tick)
    everybody = _all_others(method, engine)
    return [everybody] if engine.receiver is None else [_one_receiver(method, engine), everybody]


def _run(
    method: Method,
    model: Model,
    stream: Stream,
    graph: TrustGraph,
    victim: int,
    seed: int,
    tick: Callable[[int], None],
) -> _Watched:
    if not method.payload:
        raise ConfigError(
            f"method {method.name} sends nothing, so that nobody can read anything from it; audit "
            "a method that does, for example ops"
        )
    network = Network(method, graph, stream)
    engine = _Watched(network.method, model, stream, Measurements.blank(stream.num_rounds), seed)
    mixing = next(network.stretches(0, 1))[2]
    receiver = None
    if mixing is not None:
        shares = mixing[[victim], :].toarray()[0]
        shares[victim] = 0.0
        if shares.any():
            receiver = int(shares.argmax())
    engine.begin(victim, receiver)
    for first in range(0, stream.num_rounds, 100):
        last = min(first + 100, stream.num_rounds)
        for begin, end, shares in network.stretches(first, last):
            engine.advance(begin, end, shares)
        tick(last)
    return engine


def _all_others(method: Method, engine: _Watched) -> Observed:
    """They know what the sender held before each push, and all that it handed out."""
    inference, memory = StepInference(method), engine.start.memory
    found: list[tuple[State, Explanation, int]] = []
    for event in engine.events:
        before = State(_only(event.held, 0).segments, memory)
        explanation = inference.explain(before, _only(event.sent, 0).segments)
        memory = explanation.after.memory
        found.append((before, explanation, event.round_index))
    return Observed.of(COALITION, method, found)


def _one_receiver(method: Method, engine: _Watched) -> Observed:
    """It knows what the sender handed out, and guesses that others send to it what it would."""
    inference, before, events = StepInference(method), engine.start, engine.events
    found: list[tuple[State, Explanation, int]] = []
    for place, event in enumerate(events):
        sent = _only(event.sent, 0).segments
        if place:
            before = _guess(method, inference, events[place - 1], before, sent, event.learned)
        explanation = inference.explain(before, sent, stepped=event.learned)
        found.append((before, explanation, event.round_index))
        before = State(before.segments, explanation.after.memory)
    return Observed.of(RECEIVER, method, found)


def _guess(
    method: Method,
    inference: StepInference,
    last: _Event,
    before: State,
    sent: Mapping[str, Matrix],
    learned: bool,
) -> State:
    """What the sender held before a step: what it kept, and what others may have sent to it.

    Of a kind with a scalar (mass, count) as much came in as that scalar says.
    """
    own, mine = _only(last.sent, 0).segments, _only(last.sent, 1).segments
    kept = {it.name: last.weights[it.kind][0] * own[it.name] for it in method.payload}
    came = {it.name: last.weights[it.kind][1] * mine[it.name] for it in method.payload}
    guess = State({name: kept[name] + came[name] for name in kept}, before.memory)
    still = method.descend(guess, np.zeros_like(method.estimate(guess)))
    scalars = {
        name: value - learned * (still.segments[name] - guess.segments[name])
        for name, value in inference.scalars(guess, sent).items()
    }
    segments = dict(guess.segments) | scalars
    for scalar in (it for it in method.payload if not it.is_vector):
        if mine[scalar.name].item() > 0.0:
            much = (scalars[scalar.name] - kept[scalar.name]) / mine[scalar.name]
            for it in method.payload:
                if it.is_vector and it.kind == scalar.kind:
                    segments[it.name] = kept[it.name] + much * mine[it.name]
    return State(segments, before.memory)


def _only(state: State, row: int) -> State:
    return State(
        {name: array[[row]] for name, array in state.segments.items()},
        {name: array[[row]] for name, array in state.memory.items()},
    )


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
    engine = _run(method, model, stream, graph, victim, seed, tick)
    seen = _all_others(method, engine)
    if method.auto is not None:
        # Chosen by what was released: whoever knows that knows the rates.
        squares = np.array([event.squares for event in engine.events])
        before, after = (method.auto.rates(squares[:, [place]], dim) for place in (0, 1))
        seen = replace(seen, chosen=(before, after))
    largest = SMALL * FAR if batches is None else min(SMALL * FAR, batches.clip)
    curvatures = None
    if batches is None and method.rule.needs_curvature:
        curvatures = np.full(len(seen.masses), SMALL**2)
    lengths: Vector = seen.lengths(method, curvatures)
    in_batch, place = np.divmod(seen.indices, samples)
    released: list[Matrix] = []
    for gradients in seen.gradients(method, lengths).values():
        # The label is far above every prediction, so that gradients point against the directions.
        scaled = -gradients / largest
        for these in (place == samples - 1, place < samples - 1):  # full, and before it is
            sums = np.zeros((num_batches, dim))
            np.add.at(sums, in_batch[these], scaled[these])
            if sums.any():
                released.append(sums)
    return _strongest(canaries, released, 1 if batches is None else batches.band, delta)


def _strongest(canaries: Canaries, released: list[Matrix], band: int, delta: float) -> Evidence:
    """The evidence of the reading that tells most; all of them share the doubt."""
    each = 1.0 - (1.0 - CONFIDENCE) / max(1, len(released))
    nothing = np.zeros((int(canaries.batches[-1]) + 1, canaries.directions.shape[1]))
    found = [membership(canaries, sums, band, delta, each) for sums in released or [nothing]]
    return replace(max(found, key=lambda one: one.epsilon_lower_bound), confidence=CONFIDENCE)


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
