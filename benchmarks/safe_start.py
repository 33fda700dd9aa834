"""How safe the learning rate is that nobody chose, on every data set at hand.

For every data set: the average loss of `learning_rate = "auto"` with the default method, step rule
and batches, without noise and with the default privacy; the best rate of a grid, the former default
0.1 from zeros as it was, and the baseline: the base rate or mean of all samples before, pooled over
all nodes, in the same loss. Means (of rates the median) over seeds of graph and dealing. Data sets
that are not there are left out; `--quick` takes one seed and fewer rounds.
"""

from __future__ import annotations

import csv
import gzip
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table as Shown
from sklearn import datasets as ships

import oneway as ow
from oneway.files.folders import data_folder
from oneway.metrics.baselines import base_rate_sums
from oneway.streams import load
from oneway.task.assembly import chosen_graph, started
from oneway.task.privacy import NO_PRIVACY, Privacy
from oneway.task.settings import Settings

RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
FORMER = 0.1
MODELS = {"binary": "logistic", "classes": "softmax", "number": "ridge"}
LIMIT = 1.05
FEW, MANY = 4, 20
"""Nodes of a table with fewer than 1,000 rows, and of the others."""


def tables() -> Iterator[tuple[str, ow.Table]]:
    """Everything that ships with scikit-learn, or stands in the folder of data sets."""
    for name, kind in (
        ("iris", "classes"),
        ("wine", "classes"),
        ("breast_cancer", "binary"),
        ("digits", "classes"),
        ("diabetes", "number"),
    ):
        features, labels = getattr(ships, f"load_{name}")(return_X_y=True)
        yield name, ow.Table.from_arrays(features, labels, task=kind, name=name)
    linnerud = ships.load_linnerud()
    for place, target in enumerate(linnerud.target_names):
        name = f"linnerud {target}"
        labels = linnerud.target[:, place]
        yield name, ow.Table.from_arrays(linnerud.data, labels, task="number", name=name)
    for name in ("occupancy", "susy", "adult", "flights", "heart"):
        try:
            yield name, load(name)
        except ow.OnewayError as error:
            print(f"Left out: {error}")
    for hospital in ("cleveland", "hungarian", "switzerland", "va"):
        path = data_folder() / "heart" / f"processed.{hospital}.data"
        if path.exists():
            yield f"heart {hospital}", _heart(path)
    if (data_folder() / "mnist").exists():
        yield "mnist", _mnist(data_folder() / "mnist")


def _heart(path: Path) -> ow.Table:
    """Patients of one hospital, gaps filled with the mean."""
    with path.open() as file:
        cells = [[np.nan if it == "?" else float(it) for it in row] for row in csv.reader(file)]
    numbers = np.array([row for row in cells if row])
    known = np.where(np.isnan(numbers).all(axis=0), 0.0, numbers)
    filled = np.where(np.isnan(known), np.nanmean(known, axis=0), known)
    return ow.Table.from_arrays(filled[:, :-1], filled[:, -1] > 0, name=path.name)


def _mnist(folder: Path) -> ow.Table:
    """784 grey values of each image."""

    def read(name: str, header: int) -> np.ndarray:
        with gzip.open(folder / name) as file:
            return np.frombuffer(file.read(), np.uint8, offset=header)

    images = read("t10k-images-idx3-ubyte.gz", 16).reshape(-1, 784).astype(np.float32)
    labels = read("t10k-labels-idx1-ubyte.gz", 8)
    return ow.Table.from_arrays(images, labels, task="classes", name="mnist")


def loss(settings: Settings, table: ow.Table, stream: ow.Stream) -> float:
    """The average loss of one run; infinite if it diverges."""
    graph = chosen_graph(settings, stream.num_nodes)
    model = settings.model_for(len(table.label_values))
    method = settings.build_method(model.dim(stream.dim))
    try:
        run = ow.simulate(method, model, stream, graph, progress=False, seed=settings.seed)
    except ow.errors.DivergenceError:
        return np.inf
    return run.average_loss


def baseline(model: ow.models.Model, num_classes: int, table: ow.Table, stream: ow.Stream) -> float:
    """The base rate or mean of all samples before; of numbers it knows the center, too."""
    labels, rows = table.labels, stream.rows.reshape(-1, 1)
    if isinstance(model, ow.models.RidgeRegression):
        labels, model = model.targets(labels), ow.models.RidgeRegression()
    return float(base_rate_sums(model, num_classes, labels, rows).sum() / (rows >= 0).sum())


def in_units(model: ow.models.Model) -> float:
    """By what a loss is multiplied to be in the squared units of the labels."""
    return float(getattr(model, "scale", 1.0)) ** 2


def compare(table: ow.Table, rounds: int, seeds: int, privacy: Privacy) -> dict[str, float]:
    """Mean losses over seeds, those of numbers in units of their variance."""
    found: dict[str, list[float]] = {}
    for seed in range(seeds):
        nodes = min(FEW if len(table) < 1000 else MANY, len(table) // 2)
        stream = table.deal(nodes, seed=seed)
        stream = stream.head(min(rounds, stream.num_rounds))
        plain = Settings(model=MODELS[table.origin["task"]], privacy=privacy, seed=seed)
        auto = started(plain, table)
        model = auto.model_for(len(table.label_values))
        base = baseline(model, len(table.label_values), table, stream)
        former = loss(replace(plain, learning_rate=FORMER), table, stream) / in_units(model)
        grid = {rate: loss(replace(auto, learning_rate=rate), table, stream) for rate in RATES}
        best = min(grid, key=lambda rate: grid[rate])
        for name, value in (
            ("rounds", stream.num_rounds),
            ("baseline", base),
            ("auto", loss(auto, table, stream)),
            ("best fixed", grid[best]),
            ("at rate", best),
            ("former 0.1", former),
        ):
            found.setdefault(name, []).append(value)
    return {
        name: float((np.median if name == "at rate" else np.mean)(values))
        for name, values in found.items()
    }


def main() -> None:
    """Print the table; exit with 1 if a ratio without noise is above the limit."""
    quick = "--quick" in sys.argv
    rounds, seeds = (300, 1) if quick else (2000, 3)
    shown = Shown(title=f"average loss, auto against the baseline ({seeds} seeds)")
    for name in ("data set", "noise"):
        shown.add_column(name)
    numbers = ("rounds", "baseline", "auto", "best fixed", "at rate", "former 0.1")
    for name in (*numbers, "auto / baseline", "auto / best"):
        shown.add_column(name, justify="right")
    worst = 0.0
    for name, table in tables():
        fewer = min(rounds, 300) if name == "mnist" else rounds
        for said, privacy in (("none", NO_PRIVACY), ("epsilon 8", Privacy())):
            found = compare(table, fewer, seeds, privacy)
            ratio = found["auto"] / found["baseline"]
            if privacy is NO_PRIVACY:
                worst = max(worst, ratio)
            shown.add_row(
                name, said,
                *(f"{found[it]:.4g}" for it in numbers),
                f"{ratio:.3f}", f"{found['auto'] / found['best fixed']:.3f}",
                style="red" if ratio > LIMIT else "",
            )  # fmt: skip
            print(name, said, f"{ratio:.3f}", file=sys.stderr)
    Console(width=120).print(shown)
    print(f"the largest ratio without noise is {worst:.3f}, and may be {LIMIT}")
    sys.exit(worst > LIMIT)


if __name__ == "__main__":
    main()
