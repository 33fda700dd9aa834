"""A large network in one process: to build, read and check its graph, and what a round takes.

`python benchmarks/ten_million.py [NODES] [ROUNDS]`: NODES nodes (10,000,000 unless given) with 8
receivers each on average, 10 features. Rounds in float64 and float32 take turns with a STREAM-like
triad, so that a busy machine is as busy for all three. What a round must move is counted as STREAM
counts: what is read and what is written, and of a sender's row the cache lines it lies in, once for
every edge.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numba
import numpy as np
import polars as pl

import oneway as ow
from oneway.datasets.synthetic import synthetic
from oneway.simulator.fast_engine import FastEngine
from oneway.simulator.measurements import Measurements

MOST_RECEIVERS = 15
"""Each node has 1 to so many, 8 on average."""
MODEL = ow.models.LogisticRegression()
_LINE = 64


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print what a step takes: elapsed and CPU time, and memory at the highest until now."""
    began, cpu = time.perf_counter(), time.process_time()
    yield
    elapsed, cpu = time.perf_counter() - began, time.process_time() - cpu
    print(f"  {what:<44} {elapsed:8.1f} s, {cpu:7.1f} s CPU, peak {peak():5.2f} GB", flush=True)


def peak() -> float:
    """Most memory until now, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def resident() -> float:
    """Memory now, in GB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e9


@numba.njit(parallel=True)
def triad(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """Compute a = b + 3 c, as STREAM does."""
    for i in numba.prange(len(a)):
        a[i] = b[i] + 3.0 * c[i]


def build(num_nodes: int) -> ow.TrustGraph:
    """Draw a graph, write it down, read it back, check it."""
    with timed(f"draw a random graph of {num_nodes:,} nodes"):
        graph = ow.TrustGraph.random(num_nodes, MOST_RECEIVERS, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edges.txt"
        senders, receivers = graph.edges()
        table = pl.DataFrame({"sender": senders, "receiver": receivers})
        table.write_csv(path, separator=" ", include_header=False)
        del senders, receivers, table
        with timed(f"read {graph.num_edges:,} edges, {path.stat().st_size / 1e9:.2f} GB of text"):
            again = ow.TrustGraph.read(path)
        assert again == graph
        del again
    with timed("check that it is strongly connected"):
        graph.require_strongly_connected()
    return graph


def moved_bytes(engine: FastEngine, num_edges: int) -> tuple[float, float]:
    """What a round must move: in all, and of that the rows of senders."""
    num_nodes, width = engine.held.shape
    row = width * engine.held.itemsize
    rows_of_senders = num_edges * _LINE * -(-row // _LINE)
    edges = num_edges * (4 + 8)
    # A step reads and writes a row, mixing writes one, measuring reads one; per node a sample's
    # place, and scores, margins, losses, slopes and distances, written and read.
    nodes = num_nodes * (4 * row + 4 + 2 * 5 * 8)
    return float(rows_of_senders + edges + nodes), float(rows_of_senders)


def main() -> None:
    """Measure and print."""
    num_nodes = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    num_rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    cores = numba.get_num_threads()
    graph = build(num_nodes)
    with timed("its shares"):
        mixing = graph.mixing()
    stream = synthetic(20_000, 10).table.deal(num_nodes, seed=1, resample=num_nodes * num_rounds)
    method = ow.OnlinePushSum(0.05)
    engines = {}
    for name, single in (("float64", False), ("float32", True)):
        measured = Measurements.blank(num_rounds)
        engines[name] = FastEngine(method, MODEL, stream, measured, 0, single=single)
        with timed(f"{name}: edges by receiver, compilation, a round"):
            engines[name].advance(0, 1, mixing)
        print(f"  {'resident':<44} {resident():8.2f} GB", flush=True)
    arrays = [np.ones(max(num_nodes, 4_000_000)) for _ in range(3)]
    triad(*arrays)
    took: dict[str, list[tuple[float, float]]] = {"float64": [], "float32": [], "triad": []}
    for turn in range(1, num_rounds):
        for name in took:
            began, cpu = time.perf_counter(), time.process_time()
            if name == "triad":
                triad(*arrays)
            else:
                engines[name].advance(turn, turn + 1, mixing)
            took[name].append((time.perf_counter() - began, time.process_time() - cpu))
    # A core that somebody else has is no time of ours: CPU time over cores is what is compared.
    seconds = {name: min(cpu for _, cpu in it) / cores for name, it in took.items()}
    bandwidth = 24 * len(arrays[0]) / seconds["triad"]
    print(f"triad: {bandwidth / 1e9:.1f} GB/s on {cores} cores")
    num_edges = graph.num_edges + num_nodes
    for name, engine in engines.items():
        moved, gathered = moved_bytes(engine, num_edges)
        elapsed = [it for it, _ in took[name]]
        print(
            f"{name}: {seconds[name]:.2f} s a round ({min(elapsed):.2f} to {max(elapsed):.2f} s "
            f"elapsed), {moved / 1e9:.1f} GB, of which {gathered / 1e9:.1f} rows of senders; "
            f"{seconds[name] * bandwidth / moved:.2f} times what the triad takes for that"
        )
    exact, rounded = (engines[name] for name in ("float64", "float32"))
    estimates = [engine.state.estimates for engine in (exact, rounded)]
    far = np.abs(estimates[1] - estimates[0]).max() / np.abs(estimates[0]).max()
    losses = [engine.measurements.loss_sums[-1] for engine in (exact, rounded)]
    print(
        f"float32 after {num_rounds} rounds: estimates differ by {far:.1e} of the largest, loss by "
        f"{abs(losses[1] / losses[0] - 1):.1e}, the sum of masses by "
        f"{abs(rounded.state.masses.sum() / num_nodes - 1):.1e}"
    )
    print(f"peak {peak():.2f} GB")


if __name__ == "__main__":
    main()
