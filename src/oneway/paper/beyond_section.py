"""The part of the page about methods beyond the paper: charts, tables, and the tables as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from oneway.display.charts import Curve, Points, as_png, as_svg, interval_chart, loss_chart
from oneway.methods.batches import DEFAULT_SAMPLES
from oneway.paper.beyond import (
    ALONE,
    CONTESTED,
    EPSILONS,
    NAME,
    PUBLISHED_OPS,
    SERVER,
    Measured,
    Results,
)
from oneway.paper.bias import DISTANCE, Bias
from oneway.paper.bias import RATES as BIAS_RATES
from oneway.paper.methods import label, make
from oneway.paper.page import (
    DrawnPanel,
    Section,
    Table,
    curves_csv,
    graph_table,
    percent,
    with_interval,
)
from oneway.paper.privacy import name_of
from oneway.paper.verdict import interval
from oneway.paper.world import ACTING, DELAYS
from oneway.records import Vector

DRAWN = (SERVER, PUBLISHED_OPS, "ops-mass", ALONE, "pull-plain", "tracking-plain", "relay-plain")
"""The curves of a chart; the tables have all."""
HUGE = 100.0
"""No model that learns has an average loss above this."""
_SIZE = (5.2, 3.7)
_LOCKSTEP = (
    "Every sample is a step, and everybody pushes in every round, as in the paper. The first two "
    "columns are the paper's random graphs, the others who trusts whom on real sites. Those are "
    "skewed: a few nodes receive much, many receive almost nothing. A node's mass settles at its "
    "share of what flows through the network, and published OPS moves a node's model by learning "
    "rate / mass. Where the mass is 7e-5 that is fourteen thousand times the step that was meant, "
    "so the learning rate must be tiny for everybody, and nobody learns.",
    "The capped step uses learning rate x min(1, mass): no model moves by more than the learning "
    "rate. The mass step uses learning rate x mass: every model moves by exactly the learning "
    "rate. The curvature step is the published one unless it would overshoot on this sample. Relay "
    "lets gradients travel on until nodes with mass have taken them in; Tracking averages models "
    "and moves them by a tracked momentum; Pull averages models without mass. Vectors is how many "
    "a push carries, times the exchanges a sample: what a method costs.",
)
_PRIVATE = (
    "As peers learn by default: batches of {samples} samples, and noise for epsilon (none has the "
    "same batches). Learning alone sends nothing and so needs neither. Methods take the plain step "
    "where no step rule is named; the curvature step is what a new task has by default.",
)
_ASYNCHRONOUS = (
    "As peers are: there are no rounds that everybody waits for. In a round {acting:.0%} of the "
    "nodes have a sample and push, at random, and a push takes {least} to {most} rounds. The "
    "server's row has no delays.",
)
_DIFFERING = (
    "If nodes differ, a step that depends on mass makes nodes count by their mass. The common "
    "model then settles where the weighted gradients cancel, not at the best model for all. Here "
    "every node has its own optimum, and popular nodes want something else than the others, which "
    "is the worst case. The distance of the common model from the best one is in units of how far "
    "the nodes' own optima are from it. Nodes start {distance:g} of these units away, so a method "
    "that does not arrive is that far off. Nodes that learn alone have a common model without "
    "bias, and each is one unit off: so both are shown.",
)


def beyond_sections(results: Results) -> list[Section]:
    """Charts and tables: lockstep, batches and noise, asynchronous, nodes that differ."""
    lockstep = list(_LOCKSTEP)
    if results.absent:
        lockstep.append(
            f"{', '.join(results.absent)}: the files are not on this machine, so these columns "
            "are left out; oneway data fetch downloads them."
        )
    worlds = [it.setting.world for it in results.lockstep]
    least, most = DELAYS
    return [
        Section(
            "Beyond the paper: every sample a step, in lockstep",
            lockstep,
            [_curves(it) for it in results.lockstep],
            [_losses(results.lockstep), _closed(results.lockstep), graph_table(worlds, 0)],
        ),
        Section(
            "Beyond the paper: batches and noise, as peers learn",
            [part.format(samples=DEFAULT_SAMPLES) for part in _PRIVATE],
            _by_epsilon(results.private),
            [
                _losses(results.private[first : first + len(EPSILONS)])
                for first in range(0, len(results.private), len(EPSILONS))
            ],
        ),
        Section(
            "Beyond the paper: an asynchronous network",
            [part.format(acting=ACTING, least=least, most=most) for part in _ASYNCHRONOUS],
            [_curves(it) for it in results.asynchronous],
            [_losses(results.asynchronous)],
        ),
        Section(
            "Beyond the paper: nodes that differ",
            [part.format(distance=DISTANCE) for part in _DIFFERING],
            tables=[
                _bias_table(results, "the common model", lambda bias: bias.measured),
                _bias_table(results, "a typical node's model", lambda bias: bias.typical),
            ],
        ),
    ]


def markdown(sections: Sequence[Section]) -> str:
    """Titles and tables of sections as Markdown."""
    lines = []
    for section in sections:
        lines += [f"### {section.title}", ""]
        for table in section.tables:
            rows = [table.heading, ["---"] * len(table.heading), *table.rows]
            lines += [f"| {' | '.join(row)} |" for row in rows]
            lines += ["", table.caption, ""]
    return "\n".join(lines)


def _losses(columns: Sequence[Measured]) -> Table:
    """Average loss of every method in some settings."""
    rows = []
    for method in columns[0].setting.methods:
        cells = []
        for it in columns:
            edge = "†" if it.at_edge(method) else ""
            rate = f"{it.rates[it.best(method)]:g}{edge}"
            cells.append(f"{_loss(it.losses(method))} at {rate}")
        rows.append([label(method).title, _vectors(method), *cells])
    return Table(
        ("average loss", "vectors", *(f"{it.title} ({it.num_seeds} seeds)" for it in columns)),
        rows,
        "Mean over seeds ± half the 95 % interval, at the best learning rate. † the edge of the "
        "grid: a better rate may lie beyond.",
    )


def _loss(losses: Vector) -> str:
    """Mean and interval; of a loss that exploded without leaving the finite range its size."""
    mean = float(losses.mean())
    return f"{mean:.0e}" if HUGE < mean < np.inf else with_interval(losses)


def _vectors(method: str) -> str:
    """How many vectors go to a receiver for a sample."""
    made = make(method, 1.0)
    return str(made.mixes * sum(segment.is_vector for segment in made.payload))


def _closed(columns: Sequence[Measured]) -> Table:
    rows = [
        [label(method).title, *(percent(it.closed(method)) for it in columns)]
        for method in columns[0].setting.methods
        if method not in (SERVER, PUBLISHED_OPS)
    ]
    return Table(
        ("share of the gap that is closed", *(it.title for it in columns)),
        rows,
        "The gap is the loss of published OPS minus that of the server. Mean over seeds ± half the "
        "95 % interval; negative is worse than published OPS, above 100 % better than the server.",
    )


def _bias_table(results: Results, what: str, distance: Callable[[Bias], float]) -> Table:
    rows = []
    for method in CONTESTED:
        cells = []
        for found in results.differing.values():
            values = np.array([distance(bias) for bias in found[method]])
            rates = sorted({bias.rate for bias in found[method]})
            cells.append(f"{_distance(values)} at {' to '.join(f'{r:g}' for r in rates)}")
        rows.append([label(method).title, *cells])
    seeds = len(next(iter(results.differing.values()))[CONTESTED[0]])
    return Table(
        (f"distance of {what} from the best", *results.differing),
        rows,
        f"Least squares, {results.rounds:,} rounds, each method at the rate (of "
        f"{', '.join(f'{rate:g}' for rate in BIAS_RATES)}) that brings its nodes nearest to the "
        f"best common model; mean over {seeds} seeds ± half the 95 % interval.",
    )


def _distance(values: Vector) -> str:
    mean, low, high = interval(values)
    return f"{mean:.3f} ± {(high - low) / 2:.3f}" if np.isfinite(low) else f"{mean:.3f}"


def _curves(it: Measured) -> DrawnPanel:
    curves = {}
    for method in DRAWN:
        cells, look = it.cells[method], label(method)
        losses = np.array([cell.curves[it.best(method)] for cell in cells])
        curves[method] = Curve(look.title, cells[0].rounds, losses, look.color, look.dashes)
    chart = loss_chart(list(curves.values()), it.title, _SIZE, xlabel="iteration")
    return DrawnPanel(
        f"{NAME}-{_short(it.title)}",
        _caption(it),
        as_svg(chart),
        as_png(chart),
        curves_csv(curves),
    )


def _by_epsilon(columns: Sequence[Measured]) -> list[DrawnPanel]:
    """One chart per world: loss against epsilon."""
    panels = []
    for first in range(0, len(columns), len(EPSILONS)):
        some = columns[first : first + len(EPSILONS)]
        points = [
            Points(
                label(method).title,
                [interval(it.losses(method)) for it in some],
                label(method).color,
                label(method).dashes,
            )
            for method in DRAWN
        ]
        place = some[0].title.rpartition(",")[0]
        chart = interval_chart(points, list(map(name_of, EPSILONS)), place, _SIZE, xlabel="epsilon")
        numbers = ["method,epsilon,mean,low,high,seeds"]
        for method in DRAWN:
            for it, epsilon in zip(some, EPSILONS, strict=True):
                values = ",".join(f"{value:.8g}" for value in interval(it.losses(method)))
                numbers.append(f"{method},{name_of(epsilon)},{values},{it.num_seeds}")
        name = f"{NAME}-private-{_short(place)}"
        caption, text = _caption(some[0]), "\n".join(numbers) + "\n"
        panels.append(DrawnPanel(name, caption, as_svg(chart), as_png(chart), text))
    return panels


def _caption(it: Measured) -> str:
    world = it.setting.world
    receivers = "" if world.network else f", at most {world.max_receivers} receivers each"
    return f"{world.num_nodes:,} nodes{receivers}, {it.num_seeds} seeds, {world.data} rows."


def _short(title: str) -> str:
    return title.lower().replace(",", "").replace(" ", "-")
