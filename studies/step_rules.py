"""Which step learns best on a skewed network, among rules that need only what a node knows.

Online Push-Sum on Advogato's trust graph with SUSY rows, 150 rounds, each rule at its best rate.
Needs the data sets susy and advogato.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lib import Case, Report, Scope, grid, run, spread, table, trust_network, tuned, values
from oneway.models import LogisticRegression
from oneway.records import Vector

RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
Rule = Callable[[float, Vector, Vector, int], Vector]
"""Step of the numerator from (rate, masses, curvatures of the loss at the samples, round)."""
RULES: dict[str, Rule] = {
    "rate (published)": lambda rate, mass, _l, _t: np.full(len(mass), rate),
    "rate * sqrt(mass)": lambda rate, mass, _l, _t: rate * np.sqrt(mass),
    "rate * min(1, 4 mass)": lambda rate, mass, _l, _t: rate * np.minimum(1, 4 * mass),
    "rate * min(1, mass) (capped)": lambda rate, mass, _l, _t: rate * np.minimum(1, mass),
    "rate * min(1, mass / 4)": lambda rate, mass, _l, _t: rate * np.minimum(1, mass / 4),
    "rate * mass (mass)": lambda rate, mass, _l, _t: rate * mass,
    "rate * mass / sqrt(1 + t / 10)": lambda rate, mass, _l, t: rate * mass / np.sqrt(1 + t / 10),
    "min(rate, 0.5 mass / curvature) (curvature)": lambda rate, mass, bend, _t: np.minimum(
        rate, 0.5 * mass / bend
    ),
    "min(rate, mass / curvature)": lambda rate, mass, bend, _t: np.minimum(rate, mass / bend),
}


@dataclass(frozen=True)
class RuleJob:
    """A step rule in a case with a seed."""

    case: Case
    method: str
    seed: int


def step(job: RuleJob) -> list[dict[str, Any]]:
    """Algorithm 1 with another step: a row for every learning rate."""
    rule, model, stream = RULES[job.method], LogisticRegression(), job.case.stream(job.seed)
    pushed = job.case.graph(job.seed).mixing().T.tocsr()
    rows = []
    for rate in RATES:
        numerators = np.zeros((stream.num_nodes, model.dim(stream.dim)))
        masses, total = np.ones(stream.num_nodes), 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            for t in range(stream.num_rounds):
                _, batch = stream.batch(t)
                estimates = numerators / masses[:, None]
                total += float(model.losses(estimates, batch).mean())
                bend = ((batch.features**2).sum(axis=1) + 1) / 4
                lengths = rule(rate, masses, bend, t)[:, None]
                moved = numerators - lengths * model.gradients(estimates, batch)
                numerators, masses = np.asarray(pushed @ moved), np.asarray(pushed @ masses)
        loss = total / stream.num_rounds
        rows.append({"rate": rate, "loss": loss if np.isfinite(loss) else np.inf})
    return rows


def step_rules(scope: Scope) -> Report:
    """Compare step rules of push-sum."""
    nodes = trust_network("advogato").num_nodes
    case = Case("susy", nodes, rounds=8 if scope.quick else 150, network="advogato")
    runs = grid(
        step, [RuleJob(case, it, seed) for it in RULES for seed in scope.seeds], scope.cache
    )
    best = tuned(runs)
    rows = [
        [rule, spread(values(best, method=rule)), f"{values(best, 'rate', method=rule)[0]:g}"]
        for rule in RULES
    ]
    caption = f"Advogato, {nodes:,} nodes; mean over seeds ± half the 95 % interval."
    shown = table(("step of the numerator", "average loss", "at rate"), rows, caption)
    return Report("Step rules", [], [__doc__ or "", shown], {"runs": runs})


if __name__ == "__main__":
    run(step_rules, seeds=1)
