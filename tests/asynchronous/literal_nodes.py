"""Slow literal transcription of the asynchronous semantics: objects, dictionaries, one heap.

Written from the rules of the peers, not from the compiled loop; both share the first moment of a
run (who is there, who has which sample, the first draws) and the order in which chance is
asked. `wrong` names one rule that is broken on purpose: tests must tell.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oneway.asynchronous import event_world as w
from oneway.asynchronous.event_setup import first_world, founding, numbers_of
from oneway.asynchronous.outcome import Traffic
from oneway.models import typical_sample

BITS = (1 << 64) - 1
NOBODY = (w.ABSENT, w.GONE)


@dataclass
class Total:
    """A running sum, the `number`-th of its edge, made in a session."""

    number: int
    amount: np.ndarray
    session: int
    born: float | None = None


@dataclass
class Edge:
    """Both ends of an edge; `totals` from the last acknowledged one on."""

    index: int
    sender: int
    receiver: int
    weight: float
    share: float
    phase: int
    totals: list[Total]
    heard: Total
    session: int = 0
    own: tuple[int, int, int, int] = (w.UNUSED, 0, 0, 0)
    said: tuple[int, int, int] | None = None
    said_at: float = 0.0
    said_wait: float = 0.0
    lag: tuple[int, float] | None = None
    trip: float | None = None
    arrivals: dict[bool, float] = field(default_factory=lambda: {False: 0.0, True: 0.0})
    account: list[float] | None = None
    offer: float = 0.0
    turn_until: float = -1.0
    heard_session: int = 0
    shut: bool = False
    linked: bool = False
    seen: bool = False

    @property
    def acked(self) -> int:
        return self.totals[0].number

    @property
    def seq(self) -> int:
        return self.totals[-1].number

    def numbered(self, number: int) -> Total:
        return next(it for it in self.totals if it.number == number)


class Node:
    """One peer; amounts are (numerator, mass) or (numerator, mass, parcel, count)."""

    def __init__(self, held: np.ndarray, dim: int) -> None:
        self.held, self.owed = held, np.zeros_like(held)
        self.pushed = np.zeros(dim)
        self.batch, self.squares, self.unfinished = np.zeros(dim), 0.0, 0
        self.past: list[np.ndarray] = []
        self.status, self.life, self.learned, self.arrived = w.ABSENT, 0, 0, 0
        self.due, self.between, self.last_step = 0, 0.0, 0.0
        self.stepped = self.dirty = self.committing = self.changed = self.news = False
        self.minted = self.started = self.leaving = self.waits = self.taught = False
        self.lie: np.ndarray | None = None
        self.questions: dict[int, str] = {}
        self.answers: list[list[Any]] = []
        self.speed, self.next_sample, self.last_push, self.free_at = 1.0, math.inf, -math.inf, 0.0
        self.returning, self.first_units, self.handed = 0.0, 1.0, 0.0
        self.deadline = self.slept_for = self.asleep_since = 0.0
        self.farewell, self.heartbeat, self.drained_at = -math.inf, 0.0, None
        self.saved: dict[str, Any] = {}


class Alone:
    """The first moment, chance, time, and what nodes do alone; see `literal_events`."""

    def __init__(self, method, model, stream, graph, conditions, seed, wrong=""):
        method = method.suited(*typical_sample(model, stream.dim))
        dim = model.dim(stream.dim)
        self.n = numbers_of(method, model, dim, conditions)
        mixing = method.shares(graph) if method.payload else None
        world, samples, first = first_world(method, model, stream, mixing, conditions, self.n, seed)
        self.dim, self.wrong, self.world, self.samples = dim, wrong, world, samples
        self.model, self.stream, self.conditions = model, stream, conditions
        self.start, self.state = world.start, int(world.random[0])
        self.tally = dict.fromkeys(Traffic.__dataclass_fields__, 0)
        self.seconds = founding(conditions) + conditions.duration(stream.num_rounds)
        self.losses, self.minted = [], int(world.sums[w.MINTED_SUM])
        self.heap: list[tuple[Any, ...]] = []
        self.order, self.now, self.trips = 0, 0.0, list[float]()
        self.nodes = [self._node(i) for i in range(stream.num_nodes)]
        zero = np.zeros_like(self.nodes[0].held)
        self.edges = [self._edge(e, zero) for e in range(len(world.edge_facts))]
        self.out = [[e for e in self.edges if e.sender == i] for i in range(stream.num_nodes)]
        self.in_ = [[e for e in self.edges if e.receiver == i] for i in range(stream.num_nodes)]
        for moment, kind, target in zip(*first, strict=True):
            self.at(float(moment), int(kind), int(target), 0)

    def _node(self, index: int) -> Node:
        facts, times, parts = (
            self.world.node_facts[index],
            self.world.node_times[index],
            self.n.parts,
        )
        rows = self.world.held[parts * index : parts * (index + 1), : self.dim + 1]
        node = Node(np.concatenate(list(rows)), self.dim)
        node.status, node.speed = int(facts[w.STATUS]), times[w.SPEED]
        node.minted = node.started = bool(facts[w.MINTED])
        node.next_sample, node.handed = times[w.NEXT_SAMPLE], times[w.HANDED]
        if facts[w.LIAR]:
            node.lie = self.world.lies[facts[w.LIAR] - 1, : self.dim]
        return node

    def _edge(self, index: int, zero: np.ndarray) -> Edge:
        facts, times = self.world.edge_facts[index], self.world.edge_times[index]
        nothing = Total(0, zero, 0)
        ends = int(facts[w.SENDER]), int(facts[w.RECEIVER])
        edge = Edge(
            index, *ends, times[w.WEIGHT], times[w.SHARE], int(facts[w.PHASE]), [nothing], nothing
        )
        edge.own = (edge.phase, 0, 0, 0)
        return edge

    # Chance and time.

    def uniform(self) -> float:
        self.state = (self.state + 0x9E3779B97F4A7C15) & BITS
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & BITS
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & BITS
        return float((z ^ (z >> 31)) >> 11) * 2.0**-53

    def exponential(self, mean: float) -> float:
        return -mean * math.log(1.0 - self.uniform())

    def delay(self) -> float:
        return self.conditions.delay.draw(self.uniform())

    def at(self, moment: float, kind: int, target: int, payload: Any) -> None:
        heapq.heappush(self.heap, (moment, self.order, kind, target, payload))
        self.order += 1

    def local(self, i: int) -> float:
        return self.now - self.nodes[i].slept_for

    def run(self):
        while self.heap and self.heap[0][0] <= self.seconds:
            self.now, _, kind, target, payload = heapq.heappop(self.heap)
            self.tally["events"] += 1
            if kind >= w.PUSH:
                self.arrive(kind, self.edges[target], payload)
            elif kind > w.COMMIT:
                self.befall(kind, target)
            elif payload == self.nodes[target].life:
                self.timer(kind, target)
        return self

    @property
    def in_flight(self) -> float:
        """What was handed over by the senders' books, less what was heard; less what is owed."""
        handed = sum(
            (e.totals[0] if e.phase == w.DEAD else e.totals[-1]).amount[self.dim]
            - e.heard.amount[self.dim]
            for e in self.edges
        )
        return float(handed - sum(node.owed[self.dim] for node in self.nodes))

    # What a node does alone.

    def estimate(self, i: int) -> np.ndarray:
        node, d = self.nodes[i], self.dim
        if self.n.copied:
            own, models = node.held[:d], [node.held[:d]]
            limit = self.n.nearness * (1 + np.linalg.norm(own))
            for e in self.in_[i]:
                if e.heard.number and not e.shut:
                    away = e.heard.amount[:d] - own
                    far = np.linalg.norm(away)
                    models.append(own + away * (limit / far if far > limit else 1.0))
            return sum(models) / len(models)
        return node.held[:d] / node.held[d] if node.held[d] > 0 else node.pushed

    def learn(self, i: int) -> bool:
        node, n, d = self.nodes[i], self.n, self.dim
        row = self.samples.rows[node.learned, i]
        x = np.asarray(self.samples.features[row], float)
        x = np.append(x, 1.0) if n.intercept else x
        params, label = self.estimate(i), float(self.world.labels[row])
        loss = float(self.model.losses(params, self.stream_batch(row))[0])
        gradient = self.model.gradient(params, self.stream_batch(row))
        self.losses.append((self.now, loss))
        self.tally["samples"] += 1
        rate = float(self.world.rates[node.learned])
        node.learned += 1
        mass = 1.0 if n.relayed or n.copied else max(node.held[d], 0.0)
        share = min(n.cap, mass) if n.cap > 0 else 1.0

        def auto() -> float:
            return min(n.ceiling, n.reach / math.sqrt(node.squares)) if node.squares else n.ceiling

        rate = auto() if n.auto else rate
        limit = n.stable * mass / (n.bend * float(x @ x) + n.l2) if n.stable else math.inf
        del label
        if not n.batched:
            self.descend(i, params, min(rate * share, limit) * gradient)
            return True
        if n.stable:
            gradient = gradient * (min(rate, limit) / (rate * share) if rate * share else 0.0)
        gradient = gradient * min(1.0, n.batch_clip / max(np.linalg.norm(gradient), 1e-300))
        node.batch, node.unfinished = node.batch + gradient, node.unfinished + 1
        if node.unfinished < n.batch_samples:
            return False
        if n.noise:
            pairs = [(1.0 - self.uniform(), self.uniform()) for _ in range(d)]
            node.past.insert(
                0,
                np.array(
                    [math.sqrt(-2 * math.log(a)) * math.cos(2 * math.pi * b) for a, b in pairs]
                ),
            )
            noise = sum(c * z for c, z in zip(self.world.weights, node.past, strict=False))
            node.batch = node.batch + n.noise * n.batch_clip * noise
        if n.auto:
            node.squares += float(node.batch @ node.batch)
            rate = auto()
        self.descend(i, params, rate * share * node.batch)
        node.batch, node.unfinished = np.zeros(d), 0
        return True

    def stream_batch(self, row: int):
        from oneway.records import Batch

        features = np.asarray(self.samples.features[row : row + 1], np.float64)
        return Batch(features, self.stream.labels[row : row + 1])

    def descend(self, i: int, params: np.ndarray, step: np.ndarray) -> None:
        node, d = self.nodes[i], self.dim
        node.held = node.held.copy()
        if self.n.copied:
            node.held[:d] = params
        if not self.n.relayed:
            node.held[:d] -= step
            return
        node.held[d + 1 : -1] += step
        node.held[-1] += 1.0
        self.deposit(i)

    def deposit(self, i: int) -> bool:
        node, d = self.nodes[i], self.dim
        mass, parcel, count = node.held[d], node.held[d + 1 : -1], node.held[-1]
        if mass <= 0 or not (parcel.any() or count):
            return False
        phi = self.n.amount * mass
        if self.n.by_count:
            root = math.sqrt(max(count, 0.0))
            phi = phi / root if root > phi else 1.0
        phi = min(1.0, phi)
        own = np.linalg.norm(node.held[:d] / mass)
        most = self.n.nearness * (1.0 + own) * mass
        if phi * np.linalg.norm(parcel) > most:
            phi = most / float(np.linalg.norm(parcel))
        held = node.held.copy()
        held[:d] -= phi * parcel
        held[d + 1 :] *= 1.0 - phi
        node.held = held
        return True

    # Books.

    def book(self, i: int, gained: np.ndarray) -> None:
        node, d = self.nodes[i], self.dim
        if self.n.copied:
            gained = np.where(np.arange(len(gained)) < d, 0.0, gained)
        held = node.held[d]
        if gained[d] >= 0:
            node.held = node.held + gained
            self.pay(i, gained[d] / 2)
        elif -gained[d] <= held / 2:
            node.held = node.held + gained
        else:
            node.owed = node.owed - gained
            self.pay(i, max(held, 0.0) / 2)

    def pay(self, i: int, most: float) -> None:
        node = self.nodes[i]
        owed = node.owed[self.dim]
        if owed > 0:
            part = node.owed * (1.0 if most >= owed else most / owed)
            node.held, node.owed = node.held - part, node.owed - part

    def mint(self, i: int, at: np.ndarray) -> None:
        node, d = self.nodes[i], self.dim
        held = node.held.copy()
        held[:d] = at if self.n.copied else held[:d] + at
        held[d] += 1.0
        node.held, node.minted = held, True
        self.minted += 1
