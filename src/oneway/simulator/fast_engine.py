"""The fast engine: compiled rounds, for exactly those configurations it has a kernel for."""

from __future__ import annotations

import math
import os
import threading
from contextlib import nullcontext
from types import NoneType
from typing import TypeAlias

import numpy as np

from oneway.methods import (
    Batches,
    Centralised,
    Isolated,
    Method,
    MutualGossip,
    NaiveGossip,
    OnlinePushSum,
    Pull,
    Relay,
)
from oneway.methods.step_rules import Capped, Curvature, Mass, Paper
from oneway.models import (
    Hinge,
    LinearModel,
    LogisticRegression,
    Model,
    RidgeRegression,
    typical_sample,
)
from oneway.records import NetworkState, Vector
from oneway.simulator import kernel
from oneway.simulator.exchange import Exchange, Mixing
from oneway.simulator.measurements import Measurements, Seed, divergence
from oneway.simulator.release_plan import ReleasePlan
from oneway.streams import Stream
from oneway.streams.stream import index_type

_KINDS: dict[type[Model], int] = {
    LogisticRegression: kernel.LOGISTIC,
    RidgeRegression: kernel.RIDGE,
    Hinge: kernel.HINGE,
}
COMPILED = (OnlinePushSum, MutualGossip, NaiveGossip, Centralised, Isolated, Pull, Relay)
_STEPS = (Paper, Capped, Mass, Curvature)
_EXCHANGES = {
    "graph": kernel.ALONG_GRAPH,
    "average": kernel.AVERAGE,
    "none": kernel.ALONE,
}
Edges: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""For each receiver its senders and their shares: (indptr, senders, shares)."""
NO_EDGES: Edges = (np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0))
Routes: TypeAlias = tuple[Edges, Edges]
"""The edges of models and masses, and those of parcels."""
Releases: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Where batches are full, and their noise, as in a `release_plan.Piece`."""
NO_RELEASES: Releases = (np.zeros((0, 0), np.int32), np.zeros((0, 0)))
NO_SCORES = np.zeros((0, 0))
_REMEMBERED = 32
"""Number of mixings whose edges are cached."""
_PARALLEL_FROM = 2_000_000
"""Multiplications per round from which a second core pays for its coordination. It would pay from a
tenth of that on an idle machine, but on a busy one the cores wait for each other in every round."""

_ONE_AT_A_TIME = threading.Lock()
"""Not every threading layer of Numba allows two parallel kernels at the same time."""
_forked = False


def _remember_fork() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_remember_fork)


def supports(method: Method, model: Model) -> bool:
    """Whether there is a kernel: for these classes themselves, never for one derived from them."""
    return (
        type(method) in COMPILED
        and type(method.rule) in _STEPS
        and not method.transforms
        and type(method.batches) in (Batches, NoneType)
        and type(model) in _KINDS
    )


