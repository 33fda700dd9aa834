"""Speed and memory of asynchronous networks: as arrays, and as peers in virtual time.

Up to 8 receivers, 10 features, batches and noise as a new task has them; half of a third sleeps, a
tenth of the messages is lost, some join, leave and lie. CPU time, since machines are shared. Memory
is what the process grows by.

    python benchmarks/asynchronous.py [NODES ...] [--samples 12] [--virtual]
"""

from __future__ import annotations

import argparse
import resource
import time

import oneway as ow
from oneway.task.learning import Learning

CONDITIONS = ow.Conditions(rate=0.1, loss=0.1, sleepers=0.3, joining=0.1, leaving=0.1, liars=0.001)
FEATURES, ROWS = 10, 20_000


def main() -> None:
    """Print a row per number of nodes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("nodes", nargs="*", type=int, default=[1_000, 100_000])
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--virtual", action="store_true", help="the peers' own code")
    chosen = parser.parse_args()
    print("nodes  samples  CPU s  microseconds a sample  MB  loss", flush=True)
    for nodes in chosen.nodes:
        table = ow.streams.synthetic(num_samples=ROWS, num_features=FEATURES, seed=1).table
        stream = table.deal(nodes, seed=1, resample=nodes * chosen.samples)
        graph = ow.TrustGraph.random(num_nodes=nodes, max_receivers=8, seed=1)
        method = Learning().build_method(FEATURES + 1)
        run_network = ow.virtual_lab if chosen.virtual else ow.simulate
        before, began = _resident(), time.process_time()
        run = run_network(
            method,
            ow.models.LogisticRegression(),
            stream,
            graph,
            conditions=CONDITIONS,
            seed=1,
            progress=False,
        )
        took, samples = time.process_time() - began, int(run.record.sample_counts.sum())
        print(
            f"{nodes:7,}  {samples:9,}  {took:.1f}  {1e6 * took / samples:,.0f}  "
            f"{(_resident() - before) / 1e3:,.0f}  {run.average_loss:.4f}",
            flush=True,
        )


def _resident() -> float:
    """The most memory that this process ever had, in kB."""
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    main()
