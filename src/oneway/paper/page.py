"""The reproduction's page: its words, its tables and its panels, as one HTML file."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from oneway.datasets import info
from oneway.display.charts import Curve, as_png, as_svg, loss_chart
from oneway.paper.evidence import Evidence
from oneway.paper.figures import (
    LESS_STOCHASTIC,
    TITLES,
    Figure,
    Line,
    Panel,
    dealt_worlds,
    reference_world,
)
from oneway.paper.methods import label
from oneway.paper.verdict import Claim, Finding, interval
from oneway.paper.world import World, data_table
from oneway.records import Vector
from oneway.report.pages import loss_text, render
from oneway.theory import graph_constants
from oneway.topology import stationary_masses

SUSY_ROWS = 5_000_000


@dataclass(frozen=True)
class Table:
    """A table with a heading row; cells are text."""

    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


@dataclass(frozen=True)
class DrawnPanel:
    """A panel as the page and the folder beside it show it."""

    name: str
    caption: str
    svg: str
    png: bytes
    csv: str


@dataclass(frozen=True)
class Section:
    """A part of the page: text, panels, tables, in this order."""

    title: str
    text: Sequence[str] = ()
    panels: Sequence[DrawnPanel] = ()
    tables: Sequence[Table] = ()


def page(
    num_seeds: int, claims: Sequence[Claim], sections: Sequence[Section], facts: Mapping[str, str]
) -> str:
    """The whole page as text."""
    return render(
        __package__,
        "reproduction.html",
        title="Learning over single-sided trust: the paper's evaluation, run again",
        introduction=_introduction(num_seeds),
        claims=claims,
        sections=sections,
        facts=facts,
    )


def claims_csv(claims: Sequence[Claim]) -> str:
    """Every setting of every claim with its numbers, both p-values and the verdict."""
    text = io.StringIO()
    names = ["claim", *(field.name for field in fields(Finding))]
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for claim in claims:
        for finding in claim.findings:
            writer.writerow({"claim": claim.text} | vars(finding))
    return text.getvalue()


def all_sections(figures: Mapping[Figure, Sequence[Panel]], evidence: Evidence) -> list[Section]:
    """The figures, then the learning rates, graphs and theorems."""
    panels = [panel for shown in figures.values() for panel in shown]
    sections = [
        Section(
            figure.title,
            figure.text,
            [_drawn(panel, evidence) for panel in shown],
            [_panel_table(panel, evidence) for panel in shown]
            + [_stochastic_table(d, evidence) for d in TITLES if figure.name == "comparison"],
        )
        for figure, shown in figures.items()
    ]
    rates = Section(
        "Learning rates",
        ["Average loss at every rate of the grid, mean over seeds. A star marks the best."],
        tables=[_grid(panel, evidence) for panel in panels],
    )
    return [*sections, rates, _graph_section(panels, evidence), _theory_section(evidence)]


def _introduction(num_seeds: int) -> list[str]:
    """What the page is, for readers of the paper's abstract."""
    paragraphs = [
        "In a social network trust often goes one way: A is willing to send its model to B, and B "
        "sends nothing back. The paper “Central Server Free Federated Learning over Single-sided "
        "Trust Social Networks” (He, Tan, Tang, Qiu, Liu) proposes Online Push-Sum (OPS): every "
        "node learns from its own stream, pushes shares of its model along its one-way edges, and "
        "a scalar mass corrects the bias of the directed graph.",
        "This page runs the paper's evaluation again from its text, panel by panel, "
        f"with up to {num_seeds} seeds each (graph, dealing and order all vary), and judges every "
        "claim that these panels can judge. Curves show the running average loss: the mean loss "
        "of all predictions so far, each made before its label was seen. Bands are one standard "
        "deviation over seeds.",
    ]
    rows = len(data_table("susy")) if info("susy").present else SUSY_ROWS
    if rows < SUSY_ROWS:
        paragraphs.append(
            f"SUSY has {SUSY_ROWS:,} rows; here a random sample of {rows:,} real rows is drawn "
            "from with replacement, and every SUSY caption says so."
        )
    return paragraphs


def _title(line: Line) -> str:
    """A curve that stands for its method is called like it."""
    return label(line.method).title if line.label == line.method else line.label


def _drawn(panel: Panel, evidence: Evidence) -> DrawnPanel:
    curves = [_curve(line, evidence) for line in panel.lines]
    chart = loss_chart(curves, panel.title, (5.2, 3.7), xlabel="iteration")
    numbers = curves_csv(
        {line.label: curve for line, curve in zip(panel.lines, curves, strict=True)}
    )
    return DrawnPanel(panel.name, _caption(panel, evidence), as_svg(chart), as_png(chart), numbers)


def _curve(line: Line, evidence: Evidence) -> Curve:
    rate = evidence.tuned_rate(line.world.data, line.method)
    cells = evidence.cells_of(line.world, line.method)
    losses = np.array([cell.curves[cell.at(rate)] for cell in cells])
    if line.label != line.method:
        return Curve(line.label, cells[0].rounds, losses)
    look = label(line.method)
    return Curve(look.title, cells[0].rounds, losses, look.color, look.dashes)


