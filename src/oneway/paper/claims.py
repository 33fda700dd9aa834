"""The claims of the paper's evaluation: a list of sentences, each with the test that judges it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from oneway.models import LogisticRegression
from oneway.paper.evidence import Evidence
from oneway.paper.figures import (
    COMPARED,
    LESS_STOCHASTIC,
    SETTINGS,
    SIZE_SETTINGS,
    STOCHASTIC,
    TITLES,
    dealt_worlds,
    density_worlds,
    receivers_text,
    reference_world,
    same_samples,
    setting_title,
    size_worlds,
)
from oneway.paper.methods import make
from oneway.paper.verdict import Claim, Finding, Verdict, below, everywhere, paired, somewhere
from oneway.paper.world import World
from oneway.records import Vector
from oneway.simulator import simulate
from oneway.topology import TrustGraph

CLOSE = 0.10
"""Sizes are called close together if their losses differ by less than this part of their mean."""
SLIGHTLY = 0.10
"""OPS is called slightly worse than COL if its loss is larger by less than this part."""


@dataclass(frozen=True)
class Sentence:
    """A claim as the paper makes it, and how it is tested.

    Attributes:
        text: The claim.
        where: The figure or part of the paper that makes it.
        test: Gives a finding for each setting that the runs at hand can judge.
        judge: The verdict on the findings together.
        note: How the words were read.
    """

    text: str
    where: str
    test: Callable[[Evidence], Iterator[Finding]]
    judge: Callable[[Sequence[Finding]], Verdict] = everywhere
    note: str = ""


def claims(evidence: Evidence) -> list[Claim]:
    """Judge every claim that the runs at hand can judge."""
    judged = []
    for sentence in SENTENCES:
        found = _counted_once(sentence.test(evidence))
        if found:
            verdict = sentence.judge(found)
            judged.append(Claim(sentence.text, sentence.where, found, verdict, sentence.note))
    return judged


def _counted_once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """A setting and its variants as one finding where all their numbers are the same.

    They are the same runs then: where the rate of OPS is also the other's best, for example.
    """
    variants: dict[Finding, list[str]] = {}
    for finding in findings:
        for first, names in variants.items():
            variant = finding.setting.removeprefix(f"{first.setting}, ")
            if variant != finding.setting and first == replace(finding, setting=first.setting):
                names.append(variant)
                break
        else:
            variants[finding] = []
    return tuple(
        replace(first, setting=f"{first.setting} (the same runs: {'; '.join(names)})")
        if names
        else first
        for first, names in variants.items()
    )


def _main_worlds(evidence: Evidence, *methods: str) -> Iterator[tuple[str, World]]:
    """The paper's main settings in which all these methods were run, with their titles."""
    for data, stochastic in SETTINGS:
        world = reference_world(data, stochastic, evidence.scale)
        if evidence.has(world, *methods):
            yield setting_title(data, stochastic), world


def _smaller(better: str, worse: str, evidence: Evidence) -> Iterator[Finding]:
    """In the main settings, one method has a smaller loss than another, both tuned."""
    for title, world in _main_worlds(evidence, better, worse):
        yield paired(title, evidence.losses(world, worse) - evidence.losses(world, better))


def _ops_smaller(worse: str, evidence: Evidence) -> Iterator[Finding]:
    """Both tuned, and both at the rate of OPS."""
    yield from _smaller("ops", worse, evidence)
    for title, world in _main_worlds(evidence, "ops", worse):
        at_same_rate = evidence.losses(world, worse, evidence.tuned_rate(world.data, "ops"))
        gap = at_same_rate - evidence.losses(world, "ops")
        yield paired(f"{title}, both at OPS's rate", gap)


def _slightly_worse_than_col(evidence: Evidence) -> Iterator[Finding]:
    for title, world in _main_worlds(evidence, "ops", "col"):
        ops, col = evidence.losses(world, "ops"), evidence.losses(world, "col")
        excess = "excess over COL, as a fraction"
        yield paired(f"{title}: worse", ops - col)
        yield below(f"{title}: slightly", ops / col - 1, SLIGHTLY, excess)


