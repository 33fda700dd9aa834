"""Events a second and memory of the asynchronous simulation, by the number of peers.

Peers with 6 parameters and up to 8 receivers; CPU time, since machines are shared. Memory is what
the process grows by, divided by the number of peers.

    python benchmarks/asynchronous.py [NODES ...] [--samples 100]
"""

from __future__ import annotations

import argparse
import resource
import time

import oneway as ow


def main() -> None:
    """Print a row per number of peers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("nodes", nargs="*", type=int, default=[100, 400])
    parser.add_argument("--samples", type=int, default=100)
    chosen = parser.parse_args()
    print("peers  edges  samples  events  CPU s  events/s  kB a peer", flush=True)
    for nodes in chosen.nodes:
        graph = ow.TrustGraph.random(num_nodes=nodes, max_receivers=8, seed=1)
        made = ow.streams.synthetic(num_samples=nodes * chosen.samples, num_features=5, seed=1)
        stream = made.table.deal(num_nodes=nodes)
        before, began = _resident(), time.process_time()
        method, model = ow.OnlinePushSum(0.3, "capped"), ow.models.LogisticRegression()
        run = ow.simulate_async(method, model, stream, graph, progress=False)
        took, traffic = time.process_time() - began, run.record.config["traffic"]
        print(
            f"{nodes:5}  {graph.num_edges:5}  {traffic['samples']:7}  {traffic['events']:6}  "
            f"{took:.1f}  {traffic['events'] / took:,.0f}  {(_resident() - before) / nodes:.0f}",
            flush=True,
        )


def _resident() -> float:
    """The most memory that this process ever had, in kB."""
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    main()
