"""An asynchronous network as arrays: clocks, delays, losses, faults and liars, for any method.

Time is cut into ticks, `TICKS` between two samples of a node of ordinary speed. Who is there and
who comes to a sample when does not depend on what is learned, so both are drawn beforehand
(`Schedule`). In a tick nodes that come to a sample learn, those that have something to say push,
and what is due at the next tick arrives. What decides whether, and how much, is in
`oneway.protocol.pace` and `Method.bounded`, which the peers use as well.

What is left out of what peers do is far below a tick or without weight: messages, acknowledgements
and books are times and sums here, connections are up as soon as both ends are, and only liars have
accounts of how far they moved their receivers. `oneway lab --virtual` runs the peers' own code.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from oneway.methods import Method, State
from oneway.methods.base import BATCH_MEMORY, only
from oneway.metrics import disagreement
from oneway.models import Model
from oneway.protocol import pace
from oneway.protocol.incoming import deposited_weight
from oneway.protocol.pace import FIRST_STEP, PART, SECONDS_PER_STEP, STEPS
from oneway.records import Bools, Ints, Matrix, NetworkState, Vector
from oneway.simulator.exchange import LET_GO, Exchange, Mixing
from oneway.simulator.measurements import Measurements, Seed
from oneway.simulator.reference_engine import ReferenceEngine
from oneway.streams import Stream
from oneway.task.conditions import Conditions, Roles, absences, lies, moments, seeds
from oneway.task.task import MOST_AT_ONCE

TICKS = 4
"""Ticks between two samples of a node of ordinary speed."""
JOIN_SECONDS = 3.0
"""How long a newcomer waits for the model of others, before it starts from its own."""
WINDOW = 16
"""Pushes to one receiver that may be unacknowledged, unless the conditions say otherwise."""
_NEVER = np.iinfo(np.int64).max // 4
_NOBODY = 1e-300
"""What all receivers together get where there is none."""
_RARE = 1e-9
"""Of a tick: what is due so soon is due now."""


@dataclass(frozen=True, eq=False)
class Schedule:
    """Who is there, and who comes to which sample, in every tick; nothing of it is learned.

    Attributes:
        tick: Length of a tick, in seconds.
        rounds: `[tick, node]`, the round of the stream whose sample a node comes to; -1 if none.
        up: `[tick, node]`, whether a node runs and is awake.
        joins: `[node]`, the tick in which a node comes; 0 for most.
        leaves: `[node]`, the tick in which it begins to leave; far off for most.
        liars: `[node]`, which nodes push a model of their own.
    """

    tick: float
    rounds: Ints
    up: Bools
    joins: Ints
    leaves: Ints
    liars: Bools

    @classmethod
    def draw(cls, conditions: Conditions, num_rounds: int, num_nodes: int, seed: Seed) -> Schedule:
        """Draw the schedule of a network whose nodes have `num_rounds` rounds to come to."""
        seconds = conditions.duration(num_rounds)
        tick = 1.0 / (TICKS * conditions.rate)
        num_ticks = max(1, math.ceil(seconds / tick - _RARE))
        roles = Roles.draw(conditions, num_nodes, seconds, seed)
        joins = np.ceil(roles.joins / tick - _RARE).astype(np.int64)
        leaves = np.full(num_nodes, _NEVER)
        leaving = np.isfinite(roles.leaves)
        leaves[leaving] = np.maximum(joins[leaving], (roles.leaves[leaving] / tick).astype(int))
        up = np.ones((num_ticks, num_nodes), np.bool_)
        for away in absences(conditions, roles, seconds, seed):
            first, last = math.ceil(away.begins / tick), math.ceil(away.ends / tick)
            up[first:last, away.node] = False
        ticks = np.arange(num_ticks)[:, None]
        learns = up & (ticks >= joins) & (ticks < leaves)
        dues = moments(conditions, roles, num_rounds, seed) / tick
        rounds = _rounds(learns, dues)
        return cls(tick, rounds, up & (ticks >= joins), joins, leaves, roles.liars)

    @property
    def num_ticks(self) -> int:
        """How many ticks there are."""
        return len(self.rounds)

    def stream(self, stream: Stream) -> Stream:
        """The samples of a stream, in the ticks in which nodes come to them; liars have none."""
        nodes = np.arange(stream.num_nodes)
        there = (self.rounds >= 0) & ~self.liars

        def spread(rows: Ints) -> Ints:
            return np.where(there, rows[np.maximum(self.rounds, 0), nodes], -1)

        late = None if stream.late is None else spread(stream.late)
        return replace(stream, rows=spread(stream.rows), late=late, _known_finite=True)


def _rounds(learns: Bools, dues: Matrix) -> Ints:
    """The round that each node comes to in each tick, one a tick at most; -1 if none."""
    num_rounds, num_nodes = dues.shape
    found = np.full(learns.shape, -1, np.int32)
    place, clock, nodes = np.zeros(num_nodes, np.int64), np.zeros(num_nodes), np.arange(num_nodes)
    for tick, there in enumerate(learns):
        clock += there
        is_due = dues[np.minimum(place, num_rounds - 1), nodes] <= clock + _RARE
        takes = there & (place < num_rounds) & is_due
        found[tick, takes] = place[takes]
        place += takes
    return found


@dataclass(eq=False)
class _Parcels:
    """What was sent in one tick and is under way, an entry for each edge.

    Attributes:
        edges: Over which it goes.
        due: The tick in which it is there.
        values: `[entry, width]` by name.
    """

    edges: Ints
    due: Ints
    values: dict[str, Matrix]

    def taken(self, which: Bools) -> _Parcels:
        """The entries chosen."""
        return _Parcels(
            self.edges[which],
            self.due[which],
            {name: array[which] for name, array in self.values.items()},
        )


class _UnderWay:
    """Parcels by tick. Totals are sent, so what is sent later brings all that was sent before."""

    def __init__(self, num_edges: int, copied: Collection[str] = ()) -> None:
        self._parcels: list[_Parcels] = []
        self._num_edges, self._copied = num_edges, copied

    def send(self, parcels: _Parcels) -> None:
        """Put parcels on their way; older ones over the same edges are there no later."""
        if not len(parcels.edges):
            return
        newest = np.full(self._num_edges, _NEVER)
        newest[parcels.edges] = parcels.due
        for older in self._parcels:
            np.minimum(older.due, newest[older.edges], out=older.due)
        self._parcels.append(parcels)

    def due(self, tick: int) -> _Parcels:
        """Take out all that is there by a tick: one parcel for each edge."""
        found, left = [], []
        for parcels in self._parcels:
            there = parcels.due <= tick
            if there.any():
                found.append(parcels.taken(there))
                parcels = parcels.taken(~there)
            if len(parcels.edges):
                left.append(parcels)
        self._parcels = left
        return self._merged(found)

    def _merged(self, parcels: list[_Parcels]) -> _Parcels:
        """What came over the same edge as one: sums, and of copies the newest."""
        if not parcels:
            nothing = np.zeros(0, np.int64)
            return _Parcels(nothing, nothing, {})
        edges = np.concatenate([it.edges for it in parcels])
        joined = _Parcels(
            edges,
            np.concatenate([it.due for it in parcels]),
            {
                name: np.concatenate([it.values[name] for it in parcels])
                for name in parcels[0].values
            },
        )
        different, places = np.unique(edges, return_inverse=True)
        if len(different) == len(edges):
            return joined
        newest = np.zeros(len(different), np.int64)
        newest[places] = np.arange(len(edges))
        sums = csr_array((np.ones(len(edges)), (places, np.arange(len(edges)))))
        values = {
            name: array[newest]
            if name in self._copied
            else np.asarray(sums @ array).astype(array.dtype)
            for name, array in joined.values.items()
        }
        return _Parcels(different, joined.due[newest], values)

    def total(self, name: str) -> Vector:
        """The sum of one kind of value."""
        return sum((it.values[name].sum(axis=0) for it in self._parcels), np.zeros(1))


class AsynchronousEngine(ReferenceEngine):
    """The reference engine in ticks of an asynchronous network.

    Args:
        method: How nodes learn; with bounds of mass, as peers have them.
        model: What is learned.
        stream: Of the schedule, a row per tick.
        measurements: Of as many ticks.
        seed: Of the model's start, the method, and the links.
        conditions: Delays, losses and limits.
        schedule: Who is there when.

    Attributes:
        minted: The mass that was brought in, and what nodes minted since.
        burned: The mass that was burned.
    """

    name = "asynchronous"

    def __init__(
        self,
        method: Method,
        model: Model,
        stream: Stream,
        measurements: Measurements,
        seed: Seed,
        conditions: Conditions,
        schedule: Schedule,
    ) -> None:
        super().__init__(method, model, stream, measurements, seed)
        num_nodes = stream.num_nodes
        self.conditions, self.schedule = conditions, schedule
        self._links: Links | None = None
        self._link_rng = np.random.default_rng(seeds(seed, 0x71A45))
        self._dim = sum(it.shape[1] for it in self.held.segments.values())
        self._start = np.array(self.method.estimate(self.held))
        # Newcomers have no mass until they heard a model, or waited in vain.
        self._waits = schedule.joins > 0
        if self.method.has_mass:
            self.held = only(~self._waits, _emptied(self.held), self.held)
        self.minted, self.burned = float((~self._waits).sum()), 0.0
        # What each node minted because it had too little; now, and when it last pushed.
        self._learns = np.zeros(num_nodes, np.bool_)
        self._between, self._last_step = np.zeros(num_nodes), np.zeros(num_nodes)
        self._due_pushes = np.zeros(num_nodes, np.int64)
        self._last_push = np.full(num_nodes, -np.inf)
        self._has_news = np.zeros(num_nodes, np.bool_)
        self._pushed, self._tick = self._start, 0
        own = lies(schedule.liars, self._pushed.shape[1], conditions.lie, seed)
        self._lies = np.array(list(own.values())).reshape(len(own), self._pushed.shape[1])
        self._own_steps = _OwnSteps(num_nodes, self.method.longest_step)

    def advance(self, first: int, last: int, mixing: Mixing | None) -> None:
        """Run ticks `first` to `last` (excluded), all with the same shares."""
        if mixing is not None and self._links is None:
            self._links = Links(self.method, mixing, self.held, self.conditions, self.schedule)
            self._own_steps.counts = self._links.accounts is not None
        super().advance(first, last, mixing)

    @property
    def state(self) -> NetworkState:
        """Numerators and masses of all nodes, copies averaged."""
        links, held = self._links, self.held
        if links is not None and links.copies:
            held = links.averaged(held)
        return NetworkState(self.method.numerators(held), self.method.masses(held))

    @property
    def mass_in_flight(self) -> float:
        """The mass that was handed over and is at no node yet."""
        return float(self.under_way("mass")[0]) if self.method.has_mass else 0.0

    @property
    def pushes(self) -> int:
        """How many pushes there were, each over one edge."""
        return 0 if self._links is None else self._links.pushes

    def under_way(self, name: str) -> Vector:
        """The sum of what has not arrived, of a segment that is conserved."""
        return np.zeros(1) if self._links is None else self._links.mail.total(name)

    def _round(self, tick: int, _: Exchange) -> None:
        self._tick = tick
        self._start_newcomers(tick)
        has_sample = self.stream.known_rows[tick] >= 0
        self._keep_mass(has_sample)
        nodes, losses, correct = self.learn(tick)
        self._note_steps(tick, has_sample)
        if self._links is not None:
            self._exchange_parcels(tick, self._links)
        self._measure(tick, nodes, losses, correct)

    def _disagreement(self) -> float:
        """That of the nodes which are awake, have mass and learn from what they hold."""
        state, schedule = self.state, self.schedule
        there = schedule.up[self._tick] & ~schedule.liars & ~self._waits & (state.masses > 0)
        if not there.any():
            return 0.0
        return disagreement(NetworkState(state.numerators[there], state.masses[there]))

    # Newcomers, and mass within bounds.

    def _start_newcomers(self, tick: int) -> None:
        """Let those who waited long enough, or have a sample, start from their own model."""
        if not self._waits.any():
            return
        late = tick >= self.schedule.joins + math.ceil(JOIN_SECONDS / self.schedule.tick)
        self._mint(self._waits & (late | (self.stream.known_rows[tick] >= 0)), self._start)

    def _mint(self, nodes: Bools, models: Matrix) -> None:
        """Bring a unit of mass in at some nodes, at their row of `models`."""
        if not nodes.any():
            return
        self._waits &= ~nodes
        self.minted += float(nodes.sum())
        if self.method.has_mass:
            segments, first = dict(self.held.segments), self.method.payload[0].name
            segments[first] = segments[first] + np.where(nodes[:, None], models, 0.0)
            segments["mass"] = segments["mass"] + nodes[:, None]
            self.held = State(segments, self.held.memory)

    def _keep_mass(self, nodes: Bools) -> None:
        """Keep the mass of some nodes within bounds; those who leave mint and burn nothing."""
        if not self.method.has_mass or self.method.bounds is None:
            return
        kept = self.method.bounded(self.held)
        if kept is self.held:
            return
        kept = only(nodes & (self._tick < self.schedule.leaves), self.held, kept)
        gained = kept.segments["mass"] - self.held.segments["mass"]
        self.minted += float(gained[gained > 0].sum())
        self.burned -= float(gained[gained < 0].sum())
        self.held = kept

    # Steps.

    def learn(self, tick: int) -> tuple[Ints, Vector, Bools | None]:
        """Let nodes learn from their samples; copies are averaged, and kept with the next step."""
        links, own = self._links, self.held
        before = self.held
        if links is not None and links.copies:
            self.held = before = links.averaged(own)
        found = super().learn(tick)
        after = self.held
        self._own_steps.take(self.method, before, after)
        if links is not None and links.copies:
            self.held = _where_changed(own, before, after)
        return found

    def _note_steps(self, tick: int, has_sample: Bools) -> None:
        """Note who took a step, which a push is to follow."""
        self._learns |= has_sample
        stepped = has_sample.copy()
        if self.method.batches is not None:
            count = self.held.memory.get(BATCH_MEMORY[1])
            stepped &= True if count is None else count[:, 0] == 0.0
        now = tick * self.schedule.tick
        self._between = np.where(stepped, now - self._last_step, self._between)
        self._last_step = np.where(stepped, now, self._last_step)
        self._due_pushes[stepped] = self.method.mixes
        self._own_steps.stepped(stepped, now)

    # Pushes.

    def _exchange_parcels(self, tick: int, links: Links) -> None:
        """Let nodes push what they have to say, and take in what has arrived by the next tick."""
        links.forget(self.schedule.leaves <= tick)
        acting = self._acting(tick, links)
        self._keep_mass(acting)
        ready = self._ready(acting, links)
        now = tick * self.schedule.tick
        self._last_push[acting] = now
        self._has_news[acting] = False
        self._due_pushes[acting] -= self._due_pushes[acting] > 0
        before = ready.segments["mass"].sum() if self.method.has_mass else 0.0
        self.held, handed = links.push(ready, acting, tick, self._link_rng)
        if self.method.has_mass:
            self.burned += float(before - self.held.segments["mass"].sum() - handed)
        if acting.any():
            self._pushed = np.where(acting[:, None], self._estimates(links), self._pushed)
        self._take_in(links, links.mail.due(tick + 1), tick + 1)

    def _estimates(self, links: Links) -> Matrix:
        held = links.averaged(self.held) if links.copies else self.held
        return self.method.estimate(held)

    def _acting(self, tick: int, links: Links) -> Bools:
        """Nodes that push: after steps, to pass on what came, or to hand over all."""
        schedule, up = self.schedule, self.schedule.up[tick]
        now = tick * schedule.tick
        acting = self._due_pushes > 0
        idle = pace.idle_seconds(self._between, now - self._last_step, self._learns, self._dim)
        passes = up & self._has_news & (now - self._last_push >= idle - _RARE * schedule.tick)
        if passes.any():
            passes &= self._is_worth(passes, links)
        acting |= passes
        acting |= schedule.liars & up & ((schedule.rounds[tick] >= 0) | self._has_news)
        gone = schedule.leaves <= tick
        acting &= ~gone
        if self.method.has_mass:
            has_mass = self.held.segments["mass"][:, 0] > 0
            acting = np.where(gone, has_mass, acting & has_mass)
        found: Bools = acting & up & ~self._waits
        return found

    def _is_worth(self, nodes: Bools, links: Links) -> Bools:
        """Whether what came moved some nodes enough, or brought them steps to pass on."""
        estimates = self._estimates(links)
        moved = np.linalg.norm(np.where(nodes[:, None], estimates - self._pushed, 0.0), axis=1)
        size = np.linalg.norm(np.where(nodes[:, None], estimates, 0.0), axis=1)
        found = np.asarray(pace.is_worth_passing_on(moved, size))
        for segment in self.method.payload:
            if segment.kind == "forwarded" and segment.is_vector:
                extent = np.abs(self.held.segments[segment.name]).max(axis=1, initial=0.0)
                found = found | np.asarray(pace.is_worth_passing_on(extent, size))
        return found

    def _ready(self, acting: Bools, links: Links) -> State:
        """The state as it is pushed: deposits made, copies averaged, liars' models in place."""
        before = self.held
        if links.copies:
            # After a step its model was averaged; without one it is averaged now.
            before = only(self._due_pushes > 0, links.averaged(before), before)
        ready = self.method.before_push(before, self.rng)
        if self.method.has_mass and ready is not before and math.isfinite(self.conditions.clip):
            ready = self._limited(before, ready)
        ready = only(acting & (self.schedule.leaves > self._tick), self.held, ready)
        lying = acting & self.schedule.liars
        if lying.any():
            first = self.method.payload[0].name
            weights = ready.segments["mass"] if self.method.has_mass else np.ones((len(acting), 1))
            pushed = ready.segments[first].copy()
            among = lying[self.schedule.liars]
            pushed[lying] = self._lies[among] * weights[lying]
            ready = State({**ready.segments, first: pushed}, ready.memory)
        return ready

    def _limited(self, before: State, ready: State) -> State:
        """A state after deposits that move no estimate further than others may at once."""
        first, clip = self.method.payload[0].name, self.conditions.clip
        held = before.segments[first]
        moved = np.linalg.norm(ready.segments[first] - held, axis=1)
        most = clip * (before.segments["mass"][:, 0] + np.linalg.norm(held, axis=1))
        part = np.divide(most, moved, out=np.ones_like(moved), where=moved > most)[:, None]
        return State(
            {
                name: before.segments[name]
                + part.astype(array.dtype) * (array - before.segments[name])
                for name, array in ready.segments.items()
            },
            ready.memory,
        )

    # Arrivals.

    def _take_in(self, links: Links, parcels: _Parcels, tick: int) -> None:
        """Add what arrived; what found nobody goes back to where it came from."""
        if not len(parcels.edges):
            return
        there = links.is_there(tick)[links.receivers[parcels.edges]]
        back, parcels = parcels.taken(~there), parcels.taken(there)
        if len(back.edges):
            links.presumed_dead(back.edges)
            self._add(links.senders[back.edges], back.values)
        if not len(parcels.edges):
            return
        receivers = links.receivers[parcels.edges]
        if self.method.has_mass:
            self._clip(links, parcels, tick)
        if self._waits[receivers].any():
            self._mint_at_what_came(parcels, receivers)
        self._add(receivers, parcels.values)
        links.keep_copies(parcels)
        self._has_news[receivers] = True

    def _add(self, nodes: Ints, values: dict[str, Matrix]) -> None:
        """Add rows of values to the segments of nodes."""
        ones = np.ones(len(nodes))
        gather = csr_array(
            (ones, (nodes, np.arange(len(nodes)))), shape=(self.stream.num_nodes, len(nodes))
        )
        segments = dict(self.held.segments)
        for segment in self.method.payload:
            if segment.kind != "copied":
                held = segments[segment.name]
                segments[segment.name] = held + gather.astype(held.dtype) @ values[segment.name]
        self.held = State(segments, self.held.memory)

    def _mint_at_what_came(self, parcels: _Parcels, receivers: Ints) -> None:
        """Let newcomers start from the first model that came."""
        models = np.array(self._start)
        if self.method.has_mass:
            first = self.method.payload[0].name
            models[receivers[::-1]] = (parcels.values[first] / parcels.values["mass"])[::-1]
        nodes = np.zeros(self.stream.num_nodes, np.bool_)
        nodes[receivers] = True
        self._mint(nodes & self._waits, models)

    def _clip(self, links: Links, parcels: _Parcels, tick: int) -> None:
        """Move models that lie too far from their receiver's own to the limit."""
        clip = self.conditions.clip
        if math.isinf(clip):
            return
        name, receivers = self.method.payload[0].name, links.receivers[parcels.edges]
        mass = parcels.values["mass"]
        own = np.nan_to_num(self.method.estimate(self.held)[receivers], posinf=0.0, neginf=0.0)
        away = parcels.values[name] / mass - own
        far = np.linalg.norm(away, axis=1)
        limit = clip * (1.0 + np.linalg.norm(own, axis=1))
        too_far = far > limit
        if too_far.any():
            part = np.divide(limit, far, out=np.ones_like(far), where=too_far)[:, None]
            parcels.values[name][too_far] = (mass * (own + part * away))[too_far]
        if links.accounts is not None:
            links.accounts.limit(self.method, self.held, parcels, self._own_steps, tick)


