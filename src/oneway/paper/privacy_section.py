"""The part of the page about privacy: charts of loss against epsilon, and their numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from oneway.display.charts import Points, as_png, as_svg, interval_chart
from oneway.methods.batches import DEFAULT_SAMPLES
from oneway.paper.methods import label
from oneway.paper.page import DrawnPanel, Section, Table, with_interval
from oneway.paper.privacy import ALONE, EPSILONS, METHODS, NAME, Tradeoff, name_of
from oneway.paper.verdict import interval
from oneway.paper.world import data_table
from oneway.task.privacy import Privacy

TEXT = (
    "What is sent is made of batches of {samples} samples, each sample's gradient clipped, with "
    "Gaussian noise on the sum that is taken back over {band} batches; delta is {delta:g}. Epsilon "
    "is per sample and does not grow with the stream. Epsilon none has the same batches and "
    "no noise. Learning alone sends nothing and so needs neither: its line is flat.",
    "Every method has the best learning rate of the grid for that epsilon and data, chosen on the "
    "mean over seeds. Choosing it looks at losses, and this look is not covered by the guarantee: "
    "whoever tunes on private data spends more than epsilon. For the server (COL) "
    "everybody noises what they send to it, as in the other methods.",
)


def privacy_section(tradeoffs: Sequence[Tradeoff]) -> Section:
    """Charts and tables of what privacy costs."""
    promised = Privacy()
    text = [
        part.format(samples=DEFAULT_SAMPLES, band=promised.band, delta=promised.delta)
        for part in TEXT
    ]
    return Section(
        "Privacy: loss against epsilon (not in the paper)",
        text,
        [_drawn(tradeoff) for tradeoff in tradeoffs],
        [_table(tradeoff) for tradeoff in tradeoffs],
    )


def _drawn(tradeoff: Tradeoff) -> DrawnPanel:
    points = []
    for method in METHODS:
        look = label(method)
        intervals = [interval(tradeoff.losses(method, epsilon)) for epsilon in EPSILONS]
        points.append(Points(look.title, intervals, look.color, look.dashes))
    ticks = [name_of(epsilon) for epsilon in EPSILONS]
    chart = interval_chart(points, ticks, tradeoff.title, (5.2, 3.7), xlabel="epsilon")
    short = tradeoff.title.lower().replace(",", "").replace(" ", "-")
    return DrawnPanel(
        f"{NAME}-{short}", _caption(tradeoff), as_svg(chart), as_png(chart), _as_csv(tradeoff)
    )


def _caption(tradeoff: Tradeoff) -> str:
    world = tradeoff.world
    seeds = len(tradeoff.losses(ALONE, EPSILONS[0]))
    parts = [
        f"{world.num_nodes} nodes, at most {world.max_receivers} receivers each, {seeds} seeds; "
        "bars are 95 % intervals of the mean."
    ]
    rows = f"{len(data_table(world.data)):,}"
    if tradeoff.resampled:
        parts.append(
            f"The stream is drawn with replacement from {rows} rows; epsilon is that of one draw: "
            "a row that is drawn several times is told more about."
        )
    else:
        parts.append(f"Of {rows} rows none is seen twice.")
    return " ".join(parts)


def _table(tradeoff: Tradeoff) -> Table:
    rows = []
    for method in METHODS:
        cells = []
        for epsilon in EPSILONS:
            edge = "†" if tradeoff.at_edge(method, epsilon) else ""
            rate = f"{tradeoff.rate(method, epsilon):g}{edge}"
            cells.append(f"{with_interval(tradeoff.losses(method, epsilon))} at {rate}")
        rows.append([label(method).title, *cells])
    return Table(
        (f"{tradeoff.title}, epsilon", *(name_of(epsilon) for epsilon in EPSILONS)),
        rows,
        "Average loss, mean over seeds ± half the 95 % interval, at the best rate. † the edge of "
        "the grid: a better rate may lie beyond.",
    )


def _as_csv(tradeoff: Tradeoff) -> str:
    """The numbers of a panel: one line per method and epsilon."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["method", "epsilon", "learning_rate", "mean", "low", "high", "seeds"])
    for method in METHODS:
        for epsilon in EPSILONS:
            losses = tradeoff.losses(method, epsilon)
            numbers = (f"{value:.8g}" for value in interval(losses))
            rate = f"{tradeoff.rate(method, epsilon):g}"
            writer.writerow([method, name_of(epsilon), rate, *numbers, len(losses)])
    return text.getvalue()
