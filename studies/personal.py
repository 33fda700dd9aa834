"""Is a node better off together than alone? Personal predictions at the defaults of a new task.

Relay with the rate that nodes choose themselves, batches of 16, noise for each epsilon; nothing is
tuned. *Yours* is the mixture that a node predicts with, *shared* the network's model, *alone* what
the node would have without the network, at rates of its own. Losses are of predictions made before
the label is known, without any l2 term. With liars, a quarter of the nodes learns from labels
turned around, and the losses are those of the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from sklearn.datasets import load_diabetes

import oneway as ow
from heart import ARROWS
from lib import (
    ASYNCHRONOUS,
    NO_NOISE,
    Case,
    Report,
    Scope,
    data_table,
    grid,
    interval,
    make_private,
    run,
    table,
    values,
)
from oneway.records.values import ADAPTED, ALONE, SHARED, YOURS
from oneway.simulator.grid import require_complete
from oneway.task.learning import Learning, started_model

EPSILONS = (NO_NOISE, 8.0, 2.0, 1.0)
NODES, RECEIVERS = 20, 10
LIARS = 5
_COLUMNS = {"yours": YOURS, "shared": SHARED, "alone": ALONE, "adapted": ADAPTED}

World = tuple[ow.Stream, ow.TrustGraph, ow.models.Model]


def new_task_model(labels: Any, num_classes: int = 2) -> ow.models.Model:
    """What a new task learns with: it starts from the shares of the classes, or the mean."""
    name = {0: "ridge", 2: "logistic"}.get(num_classes, "softmax")
    return started_model(Learning(model=name), num_classes, np.asarray(labels))


def dealt(data: str, stochastic: float, num_nodes: int = NODES, **options: Any) -> Any:
    """A data set dealt to a random graph, part of it by cluster."""
    receivers = RECEIVERS if num_nodes == NODES else 32

    def make_world(seed: int, quick: bool) -> World:
        rounds = 100 if quick else options.get("rounds")
        case = Case(data, num_nodes, stochastic, receivers, **{**options, "rounds": rounds})
        stream = case.stream(seed)
        return stream, case.graph(seed), new_task_model(stream.labels)

    return make_world


def flights(seed: int, quick: bool) -> World:
    """Airports, each with the flights bound for it, in the order of time."""
    stream = data_table("flights").deal_by("dest", min_samples=100).head(100 if quick else 2000)
    graph = ow.TrustGraph.random(stream.num_nodes, 12, seed)
    return stream, graph, new_task_model(stream.labels)


def hospitals(seed: int, quick: bool) -> World:  # noqa: ARG001
    """Four hospitals, each with its patients in random order."""
    graph = ow.TrustGraph.from_edges(ARROWS)
    stream = data_table("heart").deal_by("hospital")
    rng, rows = np.random.default_rng(seed), stream.rows.copy()
    for node in range(stream.num_nodes):
        there = rows[:, node] >= 0
        rows[there, node] = rng.permutation(rows[there, node])
    shuffled = ow.Stream(stream.features, stream.labels, rows, stream.node_names)
    return shuffled, graph, new_task_model(stream.labels)


def digits(seed: int, quick: bool) -> World:  # noqa: ARG001
    """Images of handwritten digits; a node sees two of the ten classes."""
    images = data_table("digits")
    labels = np.asarray(images.labels).astype(int)
    rng = np.random.default_rng(seed)
    halves = [
        np.array_split(rng.permutation(np.flatnonzero(labels == digit)), 2) for digit in range(10)
    ]
    own = [
        rng.permutation(np.concatenate([halves[node][0], halves[(node + 1) % 10][1]]))
        for node in range(10)
    ]
    size = min(map(len, own))
    rows = np.stack([it[:size] for it in own], axis=1)
    stream = ow.Stream(images.features, images.labels, rows)
    graph = ow.TrustGraph.random(10, 5, seed)
    return stream, graph, new_task_model(images.labels, 10)


def diabetes(seed: int, quick: bool) -> World:  # noqa: ARG001
    """Patients of ten doctors; a number, how far the disease will have gone in a year."""
    table = ow.Table.from_arrays(*load_diabetes(return_X_y=True), task="number")
    stream, graph = table.deal(10, seed=seed), ow.TrustGraph.random(10, 5, seed)
    return stream, graph, new_task_model(table.labels, 0)


def liars(seed: int, quick: bool) -> World:
    """Room Occupancy, half by cluster, where some nodes have their labels turned around."""
    stream, graph, model = dealt("occupancy", 0.5)(seed, quick)
    rows = stream.rows.copy()
    rows[:, :LIARS] = np.where(rows[:, :LIARS] >= 0, rows[:, :LIARS] + len(stream.labels), -1)
    features = np.concatenate([stream.features, stream.features])
    return ow.Stream(features, np.concatenate([stream.labels, -stream.labels]), rows), graph, model


SETTINGS: dict[str, Callable[[int, bool], World]] = {
    "Room Occupancy, 20 nodes, alike": dealt("occupancy", 1.0),
    "Room Occupancy, half by cluster": dealt("occupancy", 0.5),
    "Room Occupancy, by cluster": dealt("occupancy", 0.0),
    "SUSY, 20 nodes": dealt("susy", 1.0, rounds=500),
    "SUSY, 128 nodes": dealt("susy", 1.0, num_nodes=128, rounds=500),
    "Adult, half by cluster": dealt("adult", 0.5, rounds=600),
    "flights by destination": flights,
    "four hospitals": hospitals,
    "digits, two classes a node": digits,
    "diabetes, squared error": diabetes,
    "Room Occupancy, half, asynchronous": dealt("occupancy", 0.5, asynchronous=True),
    "Room Occupancy, half, 5 of 20 lie": liars,
}


@dataclass(frozen=True)
class Setting:
    """Data, graph and privacy of a run."""

    title: str
    epsilon: float
    quick: bool

    @property
    def name(self) -> str:
        """Title and epsilon."""
        return f"{self.title}, {self.epsilon:g}"


@dataclass(frozen=True)
class PersonalJob:
    """A setting with a seed of the dealing, the graph and the noise."""

    case: Setting
    seed: int


def learn(job: PersonalJob) -> list[dict[str, Any]]:
    """The mean losses of a run."""
    case = job.case
    stream, graph, model = SETTINGS[case.title](job.seed, case.quick)
    method = make_private("relay", "auto", case.epsilon, model.dim(stream.dim))
    conditions = ASYNCHRONOUS if "asynchronous" in case.title else None
    found = require_complete(
        ow.simulate(
            method,
            model,
            stream,
            graph,
            conditions=conditions,
            seed=job.seed,
            progress=False,
            personal=True,
        )
    )
    assert found.personal is not None
    honest = slice(LIARS if "lie" in case.title else 0, None)
    counts = found.personal.node_counts[honest].sum()
    sums = found.personal.node_sums[honest].sum(axis=0)
    losses = {name: float(sums[column] / counts) for name, column in _COLUMNS.items()}
    return [
        {
            "title": case.title,
            "epsilon": case.epsilon,
            **losses,
            "base": found.base_loss,
            "gain": 100.0 * (1.0 - losses["yours"] / losses["alone"]),
            "nodes": stream.num_nodes,
            "features": stream.dim,
            "rows": float(found.personal.node_counts.mean()),
        }
    ]


def _gain(runs: pl.DataFrame, title: str, epsilon: float) -> tuple[float, float, float]:
    return interval(values(runs, "gain", title=title, epsilon=epsilon))


def _cell(runs: pl.DataFrame, title: str, epsilon: float) -> list[str]:
    yours, shared = (values(runs, it, title=title, epsilon=epsilon) for it in ("yours", "shared"))
    mean, low, high = _gain(runs, title, epsilon)
    return [
        f"{yours.mean():.4f}",
        f"{shared.mean():.4f}",
        f"{mean:+.1f} ({low:+.1f} to {high:+.1f})",
    ]


def personal(scope: Scope) -> Report:
    """Compare personal predictions with learning alone."""
    epsilons = EPSILONS[1:3] if scope.quick else EPSILONS
    jobs = [
        PersonalJob(Setting(title, epsilon, scope.quick), seed)
        for title in SETTINGS
        for epsilon in epsilons
        for seed in scope.seeds
    ]
    runs = grid(learn, jobs, scope.cache)
    words = {it: "no noise" if math.isinf(it) else f"epsilon {it:g}" for it in epsilons}
    summary, details = [], []
    for title in SETTINGS:
        some = values(runs, "alone", title=title, epsilon=epsilons[0])
        about = runs.filter(pl.col("title") == title).row(0, named=True)
        gains = [_cell(runs, title, it)[2] for it in epsilons]
        size = f"{about['rows']:.0f} rows, {about['features']} columns"
        summary.append([title, size, f"{some.mean():.4f}", *gains])
        for it in epsilons:
            base = values(runs, "base", title=title, epsilon=it).mean()
            yours, shared, gain = _cell(runs, title, it)
            details.append(
                [title, words[it], yours, shared, f"{some.mean():.4f}", f"{base:.4f}", gain]
            )
    tally = []
    for it in epsilons:
        found = [_gain(runs, title, it) for title in SETTINGS]
        better, worse = sum(low > 0 for _, low, _ in found), sum(high < 0 for *_, high in found)
        least = min(mean for mean, *_ in found)
        tally.append(
            f"- {words[it]}: better than alone in {better} of {len(found)} settings by the 95 % "
            f"interval, worse in {worse}; the least gain is {least:+.2f} %."
        )
    caption = (
        "Per cent of the loss that *yours* saves against *alone*: mean over seeds (95 % interval, "
        "paired by seed). Rows are those of a node, on average."
    )
    heading = ("", "a node", "alone", *words.values())
    all_of_it = ("", "privacy", "yours", "shared", "alone", "base rate", "less than alone, %")
    parts = [__doc__ or "", table(heading, summary, caption), "\n".join(tally)]
    parts += ["## All numbers", table(all_of_it, details)]
    return Report("Personal predictions", [], parts, {"runs": runs})


if __name__ == "__main__":
    run(personal, seeds=10)
