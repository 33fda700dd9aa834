"""Neural networks over one-way graphs: a small network on digits, a convolutional one on MNIST.

Push-sum with stochastic gradients of a network is Stochastic Gradient Push (SGP; Assran, Loizou,
Ballas and Rabbat, ICML 2019): gradients are taken at z / omega, steps are made on z, and shares of
z and omega travel, which is what published OPS does with every sample. They train deep networks on
large i.i.d. sets with large batches, about as well as exact averaging does; here small sets are
dealt i.i.d. and by class, every image is a step, beside a server and learning alone. Needs the
extra torch, and the data set mnist for its part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from lib import (
    Claim,
    Report,
    Scope,
    at_edge,
    below,
    data_table,
    everywhere,
    grid,
    interval,
    label,
    make,
    paired,
    run,
    spread,
    table,
    values,
)
from oneway.datasets import DATASETS
from oneway.display.charts import Points, interval_chart
from oneway.errors import DivergenceError
from oneway.models import Model, Torch
from oneway.records import Ints, Matrix, Vector
from oneway.simulator import simulate
from oneway.simulator.grid import require_complete
from oneway.tables import Table
from oneway.topology import TrustGraph

if TYPE_CHECKING:
    from torch import nn

SERVER, ALONE = "col-published", "local-published"
TOGETHER = ("ops-published", "relay-plain", "tracking-plain")
METHODS = (SERVER, *TOGETHER, ALONE)
FEW_CLASSES = 2
"""How many of the ten digits a node sees where nodes differ."""
MAX_RECEIVERS = 4
NEAR = 0.02
"""Accuracy is close to the server's if it is lower by less than this."""
TEXT = (
    "All nodes start from the same random network. After the last round every node's model "
    "classifies images that no node learned from: those of one half choose the learning rate, "
    "those of the other give the accuracy. Average loss and online accuracy are of the images "
    "that a node sees, before it learns from them: a node that sees two digits needs to tell only "
    "those apart, so these two numbers flatter learning alone there."
)


@dataclass(frozen=True)
class Images:
    """Images, how they are dealt, and the network that learns them.

    Attributes:
        name: Title in tables.
        data: Name of a data set.
        module: The function that makes the network, by name.
        shape: Shape of an image for the network; None for a flat row.
        num_nodes: Nodes of the paper's random graph, each with 1 to `MAX_RECEIVERS` receivers.
        rounds: How many images every node learns from, drawn from its own.
        held: How many images no node learns from: half to choose the rate, half to judge by.
        rates: The grid of learning rates, the same for all methods.
        classes_per_node: How many digits a node sees; None for all.
    """

    name: str
    data: str
    module: str
    shape: tuple[int, ...] | None
    num_nodes: int
    rounds: int
    held: int
    rates: tuple[float, ...]
    classes_per_node: int | None = None

    def split(self, seed: int) -> tuple[Table, Ints, Ints]:
        """The images to learn from, and the rows of those to choose by and to judge by."""
        images = data_table(self.data)
        # A generator of its own: the images are dealt by another one.
        order = np.random.default_rng([seed, self.held]).permutation(len(images))
        half = self.held // 2
        own = order[self.held :]
        learned = replace(images, frame=images.frame[own])
        return learned, order[:half], order[half : self.held]


DIGITS = Images(
    "digits, i.i.d.",
    "digits",
    "oneway.models.examples:digits_network",
    None,
    16,
    240,
    600,
    (0.02, 0.1, 0.5),
)
MNIST = Images(
    "MNIST, i.i.d.",
    "mnist",
    "networks:convolutional",
    (1, 28, 28),
    8,
    200,
    1000,
    (0.003, 0.01, 0.03, 0.1),
)


def convolutional() -> nn.Module:
    """A small convolutional network for MNIST: 5,994 parameters."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 5, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 10),
    )


@dataclass(frozen=True)
class ImageJob:
    """A method on some images with a seed, at every learning rate."""

    case: Images
    method: str
    seed: int


def classify(job: ImageJob) -> list[dict[str, Any]]:
    """Run a job: a row for every learning rate, with loss infinite where it diverged.

    Accuracies of the nodes' last models: `choosing` on the images to choose a rate by, `accuracy`
    on those to judge by (means over nodes), `worst` of these the worst node's; `online` is the
    share of right predictions before learning.
    """
    case, seed = job.case, job.seed
    images, *held = case.split(seed)
    stream = images.deal(
        case.num_nodes,
        seed=seed,
        resample=case.num_nodes * case.rounds,
        classes_per_node=case.classes_per_node,
    ).head(case.rounds)
    graph = TrustGraph.random(case.num_nodes, MAX_RECEIVERS, seed)
    model = Torch(case.module, "cross-entropy", case.shape)
    rows = []
    for rate in case.rates:
        row = dict.fromkeys(("online", "choosing", "accuracy", "worst"), 0.0)
        row |= {"rate": rate, "loss": math.inf}
        try:
            done = require_complete(
                simulate(make(job.method, rate), model, stream, graph, progress=False, seed=seed)
            )
        except DivergenceError:
            pass
        else:
            choosing, judging = (_accuracies(model, done.estimates, case, it) for it in held)
            row |= {
                "loss": done.average_loss,
                "online": done.accuracy or 0.0,
                "choosing": float(choosing.mean()),
                "accuracy": float(judging.mean()),
                "worst": float(judging.min()),
            }
        rows.append(row)
    return rows


def _accuracies(model: Model, estimates: Matrix, case: Images, rows: Ints) -> Vector:
    """The share of right answers of every node's model."""
    images = data_table(case.data)
    features, labels = images.features[rows], images.labels[rows]
    return np.array([np.mean(model.predict(params, features) == labels) for params in estimates])


