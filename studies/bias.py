"""Bias of a method: where the common model settles when nodes differ.

With steps s_i that depend on a node's mass, small learning rates settle where the weighted
gradients cancel: sum_i s_i * gradient f_i(x) = 0. Published OPS has s_i = 1, the goal itself. On
least squares with a node's own optimum theta_i and white features this point is
sum(s_i theta_i) / sum(s_i), so the bias can be predicted, and here it is also measured.

Every node starts at 0. The optima lie around a point that is `DISTANCE` of their spreads away, at
a right angle to where a bias leads: a model that has not arrived is measured as that far off, and
no bias can make up for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from held_networks import held
from lib import Report, Scope, grid, label, make, run, spread, table, trust_network, values
from oneway.datasets import DATASETS
from oneway.errors import DivergenceError
from oneway.metrics import network_mean
from oneway.models import RidgeRegression
from oneway.records import Matrix, NetworkState, Vector
from oneway.simulator import simulate
from oneway.simulator.grid import require_complete
from oneway.streams import Stream
from oneway.topology import TrustGraph, stationary_masses

NUM_FEATURES = 5
DISTANCE = 5.0
"""Of the best common model from the start, in spreads: what a method that does not move is off."""
ROUNDS = 3000
RATES = (0.01, 0.003, 0.001, 0.0003)
"""The rate counts at which single nodes come nearest to the best common model: one too large
diverges where masses are small, and one too small does not arrive."""
PREDICTED = ("ops", "ops-capped", "ops-mass")
"""Methods whose step depends on nothing but the mass, so that their bias can be predicted."""
CONTESTED = ("ops", "ops-capped", "ops-mass", "ops-curvature", "pull", "relay", "tracking")
"""What is measured where nodes differ."""
RANDOM = "random, 128 nodes"
NETWORKS = {"advogato": "Advogato"}
FEW = 3
"""Seeds at most."""
_NOISE = 0.1


@dataclass(frozen=True)
class Bias:
    """The bias of a method on one graph, in units of the nodes' spread.

    The spread is how far the nodes' own optima are from the best common model (root mean square).

    Attributes:
        predicted: Distance from the best common model to where the method settles at small rates;
            None where it cannot be predicted.
        measured: Distance from the best common model to the network's mean at the end of a
            simulation, at the best rate; infinite if it diverged at all of them.
        typical: The same for the estimates of single nodes (root mean square). Nodes that learn
            alone have a mean without bias and are typically one spread off.
        average_loss: Of that simulation.
        rate: Of that simulation.
    """

    predicted: float | None
    measured: float = math.inf
    typical: float = math.inf
    average_loss: float = math.inf
    rate: float = math.nan


def biases(
    graph: TrustGraph,
    seed: int,
    rounds: int = ROUNDS,
    rates: Sequence[float] = RATES,
    methods: Iterable[str] = PREDICTED,
) -> dict[str, Bias]:
    """Predict and measure the bias of methods on a graph, by name as `make` knows them.

    The nodes' optima depend on their mass: popular nodes want one thing, the others another. That
    is the worst case, and a likely one.
    """
    masses = stationary_masses(graph.mixing())
    optima = _optima(masses, seed)
    center = optima.mean(axis=0)
    spread = _root_mean_square(optima - center)
    stream = _stream(optima, rounds, seed)
    model = RidgeRegression(l2=0.0, intercept=False)
    found = {}
    for method in methods:
        predicted = None
        if method in PREDICTED:
            weights = make(method, 1.0).rule.lengths(1.0, masses, None)
            predicted = float(np.linalg.norm(weights @ optima / weights.sum() - center) / spread)
        best = Bias(predicted)
        for rate in rates:
            try:
                run = require_complete(
                    simulate(make(method, rate), model, stream, graph, progress=False)
                )
            except DivergenceError:
                continue
            common = network_mean(NetworkState(run.numerators, run.masses))
            measured = float(np.linalg.norm(common - center) / spread)
            typical = _root_mean_square(run.estimates - center) / spread
            if typical < best.typical:
                best = Bias(predicted, measured, typical, run.average_loss, rate)
        found[method] = best
    return found


def _optima(masses: Vector, seed: int) -> Matrix:
    """One optimum per node: part of it follows the rank of the node's mass, part is its own.

    All are moved so that their mean is `DISTANCE` spreads from 0, where nodes start.
    """
    rng = np.random.default_rng(seed)
    ranks = np.argsort(np.argsort(masses)) / max(1, len(masses) - 1) - 0.5
    direction = np.ones(NUM_FEATURES) / math.sqrt(NUM_FEATURES)
    aside = np.eye(NUM_FEATURES)[0] - np.eye(NUM_FEATURES)[1]
    own = 0.5 * rng.standard_normal((len(masses), NUM_FEATURES))
    wanted: Matrix = own + 2.0 * ranks[:, None] * direction
    wanted -= wanted.mean(axis=0)
    wanted += DISTANCE * _root_mean_square(wanted) * aside / math.sqrt(2.0)
    return wanted


def _root_mean_square(distances: Matrix) -> float:
    """Of the rows' lengths."""
    return math.sqrt(float((distances**2).sum(axis=1).mean()))