def curves_csv(curves: Mapping[str, Curve]) -> str:
    """The numbers of a panel: one line per curve and point."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["curve", "iteration", "mean", "standard_deviation", "seeds"])
    for name, curve in curves.items():
        for point, mean, deviation in zip(curve.rounds, curve.mean, curve.deviation, strict=True):
            writer.writerow([name, point, f"{mean:.8g}", f"{deviation:.8g}", len(curve.losses)])
    return text.getvalue()


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
            f"Of the {1 - world.stochastic:.0%} to be dealt by cluster, clusters larger than a "
            f"node's quota left {share:.0%}; the rest went back to the random pool."
        )
    return " ".join(parts)


def with_interval(losses: Vector) -> str:
    """Mean over seeds ± half its 95 % interval."""
    mean, low, high = interval(losses)
    if not np.isfinite(mean):
        return "diverged"
    return f"{mean:.4f} ± {(high - low) / 2:.4f}" if np.isfinite(low) else f"{mean:.4f}"


def percent(shares: Vector, digits: int = 0) -> str:
    """Mean over seeds ± half its 95 % interval, in per cent."""
    mean, low, high = interval(shares)
    half = f" ± {(high - low) / 2:.{digits}%}" if np.isfinite(low) else ""
    return f"{mean:.{digits}%}{half}"


def _panel_table(panel: Panel, evidence: Evidence) -> Table:
    """Every curve at its own rate, at the rate of OPS, and at its best in this panel."""
    rows = []
    reference = evidence.tuned_rate(panel.lines[0].world.data, "ops")
    for line in panel.lines:
        rate = evidence.tuned_rate(line.world.data, line.method)
        best = evidence.best_rate(line.world, line.method)
        tuned, same, own = (
            with_interval(evidence.losses(line.world, line.method, chosen))
            for chosen in (rate, reference, best)
        )
        cells = evidence.cells_of(line.world, line.method)
        disagreement = np.median([cell.last_disagreement[cell.at(rate)] for cell in cells])
        edge = "†" if evidence.at_edge(best) else ""
        rows.append(
            [_title(line), tuned, f"{rate:g}", same, own, f"{best:g}{edge}", f"{disagreement:.2g}"]
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


def _stochastic_table(data: str, evidence: Evidence) -> Table:
    """How much more OPS loses with less stochastic data, at every learning rate."""
    worlds = {
        f"{part:.0%}{choice}": world
        for part in LESS_STOCHASTIC
        for choice, world in dealt_worlds(data, part, evidence.scale).items()
    }
    tuned = evidence.tuned_rate(data, "ops")
    rows = [
        [
            f"{rate:g}" + "*" * (rate == tuned),
            *(with_interval(evidence.excess(world, "ops", rate)) for world in worlds.values()),
        ]
        for rate in evidence.rates
    ]
    return Table(
        (f"{TITLES[data]}, OPS at rate", *worlds),
        rows,
        "Loss with less stochastic data minus loss with all of it stochastic, mean over seeds ± "
        "half the 95 % interval; a star marks the rate tuned for OPS. The paper does not give its "
        "rates: that less stochastic data costs more may come from one past the star. This is a "
        "candidate explanation, not more.",
    )


def _grid(panel: Panel, evidence: Evidence) -> Table:
    """Every curve at every learning rate."""
    rows = []
    for line in panel.lines:
        losses = evidence.by_rate(line.world, line.method)
        cells = [loss_text(loss) for loss in losses]
        cells[int(np.argmin(losses))] += "*"
        rows.append([_title(line), *cells])
    return Table((panel.name, *(f"{rate:g}" for rate in evidence.rates)), rows)


def _graph_section(panels: Sequence[Panel], evidence: Evidence) -> Section:
    worlds = [line.world for panel in panels for line in panel.lines]
    return Section("The graphs", tables=[graph_table(worlds, evidence.seeds[0])])


def graph_table(worlds: Sequence[World], seed: int) -> Table:
    """What the graphs of worlds look like, each once."""
    graphs: dict[tuple[object, ...], World] = {}
    for world in worlds:
        graphs.setdefault((world.network, world.num_nodes, world.max_receivers), world)
    rows = []
    for world in graphs.values():
        graph = world.graph(seed)
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
    caption = f"Random graphs: the one of seed {seed}. Masses are stationary; their mean is 1."
    return Table(heading, rows, caption)


def _theory_section(evidence: Evidence) -> Section:
    rows = []
    for data in TITLES:
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
    text = [
        "The paper proves that regret grows no faster than sqrt(T) and that disagreement falls "
        "like 1 / T, with constants it bounds by powers of n^n. For a given graph the constants "
        "can be computed instead; `oneway theory` does so and prints the bound and the step sizes.",
        "Checking the algebra turned up errata: the printed step size lacks a factor sqrt(T) in "
        "its noise term, R is used both as a squared distance and as a distance, and delta_min "
        "must be divided by n. The rates survive once these are repaired; docs/errata.md has the "
        "algebra, and the tests measure both rates.",
    ]
    caption = f"Graphs of seed {evidence.seeds[0]}."
    return Section("The theorems", text, tables=[Table(heading, rows, caption)])
