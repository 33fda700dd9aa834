"""How much faster the fast engine is than the reference, both measured in one run.

Samples of 18 float32 features, logistic regression with intercept, each method on the paper's
random graph. Methods and engines take turns, and each is judged by its fastest turn.
"""

from __future__ import annotations

import time

import numpy as np
from rich.console import Console
from rich.table import Table

import oneway as ow

CASES = [(20, 10, 20_000, 400, 10), (128, 32, 4_000, 200, 4), (1024, 32, 600, 40, 2)]
"""Nodes, bound, rounds of the fast and of the reference engine, ratio to reach."""
METHODS = {
    "ops": ow.OnlinePushSum(0.1),
    "ops x2": ow.OnlinePushSum(0.1, mixes=2),
    "pull": ow.Pull(0.1),
    "relay": ow.Relay(0.1),
    "relay auto": ow.Relay("auto", "curvature"),
}
"""By name; x2 exchanges twice a round, which is as many bytes as Relay sends.
auto chooses its rates."""
TURNS = 5


def samples(num_rows: int, num_features: int = 18) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian features and labels of a noisy linear rule."""
    rng = np.random.default_rng(1)
    features = rng.standard_normal((num_rows, num_features), dtype=np.float32)
    labels = np.where(features.sum(axis=1) + 4 * rng.standard_normal(num_rows) > 0, 1, -1)
    return features, labels.astype(np.float32)


def per_round(engine: str, name: str, stream: ow.Stream, graph: ow.TrustGraph) -> float:
    """Seconds per round of one run."""
    model = ow.models.LogisticRegression()
    began = time.perf_counter()
    ow.simulate(METHODS[name], model, stream, graph, engine=engine, progress=False)
    return (time.perf_counter() - began) / stream.num_rounds


def main() -> None:
    """Measure and print."""
    features, labels = samples(200_000)
    table = ow.Table.from_arrays(features, labels)
    shown = Table(title="one round, 18 float32 features")
    shown.add_column("method")
    for heading in ("nodes", "edges", "reference us", "fast us", "ratio", "at least"):
        shown.add_column(heading, justify="right")
    shown.add_column("to ops", justify="right")
    for num_nodes, bound, fast_rounds, reference_rounds, goal in CASES:
        graph = ow.TrustGraph.random(num_nodes, bound, seed=1)
        stream = table.deal(num_nodes, seed=1, resample=num_nodes * fast_rounds)
        short = stream.head(reference_rounds)
        for name in METHODS:
            per_round("fast", name, short, graph)  # compiles, or loads what was compiled before
        best: dict[tuple[str, str], float] = {}
        for _ in range(TURNS):
            for name in METHODS:
                for engine, part in (("reference", short), ("fast", stream)):
                    took = per_round(engine, name, part, graph)
                    best[engine, name] = min(took, best.get((engine, name), took))
        for name in METHODS:
            reference, fast = best["reference", name], best["fast", name]
            shown.add_row(
                name, f"{num_nodes}", f"{graph.num_edges:,}",
                f"{reference * 1e6:.1f}", f"{fast * 1e6:.1f}",
                f"{reference / fast:.1f}x", f"{goal}x", f"{fast / best['fast', 'ops']:.2f}x",
            )  # fmt: skip
    Console().print(shown)


if __name__ == "__main__":
    main()