class _OwnSteps:
    """How long the steps of nodes are: the root of their mean square, as peers count it."""

    def __init__(self, num_nodes: int, longest: float) -> None:
        self._first = FIRST_STEP if math.isinf(longest) else longest
        self._squares, self._weight = np.zeros(num_nodes), np.zeros(num_nodes)
        self._lengths = np.zeros(num_nodes)
        self._steps, self._last = np.zeros(num_nodes), np.zeros(num_nodes)
        self.counts = False

    def take(self, method: Method, before: State, after: State) -> None:
        """Measure the steps that led from one state to another."""
        if not self.counts:
            return
        squares = np.zeros(len(self._steps))
        for segment in method.payload:
            if segment.is_vector:
                moved = after.segments[segment.name] - before.segments[segment.name]
                squares += np.einsum("nd,nd->n", moved, moved)
        masses = method.step_masses(before)
        self._lengths = np.divide(
            np.sqrt(squares), masses, out=np.zeros_like(squares), where=masses > 0
        )

    def stepped(self, nodes: Bools, now: float) -> None:
        """Count the steps that some nodes took."""
        if not self.counts:
            return
        self._steps = np.where(nodes, self.at(now) + 1.0, self._steps)
        self._last = np.where(nodes, now, self._last)
        keep = 1.0 - 1.0 / STEPS
        self._squares = np.where(nodes, keep * self._squares + self._lengths**2, self._squares)
        self._weight = np.where(nodes, keep * self._weight + 1.0, self._weight)

    def at(self, now: float) -> Vector:
        """How many steps nodes took, time without any counting a little."""
        found: Vector = self._steps + (now - self._last) / SECONDS_PER_STEP
        return found

    def lengths(self) -> Vector:
        """How long the steps of each node are."""
        means = np.divide(
            self._squares, self._weight, out=np.zeros_like(self._weight), where=self._weight > 0
        )
        return np.where(self._weight > 0, np.sqrt(means), self._first)


