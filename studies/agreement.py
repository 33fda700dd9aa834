"""How near the asynchronous network as arrays comes to the peers' own code in virtual time.

The same samples, graph, method and conditions, run by `ow.simulate(..., conditions=)` and by
`ow.virtual_lab`: who is slow or a liar, who sleeps when, and when samples come is the same in both;
how long messages take and the noise are drawn anew. So single runs differ by chance, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import oneway as ow
from asynchronous import BUSY, CALM, NUM_FEATURES, SLOW_LINKS, STEADY, Changes
from lib import (
    Claim,
    Report,
    Scope,
    below,
    everywhere,
    grid,
    label,
    run,
    spread,
    table,
    values,
)
from oneway.datasets.synthetic import synthetic
from oneway.models import LogisticRegression
from oneway.records import Vector
from oneway.task.learning import Learning

METHODS = ("relay", "ops", "pull")
CONDITIONS: dict[str, tuple[float, Changes]] = {
    "calm": (CALM, ()),
    "30 % of messages lost": (CALM, (("loss", 0.3),)),
    "30 % sleep half of the time": (CALM, (("sleepers", 0.3),)),
    "unequal speeds (sigma 1)": (CALM, (("unequal", 1.0),)),
    "20 % join later, 20 % leave": (CALM, (("joining", 0.2), ("leaving", 0.2))),
    "10 samples a second: delay x 10": (BUSY, (SLOW_LINKS,)),
    "one liar, clip 0.5": (STEADY, (("liars", 0.01),)),
}
"""Samples a second, and the changed conditions, by title."""
NEAR = 0.03
"""The losses agree if they differ by less of the loss than this."""


@dataclass(frozen=True)
class Pair:
    """A network under some conditions, run both ways."""

    title: str
    method: str
    num_nodes: int
    rounds: int

    @property
    def name(self) -> str:
        """All that determines it."""
        return repr(self)


@dataclass(frozen=True)
class PairJob:
    """A pair with a seed."""

    case: Pair
    seed: int


def simulate_pair(job: PairJob) -> list[dict[str, Any]]:
    """The losses of arrays and of peers; the graph is a ring with two more receivers each."""
    case, seed = job.case, job.seed
    rate, changes = CONDITIONS[case.title]
    rows = case.num_nodes * case.rounds
    stream = synthetic(rows, NUM_FEATURES, seed).table.deal(case.num_nodes, seed=seed)
    method = Learning(method=case.method).build_method(NUM_FEATURES + 1)
    about = method, LogisticRegression(), stream, ring_with_chords(case.num_nodes, seed)
    told = ow.Conditions(rate=rate, **dict(changes))
    arrays = ow.simulate(*about, conditions=told, seed=seed, progress=False)
    peers = ow.virtual_lab(*about, conditions=told, seed=seed, progress=False)
    assert peers.record.config["exact_books"]
    return [{"arrays": arrays.average_loss, "peers": peers.average_loss}]


def ring_with_chords(num_nodes: int, seed: int) -> ow.TrustGraph:
    """A one-way ring in which every node has two more receivers, at random."""
    rng = np.random.default_rng(seed)
    edges = {(node, (node + 1) % num_nodes) for node in range(num_nodes)}
    for node in range(num_nodes):
        others = np.delete(np.arange(num_nodes), node)
        chosen = rng.choice(others, min(2, len(others)), replace=False)
        edges |= {(node, int(other)) for other in chosen}
    return ow.TrustGraph.from_edges(sorted(edges), num_nodes)


def agreement(scope: Scope) -> Report:
    """Compare both under every condition."""
    num_nodes, rounds = (6, 32) if scope.quick else (24, 96)
    conditions = list(CONDITIONS)[: 2 if scope.quick else None]
    pairs = [Pair(title, it, num_nodes, rounds) for title in conditions for it in METHODS]
    jobs = [PairJob(pair, seed) for pair in pairs for seed in scope.seeds]
    runs = grid(simulate_pair, jobs, scope.cache)

    def apart(pair: Pair) -> Vector:
        """By how much arrays lose more than peers, as a part of the loss, per seed."""
        known = (values(runs, name, case=pair.name) for name in ("arrays", "peers"))
        arrays, peers = known
        return arrays / peers - 1.0

    rows = [
        [title, *(spread(apart(Pair(title, it, num_nodes, rounds)), ".1%") for it in METHODS)]
        for title in conditions
    ]
    about = (
        f"{num_nodes} nodes on a one-way ring with two more receivers each, {rounds} samples each, "
        "batches of 16, epsilon 8: loss of the arrays over that of the peers, less one; mean over "
        "seeds ± half the 95 % interval."
    )
    shown = table(("arrays against peers", *(label(it).title for it in METHODS)), rows, about)
    claims = [
        _claim(method, {it: apart(Pair(it, method, num_nodes, rounds)) for it in conditions})
        for method in METHODS
    ]
    return Report("Arrays against the peers' own code", claims, [shown], {"runs": runs}, {})


def _claim(method: str, found: dict[str, Vector]) -> Claim:
    reading = "difference of the losses, part of that of peers"
    findings = tuple(below(it, np.abs(apart), NEAR, reading) for it, apart in found.items())
    text = f"Under every condition the loss of {label(method).title} agrees within {NEAR:.0%}."
    return Claim(text, "", findings, everywhere(findings))


if __name__ == "__main__":
    run(agreement, seeds=3)
