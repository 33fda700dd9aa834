"""Events a second on one core and memory of the fast asynchronous level, by number of nodes.

Logistic regression on 19 features, up to 8 receivers, ten samples a second, lognormal delays: Relay
and Online Push-Sum. CPU time, since machines are shared. Memory is what the process grows by.

    python benchmarks/async_events.py [NODES ...] [--samples 10]
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np

import oneway as ow
from oneway.asynchronous.fast import run_fast

FEATURES = 19


def main() -> None:
    """Print a row per number of nodes and method."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("nodes", nargs="*", type=int, default=[1000, 10_000, 100_000])
    parser.add_argument("--samples", type=int, default=10)
    chosen = parser.parse_args()
    methods = ow.Relay(0.1, "curvature"), ow.OnlinePushSum(0.1, "curvature")
    for method in methods:  # compile, or read what was compiled before
        run(method, 10, 2)
    print("method   nodes    edges      events  CPU s  events/s  MB  bytes a node", flush=True)
    for nodes in chosen.nodes:
        for method in methods:
            before = resident()
            outcome, edges, took = run(method, nodes, chosen.samples)
            events, grown = outcome.traffic.events, resident() - before
            print(
                f"{method.name:6}  {nodes:6,}  {edges:7,}  {events:10,}  {took:5.1f}  "
                f"{events / took:9,.0f}  {grown / 1e6:4.0f}  {grown / nodes:6,.0f}",
                flush=True,
            )


def run(method: ow.methods.Method, nodes: int, samples: int) -> tuple[Any, int, float]:
    """An outcome, the number of edges, and the seconds of CPU time that the run took."""
    rng = np.random.default_rng(1)
    features = rng.standard_normal((samples, nodes, FEATURES))
    labels = np.where(features[..., 0] + rng.standard_normal((samples, nodes)) > 0, 1.0, -1.0)
    stream = ow.Stream.from_arrays(features, labels)
    graph = ow.TrustGraph.random(nodes, min(8, nodes - 1), seed=1)
    model, began = ow.models.LogisticRegression(), time.process_time()
    outcome = run_fast(method, model, stream, graph, ow.Conditions(), 1, bins=samples)
    return outcome, graph.num_edges, time.process_time() - began


def resident() -> float:
    """The most memory that this process ever had, in bytes."""
    return 1e3 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
