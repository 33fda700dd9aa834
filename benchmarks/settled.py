"""What the settled model is worth: loss and jumps of predictions, beside the momentary estimate.

    python benchmarks/settled.py [rounds]

Every node of a simulated network averages its estimates as a peer does. For data sets that are
there, prints the mean loss of predictions made before their label was seen, over the second half of
the run, and the mean change of a probability from one sample to the next.
"""

from __future__ import annotations

import sys

import numpy as np

import oneway as ow
from oneway.errors import MissingDataError
from oneway.methods import Method
from oneway.peer.store.average import ModelAverage, with_estimate
from oneway.records import Matrix
from oneway.simulator.measurements import Measurements
from oneway.simulator.network import Network
from oneway.simulator.reference_engine import ReferenceEngine
from oneway.tables import Table
from oneway.task.task import Task

NODES, PROBES = 20, 40


def compare(method: Method, table: Table, num_rounds: int) -> tuple[Matrix, Matrix]:
    """Mean losses and mean jumps, of the momentary and of the settled model."""
    model = ow.models.LogisticRegression()
    stream = table.deal(NODES, adversarial=0.5, seed=7, resample=NODES * num_rounds)
    graph = ow.TrustGraph.random(num_nodes=NODES, max_receivers=4, seed=7)
    engine = ReferenceEngine(method, model, stream, Measurements.blank(num_rounds), seed=0)
    probes = np.random.default_rng(1).choice(table.features, PROBES, replace=False)
    averages: list[ModelAverage | None] = [None] * NODES
    losses, jumps, last, counted = np.zeros(2), np.zeros(2), None, 0
    for begin, end, mixing in Network(method, graph, stream).stretches(0, num_rounds):
        for round_index in range(begin, end):
            nodes, batch = stream.batch(round_index)
            moment = engine.state.numerators / engine.state.masses[:, None]
            settled = np.array(
                [it.params if it else own for it, own in zip(averages, moment, strict=True)]
            )
            served = [moment, settled]
            shares = [
                np.array([model.probabilities(own, probes)[:, 1] for own in one]) for one in served
            ]
            if round_index >= num_rounds // 2 and last is not None:
                losses += [model.losses(one[nodes], batch).mean() for one in served]
                jumps += [np.abs(x - y).mean() for x, y in zip(shares, last, strict=True)]
                counted += 1
            last = shares
            engine.advance(round_index, round_index + 1, mixing)
            after = engine.state.numerators / engine.state.masses[:, None]
            averages = [
                with_estimate(it, own, boot=0) for it, own in zip(averages, after, strict=True)
            ]
    return losses / counted, jumps / counted


def main() -> None:
    """Print a table in Markdown."""
    num_rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1500
    print("| data | method | loss, momentary | loss, settled | jump, momentary | jump, settled |")
    print("|---|---|---|---|---|---|")
    for name in ("flights", "adult", "occupancy"):
        try:
            table = ow.streams.load(name)
        except MissingDataError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        private = Task.of(table, learning_rate=0.1).build_method()
        methods = {
            "OPS, rate 0.3, as published": ow.OnlinePushSum(0.3),
            "Relay, rate 0.1, no privacy": ow.Relay(0.1, step="curvature"),
            "Relay, rate 0.1, epsilon 8": private,
        }
        for told, method in methods.items():
            losses, jumps = compare(method, table, num_rounds)
            print(
                f"| {name} | {told} | {losses[0]:.4f} | {losses[1]:.4f} | {jumps[0]:.5f} | "
                f"{jumps[1]:.5f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
