"""One part of a network: its nodes in the compiled engine, exchanging rows with other parts.

In a turn a part takes in what the others sent in the last one, lets its nodes learn and deposit as
one process does, and hands out the rows that others need. Parts are driven by `parts_engine`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oneway.methods import Method, Relay
from oneway.models import Model
from oneway.records import Ints, Matrix, NetworkState, Vector
from oneway.simulator import kernels, part_kernels
from oneway.simulator.fast_engine import (
    NO_EDGES,
    NO_RELEASES,
    NOTHING_SAID,
    Edges,
    FastEngine,
    Releases,
    Routes,
    read_only,
    runs_parallel,
)
from oneway.simulator.measurements import Measurements, Seed
from oneway.simulator.node_rows import empty_rows
from oneway.simulator.part_routes import PartRoutes
from oneway.simulator.release_plan import ReleasePlan
from oneway.simulator.snapshots import Snapshot
from oneway.streams import Stream


@dataclass(frozen=True, eq=False)
class PartSetup:
    """What a part is made from.

    Attributes:
        index: Which part it is.
        nodes: Its nodes, in order.
        method: How they learn.
        model: What is learned.
        stream: Their samples, and of the table what those need.
        seed: That of the run.
        num_nodes: In the whole network.
        has_sample: `[round, node]` for all nodes of the network, -1 where one has no sample; only
            where there is noise, which is drawn for all nodes one after the other.
        scores: Whether to report what was predicted.
    """

    index: int
    nodes: Ints
    method: Method
    model: Model
    stream: Stream
    seed: Seed
    num_nodes: int
    has_sample: Ints | None
    scores: bool


@dataclass(frozen=True, eq=False)
class Report:
    """What a part has to say about its rounds since the last report.

    Attributes:
        losses: `[round, own node]`, 0 where a node had no sample.
        scores: `[round, own node]`; without rows unless they are wanted.
        correct: Per round how many predictions were right.
        bad: Per round the first node, by its number in the network, whose estimate is not finite
            after it; -1 if there is none.
        light: Per round its lightest node.
        masses: Per round that node's mass.
    """

    losses: Matrix
    scores: Matrix
    correct: Ints
    bad: Ints
    light: Ints
    masses: Vector


class Part:
    """The nodes of one part and what they hold."""

    def __init__(self, setup: PartSetup) -> None:
        # Exchanges are counted here: the compiled round does what comes before one.
        method = replace(setup.method, mixes=1)
        self._setup, self._exchanges = setup, method.exchange == "graph"
        blank = Measurements.blank(setup.stream.num_rounds)
        self._engine = _OwnNodes(method, setup.model, setup.stream, blank, setup.seed)
        if setup.has_sample is not None:
            self._engine.draw_noise_of_all(setup.has_sample, setup.nodes, setup.seed)
        self._routes: dict[int, PartRoutes] = {}
        # Own rows after the step, and those of ghosts behind them; likewise of parcels.
        self._joined = [held[:0] for held in self._engine.rows_held]
        self._taken: PartRoutes | None = None
        self._said: list[tuple[Matrix, Matrix]] = []
        self._checks: list[tuple[int, int, float]] = []
        self._reported = 0

    def use(self, key: int, routes: PartRoutes) -> None:
        """Learn the edges of a mixing that turns will name by `key`."""
        # Read-only wherever they come from, so that one compiled function serves all.
        edges, parcel_edges = (
            (read_only(indptr), read_only(senders), read_only(shares))
            for indptr, senders, shares in (routes.edges, routes.parcel_edges)
        )
        self._routes[key] = replace(routes, edges=edges, parcel_edges=parcel_edges)

    def forget(self, key: int) -> None:
        """Forget the edges of a mixing."""
        del self._routes[key]

    def turn(self, key: int, round_index: int, mix: int, *arrived: Matrix) -> Any:
        """Finish the last exchange and begin the next one, which is number `mix` of its round.

        Returns:
            For each part the rows it needs: `[segment, node, number]`; a tuple of them, but for a
            single part.
        """
        self._take(arrived, ends_round=mix == 0)
        routes = self._routes[key]
        self._make_room(routes)
        engine, own = self._engine, [joined[: len(self._setup.nodes)] for joined in self._joined]
        if mix == 0:
            self._said.append(engine.step(round_index, own, self._setup.scores))
        elif engine.deposits:
            engine.deposit(own)
        else:
            np.copyto(own[0], engine.held)
        self._taken = routes
        used = engine.dim + 1
        sent = tuple(
            np.stack([joined.take(places, axis=0)[:, :used] for joined in self._joined])
            for places in routes.sends
        )
        return sent if len(sent) > 1 else sent[0]

    def settle(self, *arrived: Matrix) -> Report:
        """Finish the last exchange and report on the rounds since the last report."""
        self._take(arrived, ends_round=True)
        scores, losses = (np.concatenate(each) for each in zip(*self._said, strict=True))
        done = self._reported + len(losses)
        correct = self._engine.measurements.correct_counts[self._reported : done]
        bad, light, masses = (np.array(each) for each in zip(*self._checks, strict=True))
        self._said, self._checks = [], []
        self._reported = done
        return Report(losses, scores, correct.copy(), bad, light, masses)

    def rows_between(self, first: int, last: int) -> Matrix:
        """What own nodes between two nodes of the network hold."""
        begin, end = np.searchsorted(self._setup.nodes, (first, last))
        rows: Matrix = self._engine.held[begin:end]
        return rows

    def total(self, part_of: Ints, *rows: Matrix) -> Vector:
        """The sum of rows, part by part given, in the order of their nodes."""
        width = self._engine.held.shape[1]
        together = np.empty((len(part_of), width))
        for part, some in enumerate(rows):
            together[part_of == part] = some
        total = np.zeros((1, width))
        part_kernels.total_kernel(width)(total, together)
        first: Vector = total[0]
        return first

    def distances(self, mean: Vector) -> Vector:
        """How far the estimates of own nodes are from the network's mean, squared."""
        held, distances = self._engine.held, np.empty(len(self._setup.nodes))
        measure = part_kernels.distance_kernel(self._engine.dim, runs_parallel(held.size))
        measure(distances, held, np.array(mean))
        return distances

    def state(self) -> tuple[Matrix, Vector]:
        """Numerators and masses of own nodes."""
        state: NetworkState = self._engine.state
        return state.numerators, state.masses

    def snapshot(self) -> Snapshot:
        """All that has to be known to go on from here; between turns of a round it is not."""
        assert self._taken is None
        assert not self._said
        return {**self._engine.snapshot(), "reported": np.array([self._reported])}

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot."""
        self._engine.restore(snapshot)
        self._reported = int(snapshot["reported"][0])

    def _make_room(self, routes: PartRoutes) -> None:
        needed = len(self._setup.nodes) + sum(routes.ghosts)
        if len(self._joined[0]) < needed:
            self._joined = [empty_rows(needed, self._engine.dim) for _ in self._joined]

    def _take(self, arrived: Sequence[Matrix], ends_round: bool) -> None:
        """Add up what own nodes receive, if an exchange is under way."""
        if self._taken is None:
            return
        routes, self._taken = self._taken, None
        engine, first = self._engine, len(self._setup.nodes)
        for count, rows in zip(routes.ghosts, arrived, strict=True):
            for joined, some in zip(self._joined, rows, strict=True):
                joined[first : first + count, : engine.dim + 1] = some
            first += count
        if self._exchanges:
            bad, light = self._gather(routes)
        else:
            bad, light = part_kernels.first_not_finite(self.distances(engine.origin)), 0
        if ends_round:
            nodes = self._setup.nodes
            found = int(nodes[bad]) if bad >= 0 else -1
            self._checks.append((found, int(nodes[light]), float(engine.held[light, engine.dim])))

    def _gather(self, routes: PartRoutes) -> tuple[int, int]:
        """Sum up own and ghost rows; the first node that is not finite, or -1, and the lightest."""
        engine = self._engine
        bad, light = np.zeros((2, kernels.NUM_BLOCKS), np.int64)
        ways = (routes.edges, routes.parcel_edges)
        # The models last: they say what is bad and light.
        for segment in reversed(range(len(self._joined))):
            out = engine.rows_held[segment]
            parallel = runs_parallel(len(ways[segment][1]) * out.shape[1])
            gather = part_kernels.gather_kernel(engine.dim, out.shape[1], parallel)
            is_model, moves_mass = segment == 0, engine.method.has_mass
            gather(out, self._joined[segment], *ways[segment], is_model, moves_mass, bad, light)
        found, lightest = bad[bad >= 0], light[light >= 0]
        masses = engine.held[lightest, engine.dim]
        return (int(found[0]) if len(found) else -1), int(lightest[masses.argmin()])


class _OwnNodes(FastEngine):
    """The compiled engine on the nodes of a part: what they do between two exchanges."""

    def __init__(
        self, method: Method, model: Model, stream: Stream, measurements: Measurements, seed: Seed
    ) -> None:
        super().__init__(method, model, stream, measurements, seed)
        self.exchange = kernels.ALONE
        # Spare rows are those that a part joins with others.
        self.spare, self._spare_parcels = self.held[:0], self._parcels[:0]
        self.origin = np.zeros(self.held.shape[1])
        self._chosen: Ints | None = None
        num_nodes = len(self.held)
        self._own_routes: Routes = (NO_EDGES, NO_EDGES)
        if self.deposits:
            # What a node forwards stays with it until the parts exchange it.
            places = np.arange(num_nodes + 1, dtype=np.int64)
            own: Edges = (places, places[:-1].astype(np.int32), np.ones(num_nodes))
            self._own_routes = (NO_EDGES, own)

    @property
    def deposits(self) -> bool:
        """Whether nodes do something right before every exchange."""
        return isinstance(self.method, Relay)

    @property
    def rows_held(self) -> list[Matrix]:
        """Models and masses, and parcels if there are any."""
        return [self.held, self._parcels] if self.deposits else [self.held]

    def draw_noise_of_all(self, has_sample: Ints, nodes: Ints, seed: Seed) -> None:
        """Take own nodes' noise out of that of all nodes, which is drawn in one sequence."""
        assert self._batches is not None
        rng = np.random.default_rng(seed)
        self.model.init(self.features.shape[1], rng)
        self._plan = ReleasePlan(self._batches, has_sample, self.dim, rng)
        self._chosen = nodes

    def step(self, round_index: int, own: list[Matrix], scores: bool) -> tuple[Matrix, Matrix]:
        """Let nodes learn and deposit, the result copied to `own` rows; their scores and losses."""
        shape = (1, len(self.held))
        said, suffered = np.zeros(shape if scores else (0, 0)), np.zeros(shape)
        releases = NO_RELEASES
        if self._plan is not None:
            [piece] = self._plan.pieces(round_index, round_index + 1)
            chosen = piece.releases if self._chosen is None else piece.releases[:, self._chosen]
            releases = (np.ascontiguousarray(chosen), piece.noise)
        self._go(round_index, own, releases, said, suffered)
        return (said if scores else np.zeros((1, 0))), suffered

    def deposit(self, own: list[Matrix]) -> None:
        """Let nodes deposit once more, without a sample."""
        kept = self.rows, self.known_rows, self.measurements
        self.rows = self.known_rows = read_only(np.full((1, len(self.held)), -1, kept[0].dtype))
        self.measurements = Measurements.blank(1)
        self._go(0, own, NO_RELEASES, NOTHING_SAID, NOTHING_SAID)
        self.rows, self.known_rows, self.measurements = kept

    def _go(
        self, index: int, own: list[Matrix], releases: Releases, said: Matrix, suffered: Matrix
    ) -> None:
        self.spare = own[0]
        if self.deposits:
            self._spare_parcels = own[1]
        # What is not finite is found after the exchange, as in one process.
        self.run_kernel(index, index + 1, self._own_routes, releases, said, suffered)