class FastEngine:
    """Same numbers as the reference to 1e-9, in a fraction of the time."""

    name = "fast"

    def __init__(
        self,
        method: Method,
        model: Model,
        stream: Stream,
        measurements: Measurements,
        seed: Seed,
    ) -> None:
        assert isinstance(model, LinearModel)
        method = method.suited(*typical_sample(model, stream.dim))
        self.method, self.model, self.measurements = method, model, measurements
        self.exchange = _EXCHANGES[method.exchange]
        self.dim = model.dim(stream.dim)
        self.held, self.spare = (kernel.empty_rows(stream.num_nodes, self.dim) for _ in range(2))
        rng = np.random.default_rng(seed)
        self.held[:, : self.dim] = model.init(stream.dim, rng)
        self.held[:, self.dim] = 1.0
        self._scratch = kernel.Scratch.empty(*self.held.shape)
        # Parcel and count of every node, if the method has them.
        num_parcels = stream.num_nodes if isinstance(method, Relay) else 0
        self._parcels, self._spare_parcels = (
            kernel.empty_rows(num_parcels, self.dim) for _ in range(2)
        )
        # Read-only plain arrays, so that one compiled kernel serves memory maps and arrays alike.
        self.features = _read_only(np.ascontiguousarray(stream.features))
        self.labels = _read_only(np.ascontiguousarray(model.targets(stream.labels), np.float64))
        index = index_type(len(self.labels))
        self.rows = _read_only(np.ascontiguousarray(stream.rows, index))
        self.late = stream.late is not None
        self.known_rows = _read_only(np.ascontiguousarray(stream.known_rows, index))
        self._routes_of: dict[int, tuple[Mixing | None, Routes]] = {}
        # A rate that is chosen goes by batches, also by those of a single sample.
        self._batches = method.batches or (Batches(1) if method.auto else None)
        self._plan = None
        if self._batches is not None:
            self._plan = ReleasePlan(self._batches, self.known_rows, self.dim, rng)
        self._squares = np.zeros(stream.num_nodes if method.auto else 0)
        self._sums = np.zeros((stream.num_nodes if self._plan else 0, self.dim))

    @property
    def state(self) -> NetworkState:
        """What all nodes hold."""
        return NetworkState(self.held[:, : self.dim].copy(), self._masses)

    @property
    def _masses(self) -> Vector:
        masses: Vector = self.held[:, self.dim].copy()
        return masses

    def advance(self, first: int, last: int, mixing: Mixing | None) -> None:
        """Run rounds `first` to `last` (excluded), all with the same shares.

        Raises:
            DivergenceError: If a loss or an estimate is no longer finite.
        """
        routes = self._routes(mixing)
        if self._plan is None:
            self._advance(first, last, routes, NO_RELEASES)
            return
        for piece in self._plan.pieces(first, last):
            self._advance(piece.first, piece.last, routes, (piece.releases, piece.noise))

    def _advance(self, first: int, last: int, routes: Routes, releases: Releases) -> None:
        method, tallying = self.method, self.measurements.tallying
        personal = self.measurements.personal
        listens = tallying is not None or personal is not None
        scores_out = np.zeros(self.rows[first:last].shape) if listens else NO_SCORES
        bad_round, bad_node = self._run_kernel(first, last, routes, releases, scores_out)
        if tallying is not None:
            tallying.take_scores(self.rows[first:last], scores_out)
        if personal is not None:
            personal.take(first, scores_out[..., None])
        num_rounds = last - first if bad_round < 0 else bad_round + 1
        if num_rounds * method.mixes % 2:
            self.held, self.spare = self.spare, self.held
            self._parcels, self._spare_parcels = self._spare_parcels, self._parcels
        if bad_round >= 0:
            raise divergence(method, first + bad_round, bad_node, self._masses)

    def _routes(self, mixing: Mixing | None) -> Routes:
        """The edges by receiver; those of the last mixings are kept, for graphs that come back."""
        if id(mixing) not in self._routes_of:
            if len(self._routes_of) >= _REMEMBERED:
                self._routes_of.clear()
            # The mixing is held too: while it lives, nothing else has its id.
            self._routes_of[id(mixing)] = (mixing, _routes_of(self.method, mixing))
        return self._routes_of[id(mixing)][1]

    @property
    def _step_numbers(self) -> tuple[float, float, float]:
        """The step rule as the kernel takes it: cap, stable, curvature_bound."""
        rule, curvature_bound = self.method.rule, self.model.largest_curvature
        if isinstance(rule, Curvature):
            if curvature_bound is None:
                return 1.0, 0.0, 0.0
            # With batches a curvature limits the gradients, and the step is as without one.
            return (0.0 if self._batches is None else 1.0), rule.stable, curvature_bound
        if isinstance(rule, Capped):
            return rule.cap, 0.0, 0.0
        return (math.inf if isinstance(rule, Mass) else 0.0), 0.0, 0.0

    def _run_kernel(
        self, first: int, last: int, routes: Routes, releases: Releases, scores_out: np.ndarray
    ) -> tuple[int, int]:
        """Run the compiled rounds; after an odd number of exchanges the state is in `spare`.

        Returns:
            The first (round, node) whose loss or estimate is not finite, or (-1, -1).
        """
        num_edges = sum(len(senders) for _, senders, _ in routes)
        work = (num_edges + 2 * len(self.held)) * self.held.shape[1]
        # OpenMP does not survive a fork, so a child process runs the serial kernel: the same bits.
        parallel = work >= _PARALLEL_FROM and not _forked
        rounds = kernel.rounds(self.features.dtype.name, self.rows.dtype.name, parallel)
        measured = self.measurements
        edges, parcel_edges = routes
        with _ONE_AT_A_TIME if parallel else nullcontext():
            place: tuple[int, int] = rounds(
                self._options(parallel),
                self.held,
                self.spare,
                self.features,
                self.labels,
                self.rows[first:last],
                self.known_rows[first:last],
                *edges,
                self.method.rates(first, last),
                self._sums,
                self._squares,
                *releases,
                self._parcels,
                self._spare_parcels,
                *parcel_edges,
                measured.loss_sums[first:last],
                measured.correct_counts[first:last],
                measured.disagreement[first:last],
                scores_out,
                self._scratch,
            )
        return place

    def _options(self, parallel: bool) -> kernel.Options:
        method, auto = self.method, self.method.auto
        lowest, highest = method.bounds or (0.0, math.inf)
        cap, stable, curvature_bound = self._step_numbers
        relay = method if isinstance(method, Relay) else None
        return kernel.Options(
            kind=_KINDS[type(self.model)],
            intercept=bool(self.model.intercept),
            l2=float(self.model.l2),
            exchange=self.exchange,
            moves_mass=bool(method.has_mass),
            lowest=float(lowest),
            highest=float(highest),
            mixes=int(method.mixes),
            cap=float(cap),
            stable=float(stable),
            curvature_bound=float(curvature_bound),
            batched=self._batches is not None,
            clip=math.inf if self._batches is None else float(self._batches.clip),
            relayed=relay is not None,
            amount=0.0 if relay is None else float(relay.amount or 0.0),
            auto=auto is not None,
            reach=0.0 if auto is None else float(auto.reach),
            ceiling=0.0 if auto is None else float(auto.most(self.dim)),
            late=self.late,
            parallel=parallel,
        )


def _routes_of(method: Method, mixing: Mixing | None) -> Routes:
    """The edges along which a method's segments travel, by receiver."""
    matrices = Exchange(method, mixing).matrices
    first = matrices.get(method.payload[0].kind) if method.payload else None
    return _edges_by_receiver(first), _edges_by_receiver(matrices.get("forwarded"))


def _edges_by_receiver(matrix: Mixing | None) -> Edges:
    """The edges of a `matrix[receiver, sender]`."""
    if matrix is None:
        return NO_EDGES
    return (
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32, copy=False),
        matrix.data.astype(np.float64, copy=False),
    )


def _read_only(array: np.ndarray) -> np.ndarray:
    """A view that cannot be written to."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