def _stream(optima: Matrix, rounds: int, seed: int) -> Stream:
    """Samples of each node's own least squares problem."""
    rng = np.random.default_rng(seed + 1)
    features = rng.standard_normal((rounds, *optima.shape), dtype=np.float32)
    noise = _NOISE * rng.standard_normal((rounds, len(optima)))
    labels = np.einsum("tnf,nf->tn", features, optima) + noise
    return Stream.from_arrays(features, labels.astype(np.float32))


@dataclass(frozen=True)
class Place:
    """A graph: the paper's random one, or a real trust network."""

    name: str
    network: str | None = None

    def graph(self, seed: int) -> TrustGraph:
        """The graph."""
        if self.network is None:
            return TrustGraph.random(128, 32, seed)
        return trust_network(self.network)


@dataclass(frozen=True)
class BiasJob:
    """All methods on a graph with a seed."""

    case: Place
    seed: int
    num_rounds: int


def bias_rows(job: BiasJob) -> list[dict[str, Any]]:
    """A row for every method."""
    found = biases(job.case.graph(job.seed), job.seed, job.num_rounds, RATES, CONTESTED)
    return [{"method": method} | asdict(it) for method, it in found.items()]


def present_networks() -> dict[str, str]:
    """Titles of the trust networks whose files are there."""
    return NETWORKS | {name: title for name, title in held().items() if DATASETS[name].is_here()}


def measured_biases(scope: Scope) -> pl.DataFrame:
    """One row for every graph, seed and method."""
    places = [Place(RANDOM), *(Place(title, name) for name, title in present_networks().items())]
    rounds = 320 if scope.quick else ROUNDS
    seeds = scope.seeds[:FEW]
    return grid(
        bias_rows, [BiasJob(it, seed, rounds) for it in places for seed in seeds], scope.cache
    )


TEXT = (
    "If nodes differ, a step that depends on mass makes nodes count by their mass. The common "
    "model then settles where the weighted gradients cancel, not at the best model for all. Here "
    "every node has its own optimum, and popular nodes want something else than the others, which "
    "is the worst case. The distance of the common model from the best one is in units of how far "
    f"the nodes' own optima are from it. Nodes start {DISTANCE:g} of these units away, so a method "
    "that does not arrive is that far off. Nodes that learn alone have a common model without "
    "bias, and each is one unit off: so both are shown."
)


def bias_table(frame: pl.DataFrame, heading: str, column: str) -> str:
    """Distances from the best common model, by method and graph."""
    places = frame["case"].unique(maintain_order=True).to_list()
    rows = []
    for method in CONTESTED:
        cells = []
        for place in places:
            where = {"case": place, "method": method}
            rates = sorted(set(values(frame, "rate", **where)))
            distance = spread(values(frame, column, **where), ".3f")
            cells.append(f"{distance} at {' to '.join(f'{rate:g}' for rate in rates)}")
        rows.append([label(method).title, *cells])
    return table(
        (f"distance of {heading} from the best", *places),
        rows,
        f"Least squares, {frame['num_rounds'][0]:,} rounds, each method at the rate (of "
        f"{', '.join(f'{rate:g}' for rate in RATES)}) that brings its nodes nearest to the "
        f"best common model; mean over {frame['seed'].n_unique()} seeds ± half the 95 % interval.",
    )


def bias(scope: Scope) -> Report:
    """Measure where the common model settles when nodes differ."""
    frame = measured_biases(scope)
    tables = [
        bias_table(frame, "the common model", "measured"),
        bias_table(frame, "a typical node's model", "typical"),
    ]
    return Report("Nodes that differ", [], [TEXT, *tables], {"runs": frame})


if __name__ == "__main__":
    run(bias, seeds=FEW)
