"""The claims of the paper's evaluation, one by one, and what the runs say about each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from oneway.methods import NaiveGossip, OnlinePushSum
from oneway.models import LogisticRegression
from oneway.paper import figure_density, figure_size
from oneway.paper.evidence import STOCHASTIC, Evidence
from oneway.paper.panel import SETTINGS, names, reference_world
from oneway.paper.verdict import Claim, Finding, below, everywhere, paired, somewhere
from oneway.paper.world import World
from oneway.records import Vector
from oneway.simulator import simulate
from oneway.topology import TrustGraph

CLOSE = 0.10
"""Sizes are called close together if their losses differ by less than this part of their mean."""
SLIGHTLY = 0.10
"""OPS is called slightly worse than COL if its loss is larger by less than this part."""
DEALINGS: dict[str, dict[str, Any]] = {
    "cluster first": {"shuffled": False},
    "overflow to the next node": {"overflow": "next"},
}
"""Other ways to deal clusters that the paper's text allows, as changes of a world."""
_DIFFERENCE = "difference of average losses"


def claims(evidence: Evidence) -> list[Claim]:
    """Every claim that the runs at hand can judge."""
    found = [
        _ops_beats(evidence, "dol-symm"),
        _ops_beats(evidence, "dol-asymm"),
        _naive_sometimes_worse(evidence),
        _slightly_worse_than_col(evidence),
        _stochastic_helps(evidence),
        _sizes_close(evidence),
        _larger_is_lower(evidence),
        _denser_is_lower(evidence),
        _communication_helps(evidence),
        _more_so_with_stochastic_data(evidence),
        _doubly_stochastic(evidence),
        _models_agree(evidence),
    ]
    return [claim for claim in found if claim.findings]


def _tuned(evidence: Evidence, world: World, method: str) -> Vector:
    """Losses per seed at the rate tuned for the data set."""
    return evidence.losses(world, method, evidence.tuned_rate(world.data, method))


def _worlds(evidence: Evidence, *methods: str) -> Iterator[tuple[str, World]]:
    """The paper's main settings in which all these methods were run, with their titles."""
    for data, stochastic in SETTINGS:
        world = reference_world(data, stochastic, evidence.scale)
        if all(evidence.has(world, method) for method in methods):
            yield names(data, stochastic)[1], world


def _ops_beats(evidence: Evidence, other: str) -> Claim:
    findings = []
    for title, world in _worlds(evidence, "ops", other):
        gap = _tuned(evidence, world, other) - _tuned(evidence, world, "ops")
        findings.append(paired(title, gap, _DIFFERENCE))
    for title, world in _worlds(evidence, "ops", other):
        rate = evidence.tuned_rate(world.data, "ops")
        gap = evidence.losses(world, other, rate) - _tuned(evidence, world, "ops")
        findings.append(paired(f"{title}, both at OPS's rate", gap, _DIFFERENCE))
    label = "DOL-Symm" if other == "dol-symm" else "DOL-Asymm"
    return Claim(
        f"OPS has a smaller loss than {label}.",
        "comparison",
        tuple(findings),
        everywhere(findings),
    )


def _naive_sometimes_worse(evidence: Evidence) -> Claim:
    findings = [
        paired(
            title,
            _tuned(evidence, world, "dol-asymm") - _tuned(evidence, world, "dol-symm"),
            _DIFFERENCE,
        )
        for title, world in _worlds(evidence, "dol-asymm", "dol-symm")
    ]
    return Claim(
        "DOL-Asymm is in some cases even worse than DOL-Symm, for example on SUSY, all stochastic.",
        "comparison",
        tuple(findings),
        somewhere(findings),
        "A claim about some cases: it holds if it holds in one.",
    )


def _slightly_worse_than_col(evidence: Evidence) -> Claim:
    findings = []
    for title, world in _worlds(evidence, "ops", "col"):
        ops, col = _tuned(evidence, world, "ops"), _tuned(evidence, world, "col")
        findings.append(paired(f"{title}: worse", ops - col, _DIFFERENCE))
        findings.append(
            below(f"{title}: slightly", ops / col - 1, SLIGHTLY, "excess over COL, as a fraction")
        )
    return Claim(
        "OPS is slightly worse than COL.",
        "comparison",
        tuple(findings),
        everywhere(findings),
        f"Slightly is read as: by less than {SLIGHTLY:.0%}.",
    )


