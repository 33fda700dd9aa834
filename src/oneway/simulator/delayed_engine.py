"""An asynchronous network in rounds: nodes act when they have a sample, and pushes take time.

In a round only the nodes that have a sample (with late labels: one to learn from) learn and push;
what they push arrives some rounds later, each push after a delay of its own. Nothing is lost: what
is split or forwarded is added when it arrives, and of what is copied a receiver keeps the newest
value of each sender, as a peer does.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from oneway.methods import Method, State
from oneway.methods.base import only
from oneway.models import Model
from oneway.records import Bools, Ints, Matrix
from oneway.simulator.exchange import Exchange, Mixing
from oneway.simulator.measurements import Measurements, Seed
from oneway.simulator.reference_engine import ReferenceEngine
from oneway.simulator.snapshots import Snapshot, copy_into, with_prefix, without_prefix
from oneway.streams import Stream


class DelayedEngine(ReferenceEngine):
    """The reference engine with pushes that are under way for some rounds.

    Args:
        delays: The shortest and the longest time under way, in rounds, from 1 on; each push takes a
            time in between, each as likely as any other.
    """

    name = "delayed"

    def __init__(
        self,
        method: Method,
        model: Model,
        stream: Stream,
        measurements: Measurements,
        seed: Seed,
        delays: tuple[int, int],
    ) -> None:
        super().__init__(method, model, stream, measurements, seed)
        self.shortest, self.longest = delays
        self._in_flight: tuple[Mixing, InFlight] | None = None
        self._to_restore: Snapshot | None = None

    def snapshot(self) -> Snapshot:
        """All that has to be known to go on from here, pushes under way included."""
        under_way = {} if self._in_flight is None else self._in_flight[1].snapshot()
        return {**super().snapshot(), **with_prefix("in_flight.", under_way)}

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot; pushes under way wait for the graph that they are on."""
        super().restore(snapshot)
        self._to_restore = without_prefix("in_flight.", snapshot)

    def advance(self, first: int, last: int, mixing: Mixing | None) -> None:
        """Run rounds `first` to `last` (excluded), all with the same shares."""
        if mixing is not None and (self._in_flight is None or self._in_flight[0] is not mixing):
            assert self._in_flight is None, "pushes under way belong to the graph they were sent on"
            self._in_flight = (mixing, InFlight(self.method, mixing, self.longest, self.held))
            if self._to_restore:
                self._in_flight[1].restore(self._to_restore)
        super().advance(first, last, mixing)

    def exchanged(self, exchange: Exchange, state: State, round_index: int) -> State:
        """The state after those with a sample have pushed, and what is due has arrived."""
        if self._in_flight is None:  # with a server, or alone
            return super().exchanged(exchange, state, round_index)
        in_flight, rows = self._in_flight[1], self.stream.known_rows
        acting: Bools = rows[round_index] >= 0
        ready = self.method.before_push(state, self.rng)
        delays = self.rng.integers(self.shortest, self.longest, in_flight.num_edges, endpoint=True)
        after = in_flight.push(only(acting, state, ready), acting, delays, round_index)
        next_round = min(round_index + 1, len(rows) - 1)
        return in_flight.averaged(in_flight.arrived(after, round_index + 1), rows[next_round] >= 0)

    @property
    def under_way(self) -> dict[str, Matrix]:
        """The sums of what is under way, of every segment that is conserved."""
        return {} if self._in_flight is None else self._in_flight[1].under_way


