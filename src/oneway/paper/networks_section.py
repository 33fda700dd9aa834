"""The part of the page about neural networks: a chart of accuracies, and a table per setting."""

from __future__ import annotations

from oneway.display.charts import Points, as_png, as_svg, interval_chart
from oneway.paper.methods import label
from oneway.paper.networks import (
    ALONE,
    MAX_RECEIVERS,
    METHODS,
    NAME,
    SERVER,
    Learned,
    Measured,
)
from oneway.paper.page import DrawnPanel, Section, Table, percent, with_interval
from oneway.paper.verdict import interval

_TEXT = (
    "Online Push-Sum with the gradients of a neural network is Stochastic Gradient Push (SGP; "
    "Assran, Loizou, Ballas and Rabbat, ICML 2019). They train deep networks on large sets dealt "
    "alike to all nodes, with large batches, about as well as exact averaging does. Here the sets "
    "are small, every image is a step, and nodes are alike or see few digits each.",
    "All nodes start from the same random network. After the last round every node's model "
    "answers images that nobody learned from: those of one half choose the learning rate, those "
    "of the other give the accuracy. Average loss and online accuracy are of the images "
    "that a node sees, before it learns from them: a node that sees two digits needs to tell only "
    "those apart, so these two numbers flatter learning alone there.",
)


def networks_section(learned: Learned) -> Section:
    """A chart and tables, or why there are none."""
    return Section(
        "Beyond the paper: neural networks",
        [*_TEXT, *learned.absent],
        [_drawn(learned)] if learned.settings else [],
        [_table(it) for it in learned.settings],
    )


def _table(it: Measured) -> Table:
    rows = []
    for method in METHODS:
        place = it.best(method)
        edge = "†" if place in (0, len(it.setting.rates) - 1) else ""
        rows.append(
            [
                label(method).title,
                f"{it.setting.rates[place]:g}{edge}",
                with_interval(it.values(method, "losses")),
                *(percent(it.values(method, name), 1) for name in ("online", "accuracies")),
                percent(it.values(method, "worst"), 1),
                "" if method in (SERVER, ALONE) else percent(it.closed(method)),
                "" if method == SERVER else percent(it.behind(method), 1),
            ]
        )
    setting, seeds = it.setting, len(it.trials[SERVER])
    return Table(
        (
            setting.title,
            "rate",
            "average loss",
            "online accuracy",
            "held-out accuracy",
            "worst node",
            "gap closed",
            "behind the server",
        ),
        rows,
        f"{setting.num_nodes} nodes with 1 to {MAX_RECEIVERS} receivers, {setting.rounds} images "
        f"each, {setting.held // 2} held-out images, {seeds} seeds: mean ± half the 95 % interval. "
        "The gap is that between alone and the server in held-out accuracy; how far a method is "
        "behind the server is paired by seed. † the edge of the grid: a better rate may lie "
        "beyond.",
    )


def _drawn(learned: Learned) -> DrawnPanel:
    points, numbers = [], ["method,setting,mean,low,high,seeds"]
    for method in METHODS:
        look, intervals = label(method), []
        for it in learned.settings:
            accuracies = it.values(method, "accuracies")
            intervals.append(interval(accuracies))
            values = ",".join(f"{value:.8g}" for value in intervals[-1])
            numbers.append(f'{method},"{it.setting.title}",{values},{len(accuracies)}')
        points.append(Points(look.title, intervals, look.color, look.dashes))
    ticks = [it.setting.title.replace(", ", "\n") for it in learned.settings]
    chart = interval_chart(
        points, ticks, "Neural networks", (5.2, 3.7), ylabel="accuracy on held-out images"
    )
    caption = "Accuracy of the nodes' last models on held-out images, with 95 % intervals."
    text = "\n".join(numbers) + "\n"
    return DrawnPanel(f"beyond-{NAME}", caption, as_svg(chart), as_png(chart), text)
