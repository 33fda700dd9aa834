"""The paper's largest run: 5,000,000 samples of 18 features, 128 nodes, 39,062 rounds.

Its time is compared with one NumPy pass (`X @ w` and `X.T @ r`) over the same table in the same
process. The table has SUSY's shape and is random; SUSY itself needs a download.
"""

from __future__ import annotations

import resource
import time

import numpy as np

import oneway as ow

NUM_ROWS, NUM_FEATURES, NUM_NODES, BOUND = 5_000_000, 18, 128, 32
BLOCK = 500_000


def big_table() -> ow.Table:
    """A table made block by block, so that making it takes no more memory than it has."""
    rng = np.random.default_rng(1)
    features = np.empty((NUM_ROWS, NUM_FEATURES), np.float32)
    labels = np.empty(NUM_ROWS, np.float32)
    for start in range(0, NUM_ROWS, BLOCK):
        block = features[start : start + BLOCK]
        rng.standard_normal(out=block, dtype=np.float32)
        noise = 4 * rng.standard_normal(len(block), dtype=np.float32)
        labels[start : start + BLOCK] = np.where(block.sum(axis=1) + noise > 0, 1, -1)
    return ow.Table.from_arrays(features, labels, standardise=False)


def numpy_pass(table: ow.Table) -> float:
    """Seconds of the fastest of five passes over the table."""
    w = np.ones(NUM_FEATURES, np.float32)
    r = np.ones(NUM_ROWS, np.float32)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        table.features @ w
        table.features.T @ r
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> None:
    """Measure and print."""
    table = big_table()
    began = time.perf_counter()
    stream = table.deal(NUM_NODES, seed=1)
    dealt = time.perf_counter() - began
    graph = ow.TrustGraph.random(NUM_NODES, BOUND, seed=1)
    model = ow.models.LogisticRegression()
    ow.simulate(ow.OnlinePushSum(0.1), model, stream.head(10), graph)
    runs = [ow.simulate(ow.OnlinePushSum(0.1), model, stream, graph) for _ in range(3)]
    seconds = min(run.record.seconds for run in runs)
    one_pass = numpy_pass(table)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"dealing {NUM_ROWS:,} rows to {NUM_NODES} nodes: {dealt:.2f} s")
    print(
        f"{stream.num_rounds:,} rounds, {graph.num_edges:,} edges: {seconds:.2f} s, "
        f"{seconds / stream.num_rounds * 1e6:.1f} us a round, "
        f"average loss {runs[0].average_loss:.4f}"
    )
    print(f"one NumPy pass: {one_pass:.3f} s; ratio {seconds / one_pass:.1f} (at most 10)")
    print(f"peak memory, table included: {peak:.2f} GB (at most 1.5)")


if __name__ == "__main__":
    main()
