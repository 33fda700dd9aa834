"""What `forget` and `restart` are worth where the data changes, and what they cost where not.

Streams with a drift: labels whose meaning turns round in the middle (synthetic), Room Occupancy in
the order of its file, dealt row by row, and flights in the order of the year; and the same rows
shuffled, without a drift. Relay with the chosen rate, in batches of 16, without noise and with the
default privacy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import oneway as ow
from lib import Report, Scope, data_table, grid, run, spread, table, values
from oneway.datasets import DATASETS
from oneway.methods import Transform
from oneway.methods.transforms import Forget, Restart
from oneway.task.privacy import NO_PRIVACY, Privacy
from oneway.task.settings import Settings

NODES, ROUNDS = 20, 6000
CHAINS: dict[str, tuple[Transform, ...]] = {
    "auto": (),
    "forget": (Forget(),),
    "restart": (Restart(),),
    "both": (Forget(), Restart()),
}
TURNED = "labels turn round"


@dataclass(frozen=True)
class Changing:
    """A stream with or without drift and noise, for at most some rounds."""

    data: str
    drift: bool
    private: bool
    num_rounds: int

    @property
    def name(self) -> str:
        """All that determines it."""
        return repr(self)

    def stream(self, seed: int) -> ow.Stream:
        """The stream of a seed."""
        return self._turned(seed) if self.data == TURNED else self._in_order(seed)

    def _turned(self, seed: int) -> ow.Stream:
        """A linear rule whose labels turn round in the middle, if there is a drift."""
        rng = np.random.default_rng(seed)
        features = rng.normal(size=(self.num_rounds, NODES, 10)).astype(np.float32)
        scores = 2.0 * features @ rng.normal(size=10) / np.sqrt(10.0)
        labels = np.where(rng.random(scores.shape) < 1 / (1 + np.exp(-scores)), 1.0, -1.0)
        if self.drift:
            labels[self.num_rounds // 2 :] *= -1.0
        return ow.Stream.from_arrays(features, labels.astype(np.float32))

    def _in_order(self, seed: int) -> ow.Stream:
        """Rows dealt to nodes one after the other, in the order of the table or shuffled."""
        samples = data_table(self.data)
        rounds = min(len(samples) // NODES, self.num_rounds)
        rows = np.arange(rounds * NODES)
        if not self.drift:
            np.random.default_rng(seed).shuffle(rows)
        return ow.Stream(samples.features, samples.labels, rows.reshape(rounds, NODES))


@dataclass(frozen=True)
class DriftJob:
    """A chain of transforms on a stream with a seed."""

    case: Changing
    chain: str
    seed: int


def follow(job: DriftJob) -> list[dict[str, Any]]:
    """The average loss of one run."""
    stream, model = job.case.stream(job.seed), ow.models.LogisticRegression()
    settings = Settings(privacy=Privacy() if job.case.private else NO_PRIVACY)
    method = replace(settings.build_method(model.dim(stream.dim)), transforms=CHAINS[job.chain])
    graph = ow.TrustGraph.random(stream.num_nodes, 10, seed=job.seed)
    done = ow.simulate(method, model, stream, graph, progress=False, seed=job.seed)
    return [{"loss": done.average_loss}]


def drift(scope: Scope) -> Report:
    """Compare chains of transforms with and without a drift."""
    rounds = 200 if scope.quick else ROUNDS
    names = [TURNED, *(name for name in ("occupancy", "flights") if DATASETS[name].is_here())]
    cases = [
        Changing(name, drift, private, rounds)
        for name in names
        for drift in (True, False)
        for private in (False, True)
    ]
    jobs = [DriftJob(it, chain, seed) for it in cases for chain in CHAINS for seed in scope.seeds]
    runs = grid(follow, jobs, scope.cache)
    rows = []
    for case in cases:
        words = [case.data, "yes" if case.drift else "no", "epsilon 8" if case.private else "none"]
        cells = (spread(values(runs, case=case.name, chain=chain)) for chain in CHAINS)
        rows.append([*words, *cells])
    caption = "Average loss, mean over seeds ± half the 95 % interval."
    shown = table(("stream", "drift", "noise", *CHAINS), rows, caption)
    return Report("Drift", [], [__doc__ or "", shown], {"runs": runs})


if __name__ == "__main__":
    run(drift, seeds=3)
