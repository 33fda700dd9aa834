"""Four hospitals over one-way trust: is disease predicted better together than alone?

Heart Disease (`oneway data fetch heart`), one pass over 123 patients of each hospital, in as many
random orders as there are seeds; every sample a step, no noise. Each method has its best learning
rate on one grid. Prints the mean loss of predictions made before the truth is known, its
standard error over orders, and by how much it is below that of learning alone (paired, 95 %).
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import stats

import oneway as ow

ARROWS = [
    ("Hungarian", "Cleveland"),
    ("Cleveland", "VA"),
    ("VA", "Cleveland"),
    ("VA", "Switzerland"),
    ("Switzerland", "Hungarian"),
]
"""Who sends to whom; Cleveland and VA trust each other."""
RATES = (0.03, 0.05, 0.1, 0.2, 0.3, 0.5)
METHODS = {
    "a server (COL)": ow.Centralised,
    "Relay, five arrows": ow.Relay,
    "OPS as published, five arrows": ow.OnlinePushSum,
    "mutual links only (DOL-Symm)": ow.MutualGossip,
    "alone": ow.Isolated,
}


def main() -> None:
    """Run all methods on all orders, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=20, help="how many random orders")
    orders = parser.parse_args().orders
    table, graph = ow.streams.load("heart"), ow.TrustGraph.from_edges(ARROWS)
    hospitals = table.columns["hospital"]
    patients = [
        np.flatnonzero(hospitals.codes == hospitals.names.index(name)) for name in graph.names
    ]
    size = min(map(len, patients))

    def stream(seed: int) -> ow.Stream:
        rng = np.random.default_rng(seed)
        rows = np.stack([rng.permutation(own)[:size] for own in patients], axis=1)
        return ow.Stream(table.features, table.labels, rows, graph.names)

    streams, model = [stream(seed) for seed in range(orders)], ow.models.LogisticRegression()
    found: dict[str, tuple[float, np.ndarray]] = {}
    for title, method in METHODS.items():
        losses = np.array(
            [
                [ow.simulate(method(rate), model, it, graph).average_loss for it in streams]
                for rate in RATES
            ]
        )
        best = int(losses.mean(axis=1).argmin())
        found[title] = RATES[best], losses[best]
    print(f"{orders} orders of {size} patients a hospital")
    print(f"{'':31} {'rate':>5}  {'loss':6}   {'error':6}  less than alone")
    for title, (rate, losses) in found.items():
        gain = found["alone"][1] - losses
        half = stats.t.ppf(0.975, orders - 1) * gain.std(ddof=1) / orders**0.5
        print(
            f"{title:31} {rate:5g}  {losses.mean():.4f} ± {losses.std(ddof=1) / orders**0.5:.4f}"
            f"  {gain.mean():+.4f} ± {half:.4f}"
        )


if __name__ == "__main__":
    main()
