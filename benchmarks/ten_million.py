"""A large network in one process: to build, read and check its graph, and what a round takes.

`python benchmarks/ten_million.py [NODES] [ROUNDS]`: NODES nodes (10,000,000 unless given) with 8
receivers each on average, 10 features. Rounds in float64 and float32 take turns with a STREAM-like
triad and with reading senders' rows and nothing else, so that a busy machine is as busy for all of
them; medians of CPU time over cores are compared. What a round must move is counted as STREAM does:
what is read and what is written, and of a sender's row the cache lines it lies in, once for every
edge.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numba
import numpy as np
import polars as pl

import oneway as ow
from oneway.datasets.synthetic import synthetic
from oneway.simulator.fast_engine import FastEngine
from oneway.simulator.intrinsics import prefetch_row
from oneway.simulator.measurements import Measurements

MOST_RECEIVERS = 15
"""Each node has 1 to so many, 8 on average."""
MODEL = ow.models.LogisticRegression()
_LINE = 64
_TRIAD = 24_000_000
"""Numbers in an array of the triad: 0.58 GB in all, more than any cache."""


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


@numba.njit(parallel=True)
def gather(rows: np.ndarray, indptr: np.ndarray, senders: np.ndarray, out: np.ndarray) -> None:
    """Read a number of every cache line of every sender's row, receiver by receiver."""
    per_line = _LINE // rows.itemsize
    for node in numba.prange(len(out)):
        total = 0.0
        ahead = min(node + 2, len(out) - 1)
        for k in range(indptr[ahead], indptr[ahead + 1]):
            prefetch_row(rows, senders[k], 1)  # the next line comes with it, as a pair
        for k in range(indptr[node], indptr[node + 1]):
            for column in range(0, rows.shape[1], per_line):
                total += rows[senders[k], column]
        out[node] = total


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


def in_turns(works: dict[str, Callable[[int], object]], num_rounds: int) -> dict[str, float]:
    """Median CPU time over cores of each work, which take turns; after once, to compile."""
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for turn in range(num_rounds):
        for name, work in works.items():
            began, cpu = time.perf_counter(), time.process_time()
            if turn > 0 or not name.startswith("float"):  # whose first round is done
                work(turn)
            took[name].append((time.perf_counter() - began, time.process_time() - cpu))
    for name, it in took.items():
        elapsed, cpu = np.array(it[1:]).T
        print(
            f"  {name:<16} {np.median(cpu):8.3f} s CPU ({cpu.min():.3f} to {cpu.max():.3f}), "
            f"{elapsed.min():.3f} to {elapsed.max():.3f} s elapsed"
        )
    # A core that somebody else has is no time of ours: CPU time over cores is what is compared.
    cores = numba.get_num_threads()
    return {name: float(np.median([cpu for _, cpu in it[1:]])) / cores for name, it in took.items()}


def main() -> None:
    """Measure and print."""
    num_nodes = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    num_rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    graph = build(num_nodes)
    with timed("its shares"):
        mixing = graph.mixing()
    stream = synthetic(20_000, 10).table.deal(num_nodes, seed=1, resample=num_nodes * num_rounds)
    method = ow.OnlinePushSum(0.05)
    engines, out = {}, np.zeros(num_nodes)
    for name, single in (("float64", False), ("float32", True)):
        measured = Measurements.blank(num_rounds)
        engines[name] = FastEngine(method, MODEL, stream, measured, 0, single=single)
        with timed(f"{name}: edges by receiver, compilation, a round"):
            engines[name].advance(0, 1, mixing)
        print(f"  {'resident':<44} {resident():8.2f} GB", flush=True)
    arrays = [np.ones(_TRIAD) for _ in range(3)]
    seconds = in_turns(
        {
            **{
                name: lambda turn, it=engine: it.advance(turn, turn + 1, mixing)
                for name, engine in engines.items()
            },
            **{
                f"rows {name}": lambda _, it=engine: gather(
                    it.held, *it._routes(mixing)[0][:2], out
                )
                for name, engine in engines.items()
            },
            "triad": lambda _: triad(*arrays),
        },
        num_rounds,
    )
    bandwidth = 24 * _TRIAD / seconds["triad"]
    print(f"triad: {bandwidth / 1e9:.1f} GB/s on {numba.get_num_threads()} cores")
    num_edges = graph.num_edges + num_nodes
    for name, engine in engines.items():
        moved, gathered = moved_bytes(engine, num_edges)
        streamed = moved / bandwidth
        alone = seconds[f"rows {name}"] + (moved - gathered) / bandwidth
        print(
            f"{name}: a round {seconds[name]:.2f} s, {moved / 1e9:.1f} GB, of which "
            f"{gathered / 1e9:.1f} rows of senders: {seconds[name] / streamed:.2f} times what the "
            f"triad takes for as many bytes, {seconds[name] / alone:.2f} times what reading those "
            f"rows ({seconds[f'rows {name}']:.2f} s) and the triad for the rest take"
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