class _Accounts:
    """By how much each liar moved each of its receivers lately: the accounts of `peer.inflow`.

    Honest senders pull to and fro, and hardly ever come near their limit: they have none here.
    """

    def __init__(self, edges: Ints, num_edges: int, receivers: Ints, dim: int, tick: float) -> None:
        self._place = np.full(num_edges, -1)
        self._place[edges] = np.arange(len(edges))
        self._receivers, self._tick = receivers, tick
        self._moves, self._at = np.zeros((len(edges), dim)), np.zeros(len(edges))

    def limit(
        self, method: Method, held: State, parcels: _Parcels, own: _OwnSteps, tick: int
    ) -> None:
        """Shorten what liars bring to what is left of their accounts."""
        which = np.flatnonzero(self._place[parcels.edges] >= 0)
        if not len(which):
            return
        edges = parcels.edges[which]
        places, receivers = self._place[edges], self._receivers[edges]
        masses = held.segments["mass"][receivers, 0]
        heaviest = (method.bounds or method.usual_bounds)[1]
        most = PART * STEPS * own.lengths()[receivers]
        most /= np.maximum(1.0, np.minimum(masses, heaviest) / 2.0)
        steps = own.at(tick * self._tick)[receivers]
        moves = self._moves[places] * ((1.0 - 1.0 / STEPS) ** (steps - self._at[places]))[:, None]
        first = method.payload[0].name
        brought, more = parcels.values[first][which], parcels.values["mass"][which, 0]
        numerators = held.segments[first][receivers]
        together = np.maximum(masses + more, 1e-300)[:, None]
        was = np.divide(
            numerators, masses[:, None], out=np.zeros_like(numerators), where=masses[:, None] > 0
        )
        pull = (numerators + brought) / together - was
        moved = pull.copy()
        forwarded = [it.name for it in method.payload if it.kind == "forwarded"]
        if "parcel" in forwarded:
            counts = held.segments["count"][receivers, 0] + parcels.values["count"][which, 0]
            weight = deposited_weight(counts, masses + more, heaviest)
            moved -= weight[:, None] * parcels.values["parcel"][which]
        part = np.where(masses > 0, pace.part_within(moves, moved, most), 1.0)[:, None]
        self._moves[places], self._at[places] = moves + part * moved, steps
        limited = (was + part * pull) * together - numerators
        parcels.values[first][which] = np.where(part < 1.0, limited, brought)
        for name in forwarded:
            parcels.values[name][which] *= part