def _stochastic_helps(evidence: Evidence) -> Iterator[Finding]:
    for data in reversed(TITLES):
        whole = reference_world(data, 1.0, evidence.scale)
        for method in COMPARED:
            for choice, world in dealt_worlds(data, 0.5, evidence.scale).items():
                if evidence.has(whole, method) and evidence.has(world, method):
                    gap = evidence.losses(world, method) - evidence.losses(whole, method)
                    yield paired(f"{TITLES[data]}, {method}{choice}", gap)


def _stochastic_helps_past_the_best_rate(evidence: Evidence) -> Iterator[Finding]:
    for data, part in itertools.product(reversed(TITLES), LESS_STOCHASTIC):
        for choice, world in dealt_worlds(data, part, evidence.scale).items():
            rate = evidence.rate_past_best(data, "ops") if evidence.has(world, "ops") else None
            if rate is not None:
                setting = f"{setting_title(data, part)}{choice}, OPS at rate {rate:g}"
                reading = f"loss at {part:.0%} minus loss at 100% stochastic"
                yield paired(setting, evidence.excess(world, "ops", rate), reading)


def _losses_by_size(evidence: Evidence) -> Iterator[tuple[str, list[Vector]]]:
    """Losses per size and seed: rounds fixed, samples fixed, and each size at its own best rate."""
    for data, stochastic, bound in SIZE_SETTINGS:
        worlds = size_worlds(data, stochastic, bound, evidence.scale)
        title = f"{setting_title(data, stochastic)}, {receivers_text(worlds[0])}"
        equal = [same_samples(world) for world in worlds]
        if all(evidence.has(world, "ops") for world in worlds):
            yield f"{title}, equal rounds", [evidence.losses(world, "ops") for world in worlds]
            yield (
                f"{title}, equal rounds, each size at its best rate",
                [evidence.losses(w, "ops", evidence.best_rate(w, "ops")) for w in worlds],
            )
        if all(evidence.has(world, "ops") for world in equal):
            yield f"{title}, equal samples", [evidence.losses(world, "ops") for world in equal]


def _sizes_close(evidence: Evidence) -> Iterator[Finding]:
    for title, losses in _losses_by_size(evidence):
        table = np.array(losses)
        spread = (table.max(axis=0) - table.min(axis=0)) / table.mean(axis=0)
        yield below(title, spread, CLOSE, "largest minus smallest, as a fraction")


def _larger_is_lower(evidence: Evidence) -> Iterator[Finding]:
    for title, losses in _losses_by_size(evidence):
        reading = "loss of the smallest minus of the largest network"
        yield paired(title, losses[0] - losses[-1], reading)


def _denser_is_lower(evidence: Evidence) -> Iterator[Finding]:
    for data, stochastic in SETTINGS:
        worlds = density_worlds(data, stochastic, evidence.scale)
        if all(evidence.has(world, "ops") for world in worlds.values()):
            lowest = min(worlds)
            for dense in (max(worlds), 0.5):
                setting = f"{setting_title(data, stochastic)}, from density {lowest:g} to {dense:g}"
                losses = [evidence.losses(worlds[density], "ops") for density in (lowest, dense)]
                yield paired(setting, losses[0] - losses[1])


def _more_so_with_stochastic_data(evidence: Evidence) -> Iterator[Finding]:
    worlds = [reference_world("susy", part, evidence.scale) for part in STOCHASTIC]
    if all(evidence.has(world, "ops", "local") for world in worlds):
        whole, half = (evidence.losses(w, "local") - evidence.losses(w, "ops") for w in worlds)
        yield paired("SUSY", whole - half, "gain at 100 % minus gain at 50 % stochastic")


