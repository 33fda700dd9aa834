"""The part of the page about asynchronous networks: a table per question, and what follows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from oneway.display.charts import Points, as_png, as_svg, interval_chart
from oneway.paper.async_claims import NO_BETTER
from oneway.paper.async_network import (
    BATCHES,
    BUSY,
    CALM,
    CLIPS,
    CONDITIONS,
    DEATHS,
    MAX_RECEIVERS,
    METHODS,
    NAME,
    NEAR_END,
    SLOW_LINKS,
    STEADY,
    WINDOWS,
    Answers,
    Setting,
    batched,
    lied_to,
    presuming,
    sized,
    windowed,
)
from oneway.paper.methods import label
from oneway.paper.page import DrawnPanel, Section, Table, percent, with_interval
from oneway.paper.verdict import Claim, interval
from oneway.peer.push_pace import PASSES

_TEXT = (
    "A network of peers with clocks of their own, by events in virtual time (the fast level of "
    "simulate_async): delays of 50 ms (lognormal), windows, acknowledgements, batches, presumed "
    "deaths and limits on inflow as in the peer. Peers learn as in a new task: logistic "
    "regression, batches of 16 samples, noise for epsilon 8, rates chosen while learning; "
    "learning alone sends nothing and has neither batches nor noise. Sleepers, newcomers, leavers "
    "and slow peers also learn from fewer samples, which costs them alone as well: what the "
    "network adds to that is the difference to the last column.",
)
_DEFAULTS = (
    "What follows for the defaults of the peer: a window of 16 pushes (auto), batches of 16 "
    "samples, receivers presumed dead after 120 s of silence, a clip of 0.5. {better} Where an "
    "interval covers 0, other reasons decide: a wider window costs memory at both ends; a larger "
    "batch makes a peer wait longer for its first push, a smaller one says less per noise; a "
    "shorter presumed death takes mass back from those who only sleep, a longer one leaves it "
    "longer with the dead. Between two steps of its own a peer passes on what others sent at most "
    "{passes} times: more often taught no more where it was tried, once (docs/asynchronous.md)."
)


def async_section(answers: Answers, claims: Sequence[Claim]) -> Section:
    """The answers in a sentence each, a chart of costs, and a table per question."""
    sentences = " ".join(f"{_WORDS[it.verdict]} {it.text}" for it in claims)
    defaults = _DEFAULTS.format(better=_better(claims), passes=PASSES)
    return Section(
        "Beyond the paper: an asynchronous network in virtual time",
        [*_TEXT, f"In short. {sentences}", defaults],
        [_drawn(answers)],
        [_costs(answers), _windows(answers), *_choices(answers), _sizes(answers), _liars(answers)],
    )


_WORDS = {"holds": "It holds:", "fails": "It does not hold:", "mixed": "It is not decided:"}


def _better(claims: Sequence[Claim]) -> str:
    """Which choices are better than the default, by the whole interval."""
    found = [
        f"{it.setting} ({it.effect:.1%} of the loss, {it.low:.1%} to {it.high:.1%})"
        for claim in claims
        if claim.text == NO_BETTER
        for it in claim.findings
        if it.low > 0
    ]
    if not found:
        return "No other choice of the tables is better by the whole of its interval."
    return f"Better by the whole interval, under these conditions: {', '.join(found)}."


def _where(answers: Answers, rate: float) -> str:
    extent, seeds = answers.extent, len(answers.trials[answers.usual()])
    return (
        f"{extent.num_nodes} peers with 1 to {MAX_RECEIVERS} receivers, {extent.rounds} samples "
        f"each at {rate:g} a second, {seeds} seeds: mean ± half the 95 % interval."
    )


def _costs(answers: Answers) -> Table:
    rows = [
        ["loss without", *(with_interval(answers.losses(answers.usual(it))) for it in METHODS)],
        *(
            [title, *(percent(answers.cost(title, method), 1) for method in METHODS)]
            for title in CONDITIONS
        ),
    ]
    return Table(
        ("cost, part of the loss", *(label(it).title for it in METHODS)),
        rows,
        f"{_where(answers, CALM)} Rows that say so have {BUSY:g} samples a second. The cost is the "
        "loss with the condition over that of the same seed without it, less one.",
    )


def _windows(answers: Answers) -> Table:
    rows = []
    for window in WINDOWS:
        usual, slow = (windowed(answers.extent, window, it) for it in ((), (SLOW_LINKS,)))
        rows.append(
            [str(window), *_loss_and_pushes(answers, usual), *_loss_and_pushes(answers, slow)]
        )
    return Table(
        ("window", "loss", "pushes", "loss, delay x 10", "pushes"),
        rows,
        f"{_where(answers, BUSY)} Relay; pushes are a second and peer, over all its edges.",
    )


def _choices(answers: Answers) -> list[Table]:
    """Batches, and the time after which the silent are presumed dead."""
    extent = answers.extent
    return [
        Table(
            ("samples in a batch", "loss", "pushes"),
            [[str(it), *_loss_and_pushes(answers, batched(extent, it))] for it in BATCHES],
            f"{_where(answers, CALM)} Relay, epsilon 8.",
        ),
        Table(
            ("presumed dead after", "loss", "pushes"),
            [[f"{it:g} s", *_loss_and_pushes(answers, presuming(extent, it))] for it in DEATHS],
            f"{_where(answers, CALM)} Relay; 30 % of the peers are awake for 300 s and asleep for "
            "300 s, on average.",
        ),
    ]


def _loss_and_pushes(answers: Answers, setting: Setting) -> list[str]:
    pushes = float(np.mean([it.pushes for it in answers.trials[setting]]))
    return [with_interval(answers.losses(setting)), f"{pushes:.2f}"]


def _sizes(answers: Answers) -> Table:
    rows = []
    for size in answers.extent.sizes:
        setting = sized(answers.extent, size)
        ends = np.array([it.end for it in answers.trials[setting]])
        found = (answers.seconds(size), answers.losses(setting), ends)
        rows.append(
            [f"{size:,}", _seconds(found[0]), *map(with_interval, found[1:]), f"{len(ends)}"]
        )
    mean, low, high = interval(answers.exponents())
    return Table(
        ("peers", "seconds to the loss", "average loss", "loss in the last quarter", "seeds"),
        rows,
        f"Relay, {answers.extent.rounds} samples each at {STEADY:g} a second. The loss to reach is "
        f"{NEAR_END - 1:.0%} above that of the last quarter of the smallest network with the same "
        "seed; losses of bins of virtual time are smoothed by isotonic regression. time ~ n^p with "
        f"p = {mean:.3f}, 95 % interval {low:.3f} to {high:.3f} over seeds.",
    )


def _seconds(values: np.ndarray) -> str:
    mean, low, high = interval(values)
    if not np.isfinite(mean):
        return "not reached"
    return f"{mean:.0f} ± {(high - low) / 2:.0f}" if np.isfinite(low) else f"{mean:.0f}"


def _liars(answers: Answers) -> Table:
    rows = []
    for clip in CLIPS:
        honest, lied = (answers.losses(lied_to(answers.extent, clip, it)) for it in (False, True))
        name = "none" if math.isinf(clip) else f"{clip:g}"
        cost = percent(answers.lie_cost(clip), 1)
        rows.append([name, with_interval(honest), with_interval(lied), cost])
    return Table(
        ("clip", "loss without liars", f"one liar in {answers.extent.many:,}", "cost"),
        rows,
        f"Relay, {answers.extent.many:,} peers, {answers.extent.rounds} samples each at {STEADY:g} "
        "a second; loss of the honest, mean ± half the 95 % interval. The liar pushes a model of "
        "norm 10 all the time; its mass is honest.",
    )


def _drawn(answers: Answers) -> DrawnPanel:
    points, numbers = [], ["method,condition,mean,low,high,seeds"]
    for method in METHODS:
        look, intervals = label(method), []
        for title in CONDITIONS:
            costs = answers.cost(title, method)
            intervals.append(interval(costs))
            values = ",".join(f"{value:.8g}" for value in intervals[-1])
            numbers.append(f'{method},"{title}",{values},{len(costs)}')
        points.append(Points(look.title, intervals, look.color, look.dashes))
    ticks = [title.replace(", ", "\n").replace(": ", "\n") for title in CONDITIONS]
    chart = interval_chart(
        points, ticks, "What conditions cost", (10.4, 3.9), ylabel="cost, part of the loss"
    )
    for tick in chart.axes[0].get_xticklabels():
        tick.set(rotation=30, ha="right")
    caption = "What each condition adds to the loss of the same seed, with 95 % intervals."
    text = "\n".join(numbers) + "\n"
    return DrawnPanel(NAME, caption, as_svg(chart), as_png(chart), text)
