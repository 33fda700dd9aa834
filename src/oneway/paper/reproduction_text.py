"""The words, tables and panels of the reproduction's page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oneway.paper.bias import all_biases
from oneway.paper.evidence import Evidence
from oneway.paper.panel import Figure, Line, Panel, reference_world
from oneway.paper.verdict import Claim, interval
from oneway.paper.world import World, data_table
from oneway.report.bands import Band
from oneway.report.labels import LABELS
from oneway.report.reproduction import ClaimPart, FindingPart, PanelPart, Section, Table
from oneway.theory import graph_constants
from oneway.topology import stationary_masses

SUSY_ROWS = 5_000_000

_EXPLAIN = {
    "comparison": (
        "Every method learns the same stream over the same one-way graph. OPS uses all edges and "
        "corrects by mass; DOL-Symm throws one-way edges away; DOL-Asymm uses them without "
        "correction; COL is a server that averages everybody.",
        "The learning rate of each method is the best of the grid for its data set, chosen on the "
        "mean over seeds and both stochastic parts. The table also shows every method at OPS's rate "
        "and at its own best rate in that very panel.",
    ),
    "size": (
        "OPS in networks of different sizes, all with the same bound on receivers. More nodes "
        "average more gradients in every round.",
    ),
    "density": (
        "OPS with different bounds on the number of receivers. Every node draws how many receivers "
        "it has, uniformly from 1 to the bound.",
    ),
    "local": ("What is gained by sending models at all: OPS against everybody learning alone.",),
    "trust": (
        "Who trusts whom on two real sites. Unlike the paper's random graphs these are skewed: a "
        "few nodes receive much, many receive almost nothing. A node's mass settles at its share of "
        "what flows through the network, and published OPS moves a node's model by learning rate / "
        "mass. Where the mass is 7e-5 that is fourteen thousand times the step that was meant, so "
        "the learning rate must be tiny for everybody, and nobody learns.",
        "Two remedies need only what a node knows about itself. The capped step uses learning rate "
        "x min(1, mass): no model moves by more than the learning rate. The mass step uses learning "
        "rate x mass: every model moves by exactly the learning rate. Both let the whole network "
        "learn at a useful rate; the price is a bias, in the last table.",
    ),
}


def introduction(num_seeds: int) -> list[str]:
    """What the page is, for somebody who has read the abstract."""
    return [
        "In a social network trust often goes one way: A is willing to send its model to B, and B "
        "sends nothing back. The paper “Central Server Free Federated Learning over Single-sided "
        "Trust Social Networks” (He, Tan, Tang, Qiu, Liu) proposes Online Push-Sum (OPS): every node "
        "learns from its own stream, pushes shares of its model along its one-way edges, and a "
        "scalar mass corrects the bias of the directed graph.",
        "This page runs the paper's evaluation again from its text, panel by panel, "
        f"with up to {num_seeds} seeds each (graph, dealing and order all vary), and judges every claim "
        "that these panels can judge. Curves show the running average loss: the mean loss of all predictions so far, "
        "each made before its label was seen. Bands are one standard deviation over seeds.",
        *_susy_note(),
    ]


def claim_part(claim: Claim) -> ClaimPart:
    """A claim as text."""
    return ClaimPart(
        text=claim.text,
        where=claim.where,
        verdict=claim.verdict,
        note=claim.note,
        findings=[
            FindingPart(
                setting=finding.setting,
                effect=f"{finding.effect:.3g}",
                interval=f"{finding.low:.3g} to {finding.high:.3g}",
                seeds=f"{finding.num_for} : {finding.num_against}",
                verdict=finding.verdict,
                reading=finding.reading,
            )
            for finding in claim.findings
        ],
    )


def figure_section(figure: Figure, evidence: Evidence) -> Section:
    """A figure with its panels and the numbers behind them."""
    return Section(
        title=figure.title,
        text=_EXPLAIN[figure.name],
        panels=[_panel_part(panel, evidence) for panel in figure.panels],
        tables=[_panel_table(panel, evidence) for panel in figure.panels],
    )


def closing_sections(figures: Sequence[Figure], evidence: Evidence) -> list[Section]:
    """The price of the step rules, the learning-rate grids and the graphs."""
    sections = []
    if any(figure.name == "trust" for figure in figures):
        sections.append(_bias_section())
    grids = [_grid(panel, evidence) for figure in figures for panel in figure.panels]
    sections.append(
        Section(
            "Learning rates",
            ["Average loss at every rate of the grid, mean over seeds. A star marks the best."],
            tables=grids,
        )
    )
    sections.append(_graph_section(figures, evidence))
    sections.append(_theory_section(evidence))
    return sections


def _susy_note() -> list[str]:
    rows = len(data_table("susy"))
    if rows >= SUSY_ROWS:
        return []
    return [
        f"SUSY has {SUSY_ROWS:,} rows; here a random sample of {rows:,} real rows is drawn from with "
        "replacement, and every SUSY caption says so."
    ]


def _rate(evidence: Evidence, line: Line) -> float:
    """Tuned for the data set; on a real network, for that network."""
    if line.world.network is not None:
        return evidence.best_rate(line.world, line.method)
    return evidence.tuned_rate(line.world.data, line.method)


def _panel_part(panel: Panel, evidence: Evidence) -> PanelPart:
    bands = []
    for line in panel.lines:
        rounds, curves = evidence.curves(line.world, line.method, _rate(evidence, line))
        bands.append(Band(line.label, rounds, curves))
    return PanelPart(panel.name, panel.title, _caption(panel, evidence), bands)


def _caption(panel: Panel, evidence: Evidence) -> str:
    """The panel's own caption, and how it differs from the paper."""
    world = panel.lines[0].world
    cells = [evidence.cells_of(line.world, line.method) for line in panel.lines]
    parts = [panel.caption, f"{len(cells[0])} seeds."]
    rows = len(data_table(world.data))
    if world.data == "susy" and rows < SUSY_ROWS:
        parts.append(
            f"{world.rounds:,} iterations, drawn from {rows:,} real SUSY rows; the paper's 128 "
            "nodes see all 5,000,000 rows in 39,062."
        )
    if world.stochastic < 1:
        share = np.mean([cell.adversarial_share for line in cells for cell in line])
        parts.append(
            f"Of the {1 - world.stochastic:.0%} to be dealt by cluster, clusters larger than a node's "
            f"quota left {share:.0%}; the rest went back to the random pool."
        )
    return " ".join(parts)


