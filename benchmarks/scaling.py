"""How the cost of a round grows: linear in edges x features, flat in the round number."""

from __future__ import annotations

import time

import numba
import numpy as np

import oneway as ow
from engines import samples

MODEL = ow.models.LogisticRegression()


def seconds_per_round(num_nodes: int, receivers: int, num_features: int, num_rounds: int) -> float:
    """Fastest of three runs."""
    features, labels = samples(50_000, num_features)
    graph = ow.TrustGraph.random(num_nodes, receivers, seed=1)
    stream = ow.Table.from_arrays(features, labels).deal(
        num_nodes, seed=1, resample=num_nodes * num_rounds
    )
    ow.simulate(ow.OnlinePushSum(0.01), MODEL, stream.head(1), graph)
    return min(
        ow.simulate(ow.OnlinePushSum(0.01), MODEL, stream, graph).record.seconds / num_rounds
        for _ in range(3)
    )


def main() -> None:
    """Measure and print."""
    print("cost of a round on one core against (edges + nodes) x (features + 2):")
    cores = numba.get_num_threads()
    numba.set_num_threads(1)
    sizes, costs = [], []
    for num_nodes, receivers, num_features in [
        (1_000, 16, 18), (4_000, 16, 18), (16_000, 16, 18), (4_000, 64, 18), (4_000, 16, 70),
    ]:  # fmt: skip
        graph = ow.TrustGraph.random(num_nodes, receivers, seed=1)
        size = (graph.num_edges + num_nodes) * (num_features + 2)
        cost = seconds_per_round(num_nodes, receivers, num_features, 60)
        sizes.append(size)
        costs.append(cost)
        print(
            f"  n={num_nodes:>6} edges={graph.num_edges:>7,} features={num_features:>3}: "
            f"{cost * 1e6:9.1f} us, {cost / size * 1e9:.2f} ns per edge and feature"
        )
    slope = np.polyfit(np.log(sizes[:3]), np.log(costs[:3]), 1)[0]
    print(f"  fitted exponent of the first three, where only the network grows: {slope:.2f}")
    numba.set_num_threads(cores)

    features, labels = samples(50_000)
    graph = ow.TrustGraph.random(128, 32, seed=1)
    long = ow.Table.from_arrays(features, labels).deal(128, seed=1, resample=128 * 40_000)
    quarters = []
    for quarter in range(4):
        part = ow.Stream(
            features=long.features,
            labels=long.labels,
            rows=long.rows[: (quarter + 1) * 10_000],
        )
        quarters.append(
            min(
                ow.simulate(ow.OnlinePushSum(0.01), MODEL, part, graph).record.seconds
                for _ in "123"
            )
        )
    steps = np.diff([0.0, *quarters])
    print(
        "cost of rounds 1-10,000, ..., 30,001-40,000, relative to the first: "
        + ", ".join(f"{step / steps[0]:.2f}" for step in steps)
    )

    began = time.perf_counter()
    graph = ow.TrustGraph.random(100_000, 8, seed=1)
    made = time.perf_counter() - began
    stream = ow.Table.from_arrays(features, labels).deal(100_000, seed=1, resample=2_000_000)
    run = ow.simulate(ow.OnlinePushSum(0.01, cap_step=True), MODEL, stream, graph)
    print(
        f"n=100,000, up to 8 receivers each, {graph.num_edges:,} edges: graph made in "
        f"{made:.2f} s, {run.record.seconds / stream.num_rounds * 1e3:.1f} ms a round"
    )


if __name__ == "__main__":
    main()