def cases(quick: bool) -> list[Images]:
    """The cases whose data is there: every digit at every node, and few digits a node."""
    found = []
    for images in (DIGITS, MNIST):
        if DATASETS[images.data].is_here():
            own = replace(images, rounds=32, rates=(0.03, 0.1)) if quick else images
            name = images.name.replace("i.i.d.", f"{FEW_CLASSES} digits a node")
            found += [own, replace(own, name=name, classes_per_node=FEW_CLASSES)]
    return found


def networks(scope: Scope) -> Report:
    """Learn neural networks on images, i.i.d. and by class."""
    found = cases(scope.quick)
    jobs = [
        ImageJob(it, method, seed) for it in found for method in METHODS for seed in scope.seeds
    ]
    runs = grid(classify, jobs, scope.cache)
    # The best rate by the images to choose by; the smallest of equals.
    by = ("case", "method")
    means = runs.group_by(*by, "rate").agg(pl.col("choosing").mean())
    order = means.sort("choosing", "rate", descending=[True, False])
    chosen = order.group_by(by, maintain_order=True).first().select(*by, "rate")
    best = runs.join(chosen, on=[*by, "rate"])
    parts = [__doc__ or "", TEXT, *(_table(it, best) for it in found)]
    charts = {"networks": _drawn(found, best)}
    title = "Neural networks over one-way graphs"
    return Report(title, judged(found, best), parts, {"runs": runs}, charts)


def judged(found: list[Images], best: pl.DataFrame) -> list[Claim]:
    """Better than alone and close to the server: a claim each for every method."""
    note = (
        "Accuracy of the nodes' last models on images that no node learned from, mean over nodes, "
        "paired by seed."
    )
    claims = []
    for method in TOGETHER:
        own = label(method).title
        better, near = [], []
        for case in found:
            together, alone, server = (_column(best, case, it) for it in (method, ALONE, SERVER))
            gain = f"accuracy of {own} minus accuracy alone"
            better.append(paired(case.name, together - alone, gain))
            behind = f"accuracy of the server minus accuracy of {own}"
            near.append(below(case.name, server - together, NEAR, behind))
        for text, findings in (
            (f"{own} learns a neural network better than nodes alone do.", tuple(better)),
            (
                f"{own} learns a neural network as a server does, up to {NEAR:.0%} of images.",
                tuple(near),
            ),
        ):
            claims.append(Claim(text, "", findings, everywhere(findings), note))
    return claims


def _column(best: pl.DataFrame, case: Images, method: str, column: str = "accuracy") -> Vector:
    return values(best, column, case=case.name, method=method)


def _table(case: Images, best: pl.DataFrame) -> str:
    rows = []
    alone, server = (_column(best, case, it) for it in (ALONE, SERVER))
    for method in METHODS:
        own = _column(best, case, method)
        with np.errstate(divide="ignore", invalid="ignore"):  # there may be no gap
            closed: Vector = (own - alone) / (server - alone)
        rate = float(_column(best, case, method, "rate")[0])
        shares = (_column(best, case, method, it) for it in ("online", "accuracy", "worst"))
        cells = [
            f"{rate:g}{at_edge(rate, case.rates)}",
            spread(_column(best, case, method, "loss")),
            *(spread(share, ".1%") for share in shares),
            "" if method in (SERVER, ALONE) else spread(closed, ".0%"),
            "" if method == SERVER else spread(server - own, ".1%"),
        ]
        rows.append([label(method).title, *cells])
    return table(
        (
            *(case.name, "rate", "average loss", "online accuracy", "held-out accuracy"),
            *("worst node", "gap closed", "behind the server"),
        ),
        rows,
        f"{case.num_nodes} nodes with 1 to {MAX_RECEIVERS} receivers, {case.rounds} images each, "
        f"{case.held // 2} held-out images: mean over seeds ± half the 95 % interval. The gap is "
        "that between alone and the server in held-out accuracy; the distance from the server is "
        "paired by seed. † the edge of the grid: a better rate may lie beyond.",
    )


def _drawn(found: list[Images], best: pl.DataFrame) -> Figure:
    points = []
    for method in METHODS:
        look = label(method)
        intervals = [interval(_column(best, case, method)) for case in found]
        points.append(Points(look.title, intervals, look.color, look.dashes))
    ticks = [case.name.replace(", ", "\n") for case in found]
    ylabel = "accuracy on held-out images"
    return interval_chart(points, ticks, "Neural networks", (5.2, 3.7), ylabel=ylabel)


if __name__ == "__main__":
    run(networks, seeds=10)
