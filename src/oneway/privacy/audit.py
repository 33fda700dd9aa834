"""The privacy audit: attack a sender's pushes with everything that everybody else knows.

Two attacks: reconstruction reads samples from steps, and a membership test measures a lower bound
of epsilon with planted canaries. Each runs on a simulation in rounds, or on peers in virtual time.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any, TypeAlias

import numpy as np

from oneway.errors import ConfigError
from oneway.lab.virtual.network import VirtualNetwork
from oneway.lab.virtual.peers import VirtualPeer
from oneway.lab.virtual.run import task_for, without_logs
from oneway.methods import Method, State
from oneway.methods.auto_rate import SQUARES
from oneway.models import Model, RidgeRegression
from oneway.peer.store.snapshot import Snapshot
from oneway.privacy.attack import Observed, Push, attack_on
from oneway.privacy.canaries import Canaries, Evidence, membership
from oneway.privacy.reconstruction import Score, nearest, read_exactly, score
from oneway.protocol.fixed_point import ONE, Fixed
from oneway.protocol.messages import Data
from oneway.protocol.state import Key
from oneway.protocol.transitions import keep_mass
from oneway.records import Bools, Ints, Matrix, Vector
from oneway.simulator.exchange import Exchange
from oneway.simulator.measurements import Measurements
from oneway.simulator.network import Network
from oneway.simulator.reference_engine import ReferenceEngine
from oneway.streams import Stream
from oneway.tables import Table
from oneway.task.assembly import Parts, assemble
from oneway.task.conditions import Conditions, Delay
from oneway.task.privacy import DEFAULT_DELTA
from oneway.task.settings import SETTINGS, Settings
from oneway.topology import TrustGraph
from oneway.transport.wire import decode

DEFAULT_ROUNDS = {False: 2000, True: 200}
"""Samples of the victim that are attacked unless `rounds` is given; fewer in virtual time, where
every message is made and read."""
DEFAULT_CANARIES = {False: 8000, True: 800}
CONFIDENCE = 0.95
EXAMPLES = 3
SMALL = 1e-3
"""The length of a canary's features: its curvature shortens no step."""
FAR = 1e6
"""The label of a canary: the model is always wrong by this much, so that every gradient is at the
clip, or SMALL * FAR long if there is none."""
_MOST_OTHERS = 2000

Watch: TypeAlias = Callable[
    [Method, Model, Stream, TrustGraph, int, int, Callable[[int], None]], Observed
]
"""Runs a network; returns what all others know about the steps of one node."""


# What all others see of a sender.


class _Watched(ReferenceEngine):
    """Keeps what one node held before each round, and what it then handed out first."""

    def begin(self, victim: int) -> None:
        self.victim = victim
        self.pushes: list[Push] = []
        self._before: State | None = None

    def learn(self, round_index: int) -> tuple[Ints, Vector, Bools | None]:
        """Remember what all held before they learn."""
        self._before = self.held
        return super().learn(round_index)

    def exchanged(self, exchange: Exchange, state: State, round_index: int) -> State:
        """Note what the node hands out. Only the first exchange of a round follows a step."""
        sent = self.method.before_push(state, self.rng)
        if (before := self._before) is not None:
            squares = (self._squares(before), self._squares(state))
            self.pushes.append(Push(self._row(before), self._row(sent), round_index, squares))
            self._before = None
        return exchange.apply(sent)

    def _row(self, state: State) -> dict[str, Matrix]:
        return {name: array[[self.victim]] for name, array in state.segments.items()}

    def _squares(self, state: State) -> float:
        return float(state.memory[SQUARES][self.victim, 0]) if self.method.auto else 0.0


def watch_rounds(
    method: Method,
    model: Model,
    stream: Stream,
    graph: TrustGraph,
    victim: int,
    seed: int,
    tick: Callable[[int], None] = lambda _: None,
) -> Observed:
    """Simulate a network in rounds.

    Raises:
        ConfigError: The method sends nothing.
        OnewayError: The simulation cannot be run.
    """
    _require_payload(method)
    network = Network(method, graph, stream)
    engine = _Watched(network.method, model, stream, Measurements.blank(stream.num_rounds), seed)
    engine.begin(victim)
    for first in range(0, stream.num_rounds, 100):
        last = min(first + 100, stream.num_rounds)
        for begin, end, shares in network.stretches(first, last):
            engine.advance(begin, end, shares)
        tick(last)
    return Observed.of(engine.method, engine.pushes)