class InFlight:
    """The edges of a graph, and what is under way on them.

    Attributes:
        num_edges: How many edges lead from a node to another.
    """

    def __init__(self, method: Method, mixing: Mixing, longest: int, state: State) -> None:
        self._payload = method.payload
        self._num_nodes = mixing.shape[0]
        links = mixing.tocoo()
        away = links.row != links.col
        self.senders, self.receivers, shares = links.row[away], links.col[away], links.data[away]
        self.num_edges = len(shares)
        given = np.bincount(self.senders, shares, minlength=self._num_nodes)
        self._kept = {"split": mixing.diagonal(), "forwarded": np.where(given > 0.0, 0.0, 1.0)}
        self._shares = {"split": shares, "forwarded": shares / given[self.senders]}
        kinds = {it.kind for it in method.payload}
        self._shares = {kind: shares for kind, shares in self._shares.items() if kind in kinds}
        slots = longest + 1
        self._num_places = slots * self._num_nodes
        self._due = {
            it.name: np.zeros((slots, *held.shape), held.dtype)
            for it in method.payload
            if it.kind != "copied" and (held := state.segments[it.name]) is not None
        }
        # Of what is copied: the newest value that arrived over each edge, and those under way.
        # Pushes are numbered, as nodes that mix several times push more than once in a round.
        self._pushes = 0
        self._sent_as = np.zeros((slots, self.num_edges), np.int64)
        self._newest_is = np.zeros(self.num_edges, np.int64)
        copied = [it.name for it in method.payload if it.kind == "copied"]
        like = {name: state.segments[name] for name in copied}
        edges = self.num_edges
        self._copies = {
            n: np.zeros((slots, edges, it.shape[1]), it.dtype) for n, it in like.items()
        }
        self._newest = {n: np.zeros((edges, it.shape[1]), it.dtype) for n, it in like.items()}

    def snapshot(self) -> Snapshot:
        """What is under way, and what arrived last."""
        return {**self._arrays, "pushes": np.array([self._pushes])}

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot of the same graph."""
        copy_into(self._arrays, snapshot)
        self._pushes = int(snapshot["pushes"][0])

    @property
    def _arrays(self) -> Snapshot:
        return {
            "sent_as": self._sent_as,
            "newest_is": self._newest_is,
            **with_prefix("due.", self._due),
            **with_prefix("copies.", self._copies),
            **with_prefix("newest.", self._newest),
        }

    def push(self, state: State, acting: Bools, delays: Ints, round_index: int) -> State:
        """What is left with the nodes after the acting ones have pushed."""
        segments = dict(state.segments)
        edges = np.flatnonzero(acting[self.senders])
        senders, num_nodes = self.senders[edges], self._num_nodes
        slots = (round_index + delays[edges]) % len(self._sent_as)
        places = slots * num_nodes + self.receivers[edges]
        parts = {
            kind: csr_array((shares[edges], (places, senders)), shape=(self._num_places, num_nodes))
            for kind, shares in self._shares.items()
        }
        self._pushes += 1
        self._sent_as[slots, edges] = self._pushes
        for segment in self._payload:
            held = state.segments[segment.name]
            if segment.kind == "copied":
                self._copies[segment.name][slots, edges] = held[senders]
                continue
            due = self._due[segment.name]
            due += (parts[segment.kind].astype(held.dtype) @ held).reshape(due.shape)
            kept = np.where(acting, self._kept[segment.kind], 1.0)
            segments[segment.name] = kept[:, None].astype(held.dtype) * held
        return State(segments, state.memory)

    def arrived(self, state: State, round_index: int) -> State:
        """The state after what is due in this round has arrived."""
        segments = dict(state.segments)
        for name, due in self._due.items():
            slot = round_index % len(due)
            segments[name] = segments[name] + due[slot]
            due[slot] = 0.0
        slot = round_index % len(self._sent_as)
        newer = self._sent_as[slot] > self._newest_is
        for name, copies in self._copies.items():
            self._newest[name][newer] = copies[slot, newer]
        self._newest_is[newer] = self._sent_as[slot, newer]
        self._sent_as[slot] = 0
        return State(segments, state.memory)

    def averaged(self, state: State, nodes: Bools) -> State:
        """Copied segments at some nodes averaged with the newest values that arrived there."""
        if not self._copies:
            return state
        heard = (self._newest_is > 0) & nodes[self.receivers]
        places = np.arange(self.num_edges)[heard]
        gather = csr_array(
            (np.ones(len(places)), (self.receivers[places], places)),
            shape=(self._num_nodes, self.num_edges),
        )
        counts = 1.0 + np.bincount(self.receivers[places], minlength=self._num_nodes)
        means = {
            name: (state.segments[name] + gather.astype(newest.dtype) @ newest)
            / counts[:, None].astype(newest.dtype)
            for name, newest in self._newest.items()
        }
        return State({**state.segments, **means}, state.memory)

    @property
    def under_way(self) -> dict[str, Matrix]:
        """The sums of what has not arrived, of every segment that is conserved."""
        return {name: due.sum(axis=(0, 1)) for name, due in self._due.items()}
