"""The fast level of the asynchronous network against the exact one, condition by condition.

Every seed deals other samples over another graph, which both levels run; what befalls messages and
peers they draw for themselves. Prints the mean loss of each, the mean of the differences with its
95 % interval (Student's t over seeds), and the ratio of pushes and of round trips.

    python benchmarks/async_levels.py [--seeds 12] [--nodes 16] [--samples 60] [--method relay]
"""

from __future__ import annotations

import argparse
from typing import Any

import joblib
import numpy as np
from scipy import stats

import oneway as ow
from oneway.methods import METHODS

CONDITIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "delay x 10": {"delay": "lognormal:0.5,0.5"},
    "loss 30 %": {"loss": 0.3},
    "slow links": {"bandwidth": 20_000.0},
    "unequal speeds": {"unequal": 1.0},
    "sleepers": {"sleepers": 0.3, "awake": 3.0, "asleep": 3.0},
    "crashes": {"crashes": 0.05, "down": 1.0},
    "presumed death": {
        "sleepers": 0.3, "awake": 3.0, "asleep": 3.0, "presume_dead_after": 1.5,
    },
    "joining": {"joining": 0.2},
    "leaving": {"leaving": 0.2},
    "liars": {"liars": 0.1},
}  # fmt: skip


def main() -> None:
    """Print a row per condition."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, default in (("seeds", 12), ("nodes", 16), ("samples", 60)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--method", default="relay", choices=sorted(METHODS))
    chosen = parser.parse_args()
    print(f"{'':16} exact   fast    fast - exact       pushes  round trip", flush=True)
    given = (chosen.method, chosen.nodes, chosen.samples)
    for title, told in CONDITIONS.items():
        jobs = (joblib.delayed(_both)(told, seed, *given) for seed in range(chosen.seeds))
        exact, fast = np.moveaxis(np.array(joblib.Parallel(n_jobs=2)(jobs)), 0, -1)
        apart = fast[0] - exact[0]
        half = stats.t.ppf(0.975, len(apart) - 1) * stats.sem(apart)
        pushes, trip = fast[1:].mean(axis=1) / exact[1:].mean(axis=1)
        print(
            f"{title:16} {exact[0].mean():.4f}  {fast[0].mean():.4f}  "
            f"{apart.mean():+.4f} +- {half:.4f}  {pushes:.2f}    {trip:.2f}",
            flush=True,
        )


def _both(
    told: dict[str, Any], seed: int, method: str, nodes: int, samples: int
) -> list[list[float]]:
    """Loss, pushes and round trip of the exact level, then of the fast one."""
    graph = ow.TrustGraph.random(num_nodes=nodes, max_receivers=5, seed=seed)
    made = ow.streams.synthetic(num_samples=nodes * samples, num_features=5, seed=seed)
    stream = made.table.deal(num_nodes=nodes)
    found = []
    for level in ("exact", "fast"):
        run = ow.simulate_async(
            METHODS[method](0.3, "capped"), ow.models.LogisticRegression(), stream, graph,
            conditions=ow.Conditions(**told), level=level, seed=seed, progress=False,
        )  # fmt: skip
        traffic = run.record.config["traffic"]
        found.append([run.average_loss, traffic["pushes"], traffic["mean_round_trip"]])
    return found


if __name__ == "__main__":
    main()