class Links:
    """The edges of a graph, what is under way on them, and what receivers know of senders.

    Attributes:
        senders, receivers: The ends of every edge.
        mail: Pushes that have not arrived.
        copies: Names of copied segments.
        accounts: Of liars; None without.
        pushes: How many there were, each over one edge.
    """

    def __init__(
        self, method: Method, mixing: Mixing, state: State, conditions: Conditions, plan: Schedule
    ) -> None:
        self._method, self._conditions, self._plan = method, conditions, plan
        links = mixing.tocoo()
        away = links.row != links.col
        self.senders, self.receivers = links.row[away].astype(int), links.col[away].astype(int)
        self._num_nodes, self._num_edges = mixing.shape[0], len(self.senders)
        self._given: Vector = links.data[away]
        self._shares = self._given
        self._joined = -1
        self._sinks = np.bincount(self.senders, minlength=self._num_nodes) == 0
        hears = np.bincount(self.receivers, minlength=self._num_nodes) > 0
        self._lets_go = self._sinks & hears & method.lets_go
        self.copies = [it.name for it in method.payload if it.kind == "copied"]
        self.mail = _UnderWay(self._num_edges, self.copies)
        self._unanswered = _UnderWay(self._num_edges)
        self._mass, self._count = np.zeros(self._num_edges), np.zeros(self._num_edges)
        self._lags_since = np.full(self._num_edges, np.inf)
        self._is_dead = np.zeros(self._num_edges, np.bool_)
        self._next_up = _next_up(plan.up)
        dim = sum(it.shape[1] for it in state.segments.values())
        trip = 2.0 * (conditions.delay.mean + conditions.commit)
        self._wait = pace.first_wait(dim, trip)
        self._newest = {
            name: np.zeros(
                (self._num_edges, state.segments[name].shape[1]), state.segments[name].dtype
            )
            for name in self.copies
        }
        self._has_come = np.zeros(self._num_edges, np.bool_)
        self.accounts: _Accounts | None = None
        self.pushes = 0
        lying = np.flatnonzero(plan.liars[self.senders])
        if len(lying) and math.isfinite(conditions.clip) and method.has_mass:
            width = state.segments[method.payload[0].name].shape[1]
            self.accounts = _Accounts(lying, self._num_edges, self.receivers, width, plan.tick)

    def is_there(self, tick: int) -> Bools:
        """Which nodes take something in."""
        last = min(tick, self._plan.num_ticks - 1)
        found: Bools = self._plan.up[last] & (self._plan.leaves > tick)
        return found

    def presumed_dead(self, edges: Ints) -> None:
        """Hand nothing more over edges whose receiver did not answer, until it is back."""
        self._is_dead[edges] = True

    def push(
        self, state: State, acting: Bools, tick: int, rng: np.random.Generator
    ) -> tuple[State, float]:
        """What is left with the nodes after the acting ones have pushed, and the mass handed over.

        Steps that wait for receivers of which none answers, or there is none, are let go.
        """
        self._hear_answers(tick)
        edges, shares, all_shares = self._able(acting, tick)
        leaves = self._plan.leaves <= tick
        senders, leaving = self.senders[edges], self._plan.leaves[self.senders[edges]] <= tick
        fractions = shares
        if self._method.has_mass:
            masses = np.maximum(state.segments["mass"][senders, 0], 1e-300)
            usual = pace.fraction_to_hand_over(shares, masses, self._mass[edges], MOST_AT_ONCE)
            room = np.maximum(MOST_AT_ONCE - self._mass[edges], 0.0)
            everything = np.bincount(senders, shares, minlength=self._num_nodes)[senders]
            whole = np.minimum(shares / np.maximum(everything, 1e-300), room / masses)
            fractions = np.where(leaving, whole, usual)
            if not self.copies:
                some = fractions > 0.0
                edges, senders, leaving = edges[some], senders[some], leaving[some]
                fractions, shares = fractions[some], shares[some]
        segments, values = dict(state.segments), {}
        for segment in self._method.payload:
            held = state.segments[segment.name]
            if segment.kind == "copied":
                values[segment.name] = held[senders]
                continue
            parts = fractions
            if segment.kind == "forwarded":
                parts = np.where(leaving, fractions, fractions / all_shares[senders])
            values[segment.name] = parts[:, None].astype(held.dtype) * held[senders]
            kept = 1.0 - np.bincount(senders, parts, minlength=self._num_nodes)
            kept = np.where(np.abs(kept) < 1e-12, 0.0, kept)
            if segment.kind == "forwarded":
                waits = acting & ~leaves & (all_shares <= _NOBODY)
                kept = np.where(waits, 0.0, kept)
            else:
                kept = np.where(self._lets_go & acting & ~leaves, LET_GO, kept)
            segments[segment.name] = kept[:, None].astype(held.dtype) * held
        self._send(edges, values, tick, rng)
        handed = float(values["mass"].sum()) if self._method.has_mass else 0.0
        return State(segments, state.memory), handed

    def _able(self, acting: Bools, tick: int) -> tuple[Ints, Vector, Vector]:
        """Edges over which acting nodes push, their shares, and per node what these are parts of.

        Nothing goes to a node that has not come yet, or whose answers are overdue; what would go to
        one that has left stays.
        """
        plan, now = self._plan, tick * self._plan.tick
        present = plan.joins <= tick
        if self._joined != present.sum():
            self._joined = int(present.sum())
            self._shares = self._shares_among(present)
        overdue = now - self._lags_since > pace.patience(self._wait)
        self._is_dead &= ~plan.up[tick][self.receivers]
        open_ = acting[self.senders] & present[self.receivers] & ~overdue & ~self._is_dead
        of_all = np.bincount(self.senders[open_], self._shares[open_], minlength=self._num_nodes)
        open_ &= (plan.leaves[self.receivers] > tick) & (self._count < self._window)
        edges = np.flatnonzero(open_)
        return edges, self._shares[edges], np.maximum(of_all, _NOBODY)

    @property
    def _window(self) -> int:
        return self._conditions.window or WINDOW

    def _shares_among(self, present: Bools) -> Vector:
        """The shares of receivers that have come: of all that a node hands out."""
        if present.all():
            return self._given
        weights = np.where(present[self.receivers], self._given, 0.0)
        size = self._num_nodes
        full = np.bincount(self.senders, self._given, minlength=size).astype(np.float64)
        left = np.bincount(self.senders, weights, minlength=size).astype(np.float64)
        scale = np.divide(full, left, out=np.zeros(size), where=left > 0)
        return np.asarray(scale[self.senders] * weights, np.float64)

    def _send(
        self, edges: Ints, values: dict[str, Matrix], tick: int, rng: np.random.Generator
    ) -> None:
        """Put pushes on their way, with the time that they and their answers take."""
        plan, told = self._plan, self._conditions
        tries, answered = _tries(told.loss, len(edges), rng)
        there, back = (told.delay.draw(rng.random(len(edges))) for _ in range(2))
        arrives = told.commit + _waited(self._wait, tries) + there
        heard = 2.0 * told.commit + _waited(self._wait, answered) + there + back
        spread = rng.random(len(edges))
        due = tick + np.maximum(1, np.floor(arrives / plan.tick + spread)).astype(np.int64)
        answer = tick + np.maximum(1, np.floor(heard / plan.tick + spread)).astype(np.int64)
        if self._next_up is not None:
            given_up = tick + max(1, round(told.presume_dead_after / plan.tick))
            up = self._up_at(due, self.receivers[edges])
            due = np.minimum(up, np.maximum(due, given_up)).astype(np.int64)
            answer = self._up_at(np.maximum(answer, due), self.senders[edges]).astype(np.int64)
        self.mail.send(_Parcels(edges, due, values))
        mass = values["mass"] if self._method.has_mass else np.zeros((len(edges), 1))
        pushes = np.ones((len(edges), 1))
        self._unanswered.send(_Parcels(edges, answer, {"mass": mass, "pushes": pushes}))
        self._mass[edges] += mass[:, 0]
        self._count[edges] += 1
        self.pushes += len(edges)
        now = tick * plan.tick
        self._lags_since[edges] = np.minimum(self._lags_since[edges], now)

    def _up_at(self, ticks: Ints, nodes: Ints) -> Ints:
        """The first tick from these on in which nodes are up."""
        assert self._next_up is not None
        last = len(self._next_up) - 1
        later: Ints = self._next_up[np.minimum(ticks, last), nodes]
        return np.where(ticks > last, ticks, later)

    def _hear_answers(self, tick: int) -> None:
        """Note which pushes senders know to have arrived by now."""
        answers = self._unanswered.due(tick)
        if not len(answers.edges):
            return
        self._mass[answers.edges] -= answers.values["mass"][:, 0]
        self._count[answers.edges] -= answers.values["pushes"][:, 0]
        lags = self._count[answers.edges] > 0
        self._lags_since[answers.edges] = np.where(lags, tick * self._plan.tick, np.inf)
        np.copyto(self._mass, 0.0, where=self._count == 0)

    # Copies.

    def keep_copies(self, parcels: _Parcels) -> None:
        """Keep the newest value that came over each edge."""
        for name in self.copies:
            self._newest[name][parcels.edges] = parcels.values[name]
        self._has_come[parcels.edges] = True

    def averaged(self, state: State) -> State:
        """Copied segments averaged with the newest values of senders that have not left."""
        heard = np.flatnonzero(self._has_come)
        receivers = self.receivers[heard]
        counts = 1.0 + np.bincount(receivers, minlength=self._num_nodes)
        gather = csr_array(
            (np.ones(len(heard)), (receivers, np.arange(len(heard)))),
            shape=(self._num_nodes, len(heard)),
        )
        first = self._method.payload[0].name
        means = {}
        for name, newest in self._newest.items():
            held, values = state.segments[name], newest[heard]
            if name == first and math.isfinite(self._conditions.clip):
                values = _near(values, held[receivers], self._conditions.clip)
            total = held + gather.astype(held.dtype) @ values
            means[name] = total / counts[:, None].astype(held.dtype)
        return State({**state.segments, **means}, state.memory)

    def forget(self, gone: Bools) -> None:
        """Forget the copies of senders that have left."""
        if self.copies:
            self._has_come &= ~gone[self.senders]