def _stochastic_helps(evidence: Evidence) -> Claim:
    findings = []
    for data, label in (("occupancy", "Room Occupancy"), ("susy", "SUSY")):
        whole, half = (reference_world(data, part, evidence.scale) for part in STOCHASTIC)
        for method in ("ops", "dol-symm", "dol-asymm", "col"):
            if evidence.has(whole, method) and evidence.has(half, method):
                gap = _tuned(evidence, half, method) - _tuned(evidence, whole, method)
                findings.append(paired(f"{label}, {method}", gap, _DIFFERENCE))
                for choice, other in DEALINGS.items():
                    world = replace(half, **other)
                    if evidence.has(world, method):
                        gap = _tuned(evidence, world, method) - _tuned(evidence, whole, method)
                        findings.append(paired(f"{label}, {method}, {choice}", gap, _DIFFERENCE))
    return Claim(
        "With more stochastic data the loss is smaller.",
        "comparison",
        tuple(findings),
        everywhere(findings),
        "Loss at 50 % minus loss at 100 % stochastic. The paper shows it for Room Occupancy, and "
        "does not say in which order a node sees its samples (shuffled, or its cluster first), nor "
        "what becomes of a too large cluster (back to the random pool, or on to the next node).",
    )


def _by_size(evidence: Evidence) -> Iterator[tuple[str, list[Vector]]]:
    """Losses per size and seed: rounds fixed, samples fixed, and each size at its own best rate."""
    for data, stochastic in SETTINGS:
        title = names(data, stochastic)[1]
        worlds = figure_size.worlds(data, stochastic, evidence.scale)
        equal = [figure_size.same_samples(world) for world in worlds]
        if all(evidence.has(world, "ops") for world in worlds):
            yield f"{title}, equal rounds", [_tuned(evidence, world, "ops") for world in worlds]
            yield (
                f"{title}, equal rounds, each size at its best rate",
                [evidence.losses(w, "ops", evidence.best_rate(w, "ops")) for w in worlds],
            )
        if all(evidence.has(world, "ops") for world in equal):
            yield f"{title}, equal samples", [_tuned(evidence, world, "ops") for world in equal]


def _sizes_close(evidence: Evidence) -> Claim:
    findings = []
    for title, losses in _by_size(evidence):
        table = np.array(losses)
        spread = (table.max(axis=0) - table.min(axis=0)) / table.mean(axis=0)
        findings.append(below(title, spread, CLOSE, "largest minus smallest, as a fraction"))
    return Claim(
        "The losses of networks of different sizes are close together.",
        "size",
        tuple(findings),
        everywhere(findings),
        f"Close is read as: within {CLOSE:.0%}.",
    )


def _larger_is_lower(evidence: Evidence) -> Claim:
    findings = [
        paired(title, losses[0] - losses[-1], "loss of the smallest minus of the largest network")
        for title, losses in _by_size(evidence)
    ]
    return Claim(
        "The loss is smaller in a larger network.",
        "size",
        tuple(findings),
        everywhere(findings),
        "The paper does not say whether rounds or samples are held fixed as the network grows, so "
        "both are shown.",
    )


def _denser_is_lower(evidence: Evidence) -> Claim:
    findings = []
    for data, stochastic in SETTINGS:
        title = names(data, stochastic)[1]
        worlds = figure_density.worlds(data, stochastic, evidence.scale)
        if not all(evidence.has(world, "ops") for world in worlds.values()):
            continue
        losses = {density: _tuned(evidence, world, "ops") for density, world in worlds.items()}
        lowest = min(losses)
        findings += [
            paired(
                f"{title}, from density {lowest:g} to {dense:g}",
                losses[lowest] - losses[dense],
                _DIFFERENCE,
            )
            for dense in (max(losses), 0.5)
        ]
    return Claim(
        "The loss is smaller in a denser network.",
        "density",
        tuple(findings),
        everywhere(findings),
    )


