"""What batches and noise cost a simulation, in both engines, all measured in one run.

Samples of 18 float32 features, logistic regression with intercept, Online Push-Sum with the
curvature-limited step on the paper's random graph. Private is epsilon 1 with batches of 16 and
noise that 32 batches share. All take turns, and each is judged by its fastest turn.
"""

from __future__ import annotations

import time

import numpy as np
from rich.console import Console
from rich.table import Table

import oneway as ow
from oneway.methods import Batches
from oneway.task.privacy import Privacy

CASES = [(20, 10, 20_000, 400), (128, 32, 4_000, 200), (1024, 32, 600, 40)]
"""Nodes, bound, rounds of the fast and of the reference engine."""
FEATURES = 18
TURNS = 5
KINDS: dict[str, Batches | None] = {
    "plain": None,
    "batches": Batches(16),
    "private": Privacy(epsilon=1.0).batches(16, FEATURES + 1),
}


def per_round(engine: str, kind: str, stream: ow.Stream, graph: ow.TrustGraph) -> float:
    """Seconds per round of one run."""
    method = ow.OnlinePushSum(0.05, step="curvature", batches=KINDS[kind])
    model = ow.models.LogisticRegression()
    began = time.perf_counter()
    ow.simulate(method, model, stream, graph, engine=engine, progress=False)
    return (time.perf_counter() - began) / stream.num_rounds


def main() -> None:
    """Measure and print."""
    rng = np.random.default_rng(1)
    features = rng.standard_normal((200_000, FEATURES), dtype=np.float32)
    labels = np.where(features.sum(axis=1) > 0, 1, -1).astype(np.float32)
    table = ow.Table.from_arrays(features, labels)
    shown = Table(title="rounds of Online Push-Sum, 18 float32 features")
    for heading in ("nodes", "engine", "plain 1/s", "batches 1/s", "private 1/s"):
        shown.add_column(heading, justify="right")
    for heading in ("batches / plain", "private / plain"):
        shown.add_column(f"time {heading}", justify="right")
    for num_nodes, bound, fast_rounds, reference_rounds in CASES:
        graph = ow.TrustGraph.random(num_nodes, bound, seed=1)
        long = table.deal(num_nodes, seed=1, resample=num_nodes * fast_rounds)
        streams = {"fast": long, "reference": long.head(reference_rounds)}
        for kind in KINDS:
            per_round("fast", kind, streams["reference"], graph)  # compiles, or loads
        best: dict[tuple[str, str], float] = {}
        for _ in range(TURNS):
            for engine, stream in streams.items():
                for kind in KINDS:
                    took = per_round(engine, kind, stream, graph)
                    best[engine, kind] = min(took, best.get((engine, kind), took))
        for engine in streams:
            plain, batches, private = (best[engine, kind] for kind in KINDS)
            shown.add_row(
                f"{num_nodes}", engine, *(f"{1 / took:,.0f}" for took in (plain, batches, private)),
                f"{batches / plain:.2f}x", f"{private / plain:.2f}x",
            )  # fmt: skip
    Console().print(shown)


if __name__ == "__main__":
    main()
