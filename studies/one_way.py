"""What trust that does not come back costs: graphs that are not strongly connected, on SUSY.

*Published* is the method without bounds: masses drain and gather for ever. *Bounded* is what the
simulator runs on such graphs: masses kept within the method's usual bounds by minting and burning
at a node's own estimate, and with Relay nodes that receive and send to nobody let go of what they
would hand on. *Shared* is the loss of the network's model at each node, *yours* that of
its personal predictions, *alone* what it would have without the network, at rates of its own. A
node is upstream if no edge leads into its strong component from another one, downstream if none
leads out, in the middle if edges lead in and out, and apart if none does.

At best rates, every sample is a step, and each run has the rate of the grid with which its shared
loss is smallest. At the defaults of a new task, nodes choose their rates, in batches of 16 with
noise for epsilon 8. Both in lockstep, 500 rounds (Advogato and Epinions at best rates: 100; three
seeds, Epinions one, which no claim rests on, and at best rates only). At best rates Online Push-Sum
takes the step `paper` as published, and `curvature` where it is bounded; Relay, whose deposits go
by the mass, takes `paper`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

import oneway as ow
from lib import (
    Claim,
    Report,
    Scope,
    below,
    data_table,
    everywhere,
    grid,
    make,
    make_private,
    paired,
    run,
    spread,
    table,
    trust_network,
    values,
)
from oneway.datasets import DATASETS
from oneway.errors import DivergenceError
from oneway.methods import METHODS, Method
from oneway.records.values import ALONE, SHARED, YOURS
from oneway.simulator.grid import require_complete

RATES = (0.02, 0.05, 0.1, 0.2, 0.4)
QUICK_RATES = (0.1,)
ROUNDS = 500
TRUST_ROUNDS = 100
"""Of trust networks at best rates; with batches of 16 these would be six steps, so it is `ROUNDS`
at the defaults."""
SEEDS = {"Advogato": 3, "Epinions": 1}
"""At most so many of the large networks."""
NOWHERE_NEAR = (1e-140, 1e140)
"""As good as no bounds: squares of smaller masses are beyond what a floating-point number holds."""
LOSSES = {"shared": SHARED, "yours": YOURS, "alone": ALONE}
MOST_SHARED = 0.55
"""What is to be reached on all of Advogato."""
BEST, DEFAULTS = "best rates", "defaults"
WHOLE = "Advogato, all"
TRUST = {
    "Advogato, strong part": "advogato",
    WHOLE: "advogato",
    "Epinions, strong part": "epinions",
    "Epinions, all": "epinions",
}

ARROWS: dict[str, tuple[int, list[tuple[int, int]]]] = {
    "clinic -> hospital": (2, [(0, 1)]),
    "alice <-> carol, alice -> bob": (3, [(0, 1), (1, 0), (0, 2)]),
    "chain of 8": (8, [(i, i + 1) for i in range(7)]),
    "star, 7 -> 1": (8, [(i, 0) for i in range(1, 8)]),
    "star, 1 -> 7": (8, [(0, i) for i in range(1, 8)]),
    "two rings, one arrow": (
        16,
        [(8 * ring + i, 8 * ring + (i + 1) % 8) for ring in (0, 1) for i in range(8)] + [(0, 8)],
    ),
}
GRAPHS = (*ARROWS, *TRUST)


def graph_of(name: str) -> ow.TrustGraph:
    """A graph by name, with equal shares."""
    if name in ARROWS:
        num_nodes, edges = ARROWS[name]
        return ow.TrustGraph.from_edges(edges, num_nodes)
    if "all" in name:
        everybody = DATASETS[TRUST[name]].load()
        return ow.TrustGraph.from_edges(np.stack(everybody.edges(), axis=1), everybody.num_nodes)
    return trust_network(TRUST[name])


@dataclass(frozen=True)
class Setting:
    """A graph, and how nodes learn on it."""

    graph: str
    mode: str
    quick: bool

    @property
    def name(self) -> str:
        """Graph and mode."""
        return f"{self.graph}, {self.mode}"

    @property
    def rounds(self) -> int:
        """Samples of every node."""
        if self.quick:
            return 40
        return TRUST_ROUNDS if self.graph in TRUST and self.mode == BEST else ROUNDS

    @property
    def num_seeds(self) -> int | None:
        """How many seeds it has at most."""
        return SEEDS[self.graph.split(",")[0]] if self.graph in TRUST else None


@dataclass(frozen=True)
class WayJob:
    """A setting with a method and a seed, at every learning rate of a grid."""

    case: Setting
    method: str
    seed: int
    rates: tuple[float, ...]


METHODS_SHOWN = {
    "ops published": "OPS as published",
    "ops bounded": "OPS bounded",
    "relay published": "Relay as published",
    "relay bounded": "Relay bounded",
}


def graphs_in(mode: str) -> list[str]:
    """The graphs: 500 rounds of personal predictions on Epinions would take an hour."""
    return [name for name in GRAPHS if mode == BEST or "Epinions" not in name]


def methods_in(mode: str) -> list[str]:
    """The methods that are run: a new task has none as published."""
    return [name for name in METHODS_SHOWN if mode == BEST or "bounded" in name]


def method_of(job: WayJob, rate: float, dim: int) -> Method:
    """The method at a rate, with bounds that are reached or not."""
    name, kind = job.method.split()
    if job.case.mode == DEFAULTS:
        plain = make_private(name, "auto", 8.0, dim)
    else:
        plain = make(
            {"ops published": "ops-published", "ops bounded": "ops-curvature"}.get(
                job.method, "relay-plain"
            ),
            rate,
        )
    bounds = METHODS[name].usual_bounds if kind == "bounded" else NOWHERE_NEAR
    return type(plain)(**{**vars(plain), "bounds": bounds})


def learn(job: WayJob) -> list[dict[str, Any]]:
    """The mean losses at the best rate: of all nodes, and of each side of the graph."""
    case, model, graph = job.case, ow.models.LogisticRegression(), graph_of(job.case.graph)
    # Of a function of the round nobody knows who sends to nobody: it runs a method as it is.
    graphs = graph if "bounded" in job.method else lambda _: graph
    stream = data_table("susy").deal(
        graph.num_nodes, seed=job.seed, resample=graph.num_nodes * case.rounds
    )

    def found_at(rate: float, *, personal: bool) -> ow.Run | None:
        method = method_of(job, rate, model.dim(stream.dim))
        try:
            return require_complete(
                ow.simulate(
                    method, model, stream, graphs, personal=personal, seed=job.seed, progress=False
                )
            )
        except DivergenceError:
            return None

    tried = {rate: found_at(rate, personal=False) for rate in job.rates}
    best = min(tried, key=lambda rate: math.inf if (it := tried[rate]) is None else it.average_loss)
    found = found_at(best, personal=True)
    sums = np.full((graph.num_nodes, 4), math.inf)
    if found is not None and found.personal is not None:
        sums = found.personal.node_sums
    parts = {"all": np.ones(graph.num_nodes, np.bool_), **graph.sides()._asdict()}
    return [
        {
            "graph": case.graph,
            "mode": case.mode,
            "rate": best,
            "side": side,
            "nodes": int(nodes.sum()),
            **{
                name: float(sums[nodes, column].sum() / (nodes.sum() * stream.num_rounds))
                for name, column in LOSSES.items()
            },
            "least_mass": math.nan if found is None else float(found.masses.min()),
            "greatest_mass": math.nan if found is None else float(found.masses.max()),
        }
        for side, nodes in parts.items()
        if nodes.any()
    ]


def cell(runs: pl.DataFrame, column: str, **where: Any) -> str:
    """A mean loss with its interval; of one that is far beyond any use only that it is."""
    found = values(runs, column, **where)
    if not (np.isfinite(found).all() and found.mean() < 2.0):
        return "diverges"
    return spread(found)


def overview(runs: pl.DataFrame, mode: str, column: str) -> str:
    """A row for every graph: learning alone, and every method."""
    rows = []
    for name in graphs_in(mode):
        where = {"graph": name, "mode": mode, "side": "all"}
        rows.append(
            [
                name,
                cell(runs, "alone", method="relay bounded", **where),
                *(cell(runs, column, method=method, **where) for method in methods_in(mode)),
            ]
        )
    return table(("", "alone", *(METHODS_SHOWN[method] for method in methods_in(mode))), rows)


def by_side(runs: pl.DataFrame, mode: str) -> str:
    """A row for every side of every graph, with the bounded methods."""
    rows = []
    for name in graphs_in(mode):
        here = runs.filter((pl.col("graph") == name) & (pl.col("mode") == mode))
        for side in here["side"].unique(maintain_order=True).to_list():
            where = {"graph": name, "mode": mode, "side": side}
            nodes = here.filter(pl.col("side") == side)["nodes"][0]
            if side == "all":
                continue
            cells = [
                cell(runs, column, method=method, **where)
                for method in ("ops bounded", "relay bounded")
                for column in ("shared", "yours")
            ]
            alone = cell(runs, "alone", method="relay bounded", **where)
            rows.append([f"{name}: {side}", f"{nodes:,}", alone, *cells])
    heading = ("", "nodes", "alone", "OPS, shared", "OPS, yours", "Relay, shared", "Relay, yours")
    return table(heading, rows)


def claims_of(runs: pl.DataFrame, mode: str) -> list[Claim]:
    """What is to hold for Relay, the default method, with bounds."""
    relay = runs.filter((pl.col("method") == "relay bounded") & (pl.col("mode") == mode))
    where = f"Relay bounded, {mode}"
    claims = []
    if mode == BEST:
        shared = values(relay, "shared", graph=WHOLE, side="all")
        found = (below(WHOLE, shared, MOST_SHARED, "average shared loss"),)
        claims.append(
            Claim(f"The shared loss is below {MOST_SHARED}", where, found, everywhere(found))
        )
    kept, gained = [], []
    for name in graphs_in(DEFAULTS):
        yours, alone = (values(relay, it, graph=name, side="all") for it in ("yours", "alone"))
        kept.append(below(name, yours / alone, 1.01, "loss of yours as a share of alone"))
        for side in ("upstream", "middle", "downstream"):
            yours, alone = (values(relay, it, graph=name, side=side) for it in ("yours", "alone"))
            if len(yours):
                gained.append(paired(f"{name}: {side}", alone - yours))
    claims.append(
        Claim("Personal predictions lose at most 1 % more", where, tuple(kept), everywhere(kept))
    )
    text = "Personal predictions are better than alone upstream, in the middle and downstream"
    return [*claims, Claim(text, where, tuple(gained), everywhere(gained))]


def one_way(scope: Scope) -> Report:
    """Learn on graphs that are not strongly connected."""
    rates = {BEST: QUICK_RATES if scope.quick else RATES, DEFAULTS: (0.0,)}
    jobs = [
        WayJob(Setting(name, mode, scope.quick), method, seed, rates[mode])
        for mode in rates
        for name in graphs_in(mode)
        for method in methods_in(mode)
        for seed in scope.seeds[: Setting(name, mode, scope.quick).num_seeds]
    ]
    runs = grid(learn, jobs, scope.cache)
    parts, claims = [__doc__ or ""], []
    for mode, title in ((BEST, "At best rates"), (DEFAULTS, "At the defaults of a new task")):
        claims += claims_of(runs, mode)
        parts += [
            f"## {title}",
            "Shared, mean over all nodes:",
            overview(runs, mode, "shared"),
            "Yours, mean over all nodes:",
            overview(runs, mode, "yours"),
            "By side, bounded:",
            by_side(runs, mode),
        ]
    return Report("One-way streets", claims, parts, {"runs": runs})


if __name__ == "__main__":
    run(one_way, seeds=10)