def _doubly_stochastic(evidence: Evidence) -> Iterator[Finding]:
    """On a one-way graph with doubly stochastic shares, OPS and DOL-Asymm find the same models."""
    world = reference_world("susy", 1.0, evidence.scale)
    differences = []
    for seed in evidence.seeds:
        stream, graph = world.stream(seed), _doubly_stochastic_graph(world.num_nodes, seed)
        ops, classical = (
            simulate(make(method, 0.1), LogisticRegression(), stream, graph, progress=False)
            for method in ("ops", "dol-asymm")
        )
        differences.append(float(np.abs(ops.estimates - classical.estimates).max()))
    yield below(
        "SUSY, one-way graph with doubly stochastic shares",
        np.array(differences),
        1e-12,
        "largest difference of any parameter of any node",
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


def _models_agree(evidence: Evidence) -> Iterator[Finding]:
    """Under a step of order 1 / sqrt(T), as in the theorem, fit disagreement against T."""
    world = reference_world("susy", 1.0, evidence.scale)
    assert world.rounds is not None
    horizons = [world.rounds // part for part in (8, 4, 2, 1)]
    base = 0.1 * float(np.sqrt(horizons[0]))
    exponents = []
    for seed in evidence.seeds:
        stream, graph = world.stream(seed), world.graph(seed)
        means = []
        for horizon in horizons:
            method = make("ops", base / float(np.sqrt(horizon)))
            part = stream.head(horizon)
            run = simulate(method, LogisticRegression(), part, graph, progress=False)
            means.append(run.disagreement.mean())
        exponents.append(np.polyfit(np.log(horizons), np.log(means), 1)[0])
    yield below(
        f"SUSY, {horizons[0]:,} to {horizons[-1]:,} rounds, step of order 1 / sqrt(T)",
        np.array(exponents),
        -0.9,
        "fitted exponent of mean disagreement against T; -1 is the theorem's rate",
    )


SENTENCES = (
    Sentence(
        "OPS has a smaller loss than DOL-Symm.", "comparison", partial(_ops_smaller, "dol-symm")
    ),
    Sentence(
        "OPS has a smaller loss than DOL-Asymm.", "comparison", partial(_ops_smaller, "dol-asymm")
    ),
    Sentence(
        "DOL-Asymm is in some cases even worse than DOL-Symm, for example on SUSY, all stochastic.",
        "comparison",
        partial(_smaller, "dol-symm", "dol-asymm"),
        somewhere,
        "A claim about some cases: it holds if it holds in one, at a level divided by the number "
        "of cases, since the more are looked at, the likelier is one by chance.",
    ),
    Sentence(
        "OPS is slightly worse than COL.",
        "comparison",
        _slightly_worse_than_col,
        note=f"Slightly is read as: by less than {SLIGHTLY:.0%}.",
    ),
    Sentence(
        "With more stochastic data the loss is smaller.",
        "comparison",
        _stochastic_helps,
        note="Loss at 50 % minus loss at 100 % stochastic. The paper shows it for Room Occupancy, "
        "and does not say in which order a node sees its samples (shuffled, or its cluster first), "
        "nor what becomes of a too large cluster (back to the random pool, or on to the next "
        "node).",
    ),
    Sentence(
        "Past the best rate of OPS, its loss is smaller with more stochastic data.",
        "comparison",
        _stochastic_helps_past_the_best_rate,
        note="Not a claim of the paper, but a candidate explanation of the one above: the paper "
        "tunes the rate for each data set and gives no rates; one rate for all methods, the best "
        "of COL for example, may be past that of OPS. Here OPS has the rate of the grid next above "
        "its best, at 50 % and at 0 % stochastic against 100 %. Tables below have every rate.",
    ),
    Sentence(
        "The losses of networks of different sizes are close together.",
        "size",
        _sizes_close,
        note=f"Close is read as: within {CLOSE:.0%}. For Room Occupancy the paper says 2 "
        "neighbours, their number being smaller than the bound: at most 2 receivers, or, read "
        "strictly, one, which is a directed cycle. Both readings are shown.",
    ),
    Sentence(
        "The loss is smaller in a larger network.",
        "size",
        _larger_is_lower,
        note="The paper does not say whether rounds or samples are held fixed as the network "
        "grows, so both are shown, as are both readings of 2 neighbours.",
    ),
    Sentence("The loss is smaller in a denser network.", "density", _denser_is_lower),
    Sentence(
        "Communication reduces the loss: OPS beats local online gradient descent.",
        "local",
        partial(_smaller, "ops", "local"),
    ),
    Sentence(
        "Communication helps more where more of the data is stochastic.",
        "local",
        _more_so_with_stochastic_data,
    ),
    Sentence(
        "If the mixing is doubly stochastic, OPS is the classical method.",
        "text",
        _doubly_stochastic,
    ),
    Sentence(
        "The models agree in the end, at the rate 1 / T.",
        "second theorem",
        _models_agree,
        note="Holds if the exponent is below -0.9.",
    ),
)
"""Every claim of the paper's evaluation that runs can judge, in the order of the page."""