def watch_peers(
    method: Method,
    model: Model,
    stream: Stream,
    graph: TrustGraph,
    victim: int,
    seed: int,
    tick: Callable[[int], None] = lambda _: None,
) -> Observed:
    """Run peers in virtual time, and read the messages of one.

    Raises:
        ConfigError: The method sends nothing, or its models travel as copies.
        OnewayError: Peers cannot run the method.
    """
    _require_payload(method)
    if any(segment.kind == "copied" for segment in method.payload):
        raise ConfigError(
            f"method {method.name} sends copies of models, which the audit reads in a simulation "
            "only; leave out --virtual, or choose another method"
        )
    model = model.for_samples(stream.shape, stream.labels)
    network = Network(method, graph, stream)
    mixing = network.method.shares(network.in_order(graph))
    task = task_for(network.method, model, stream)
    # Nothing is slow: every step is then in a push of its own, which reveals most.
    conditions = Conditions(poisson=False, delay=Delay.fixed(0.0), commit=0.0)
    peers = VirtualNetwork(task, model, stream, mixing, conditions, seed)
    with without_logs(), peers as world:
        method = task.build_method()
        tap = _Tap(world.peers[victim], method, 1.0 - mixing[victim, victim])
        for done in (*range(100, stream.num_rounds, 100), stream.num_rounds):
            world.world.run_until(done / conditions.rate)
            tick(done)
        world.world.run_until(world.world.now + 1.0)  # the last push is sent
    return Observed.of(method, tap.pushes())


class _Tap:
    """Reads the totals in the messages of a peer, and notes what it held before it learned.

    What a peer holds follows from what it was sent; only its steps do not.
    """

    def __init__(self, peer: VirtualPeer, method: Method, handed_over: float) -> None:
        self._node, self._method, self._handed_over = peer.node, method, handed_over
        self._layout = self._node.snapshot.state.layout
        # What was handed over before, while peers met: its receivers know it.
        self._totals: dict[tuple[Key, int, int], Fixed] = {
            (*name, edge.seq): edge.sent for name, edge in self._node.snapshot.state.out.items()
        }
        self._learned: list[tuple[Snapshot, Snapshot]] = []
        self._learn, self._push = self._node.learn, peer.endpoint.push
        vars(self._node)["learn"] = self._watched
        vars(peer.endpoint)["push"] = self._read

    def _read(self, receiver: Key, frame: bytes) -> None:
        _, message = decode(frame)
        if isinstance(message, Data):
            self._totals[receiver, message.epoch, message.seq] = message.total
        self._push(receiver, frame)

    def _watched(self, *arguments: Any) -> float:
        before = self._node.snapshot
        loss = self._learn(*arguments)
        self._learned.append((before, self._node.snapshot))
        return loss

    def pushes(self) -> list[Push]:
        """All that was handed out right after a sample, as far as messages say what it was."""
        return [self._push_of(before, after) for before, after in self._learned]

    def _push_of(self, before: Snapshot, after: Snapshot) -> Push:
        method = self._method
        held = self._segments(before.state.holding / ONE)
        # What a peer mints before a step, within bounds that all know, is no secret either.
        kept = keep_mass(before.state, self._node.learner.mass_bounds)
        minted = self._segments((kept.holding - before.state.holding) / ONE)
        first, last = (
            float(it.memory[SQUARES][0, 0]) if method.auto else 0.0 for it in (before, after)
        )
        parts = []
        for name, edge in after.state.out.items():
            known = before.state.out.get(name)
            seqs = (0 if known is None else known.seq), edge.seq
            if seqs[1] == seqs[0] + 1 and all((*name, seq) in self._totals for seq in seqs if seq):
                earlier, later = (self._totals.get((*name, seq), 0) for seq in seqs)
                parts.append((later - earlier) / ONE)
        if not parts:  # no message: as if nothing had been handed out
            return Push(held, held, before.journal.samples, (first, last))
        handed: Vector = np.sum(np.array(parts), axis=0)
        # Of all that is split it is the same share as of the mass, which no step changes.
        share = float(handed[-1]) / kept.mass
        sent = self._segments(handed / share)
        for segment in method.payload:
            if segment.kind == "forwarded":
                sent[segment.name] = self._handed_over * sent[segment.name]
        sent = {name: array - minted[name] for name, array in sent.items()}
        return Push(held, sent, before.journal.samples, (first, last))

    def _segments(self, amount: Vector) -> dict[str, Matrix]:
        places = self._layout.places.items()
        return {**{name: amount[None, place] for name, place in places}, "mass": amount[None, -1:]}


