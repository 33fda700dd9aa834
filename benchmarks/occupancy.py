"""The methods on Room Occupancy, as the paper sets it up: the numbers in the README.

Needs the data: `oneway data fetch occupancy`, or ONEWAY_DATA naming the folder that has it.
"""

from __future__ import annotations

import numpy as np

import oneway as ow
from oneway.methods import METHODS
from oneway.simulator.comparison import compare

RATES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
SEEDS = range(5)


def main() -> None:
    """Print each method's average loss, mean over seeds, and its best learning rates."""
    try:
        table = ow.streams.load("occupancy")
    except ow.OnewayError as error:
        print(f"Left out: {error}")
        return
    model = ow.models.LogisticRegression()
    for adversarial in (0.0, 0.5):
        results = []
        for seed in SEEDS:
            stream = table.deal(20, adversarial=adversarial, seed=seed)
            graph = ow.TrustGraph.random(20, max_receivers=10, seed=seed)
            results.append(compare(METHODS, RATES, model, stream, graph))
        print(f"{adversarial:.0%} dealt by cluster, mean over {len(SEEDS)} seeds:")
        for name in METHODS:
            losses = [result[name].run.average_loss for result in results]
            rates = sorted({result[name].learning_rate for result in results})
            print(
                f"  {name:<10} {np.mean(losses):.4f}  ({min(losses):.4f} to {max(losses):.4f}; "
                f"best rates {', '.join(f'{rate:g}' for rate in rates)})"
            )


if __name__ == "__main__":
    main()
