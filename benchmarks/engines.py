"""How much faster the fast engine is than the reference, both measured in one run.

Samples of 18 float32 features, logistic regression with intercept, each method on the paper's
random graph. Methods and engines take turns, and each is judged by its fastest turn, in CPU
time of all cores: a busy machine spoils that less.
"""

from __future__ import annotations

import time
from itertools import product

import numpy as np
from rich.console import Console
from rich.table import Table

import oneway as ow
from oneway.methods import Batches
from oneway.task.learning import Learning
from oneway.task.privacy import Privacy

CASES = [
    (20, 10, 20_000, 400, 40),
    (128, 32, 4_000, 200, 10),
    (1024, 32, 600, 40, 5.4),
    (100_000, 32, 12, 4, 1),
]
"""Nodes, bound, rounds of the fast and of the reference engine, and the ratio that `ops` and
`relay` reach: two thirds of what a kernel compiled for every shape of problem had."""
FEATURES = 18
METHODS = {
    "ops": ow.OnlinePushSum(0.1),
    "ops x2": ow.OnlinePushSum(0.1, mixes=2),
    "ops batches": ow.OnlinePushSum(0.05, step="curvature", batches=Batches(16)),
    "ops private": ow.OnlinePushSum(
        0.05, step="curvature", batches=Privacy(epsilon=1.0).batches(16, FEATURES + 1)
    ),
    "pull": ow.Pull(0.1),
    "relay": ow.Relay(0.1),
    "relay auto": ow.Relay("auto", "curvature"),
    "default": Learning().build_method(FEATURES + 1),
}
"""By name; x2 exchanges twice a round, which is as many bytes as Relay sends; private is epsilon 1
with batches of 16; auto chooses its rates; default is that of a new task."""
JUDGED = ("ops", "relay")
TURNS = 5
PERSONAL = "default"
"""The method of a new task, of which the cost of personal predictions is measured."""


def samples(num_rows: int, num_features: int = FEATURES) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian features and labels of a noisy linear rule."""
    rng = np.random.default_rng(1)
    features = rng.standard_normal((num_rows, num_features), dtype=np.float32)
    labels = np.where(features.sum(axis=1) + 4 * rng.standard_normal(num_rows) > 0, 1, -1)
    return features, labels.astype(np.float32)


def per_round(engine: str, name: str, stream: ow.Stream, graph: ow.TrustGraph) -> float:
    """Seconds of CPU time per round of one run."""
    model = ow.models.LogisticRegression()
    began = time.process_time()
    ow.simulate(METHODS[name], model, stream, graph, engine=engine, progress=False)
    return (time.process_time() - began) / stream.num_rounds


def main() -> None:
    """Measure and print."""
    table = ow.Table.from_arrays(*samples(200_000))
    shown = Table(title="one round, 18 float32 features")
    shown.add_column("method")
    for heading in ("nodes", "edges", "reference us", "fast us", "ratio", "at least", "to ops"):
        shown.add_column(heading, justify="right")
    for num_nodes, bound, fast_rounds, reference_rounds, goal in CASES:
        graph = ow.TrustGraph.random(num_nodes, bound, seed=1)
        stream = table.deal(num_nodes, seed=1, resample=num_nodes * fast_rounds)
        short = stream.head(reference_rounds)
        names = METHODS if num_nodes < 10_000 else JUDGED
        for name in names:
            per_round("fast", name, short, graph)  # loads what is compiled
        best: dict[tuple[str, str], float] = {}
        for _ in range(TURNS):
            for name in names:
                for engine, part in (("reference", short), ("fast", stream)):
                    took = per_round(engine, name, part, graph)
                    best[engine, name] = min(took, best.get((engine, name), took))
        for name in names:
            reference, fast = best["reference", name], best["fast", name]
            shown.add_row(
                name, f"{num_nodes}", f"{graph.num_edges:,}",
                f"{reference * 1e6:.1f}", f"{fast * 1e6:.1f}",
                f"{reference / fast:.1f}x", f"{goal}x" if name in JUDGED else "",
                f"{fast / best['fast', 'ops']:.2f}x",
            )  # fmt: skip
    Console().print(shown)
    Console().print(personal_cost())


def personal_cost() -> Table:
    """CPU time of runs with and without personal predictions, taking turns; the fastest counts."""
    shown = Table(title="personal predictions at the defaults of a new task, CPU time a sample")
    shown.add_column("model")
    for heading in ("nodes", "without ns", "with ns", "ratio", "at most"):
        shown.add_column(heading, justify="right")
    features, labels = samples(200_000)
    cases = {
        ow.models.LogisticRegression(): ow.Table.from_arrays(features, labels),
        ow.models.RidgeRegression(): ow.Table.from_arrays(
            features, features.mean(axis=1) + labels, task="number"
        ),
    }
    for (model, table), (num_nodes, bound, rounds, *_) in product(cases.items(), CASES[:3]):
        graph = ow.TrustGraph.random(num_nodes, bound, seed=1)
        stream = table.deal(num_nodes, seed=1, resample=num_nodes * rounds)
        best = [float("inf")] * 2
        for turn in range(TURNS + 1):
            for personal in (False, True):
                began = time.process_time()
                ow.simulate(
                    METHODS[PERSONAL], model, stream, graph, progress=False, personal=personal
                )
                took = (time.process_time() - began) / stream.num_samples
                if turn:  # the first compiles
                    best[personal] = min(took, best[personal])
        without, beside = best
        shown.add_row(
            model.name, f"{num_nodes}", f"{1e9 * without:.0f}", f"{1e9 * beside:.0f}",
            f"{beside / without:.2f}x", "2x" if num_nodes >= 128 else "",
        )  # fmt: skip
    return shown


if __name__ == "__main__":
    main()
