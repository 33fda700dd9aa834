"""Bias of a step rule: where the common model settles when nodes differ.

With steps s_i that depend on a node's mass, small learning rates settle where the weighted
gradients cancel: sum_i s_i * gradient f_i(x) = 0. Published OPS has s_i = 1, the goal itself. On
least squares with a node's own optimum theta_i and white features this point is
sum(s_i theta_i) / sum(s_i), so the bias can be predicted, and here it is also measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oneway.errors import DivergenceError
from oneway.metrics import network_mean
from oneway.models import RidgeRegression
from oneway.paper.methods import STEPS, make, step_scale
from oneway.paper.world import trust_network
from oneway.records import Matrix, NetworkState, Vector
from oneway.simulator import simulate
from oneway.streams import Stream
from oneway.topology import TrustGraph, stationary_masses

NUM_FEATURES = 5
_NOISE = 0.1


@dataclass(frozen=True)
class Bias:
    """The bias of a step rule on one graph.

    Attributes:
        predicted: Distance of the common model from the best one, in units of how far the nodes'
            own optima are from it (root mean square).
        measured: The same in a simulation; infinite if it diverged.
        average_loss: Of that simulation; infinite if it diverged.
    """

    predicted: float
    measured: float = math.inf
    average_loss: float = math.inf


def biases(graph: TrustGraph, seed: int, rounds: int = 2000, rate: float = 0.01) -> dict[str, Bias]:
    """Predict and measure the bias of every step rule on a graph, by the method that uses it.

    The nodes' optima depend on their mass: popular nodes want one thing, the others another. That
    is the worst case, and a likely one.
    """
    masses = stationary_masses(graph.mixing())
    optima = _optima(masses, seed)
    stream = _stream(optima, rounds, seed)
    center = optima.mean(axis=0)
    spread = math.sqrt(float(((optima - center) ** 2).sum(axis=1).mean()))
    model = RidgeRegression(l2=0.0, intercept=False)
    found = {}
    for method in STEPS:
        weights = step_scale(method, masses)
        predicted = float(np.linalg.norm(weights @ optima / weights.sum() - center) / spread)
        try:
            run = simulate(make(method, rate), model, stream, graph, progress=False)
        except DivergenceError:
            found[method] = Bias(predicted)
            continue
        common = network_mean(NetworkState(run.numerators, run.masses))
        measured = float(np.linalg.norm(common - center) / spread)
        found[method] = Bias(predicted, measured, run.average_loss)
    return found


def all_biases(seeds: Sequence[int] = (0, 1, 2)) -> dict[tuple[str, str], list[Bias]]:
    """The paper's random graph and Advogato: one bias per seed, by network and method."""
    found: dict[tuple[str, str], list[Bias]] = {}
    for seed in seeds:
        graphs = {
            "random, 128 nodes": TrustGraph.random(128, max_receivers=32, seed=seed),
            "Advogato": trust_network("advogato"),
        }
        for network, graph in graphs.items():
            for method, bias in biases(graph, seed).items():
                found.setdefault((network, method), []).append(bias)
    return found


def _optima(masses: Vector, seed: int) -> Matrix:
    """One optimum per node: part of it follows the rank of the node's mass, part is its own."""
    rng = np.random.default_rng(seed)
    ranks = np.argsort(np.argsort(masses)) / max(1, len(masses) - 1) - 0.5
    direction = np.ones(NUM_FEATURES) / math.sqrt(NUM_FEATURES)
    own: Matrix = 0.5 * rng.standard_normal((len(masses), NUM_FEATURES))
    return own + 2.0 * ranks[:, None] * direction


def _stream(optima: Matrix, rounds: int, seed: int) -> Stream:
    """Samples of each node's own least squares problem."""
    rng = np.random.default_rng(seed + 1)
    features = rng.standard_normal((rounds, *optima.shape), dtype=np.float32)
    noise = _NOISE * rng.standard_normal((rounds, len(optima)))
    labels = np.einsum("tnf,nf->tn", features, optima) + noise
    return Stream.from_arrays(features, labels.astype(np.float32))
