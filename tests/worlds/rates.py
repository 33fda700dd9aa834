"""What the theorems promise, measured: sqrt(T) for the regret, 1/T for the disagreement.

The losses are hinges on unit vectors, so gradients have norm 1 or 0 and the best model is known: it
is 1 in every coordinate, because most labels say so. In even rounds samples are random, and seven
of ten labels are +1; in odd rounds each node insists on its own coordinate, and three of four are.

Here nodes want the same, so no bias could show in the regret. Where they do not, see `contested`:
there regret is each estimate's on all nodes' losses, and every named mistake makes it linear.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from contested import BIASED, Maker, hubs_and_speakers, one_heavy_node
from scipy import stats

import oneway as ow
from oneway.methods import Method
from theory import Problem, graph_constants, printed_bound

MODEL = ow.models.Hinge(l2=0.0, intercept=False)
DIM = 2
OPTIMUM = np.ones(DIM)
SEEDS = range(8)
HORIZONS = np.array([2**11, 2**13, 2**15, 2**16])
# gamma sqrt(T). The bound's own constant here, R / (G sqrt(2 C_1)), is 0.02 to 0.06. With
# it the way to the optimum is nearly all of the regret up to these horizons and hides what a step
# that does not shrink costs later: a constant one would pass. At 2 both parts count.
SCALE = 2.0
CONTEST = hubs_and_speakers(copies=16)
CONTESTED_HORIZONS = np.array([2**10, 2**12, 2**14])
CONTESTED_ROUNDS = 2**12
APART: dict[str, Maker] = {
    "naive gossip": ow.NaiveGossip,
    "isolated": ow.Isolated,
    "mutual gossip": ow.MutualGossip,
}
"""Methods whose estimates never come together on a one-way graph."""
WRONG = BIASED | APART | {"pull": ow.Pull}
POWERS = (0.0, -0.25, -0.75, -1.0)
"""Powers of T in the step size that are not the theorem's."""


@cache
def mixed_stream(num_rounds: int, num_nodes: int, seed: int) -> ow.Stream:
    """Half stochastic, half adversarial samples: rows of a table with each axis and label."""
    rng = np.random.default_rng([seed, num_rounds])
    axes = rng.integers(DIM, size=(num_rounds, num_nodes), dtype=np.int32)
    positive = rng.random((num_rounds, num_nodes)) < 0.7
    axes[1::2] = np.arange(num_nodes) % DIM
    turns = np.arange(num_rounds // 2)[:, None] + np.arange(num_nodes)
    positive[1::2] = turns % 4 > 0
    return ow.Stream(
        features=np.repeat(np.eye(DIM), 2, axis=0),
        labels=np.tile([-1.0, 1.0], DIM),
        rows=2 * axes + positive.astype(np.int32),
    )


def measure(
    num_rounds: int, method: Method, graph: ow.TrustGraph, seed: int
) -> tuple[float, float]:
    """Regret against the known optimum, and disagreement averaged over rounds."""
    stream = mixed_stream(num_rounds, graph.num_nodes, seed)
    run = ow.simulate(method, MODEL, stream, graph, engine="fast", progress=False)
    best = np.maximum(0, 1 - stream.labels * (stream.features @ OPTIMUM))[stream.rows].sum()
    return float(run.record.loss_sums.sum() - best), float(run.disagreement.mean())


def exponents(
    rule: Callable[[int], float], make: Maker = ow.OnlinePushSum
) -> tuple[tuple[float, float], tuple[float, float]]:
    """95 % confidence intervals, over seeds and graphs, of the exponents of T."""
    slopes = []
    for seed in SEEDS:
        graph = ow.TrustGraph.random(10, max_receivers=3, seed=seed)
        values = [measure(T, make(rule(T)), graph, seed) for T in HORIZONS.tolist()]
        slopes.append(np.polyfit(np.log(HORIZONS), np.log(values), 1)[0])
    low, high = stats.t.interval(0.95, len(slopes) - 1, np.mean(slopes, axis=0), stats.sem(slopes))
    return (float(low[0]), float(high[0])), (float(low[1]), float(high[1]))


def grows_no_faster_than_sqrt(regret: tuple[float, float]) -> bool:
    return regret[1] < 0.52


def falls_like_the_inverse(disagreement: tuple[float, float]) -> bool:
    return disagreement[0] > -1.05 and disagreement[1] < -0.95


def step_size(horizon: int, power: float) -> float:
    """One constant, tuned anew for each horizon; the theorem's power is -1/2."""
    first = int(HORIZONS[0])
    return SCALE / math.sqrt(first) * (horizon / first) ** power


def contested_exponent(make: Maker, power: float = -0.5) -> float:
    """The exponent of T in the regret of every estimate on all nodes' losses."""
    first = int(CONTESTED_HORIZONS[0])
    rates = SCALE / math.sqrt(first) * (CONTESTED_HORIZONS / first) ** power
    regrets = [
        CONTEST.regret(make(rate), horizon)
        for horizon, rate in zip(CONTESTED_HORIZONS.tolist(), rates.tolist(), strict=True)
    ]
    return float(np.polyfit(np.log(CONTESTED_HORIZONS), np.log(regrets), 1)[0])


def part_of_the_bound(make, heavy, stray, seed) -> float:
    """Regret on all nodes' losses over the bound, both at the bound's own step size.

    That the printed bound covers this regret too is shown in `contested`.
    """
    contest = one_heavy_node(heavy, stray, seed)
    problem = Problem(CONTESTED_ROUNDS, gradient_bound=1.0, noise=0.0, radius=1.0)
    bound = printed_bound(graph_constants(contest.mixing), problem)
    regret = contest.regret(make(bound.best_learning_rate), CONTESTED_ROUNDS, seed)
    return regret / bound.smallest
