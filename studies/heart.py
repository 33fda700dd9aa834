"""Four hospitals over one-way trust: is disease predicted better together than alone?

Heart Disease (`oneway data fetch heart`), one pass over 123 patients of each hospital, in as many
random orders as there are seeds; every sample a step, no noise. Each method has its best learning
rate on one grid. The loss is that of predictions made before the truth is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import oneway as ow
from lib import (
    QUICK_RATES,
    Report,
    Scope,
    data_table,
    grid,
    make,
    run,
    spread,
    table,
    tuned,
    values,
)

ARROWS = [
    ("Hungarian", "Cleveland"),
    ("Cleveland", "VA"),
    ("VA", "Cleveland"),
    ("VA", "Switzerland"),
    ("Switzerland", "Hungarian"),
]
"""Edges of trust, from sender to receiver; Cleveland and VA trust each other."""
RATES = (0.03, 0.05, 0.1, 0.2, 0.3, 0.5)
ALONE = "local"
METHODS = {
    "col": "a server (COL)",
    "relay": "Relay, five arrows",
    "ops": "OPS as published, five arrows",
    "dol-symm": "mutual links only (DOL-Symm)",
    ALONE: "alone",
}


@dataclass(frozen=True)
class Hospitals:
    """The four hospitals, with some learning rates."""

    rates: tuple[float, ...]
    name: str = "heart"


@dataclass(frozen=True)
class HeartJob:
    """A method on one order of the patients."""

    case: Hospitals
    method: str
    seed: int


def learn(job: HeartJob) -> list[dict[str, Any]]:
    """A row for every learning rate."""
    patients, graph = data_table("heart"), ow.TrustGraph.from_edges(ARROWS)
    hospitals = patients.owners("hospital")
    assert graph.names is not None
    own = [np.flatnonzero(hospitals.codes == hospitals.names.index(name)) for name in graph.names]
    size = min(map(len, own))
    rng = np.random.default_rng(job.seed)
    rows = np.stack([rng.permutation(it)[:size] for it in own], axis=1)
    stream = ow.Stream(patients.features, patients.labels, rows, graph.names)
    model = ow.models.LogisticRegression()
    return [
        {
            "rate": rate,
            "patients": size,
            "loss": ow.simulate(
                make(job.method, rate), model, stream, graph, progress=False
            ).average_loss,
        }
        for rate in job.case.rates
    ]


def heart(scope: Scope) -> Report:
    """Compare hospitals that learn together with hospitals that learn alone."""
    case = Hospitals(QUICK_RATES if scope.quick else RATES)
    jobs = [HeartJob(case, method, seed) for method in METHODS for seed in scope.seeds]
    runs = grid(learn, jobs, scope.cache)
    best = tuned(runs)
    alone = values(best, method=ALONE)
    rows = []
    for method, title in METHODS.items():
        losses = values(best, method=method)
        rate = f"{values(best, 'rate', method=method)[0]:g}"
        gain = "" if method == ALONE else spread(alone - losses)
        rows.append([title, rate, spread(losses), gain])
    caption = (
        f"{runs['patients'][0]} patients a hospital; mean over orders ± half the 95 % interval, "
        "differences paired by order."
    )
    shown = table(("", "rate", "loss", "less than alone"), rows, caption)
    return Report("Four hospitals", [], [__doc__ or "", shown], {"runs": runs})


if __name__ == "__main__":
    run(heart, seeds=20)
