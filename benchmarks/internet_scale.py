"""What a network of a million peers costs each of them, a day: calculated from two measurements.

The asynchronous simulation (fast level, default method, batches and noise) tells how often a peer
pushes and is pushed to, at given rates and degrees; `benchmarks/one_peer.py` tells what a sample, a
push, an arrival and doing nothing cost one real peer. The table multiplies the two: it is
calculated, not measured. What a peer does depends on its own rate and its neighbours, not on how
many there are; the last lines show that for networks of different sizes.

    python benchmarks/internet_scale.py [PARAMETERS]
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import oneway as ow
from one_peer import PRIVACY, RATES, Cost, measured
from oneway.asynchronous.conditions import Conditions
from oneway.asynchronous.outcome import Traffic
from pushes import make_peers

DAY = 86_400.0
FIRST, LAST = 3, 7
"""Batches of every peer: what is done between the third and the seventh, when every peer knows how
rare its steps are."""


@dataclass(frozen=True)
class Pace:
    """What a peer does, a second.

    Attributes:
        receivers: How many it has, on average.
    """

    receivers: float
    samples: float
    pushes: float
    messages: float


def pace(num_nodes: int, max_receivers: int, rate: float) -> Pace:
    """What peers do once they know how rare their steps are."""
    graph = ow.TrustGraph.random(num_nodes=num_nodes, max_receivers=max_receivers, seed=1)
    (before, begun), (after, ended) = (traffic(graph, rate, it) for it in (FIRST, LAST))
    names = ("samples", "pushes", "messages")
    did = [getattr(after, name) - getattr(before, name) for name in names]
    return Pace(graph.num_edges / num_nodes, *(it / (ended - begun) for it in did))


def traffic(graph: ow.TrustGraph, rate: float, batches_each: int) -> tuple[Traffic, float]:
    """What all did, and in how many peer-seconds."""
    rounds, num_nodes = 16 * batches_each, graph.num_nodes
    table = ow.streams.synthetic(num_samples=20_000, num_features=18, seed=1).table
    stream = table.deal(num_nodes, seed=1, resample=num_nodes * rounds)
    batches = ow.Privacy(epsilon=8.0).batches(samples=16, dim=19)
    run = ow.simulate_async(
        ow.Relay("auto", batches=batches),
        ow.models.LogisticRegression(),
        stream,
        graph,
        conditions=Conditions(rate=rate),
        progress=False,
    )
    told = run.record.config
    return Traffic(**told["traffic"]), told["virtual_seconds"] * num_nodes


def one_peer(dim: int) -> tuple[Cost, Cost, Cost, Cost]:
    """What a second of rest, a sample, a push and an arrival cost a real peer."""
    rate = RATES[dim]
    with tempfile.TemporaryDirectory() as folder:
        sender, receiver = make_peers(Path(folder), dim, privacy=PRIVACY, method="relay")
        trusting = sender.config().receivers
        sender.change(lambda mine: replace(mine, receivers=()))
        [(idle, _)] = measured([(sender, 0.0)], dim)
        [(alone, _)] = measured([(sender, rate)], dim)
        sender.change(lambda mine: replace(mine, receivers=trusting))
        (sending, _), (receiving, _) = measured([(sender, rate), (receiver, 0.0)], dim)
    sample = (alone - idle) / alone.samples
    push = (sending - idle - sample * sending.samples) / sending.pushes
    return idle, sample, push, (receiving - idle) / sending.pushes


def main(dim: int) -> None:
    """Simulate, measure, multiply, print."""
    idle, sample, push, arrival = one_peer(dim)
    for name, cost in (
        ("second of rest", idle), ("sample", sample), ("push", push), ("arrival", arrival),
    ):  # fmt: skip
        print(
            f"measured, a {name}: {1e3 * cost.cpu:.2f} ms CPU, {cost.disk / 1e3:.1f} kB to disk, "
            f"{cost.sent:,.0f} bytes sent"
        )
    print(
        f"\n{dim} parameters, a day, calculated:\n"
        "samples a second  receivers  pushes  messages sent  MB sent  CPU  to disk"
    )
    for rate in (1 / 60, 0.1, 1.0):
        for max_receivers in (4, 16):
            did = pace(50, max_receivers, rate)
            samples, pushes = DAY * did.samples, DAY * did.pushes
            total = idle * DAY + sample * samples + push * pushes + arrival * pushes
            print(
                f"{rate:>16.3g}  {did.receivers:>9.1f}  {pushes:>6,.0f}  "
                f"{DAY * did.messages:>13,.0f}"
                f"  {pushes * (push.sent + arrival.sent) / 1e6:>7,.0f}"
                f"  {100 * total.cpu / DAY:>4.2g} % of a core  {total.disk / 1e9:>5.2g} GB",
                flush=True,
            )
    print("\npushes a peer and second at 0.1 samples a second, by the size of the network:")
    for num_nodes in (25, 100, 400):
        print(f"  {num_nodes:>5,} peers: {pace(num_nodes, 8, 0.1).pushes:.3f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
