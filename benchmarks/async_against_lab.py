"""A lab of real processes against both levels of the asynchronous simulation, seed by seed.

Every seed deals other samples over another graph. Real peers learn from them at the same rate;
while they do, the round trips and commits that they measure are read from their statuses, and
afterwards the moments of their samples. Then both levels run the same samples over the same graph
at the rate that the peers really had, with a delay of those round trips: a round trip is two
messages and a commit at either end. Prints every loss, and the mean of each with its 95 %
interval (Student's t over seeds), beside that of rounds and of every node alone.

    python benchmarks/async_against_lab.py [--nodes 32] [--samples 60] [--rate 2] [--seeds 3]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import stats

import oneway as ow
from oneway.lab.lab import Lab
from oneway.lab.problem import Problem, problem_of
from oneway.task.settings import read_settings

TOO_LONG = 1800.0


def main() -> None:
    """Print a row per seed, then the means."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, default in (("nodes", 32), ("samples", 60), ("seeds", 3), ("receivers", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=2.0)
    parser.add_argument("--method", default="ops")
    parser.add_argument("--measured", type=Path, help="losses and delays of a lab, kept or reused")
    chosen = parser.parse_args()
    found: dict[str, list[float]] = {}
    print("seed  round trip ms (5, 50, 95 %)  commit ms  samples/s  begun within s", flush=True)
    for seed in range(chosen.seeds):
        problem = problem_of(_settings(chosen, seed), watched=False)
        kept = chosen.measured and Path(f"{chosen.measured}-{seed}.json")
        if kept and kept.exists():
            told = json.loads(kept.read_text())
        else:
            told = run_peers(problem, chosen.rate)
            if kept:
                kept.write_text(json.dumps(told))
        trips, commit = np.array(told["trips"]), told["commit"]
        low, middle, high = 1e3 * np.quantile(trips, (0.05, 0.5, 0.95))
        print(
            f"{seed:4}  {low:.0f}, {middle:.0f}, {high:.0f}  {1e3 * commit:.1f}  "
            f"{told['rate']:.2f}  {told['spread']:.1f}",
            flush=True,
        )
        losses = {"lab": told["loss"], **simulated(problem, trips, commit, told["rate"], seed)}
        for name, loss in losses.items():
            found.setdefault(name, []).append(loss)
        print(
            "      " + ", ".join(f"{name} {loss:.4f}" for name, loss in losses.items()), flush=True
        )
    for name, values in found.items():
        print(f"{name:6}  {_interval(values)}")
        if name != "lab":
            apart = np.subtract(values, found["lab"][: len(values)])
            print(f"        minus the lab's: {_interval(apart.tolist())}")


def _settings(chosen: argparse.Namespace, seed: int):  # type: ignore[no-untyped-def]
    given = {
        "data": "synthetic",
        "nodes": chosen.nodes,
        "max_receivers": chosen.receivers,
        "rounds": chosen.samples,
        "method": chosen.method,
        "learning_rate": 0.3,
        "step": "capped",
        "samples_per_push": 1,
        "privacy": "none",
        "seed": seed,
    }
    return read_settings((), given)


def run_peers(problem: Problem, rate: float) -> dict[str, object]:
    """Real peers until they are through: their loss, and what they measured meanwhile."""
    trips: list[float] = []
    commits: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder), problem, rate=rate)
        try:
            with lab:
                deadline = time.monotonic() + TOO_LONG
                while time.monotonic() < deadline:
                    statuses = [peer.status for peer in lab.observe() if peer.status is not None]
                    learning = [it for it in statuses if it.samples > 0 and not it.finished]
                    commits += [it.commit_seconds for it in learning]
                    trips += [
                        edge.round_trip
                        for it in learning
                        for edge in it.receivers
                        if edge.round_trip
                    ]
                    if len(statuses) == len(lab.peers) and all(it.finished for it in statuses):
                        break
                    time.sleep(1.0)
                lab.drain()
                lab.stop()
                audit = lab.audit()
                snapshots = list(lab.snapshots().values())
        finally:
            lab.close()
    assert audit.is_exact, audit
    samples = sum(it.journal.samples for it in snapshots)
    loss = sum(it.journal.loss_sum for it in snapshots) / samples
    # Up to a thousand samples, peers keep the moment of each.
    times = [it.history.curve().times for it in snapshots]
    rates = [(len(moments) - 1) / (moments[-1] - moments[0]) for moments in times]
    firsts = [moments[0] for moments in times]
    return {
        "loss": loss,
        "trips": trips,
        "commit": float(np.mean(commits)),
        "rate": float(np.median(rates)),
        "spread": max(firsts) - min(firsts),
    }


def simulated(
    problem: Problem, trips: np.ndarray, commit: float, rate: float, seed: int
) -> dict[str, float]:
    """The losses of both levels with the measured delays, of rounds, and alone."""
    method, model = problem.task.build_method(), problem.task.build_model()
    delays = np.maximum(trips - 2.0 * commit, 0.0) / 2.0
    conditions = ow.Conditions(
        rate=rate, poisson=False, delay=ow.Delay.measured(delays), ordered=True, commit=commit
    )
    losses = {}
    for level in ("exact", "fast"):
        try:
            run = ow.simulate_async(
                method, model, problem.stream, problem.graph,
                conditions=conditions, level=level, seed=seed, progress=False,
            )  # fmt: skip
        except ModuleNotFoundError:
            continue
        losses[level] = run.average_loss
    rounds = ow.simulate(method, model, problem.stream, problem.graph, progress=False)
    alone = rounds.alone_loss
    return {**losses, "rounds": rounds.average_loss, **({"alone": alone} if alone else {})}


def _interval(values: Sequence[float]) -> str:
    mean = float(np.mean(values))
    if len(values) < 2:
        return f"{mean:.4f}"
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{mean:.4f} +- {half:.4f}"


if __name__ == "__main__":
    main()