def _near(models: Matrix, own: Matrix, clip: float) -> Matrix:
    """Models, moved to the limit of what may come from others."""
    away = models - own
    far = np.linalg.norm(away, axis=1)
    limit = clip * (1.0 + np.linalg.norm(own, axis=1))
    part = np.divide(limit, far, out=np.ones_like(far), where=far > limit)[:, None]
    return np.where(part < 1.0, own + part.astype(own.dtype) * away, models)


def _emptied(state: State) -> State:
    """Without numbers in any segment; the memory stays."""
    return State({name: np.zeros_like(it) for name, it in state.segments.items()}, state.memory)


def _where_changed(own: State, before: State, after: State) -> State:
    """The state after a step where it changed a segment, elsewhere the own one before averaging."""
    segments = {}
    stepped = np.zeros(len(next(iter(own.segments.values()))), np.bool_)
    for name, array in after.segments.items():
        if array is not before.segments[name]:
            stepped |= (array != before.segments[name]).any(axis=1)
    for name, array in after.segments.items():
        segments[name] = np.where(stepped[:, None], array, own.segments[name])
    return State(segments, after.memory)


def _next_up(up: Bools) -> Ints | None:
    """`[tick, node]`, the first tick from this on in which a node is up; None if all always are."""
    if up.all():
        return None
    found = np.empty(up.shape, np.int32)
    later = np.full(up.shape[1], len(up), np.int32)
    for tick in range(len(up) - 1, -1, -1):
        later = np.where(up[tick], tick, later).astype(np.int32)
        found[tick] = later
    return found


def _tries(loss: float, count: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """How often a push is said until it arrives, and until its sender knows that."""
    if not loss:
        return np.ones(count, np.int64), np.ones(count, np.int64)
    tries = rng.geometric(1.0 - loss, count)
    more = rng.geometric((1.0 - loss) ** 2, count)
    answered = tries + np.where(rng.random(count) < loss, more, 0)
    return tries, answered


def _waited(first: float, tries: Ints) -> Vector:
    """How many seconds pass until something was said so often: each wait is twice the last."""
    waits = np.minimum(first * 2.0 ** np.arange(64), pace.LONGEST_RETRY)
    sums = np.concatenate([[0.0], np.cumsum(waits)])
    found: Vector = sums[np.minimum(tries - 1, 64)]
    return found
