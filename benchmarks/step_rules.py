"""Which step learns best on a skewed network, among rules that need only what a node knows.

Online Push-Sum on Advogato's trust graph with SUSY rows, 150 rounds, each rule at its best rate.
Needs the data sets susy and advogato.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import oneway as ow
from oneway.paper.world import World, trust_network

ROUNDS = 150
RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

Rule = Callable[[float, np.ndarray, np.ndarray, int], np.ndarray]
"""Step of the numerator from (rate, masses, curvatures of the loss at the samples, round)."""

RULES: dict[str, Rule] = {
    "rate (published)": lambda rate, mass, _l, _t: np.full(len(mass), rate),
    "rate * sqrt(mass)": lambda rate, mass, _l, _t: rate * np.sqrt(mass),
    "rate * min(1, 4 mass)": lambda rate, mass, _l, _t: rate * np.minimum(1, 4 * mass),
    "rate * min(1, mass) (cap_step=True)": lambda rate, mass, _l, _t: rate * np.minimum(1, mass),
    "rate * min(1, mass / 4)": lambda rate, mass, _l, _t: rate * np.minimum(1, mass / 4),
    "rate * mass (cap_step=inf)": lambda rate, mass, _l, _t: rate * mass,
    "rate * mass / sqrt(1 + t / 10)": lambda rate, mass, _l, t: rate * mass / np.sqrt(1 + t / 10),
    "min(rate, 0.5 mass / curvature)": lambda rate, mass, bend, _t: np.minimum(
        rate, 0.5 * mass / bend
    ),
    "min(rate, mass / curvature)": lambda rate, mass, bend, _t: np.minimum(rate, mass / bend),
}


def average_loss(rule: Rule, rate: float, stream: ow.Stream, pushed: object) -> float:
    """Algorithm 1 with another step."""
    model = ow.models.LogisticRegression()
    numerators = np.zeros((stream.num_nodes, model.dim(stream.dim)))
    masses = np.ones(stream.num_nodes)
    total = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(stream.num_rounds):
            _, batch = stream.batch(t)
            estimates = numerators / masses[:, None]
            total += model.losses(estimates, batch).mean()
            bend = ((batch.features**2).sum(axis=1) + 1) / 4
            steps = rule(rate, masses, bend, t)
            numerators = pushed @ (numerators - steps[:, None] * model.gradients(estimates, batch))
            masses = pushed @ masses
    return total / stream.num_rounds


def main() -> None:
    """Print each rule at its best rate."""
    try:
        graph = trust_network("advogato")
        world = World("susy", graph.num_nodes, rounds=ROUNDS, network="advogato")
        stream = world.stream(1)
    except ow.OnewayError as error:
        print(f"Left out: {error}")
        return
    pushed = graph.mixing().T.tocsr()
    print(f"{graph}, {ROUNDS} rounds, step of the numerator:")
    for name, rule in RULES.items():
        losses = {rate: average_loss(rule, rate, stream, pushed) for rate in RATES}
        best = min(losses, key=lambda rate: losses[rate])
        print(f"  {name:<38} {losses[best]:.4f} at rate {best:g}")


if __name__ == "__main__":
    main()