def _title(label: str) -> str:
    return LABELS[label].title if label in LABELS else label


def _with_interval(losses: np.ndarray) -> str:
    mean, low, high = interval(losses)
    if not np.isfinite(mean):
        return "diverged"
    return f"{mean:.4f} ± {(high - low) / 2:.4f}" if np.isfinite(low) else f"{mean:.4f}"


def _panel_table(panel: Panel, evidence: Evidence) -> Table:
    rows = []
    reference = _rate(evidence, Line("ops", "ops", panel.lines[0].world))
    for line in panel.lines:
        rate, best = _rate(evidence, line), evidence.best_rate(line.world, line.method)
        edge = "†" if evidence.at_edge(best) else ""
        rows.append(
            [
                _title(line.label),
                _with_interval(evidence.losses(line.world, line.method, rate)),
                f"{rate:g}",
                _with_interval(evidence.losses(line.world, line.method, reference)),
                _with_interval(evidence.losses(line.world, line.method, best)),
                f"{best:g}{edge}",
                f"{np.median(evidence.last_disagreement(line.world, line.method, rate)):.2g}",
            ]
        )
    return Table(
        (
            panel.title,
            "average loss",
            "at rate",
            f"at OPS's rate {reference:g}",
            "at its best here",
            "rate",
            "disagreement",
        ),
        rows,
        "Mean over seeds ± half the 95 % interval; disagreement after the last round, median over "
        "seeds. † the edge of the grid: a better rate may lie beyond.",
    )


def _grid(panel: Panel, evidence: Evidence) -> Table:
    rows = []
    for line in panel.lines:
        losses = evidence.by_rate(line.world, line.method)
        best = int(np.argmin(losses))
        cells = [
            (
                "diverged"
                if not np.isfinite(loss)
                else f"{loss:.4f}"
                if loss < 100
                else f"{loss:.1e}"
            )
            + ("*" if i == best else "")
            for i, loss in enumerate(losses)
        ]
        rows.append([_title(line.label), *cells])
    return Table((panel.name, *(f"{rate:g}" for rate in evidence.rates)), rows)


