"""How far the fast engine and the loader go: cost against size, SUSY's size, a CSV of 2.3 GB.

    python benchmarks/scale.py [rounds] [susy] [csv]

`rounds`: the cost of a round is linear in edges x features and flat in the round number. `susy`:
5,000,000 random samples of 18 features, 128 nodes, against one NumPy pass (`X @ w` and `X.T @ r`)
over the same table. `csv`: the time and peak memory of loading such a file, and again from its
cache; it needs 3 GB of disk.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np

import oneway as ow
from engines import samples

MODEL = ow.models.LogisticRegression()
NUM_ROWS, NUM_FEATURES, NUM_NODES, BOUND = 5_000_000, 18, 128, 32
BLOCK = 10_000
SIZES = [(1_000, 16, 18), (4_000, 16, 18), (16_000, 16, 18), (4_000, 64, 18), (4_000, 16, 70)]
"""Nodes, bound on receivers, features; in the first three only the network grows."""
LOAD = """
import resource, sys, time
import oneway as ow
began = time.perf_counter()
table = ow.streams.load(sys.argv[1], label="label")
seconds = time.perf_counter() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(f"{table}: {seconds:.1f} s, peak memory {peak:.2f} GB")
"""


def seconds_of(stream: ow.Stream, graph: ow.TrustGraph) -> float:
    """Fastest of three runs."""
    method = ow.OnlinePushSum(0.01, step="capped")
    ow.simulate(method, MODEL, stream.head(1), graph, progress=False)
    return min(
        ow.simulate(method, MODEL, stream, graph, progress=False).record.seconds for _ in range(3)
    )


def measure_rounds() -> None:
    """Print how the cost of a round grows."""
    print("cost of a round on one core against (edges + nodes) x (features + 2):")
    cores = numba.get_num_threads()
    numba.set_num_threads(1)
    sizes, costs = [], []
    for num_nodes, bound, num_features in SIZES:
        graph = ow.TrustGraph.random(num_nodes, bound, seed=1)
        table = ow.Table.from_arrays(*samples(50_000, num_features))
        stream = table.deal(num_nodes, seed=1, resample=num_nodes * 60)
        sizes.append((graph.num_edges + num_nodes) * (num_features + 2))
        costs.append(seconds_of(stream, graph) / 60)
        print(
            f"  n={num_nodes:>6} edges={graph.num_edges:>7,} features={num_features:>3}: "
            f"{costs[-1] * 1e6:9.1f} us, {costs[-1] / sizes[-1] * 1e9:.2f} ns per edge and feature"
        )
    slope = np.polyfit(np.log(sizes[:3]), np.log(costs[:3]), 1)[0]
    print(f"  fitted exponent of the first three: {slope:.2f}")
    numba.set_num_threads(cores)
    table = ow.Table.from_arrays(*samples(50_000))
    long = table.deal(128, seed=1, resample=128 * 40_000)
    graph = ow.TrustGraph.random(128, 32, seed=1)
    steps = np.diff([0.0, *(seconds_of(long.head(10_000 * k), graph) for k in range(1, 5))])
    print(
        "cost of rounds 1-10,000, ..., 30,001-40,000, relative to the first: "
        + ", ".join(f"{step / steps[0]:.2f}" for step in steps)
    )
    began = time.perf_counter()
    graph = ow.TrustGraph.random(100_000, 8, seed=1)
    made = time.perf_counter() - began
    stream = table.deal(100_000, seed=1, resample=2_000_000)
    print(
        f"n=100,000, up to 8 receivers each, {graph.num_edges:,} edges: graph made in {made:.2f} "
        f"s, {seconds_of(stream, graph) / stream.num_rounds * 1e3:.1f} ms a round"
    )


def measure_susy() -> None:
    """Print the paper's largest run beside one pass over its table."""
    rng = np.random.default_rng(1)
    features = rng.standard_normal((NUM_ROWS, NUM_FEATURES), dtype=np.float32)
    noise = 4 * rng.standard_normal(NUM_ROWS, dtype=np.float32)
    labels = np.where(features.sum(axis=1) + noise > 0, 1, -1).astype(np.float32)
    table = ow.Table.from_arrays(features, labels, standardise=False)
    began = time.perf_counter()
    stream = table.deal(NUM_NODES, seed=1)
    dealt = time.perf_counter() - began
    graph = ow.TrustGraph.random(NUM_NODES, BOUND, seed=1)
    seconds = seconds_of(stream, graph)
    passes = []
    for _ in range(5):
        began = time.perf_counter()
        table.features @ np.ones(NUM_FEATURES, np.float32)
        table.features.T @ np.ones(NUM_ROWS, np.float32)
        passes.append(time.perf_counter() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"dealing {NUM_ROWS:,} rows to {NUM_NODES} nodes: {dealt:.2f} s")
    print(
        f"{stream.num_rounds:,} rounds, {graph.num_edges:,} edges: {seconds:.2f} s, "
        f"{seconds / stream.num_rounds * 1e6:.1f} us a round; one NumPy pass: {min(passes):.3f} s; "
        f"ratio {seconds / min(passes):.1f} (at most 10); peak memory {peak:.2f} GB (at most 1.5)"
    )


def measure_csv() -> None:
    """Print what loading a large file takes, each time in a process of its own."""
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.integers(0, 2, BLOCK), rng.standard_normal((BLOCK, NUM_FEATURES))])
    block = "\n".join(",".join(f"{value:.18e}" for value in row) for row in rows) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "susy-sized.csv"
        with path.open("w") as file:
            file.write(",".join(["label", *(f"x{i}" for i in range(NUM_FEATURES))]) + "\n")
            for _ in range(NUM_ROWS // BLOCK):
                file.write(block)
        print(f"{path.stat().st_size / 1e9:.2f} GB of CSV, {NUM_ROWS:,} rows")
        environment = os.environ | {"ONEWAY_CACHE": folder}
        for what in ("first load", "from the cache"):
            print(f"{what}: ", end="", flush=True)
            subprocess.run([sys.executable, "-c", LOAD, str(path)], env=environment, check=True)


PARTS: dict[str, Callable[[], None]] = {
    "rounds": measure_rounds,
    "susy": measure_susy,
    "csv": measure_csv,
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