def _communication_helps(evidence: Evidence) -> Claim:
    findings = [
        paired(title, _tuned(evidence, w, "local") - _tuned(evidence, w, "ops"), _DIFFERENCE)
        for title, w in _worlds(evidence, "ops", "local")
    ]
    return Claim(
        "Communication reduces the loss: OPS beats local online gradient descent.",
        "local",
        tuple(findings),
        everywhere(findings),
    )


def _more_so_with_stochastic_data(evidence: Evidence) -> Claim:
    findings: list[Finding] = []
    whole, half = (reference_world("susy", part, evidence.scale) for part in STOCHASTIC)
    if all(evidence.has(w, m) for w in (whole, half) for m in ("ops", "local")):
        gains = [
            _tuned(evidence, world, "local") - _tuned(evidence, world, "ops")
            for world in (whole, half)
        ]
        findings.append(
            paired("SUSY", gains[0] - gains[1], "gain at 100 % minus gain at 50 % stochastic")
        )
    return Claim(
        "Communication helps more where more of the data is stochastic.",
        "local",
        tuple(findings),
        everywhere(findings),
    )


def _doubly_stochastic(evidence: Evidence) -> Claim:
    differences = []
    for seed in evidence.seeds:
        world = reference_world("susy", 1.0, evidence.scale)
        graph = _doubly_stochastic_graph(world.num_nodes, seed)
        stream = world.stream(seed)
        runs = [
            simulate(method(0.1), LogisticRegression(), stream, graph, progress=False)
            for method in (OnlinePushSum, NaiveGossip)
        ]
        differences.append(float(np.abs(runs[0].estimates - runs[1].estimates).max()))
    finding = below(
        "SUSY, one-way graph with doubly stochastic shares",
        np.array(differences),
        1e-12,
        "largest difference of any parameter of any node",
    )
    return Claim(
        "If the mixing is doubly stochastic, OPS is the classical method.",
        "text",
        (finding,),
        finding.verdict,
    )


def _doubly_stochastic_graph(num_nodes: int, seed: int) -> TrustGraph:
    """Every node keeps 0.3 and sends 0.5 and 0.2 along two random cycles: not symmetric."""
    rng = np.random.default_rng(seed)
    edges = []
    for weight in (0.5, 0.2):
        order = rng.permutation(num_nodes)
        edges += [(int(a), int(b), weight) for a, b in zip(order, np.roll(order, 1), strict=True)]
    graph = TrustGraph.from_edges(edges, num_nodes)
    return TrustGraph.from_mixing(graph.mixing(kept_share=0.3))


def _models_agree(evidence: Evidence) -> Claim:
    """Under a step of order 1 / sqrt(T), as in the theorem, fit disagreement against T."""
    exponents = []
    world = reference_world("susy", 1.0, evidence.scale)
    assert world.rounds is not None
    horizons = [world.rounds // part for part in (8, 4, 2, 1)]
    base = 0.1 * float(np.sqrt(horizons[0]))
    for seed in evidence.seeds:
        stream, graph = world.stream(seed), world.graph(seed)
        means = []
        for horizon in horizons:
            method = OnlinePushSum(base / float(np.sqrt(horizon)))
            run = simulate(
                method, LogisticRegression(), stream.head(horizon), graph, progress=False
            )
            means.append(run.disagreement.mean())
        exponents.append(np.polyfit(np.log(horizons), np.log(means), 1)[0])
    finding = below(
        f"SUSY, {horizons[0]:,} to {horizons[-1]:,} rounds, step of order 1 / sqrt(T)",
        np.array(exponents),
        -0.9,
        "fitted exponent of mean disagreement against T; -1 is the theorem's rate",
    )
    return Claim(
        "The models agree in the end, at the rate 1 / T.",
        "second theorem",
        (finding,),
        finding.verdict,
        "Holds if the exponent is below -0.9.",
    )
