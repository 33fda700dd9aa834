"""How safe the learning rate is that nobody chose, on every data set at hand.

For every data set: the average loss of `learning_rate = "auto"` with the default method, step rule
and batches, without noise and with the default privacy; the best fixed rate of a grid; and the
baseline, the base rate or mean of all samples before, pooled over all nodes, in the same loss.
Losses of numbers are in units of their variance. Seeds vary graph and dealing. Data sets that are
not there are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from sklearn import datasets as ships

import oneway as ow
from lib import Claim, Report, Scope, below, everywhere, grid, run, spread, table, values
from oneway.datasets import load
from oneway.metrics.baselines import base_rate_sums
from oneway.models import LabelKind
from oneway.task.assembly import chosen_graph, started
from oneway.task.privacy import NO_PRIVACY, Privacy
from oneway.task.settings import Settings

RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
MODELS = {"binary": "logistic", "classes": "softmax", "number": "ridge"}
LIMIT = 1.05
"""The loss of a safe start over that of the baseline, at most."""
FEW, MANY = 4, 20
"""Nodes of a table with fewer than 1,000 rows, and of the others."""
SHIPPED: dict[str, LabelKind] = {
    "iris": "classes",
    "wine": "classes",
    "breast_cancer": "binary",
    "diabetes": "number",
}
"""Tables of scikit-learn, with the kind of their labels."""
LOADED = ("digits", "occupancy", "susy", "adult", "flights", "heart", "mnist")


@lru_cache(maxsize=1)
def tables() -> dict[str, ow.Table]:
    """Tables of scikit-learn, and the data sets that are there."""
    found = {}
    for name, kind in SHIPPED.items():
        features, labels = getattr(ships, f"load_{name}")(return_X_y=True)
        found[name] = ow.Table.from_arrays(features, labels, task=kind, name=name)
    linnerud = ships.load_linnerud()
    for place, target in enumerate(linnerud.target_names):
        name, labels = f"linnerud {target}", linnerud.target[:, place]
        found[name] = ow.Table.from_arrays(linnerud.data, labels, task="number", name=name)
    return found | dict(_loaded())


def _loaded() -> Iterator[tuple[str, ow.Table]]:
    for name in LOADED:
        try:
            yield name, load(name)
        except ow.OnewayError as error:
            print(f"Left out: {error}")


@dataclass(frozen=True)
class Start:
    """A data set with or without noise, for at most some rounds."""

    name: str
    private: bool
    num_rounds: int


@dataclass(frozen=True)
class StartJob:
    """A start with a seed."""

    case: Start
    seed: int


def begin(job: StartJob) -> list[dict[str, Any]]:
    """Losses of the chosen rate, of the best fixed one and of the baseline."""
    samples = tables()[job.case.name]
    nodes = min(FEW if len(samples) < 1000 else MANY, len(samples) // 2)
    stream = samples.deal(nodes, seed=job.seed)
    stream = stream.head(min(job.case.num_rounds, stream.num_rounds))
    privacy = Privacy() if job.case.private else NO_PRIVACY
    plain = Settings(model=MODELS[samples.origin["task"]], privacy=privacy, seed=job.seed)
    auto = started(plain, samples)
    fixed = {rate: _loss(replace(auto, learning_rate=rate), samples, stream) for rate in RATES}
    best = min(fixed, key=lambda rate: fixed[rate])
    return [
        {
            "private": job.case.private,
            "rounds": stream.num_rounds,
            "baseline": _baseline(auto, samples, stream),
            "auto": _loss(auto, samples, stream),
            "best": fixed[best],
            "rate": best,
        }
    ]


def _loss(settings: Settings, samples: ow.Table, stream: ow.Stream) -> float:
    """The average loss of one run; infinite if it diverges."""
    graph = chosen_graph(settings, stream.num_nodes)
    model = settings.model_for(len(samples.encoder.classes))
    method = settings.build_method(model.dim(stream.dim))
    try:
        done = ow.simulate(method, model, stream, graph, progress=False, seed=settings.seed)
    except ow.errors.DivergenceError:
        return float("inf")
    return done.average_loss


def _baseline(settings: Settings, samples: ow.Table, stream: ow.Stream) -> float:
    """The loss of the base rate or mean of all samples before."""
    model = settings.model_for(len(samples.encoder.classes))
    labels, rows = samples.labels, stream.rows.reshape(-1, 1)
    if isinstance(model, ow.models.RidgeRegression):
        labels, model = model.targets(labels), ow.models.RidgeRegression()
    sums = base_rate_sums(model, len(samples.encoder.classes), labels, rows)
    return float(sums.sum() / (rows >= 0).sum())


def safe_start(scope: Scope) -> Report:
    """Compare the chosen learning rate with the base rate and with the best fixed rate."""
    most = 100 if scope.quick else 2000
    starts = [
        Start(name, private, min(most, 300) if name == "mnist" else most)
        for name in tables()
        for private in (False, True)
    ]
    runs = grid(begin, [StartJob(it, seed) for it in starts for seed in scope.seeds], scope.cache)
    rows, findings = [], []
    for start in starts:
        own = runs.filter(pl.col("case") == start.name, pl.col("private") == start.private)
        auto, baseline, best = (values(own, it) for it in ("auto", "baseline", "best"))
        if not start.private:
            reading = "loss of auto over that of the baseline"
            findings.append(below(start.name, auto / baseline, LIMIT, reading))
        cells = [f"{own['rounds'][0]:,}", *(f"{it.mean():.4g}" for it in (baseline, auto, best))]
        cells += [f"{np.median(own['rate']):g}", spread(auto / baseline, ".3f")]
        noise = "epsilon 8" if start.private else "none"
        rows.append([start.name, noise, *cells, spread(auto / best, ".3f")])
    heading = (
        *("data set", "noise", "rounds", "baseline", "auto", "best fixed", "at rate"),
        *("auto / baseline", "auto / best"),
    )
    text = f"Without noise, auto loses at most {LIMIT:g} times the loss of the baseline."
    claim = Claim(text, "", tuple(findings), everywhere(findings))
    caption = "Means over seeds (the median rate); ratios ± half the 95 % interval."
    parts = [__doc__ or "", table(heading, rows, caption)]
    return Report("A learning rate that nobody chose", [claim], parts, {"runs": runs})


if __name__ == "__main__":
    run(safe_start, seeds=3)