def _graph_section(figures: Sequence[Figure], evidence: Evidence) -> Section:
    seen: dict[tuple[object, ...], World] = {}
    for figure in figures:
        for panel in figure.panels:
            for line in panel.lines:
                world = line.world
                seen.setdefault((world.network, world.num_nodes, world.max_receivers), world)
    rows = []
    for world in seen.values():
        graph = world.graph(evidence.seeds[0])
        masses = stationary_masses(graph.mixing())
        rows.append(
            [
                world.network or "random",
                f"{world.num_nodes:,}",
                "" if world.max_receivers is None else f"{world.max_receivers}",
                f"{graph.num_edges:,}",
                f"{graph.reciprocity:.1%}",
                f"{masses.min():.2g}",
                f"{masses.max():.3g}",
            ]
        )
    heading = ("graph", "nodes", "bound", "edges", "mutual", "smallest mass", "largest mass")
    caption = f"Random graphs: the one of seed {evidence.seeds[0]}. Masses are stationary; their mean is 1."
    return Section("The graphs", tables=[Table(heading, rows, caption)])


def _theory_section(evidence: Evidence) -> Section:
    rows = []
    for data in ("susy", "occupancy"):
        world = reference_world(data, 1.0, evidence.scale)
        constants = graph_constants(world.graph(evidence.seeds[0]).mixing())
        rows.append(
            [
                f"{world.num_nodes} nodes, at most {world.max_receivers} receivers",
                f"{constants.ergodicity.factor:.3g}",
                f"{constants.ergodicity.rate:.3f}",
                f"{constants.mass_share:.2g}",
                f"{constants.gradient_constant:.3g}",
                f"{constants.noise_constant:.3g}",
                f"10^{constants.worst_case_digits:.0f}",
            ]
        )
    heading = ("graph", "C", "q", "delta_min", "C_1", "C_2", "C_1 as bounded in the paper")
    return Section(
        "The theorems",
        [
            "The paper proves that regret grows no faster than sqrt(T) and that disagreement falls "
            "like 1 / T, with constants it bounds by powers of n^n. For a given graph the constants can be "
            "computed instead; `oneway theory` does so and prints the bound and the step sizes.",
            "Checking the algebra turned up errata: the printed step size lacks a factor sqrt(T) in its "
            "noise term, R is used both as a squared distance and as a distance, and delta_min must be "
            "divided by n. The rates survive once these are repaired; docs/errata.md has the algebra, and "
            "the tests measure both rates.",
        ],
        tables=[Table(heading, rows, f"Graphs of seed {evidence.seeds[0]}.")],
    )


def _over_seeds(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{min(known):.3f} to {max(known):.3f}" if len(known) == len(values) else "diverged"


def _bias_section() -> Section:
    rows = [
        [
            f"{network}: {_title(method)}",
            _over_seeds([bias.predicted for bias in found]),
            _over_seeds([bias.measured for bias in found]),
            _over_seeds([bias.average_loss for bias in found]),
        ]
        for (network, method), found in sorted(all_biases().items(), reverse=True)
    ]
    heading = (
        "least squares, every node its own optimum",
        "bias, predicted",
        "bias, measured",
        "average loss",
    )
    return Section(
        "What the other steps cost",
        [
            "If nodes differ, a step that depends on mass makes nodes count by their mass. The common "
            "model then settles where the weighted gradients cancel, not at the best model for all. "
            "Here every node has its own optimum, and popular nodes want something else than the "
            "others, which is the worst case. Bias is the distance of the common model from the best "
            "one, in units of how far the nodes' own optima are from it.",
            "So: where nodes see the same kind of data, the mass step learns fastest; where they "
            "differ, the capped step is the compromise; the published step is unbiased, and on a "
            "skewed network unusable.",
        ],
        tables=[
            Table(
                heading,
                rows,
                "Learning rate 0.01, 2,000 rounds, 5 white features; three seeds, smallest to largest.",
            )
        ],
    )
