"""What the settled model is worth: loss and jumps of predictions, beside the momentary estimate.

Every node of a simulated network averages its estimates as a peer does. The loss is that of
predictions made before their label was seen, over the second half of the run; the jump is the mean
change of a predicted probability from one sample to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import oneway as ow
from lib import Report, Scope, data_table, grid, run, spread, table, values
from oneway.datasets import DATASETS
from oneway.methods import Method
from oneway.simulator.measurements import Measurements
from oneway.simulator.network import Network
from oneway.simulator.reference_engine import ReferenceEngine
from oneway.task.task import Task

NODES, PROBES = 20, 40
METHODS = (
    "OPS, rate 0.3, as published",
    "Relay, rate 0.1, no privacy",
    "Relay, rate 0.1, epsilon 8",
)


@dataclass(frozen=True)
class Averaged:
    """A data set and a number of rounds."""

    name: str
    num_rounds: int


@dataclass(frozen=True)
class SettledJob:
    """A method on a data set with a seed."""

    case: Averaged
    method: str
    seed: int


def _method(name: str, data: str) -> Method:
    if name == METHODS[0]:
        return ow.OnlinePushSum(0.3)
    if name == METHODS[1]:
        return ow.Relay(0.1, step="curvature")
    return Task.of(data_table(data), learning_rate=0.1).build_method()


def average(job: SettledJob) -> list[dict[str, Any]]:
    """A row with losses and jumps of the momentary and of the settled model."""
    samples, rounds, seed = data_table(job.case.name), job.case.num_rounds, job.seed
    method, model = _method(job.method, job.case.name), ow.models.LogisticRegression()
    stream = samples.deal(NODES, adversarial=0.5, seed=seed, resample=NODES * rounds)
    graph = ow.TrustGraph.random(num_nodes=NODES, max_receivers=4, seed=seed)
    engine = ReferenceEngine(method, model, stream, Measurements.blank(rounds), seed=0)
    probes = np.random.default_rng(1).choice(samples.features, PROBES, replace=False)
    settled = moment = engine.state.numerators / engine.state.masses[:, None]
    losses, jumps, last, counted = np.zeros(2), np.zeros(2), None, 0
    for begin, end, mixing in Network(method, graph, stream).stretches(0, rounds):
        for index in range(begin, end):
            nodes, batch = stream.batch(index)
            served = (moment, settled)
            now = np.array(
                [[model.probabilities(it, probes)[:, 1] for it in params] for params in served]
            )
            if index >= rounds // 2 and last is not None:
                losses += [model.losses(params[nodes], batch).mean() for params in served]
                jumps += np.abs(now - last).mean(axis=(1, 2))
                counted += 1
            last = now
            engine.advance(index, index + 1, mixing)
            moment = engine.state.numerators / engine.state.masses[:, None]
            # As `oneway.peer.store.average` weighs the estimate of a peer after each sample.
            weight = max(4 / (index + 4), 1 / 100)
            settled = settled + weight * (moment - settled)
    names = ("loss", "settled_loss", "jump", "settled_jump")
    return [dict(zip(names, (*losses / counted, *jumps / counted), strict=True))]


def settled(scope: Scope) -> Report:
    """Compare the settled model with the momentary estimate."""
    rounds = 60 if scope.quick else 1500
    names = [name for name in ("flights", "adult", "occupancy") if DATASETS[name].is_here()]
    jobs = [
        SettledJob(Averaged(name, rounds), method, seed)
        for name in names
        for method in METHODS
        for seed in scope.seeds
    ]
    runs = grid(average, jobs, scope.cache)
    forms = {"loss": ".4f", "settled_loss": ".4f", "jump": ".5f", "settled_jump": ".5f"}
    rows = [
        [name, method]
        + [spread(values(runs, it, case=name, method=method), form) for it, form in forms.items()]
        for name in names
        for method in METHODS
    ]
    heading = (
        *("data", "method", "loss, momentary", "loss, settled"),
        *("jump, momentary", "jump, settled"),
    )
    caption = f"{NODES} nodes, {rounds:,} rounds; mean over seeds ± half the 95 % interval."
    return Report("The settled model", [], [__doc__ or "", table(heading, rows, caption)])


if __name__ == "__main__":
    run(settled, seeds=2)
