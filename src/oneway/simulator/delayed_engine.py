"""An asynchronous network in rounds: nodes act when they have a sample, and pushes take time.

In a round the nodes that have a sample (with late labels: one to learn from) learn and push. A node
that has waited too long for a sample passes on what has arrived, as a peer does: otherwise all mass
would end up in the nodes whose samples are rare. A push arrives some rounds later, each after a
delay of its own. Nothing is lost: split and forwarded segments are added on arrival, and of a
copied segment a receiver keeps the newest value of each sender.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from oneway.methods import Method, State
from oneway.methods.base import only
from oneway.models import Model
from oneway.records import Bools, Ints, Matrix
from oneway.simulator.exchange import Exchange, Mixing, keep_parcels
from oneway.simulator.measurements import Measurements, Seed
from oneway.simulator.reference_engine import ReferenceEngine
from oneway.streams import Stream

LONGEST_WAIT = 8
"""Rounds without a sample after which a node passes on what arrives. A node that has never had a
sample does not wait for one."""


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
        self._last_sample = np.full(stream.num_nodes, -LONGEST_WAIT - 1)

    def advance(self, first: int, last: int, mixing: Mixing | None) -> None:
        """Run rounds `first` to `last` (excluded), all with the same shares."""
        if mixing is not None and (self._in_flight is None or self._in_flight[0] is not mixing):
            assert self._in_flight is None, "pushes under way belong to the graph they were sent on"
            self._in_flight = (mixing, InFlight(self.method, mixing, self.longest, self.held))
        super().advance(first, last, mixing)

    def exchanged(self, exchange: Exchange, state: State, round_index: int) -> State:
        """The state after the acting nodes have pushed and the pushes due have arrived."""
        if self._in_flight is None:  # with a server, or alone
            return super().exchanged(exchange, state, round_index)
        in_flight, rows = self._in_flight[1], self.stream.known_rows
        acting = self._acting(round_index, in_flight)
        self._last_sample[rows[round_index] >= 0] = round_index
        ready = self.method.before_push(state, self.rng)
        delays = self.rng.integers(self.shortest, self.longest, in_flight.num_edges, endpoint=True)
        after = in_flight.push(only(acting, state, ready), acting, delays, round_index)
        arrived = in_flight.arrived(after, round_index + 1)
        next_round = min(round_index + 1, len(rows) - 1)
        return in_flight.averaged(arrived, self._acting(next_round, in_flight))

    def _acting(self, round_index: int, in_flight: InFlight) -> Bools:
        """Nodes that push: those with a sample, and those that pass on what has arrived."""
        has_sample: Bools = self.stream.known_rows[round_index] >= 0
        waits_too_long = round_index - self._last_sample > LONGEST_WAIT
        return has_sample | (waits_too_long & in_flight.has_received)

    @property
    def under_way(self) -> dict[str, Matrix]:
        """The sums of what is under way, of every segment that is conserved."""
        return {} if self._in_flight is None else self._in_flight[1].under_way


class InFlight:
    """The edges of a graph, and what is under way on them.

    Attributes:
        num_edges: Number of edges from one node to another.
        has_received: Nodes at which something has arrived since they last pushed.
    """

    def __init__(self, method: Method, mixing: Mixing, longest: int, state: State) -> None:
        self._payload = method.payload
        self._num_nodes = mixing.shape[0]
        links = mixing.tocoo()
        away = links.row != links.col
        self.senders, self.receivers, shares = links.row[away], links.col[away], links.data[away]
        self.num_edges = len(shares)
        self.has_received = np.zeros(self._num_nodes, np.bool_)
        given = np.bincount(self.senders, shares, minlength=self._num_nodes)
        self._kept = {"split": mixing.diagonal(), "forwarded": 1.0 * keep_parcels(mixing)}
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
        self.has_received[acting] = False
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
        self.has_received[self.receivers[self._sent_as[slot] > 0]] = True
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