def _require_payload(method: Method) -> None:
    if not method.payload:
        raise ConfigError(
            f"method {method.name} sends nothing, so that nobody can read anything from it; audit "
            "a method that does, for example ops"
        )


# The membership test.


def canary_test(
    method: Method,
    dim: int,
    graph: TrustGraph,
    victim: int,
    count: int,
    delta: float,
    seed: int,
    tick: Callable[[int], None] = lambda _: None,
    watch: Watch = watch_rounds,
) -> Evidence:
    """Play the membership test with a method, for models of `dim` parameters.

    The canaries are samples of a least-squares model without intercept, whose gradients have a
    known direction and the largest length that the clip allows; a sample of zeros has no contents.
    What is clipped, noised, stepped and handed out is that of the method, whatever the model.

    Args:
        method: With its batches and noise.
        dim: As many as the model that is audited has.
        graph: The trust graph.
        victim: Whose samples the canaries are.
        count: How many canaries about.
        delta: At which epsilon is bounded.
        seed: Of the coins, the directions and the noise.
        tick: Called with the number of finished rounds.
        watch: In which network.
    """
    batches = method.batches
    samples = 1 if batches is None else batches.samples
    per_batch = min(samples, dim)
    num_batches = max(2, -(-count // per_batch))
    canaries = Canaries.drawn(num_batches, per_batch, dim, np.random.default_rng([seed, 2023]))
    stream = _stream_of(canaries, samples, num_batches, graph.num_nodes, victim)
    if watch is watch_peers:  # others only pass on
        rows = np.where(np.arange(graph.num_nodes) == victim, stream.rows, -1)
        stream = replace(stream, rows=rows)
    seen = watch(
        method, RidgeRegression(l2=0.0, intercept=False), stream, graph, victim, seed, tick
    )
    # Rates are functions of what was released, and so public.
    seen = replace(seen, chosen=seen.true_rates)
    largest = SMALL * FAR if batches is None else min(SMALL * FAR, batches.clip)
    curvatures = None
    if batches is None and method.rule.needs_curvature:
        curvatures = np.full(len(seen.masses), SMALL**2)
    in_batch, place = np.divmod(seen.indices, samples)
    released: list[Matrix] = []
    for gradients in seen.gradients(seen.lengths(curvatures)).values():
        # The label is far above every prediction, so that gradients point against the directions.
        for these in (place == samples - 1, place < samples - 1):  # full, and before it is
            sums = np.zeros((num_batches, dim))
            np.add.at(sums, in_batch[these], -gradients[these] / largest)
            if sums.any():
                released.append(sums)
    # The reading that reveals most is the evidence; all of them share the doubt.
    released = released or [np.zeros((num_batches, dim))]
    each = 1.0 - (1.0 - CONFIDENCE) / len(released)
    band = 1 if batches is None else batches.band
    found = [membership(canaries, sums, band, delta, each) for sums in released]
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


# The audit.


@dataclass(frozen=True)
class Example:
    """A sample of the victim beside the nearest that was read, in the units of its file."""

    true: dict[str, float]
    read: dict[str, float]
    cosine: float
    exact: bool


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Attributes:
        score: Of the reconstruction.
        examples: Samples, and what was read of them.
        evidence: Of the membership test.
        settings: What was audited.
        virtual: Whether peers in virtual time were attacked, by their messages.
        delta: At which epsilon is bounded.
        victim: Whose samples were attacked.
        versions: Of the software.
    """

    score: Score
    examples: tuple[Example, ...]
    evidence: Evidence
    settings: Settings
    virtual: bool
    delta: float
    victim: str
    versions: Mapping[str, str]

    @property
    def epsilon_promised(self) -> float | None:
        """What the settings promise; None if nothing."""
        return self.settings.privacy.epsilon if self.settings.privacy else None

    @property
    def is_kept(self) -> bool | None:
        """Whether the promise withstood the attack; None if there is none."""
        promised = self.epsilon_promised
        return None if promised is None else self.evidence.epsilon_lower_bound <= promised

    @property
    def numbers(self) -> dict[str, Any]:
        """All of it, in terms JSON can hold."""
        plain = {name: getattr(self.settings, name) for name in SETTINGS if name != "privacy"}
        return {
            "victim": self.victim,
            "virtual": self.virtual,
            **asdict(self.score),
            "epsilon_promised": self.epsilon_promised,
            "epsilon_lower_bound": self.evidence.epsilon_lower_bound,
            "delta": self.delta,
            "confidence": self.evidence.confidence,
            "promise_withstood": self.is_kept,
            "membership": asdict(self.evidence),
            "settings": {
                name: value
                for name, value in plain.items()
                if isinstance(value, str | int | float | None)
            }
            | {"privacy": self.settings.privacy.as_json()},
            "versions": dict(self.versions),
        }


def audit(
    settings: Settings,
    *,
    canaries: int | None = None,
    virtual: bool = False,
    tick: Callable[[str, int], None] = lambda _what, _done: None,
) -> Audit:
    """Run both attacks.

    Real peers clip, add noise and step by the same code, and all other nodes together know at
    least as much as the neighbours of a real peer.

    Args:
        settings: What to audit; `rounds` is the number of samples each node has.
        canaries: About how many canaries the membership test has; None for 8,000, or 800 with
            `virtual`.
        virtual: Attack peers in virtual time, by their messages, instead of a simulation in rounds.
        tick: Called with the name of the attack and the number of finished rounds.

    Raises:
        ConfigError: An argument breaks its rule, or the attack does not know the model.
        OnewayError: A setting does not fit the data or another setting.
    """
    canaries = DEFAULT_CANARIES[virtual] if canaries is None else canaries
    if canaries < 100:
        raise ConfigError(f"canaries is {canaries}; it must be at least 100 to bound anything")
    settings = replace(settings, rounds=settings.rounds or DEFAULT_ROUNDS[virtual])
    parts = assemble(settings)
    settings = settings.with_model_for(parts.table.label_kind)
    attack_on(parts.model)
    # The one with most samples, and so with most to lose.
    victim = int((parts.stream.rows >= 0).sum(axis=0).argmax())
    watch = watch_peers if virtual else watch_rounds
    seen = watch(
        parts.method,
        parts.model,
        parts.stream,
        parts.graph,
        victim,
        settings.seed,
        lambda done: tick("reconstruction", done),
    )
    found, examples = _reconstructed(parts, victim, seen)
    # Where nothing is promised, epsilon is bounded at the delta that tasks have by default.
    delta = settings.privacy.delta if settings.privacy else DEFAULT_DELTA
    evidence = canary_test(
        parts.method,
        parts.model.dim(parts.stream.dim),
        parts.graph,
        victim,
        canaries,
        delta,
        settings.seed,
        lambda done: tick("membership", done),
        watch,
    )
    names = parts.stream.node_names
    versions = {name: version(name) for name in ("oneway", "numpy", "scipy")}
    return Audit(
        found,
        examples,
        evidence,
        settings,
        virtual,
        delta,
        names[victim] if names else f"node {victim}",
        {"python": platform.python_version(), **versions},
    )


def _reconstructed(parts: Parts, victim: int, seen: Observed) -> tuple[Score, tuple[Example, ...]]:
    """How many samples were read, and three of them: not chosen by how well they were read."""
    table, own = parts.table, parts.stream.rows[:, victim]
    own = own[own >= 0]
    rows = parts.stream.features[own].astype(float)
    labels = parts.stream.labels[own].astype(float)
    free = np.setdiff1d(np.arange(len(table.labels)), own)
    others = np.asarray(table.features[free[:: max(1, len(free) // _MOST_OTHERS)]], float)
    candidates = seen.candidates(parts.model)
    found = score(candidates, rows, labels, others)
    if not (len(candidates.labels) and len(rows)):
        return found, ()
    exact = read_exactly(candidates, rows, labels)
    places, cosines = nearest(candidates.features, rows)
    return found, tuple(
        Example(
            _raw(table, rows[row]),
            _raw(table, candidates.features[places[row]]),
            float(cosines[row]),
            bool(exact[row]),
        )
        for row in np.unique(np.linspace(0, len(rows) - 1, EXAMPLES).astype(int))
    )


def _raw(table: Table, row: Vector) -> dict[str, float]:
    """A sample in the units of its file, without digits that mean nothing there."""
    means, scales = table.encoder.scaling
    raw = row * scales + means
    digits = 5 - np.floor(np.log10(scales)).astype(int)
    return {
        name: round(value, int(places))
        for name, value, places in zip(table.encoder.outputs, raw.tolist(), digits, strict=True)
    }


# The report.

TITLE = "# Privacy audit"
"""How a report begins."""
VERDICTS = {
    None: "nothing is promised",
    True: "the promise withstood these attacks",
    False: "the promise is BROKEN: more leaks than promised",
}
NETWORKS = {
    False: "a simulation of the whole network",
    True: "peers of the whole network in virtual time, by the messages they sent",
}
NOT_COVERED = (
    "how many samples there are, and when they came: pushes are counted and have a time",
    "the centres and scales of the features in the task, if they were taken from the data",
    "learning rates and other settings, if they were chosen by trying them on the data",
    "that a participant has labelled samples of this kind at all",
    "a machine that is broken into, or an owner who shares the samples in other ways",
    "other attacks than those run here: an audit can refute a guarantee, it cannot prove one",
)
_COLUMNS = 6
"""Features of an example that are shown."""


def facts_of(audit: Audit) -> dict[str, str]:
    """What each attack found, and the verdict."""
    found, evidence = audit.score, audit.evidence
    return {
        "reconstruction": f"everybody else together read {found.rows_read_exactly:,} of "
        f"{found.rows:,} samples exactly; nearest guess at a median cosine of {found.cosine:.2f} "
        f"(for samples it never had: {found.cosine_by_chance:.2f})",
        "membership": f"{evidence.canaries:,} canaries: {evidence.false_alarms:.1%} false alarms, "
        f"{evidence.misses:.1%} misses",
        "promised": audit.settings.privacy.brief,
        "measured": f"epsilon is at least {evidence.epsilon_lower_bound:.3g} at delta "
        f"{audit.delta:g}, with {evidence.confidence:.0%} confidence",
        "verdict": VERDICTS[audit.is_kept],
    }


def page_of(audit: Audit) -> str:
    """The report, a page of Markdown for a data protection officer."""
    settings = audit.settings
    about = {
        "data": f"{settings.data}; the samples of {audit.victim}",
        "model": f"{settings.model}, learned by {settings.method} with learning rate "
        f"{settings.learning_rate} ({settings.schedule}), step {settings.step}",
        "pushes": f"of at least {settings.samples_per_push} samples",
        "seed": str(settings.seed),
        "versions": ", ".join(f"{name} {value}" for name, value in audit.versions.items()),
    }
    parts = [
        TITLE,
        "Participants of this network learn a common model. Samples stay with their owner; pushes "
        "carry shares of a model. This report says whether the receivers of pushes can find out "
        "what the samples were, even if everybody else works together. The attacks were run on "
        f"{NETWORKS[audit.virtual]}.",
        _table(("", ""), facts_of(audit).items()),
        *_examples(audit.examples),
        "## Not covered",
        "\n".join(f"- {item}" for item in NOT_COVERED),
        "## Settings",
        _table(("", ""), about.items()),
    ]
    return "\n\n".join(parts) + "\n"


def _examples(examples: Sequence[Example]) -> list[str]:
    """Samples of the victim beside the nearest guesses."""
    if not examples:
        return []
    names, rows = list(examples[0].true)[:_COLUMNS], []
    for example in examples:
        note = "exactly" if example.exact else f"cosine {example.cosine:.2f}"
        rows.append(["true", *(_shown(example.true[name]) for name in names), ""])
        rows.append(["read", *(_shown(example.read[name]) for name in names), note])
    return ["## Samples, and what was read of them", _table(("", *names, ""), rows)]


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shown(value: float) -> str:
    """A number of a sample, in few digits.

    >>> _shown(1013.25), _shown(0.00012345), _shown(-0.0)
    ('1013.25', '0.00012345', '0')
    """
    text = f"{value:.6g}"
    return "0" if text == "-0" else text
