"""What delays, losses, churn, sleepers, limits, size and liars cost an asynchronous network.

Every node learns as a new task does (batches, noise, chosen rate, curvature step), by
`ow.simulate(..., conditions=)`, on synthetic rows; all costs are paired by seed. That the arrays do
what peers do is tested against the peers' own code: `studies/agreement.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

import oneway as ow
from lib import (
    Claim,
    Finding,
    Report,
    Scope,
    below,
    everywhere,
    grid,
    interval,
    label,
    paired,
    run,
    spread,
    table,
    values,
)
from oneway.datasets.synthetic import synthetic
from oneway.display.charts import Points, interval_chart
from oneway.errors import DivergenceError
from oneway.methods import DEFAULT_METHOD
from oneway.methods.batches import DEFAULT_SAMPLES
from oneway.models import LogisticRegression
from oneway.records import Vector
from oneway.simulator.asynchronous import TICKS
from oneway.simulator.grid import require_complete
from oneway.tables import Table
from oneway.task.learning import Learning
from oneway.topology import TrustGraph

ALONE = "local"
METHODS = (DEFAULT_METHOD, "ops", ALONE)
MAX_RECEIVERS = 8
NUM_FEATURES = 10
NUM_ROWS = 50_000
"""Rows of a seed's table, from which the samples of all its networks are drawn."""
CALM, STEADY, BUSY = 0.1, 1.0, 10.0
"""Samples a second and peer: made by people, in large networks, and by sensors."""
SLOW_LINKS = ("delay", "lognormal:0.5,0.5")
"""Ten times the usual delay."""
SLEEPY = ("sleepers", 0.3)
Changes: TypeAlias = tuple[tuple[str, Any], ...]
CONDITIONS: dict[str, tuple[float, Changes]] = {
    "delay x 10": (CALM, (SLOW_LINKS,)),
    "10 % of messages lost": (CALM, (("loss", 0.1),)),
    "30 % of messages lost": (CALM, (("loss", 0.3),)),
    "crashes, one in 500 s, down for 60 s": (CALM, (("crashes", 0.002), ("down", 60.0))),
    "20 % join later, 20 % leave": (CALM, (("joining", 0.2), ("leaving", 0.2))),
    "30 % sleep half of the time": (CALM, (SLEEPY,)),
    "unequal speeds (sigma 1)": (CALM, (("unequal", 1.0),)),
    "10 samples a second: delay x 10": (BUSY, (SLOW_LINKS,)),
    "10 samples a second: 30 % lost": (BUSY, (("loss", 0.3),)),
}
"""Samples a second, and the changed conditions, by title."""
WINDOWS, BATCHES, DEATHS = (1, 4, 16, 64), (4, 16, 64), (15.0, 120.0, 600.0)
DEFAULT_WINDOW, DEFAULT_DEATH = 16, ow.Conditions().presume_dead_after
CLIPS = (0.5, math.inf)
NEAR_END = 1.05
"""The loss to reach, relative to what the smallest network ends with."""
CHEAP = 0.05
"""A condition is cheap if it costs less of the loss than this."""
SAME = 0.01
"""A choice is as good as another if it is worse by less of the loss than this."""
SLOWLY = 0.25
"""The exponent of the number of peers below which time grows slowly."""


@dataclass(frozen=True)
class Network:
    """A network of peers with one method under some conditions.

    Attributes:
        method: Name of the method.
        num_nodes: Peers of a random graph, each with 1 to `MAX_RECEIVERS` receivers.
        rounds: Samples of a peer of ordinary speed.
        rate: Samples a second.
        changes: Conditions that differ from the default, by name.
        samples: Samples in a batch.
    """

    method: str
    num_nodes: int
    rounds: int
    rate: float
    changes: Changes = ()
    samples: int = DEFAULT_SAMPLES

    @property
    def name(self) -> str:
        """All that determines it."""
        return repr(self)


@dataclass(frozen=True)
class NetworkJob:
    """A network with a seed."""

    case: Network
    seed: int


def simulate_network(job: NetworkJob) -> list[dict[str, Any]]:
    """Run a network: one row, whose loss is infinite if it diverged.

    Rows, graph, moments, delays, faults and noise depend on the seed. `sums` and `counts` are
    losses and samples per bin of virtual time, `pushes` those of a peer in a second.
    """
    case, seed = job.case, job.seed
    stream = _table(seed).deal(case.num_nodes, seed=seed, resample=case.num_nodes * case.rounds)
    learning = Learning(method=case.method, samples_per_push=case.samples)
    try:
        done = require_complete(
            ow.simulate(
                learning.build_method(NUM_FEATURES + 1),
                LogisticRegression(),
                stream.head(case.rounds),
                TrustGraph.random(case.num_nodes, min(MAX_RECEIVERS, case.num_nodes - 1), seed),
                conditions=ow.Conditions(rate=case.rate, **dict(case.changes)),
                seed=seed,
                progress=False,
            )
        )
    except DivergenceError:
        return [{"loss": math.inf, "pushes": 0.0, "sums": [], "counts": []}]
    record = done.record
    pushes = record.config["pushes"] / record.config["virtual_seconds"]
    return [
        {
            "loss": done.average_loss,
            "pushes": pushes / case.num_nodes,
            "sums": [float(it) for it in record.loss_sums],
            "counts": [float(it) for it in record.sample_counts],
        }
    ]


@lru_cache(maxsize=2)
def _table(seed: int) -> Table:
    return synthetic(NUM_ROWS, NUM_FEATURES, seed).table


def end_loss(sums: Sequence[float], counts: Sequence[float]) -> float:
    """The loss in the last quarter of the time."""
    last = slice(-(-3 * len(sums) // 4), None)
    return float(np.sum(sums[last]) / np.sum(counts[last])) if len(sums) else math.inf


def bins_to(loss: float, sums: Sequence[float], counts: Sequence[float]) -> float:
    """After how many bins the loss is down to this, by a falling curve (isotonic regression).

    Infinite if it never is.
    """
    weights = np.array(counts, float)
    has = weights > 0
    if not has.any():
        return math.inf
    means = np.array(sums)[has] / weights[has]
    falling = isotonic_regression(means, weights=weights[has], increasing=False).x
    reached = np.flatnonzero(falling <= loss)
    return float(np.flatnonzero(has)[reached[0]] + 1) if len(reached) else math.inf


@dataclass(frozen=True)
class Answers:
    """The runs, and how large the networks are.

    Attributes:
        num_nodes: Peers of the networks that conditions and choices are tried on.
        rounds: Samples of a peer of ordinary speed.
        sizes: Peers of the networks whose time to a given loss is measured.
        runs: One row for every network and seed.
    """

    num_nodes: int
    rounds: int
    sizes: tuple[int, ...]
    runs: pl.DataFrame = field(default_factory=pl.DataFrame)

    def network(
        self,
        rate: float,
        changes: Changes = (),
        method: str = DEFAULT_METHOD,
        samples: int = DEFAULT_SAMPLES,
        num_nodes: int | None = None,
    ) -> Network:
        """A network of the study."""
        return Network(method, num_nodes or self.num_nodes, self.rounds, rate, changes, samples)

    def windowed(self, window: int, links: Changes) -> Network:
        """The default method with this many unacknowledged pushes, on the busy network."""
        return self.network(BUSY, (*links, ("window", window)))

    def presuming(self, seconds: float) -> Network:
        """The default method among sleepers, who are presumed dead after some seconds."""
        return self.network(CALM, (SLEEPY, ("presume_dead_after", seconds)))

    def lied_to(self, clip: float, lying: bool) -> Network:
        """The default method with one liar, or without."""
        share = 1 / self.num_nodes if lying else 0.0
        return self.network(STEADY, (("clip", clip), ("liars", share)))

    def networks(self) -> list[Network]:
        """All that is run, the largest networks first."""
        found = [
            *(self.network(rate, method=it) for it in METHODS for rate in (CALM, BUSY)),
            *(self.network(*told, method=it) for told in CONDITIONS.values() for it in METHODS),
            *(self.windowed(window, it) for window in WINDOWS for it in ((), (SLOW_LINKS,))),
            *(self.network(CALM, samples=samples) for samples in BATCHES),
            *(self.presuming(seconds) for seconds in DEATHS),
            *(self.network(STEADY, num_nodes=size) for size in self.sizes),
            *(self.lied_to(clip, lying) for clip in CLIPS for lying in (False, True)),
        ]
        return sorted(dict.fromkeys(found), key=lambda it: -it.num_nodes)

    def losses(self, network: Network) -> Vector:
        """Average losses, per seed."""
        return values(self.runs, case=network.name)

    def more(self, network: Network, usual: Network) -> Vector:
        """How much larger the loss is than the usual one with the same seed, as a part of that."""
        with np.errstate(invalid="ignore"):  # both may have diverged
            more: Vector = self.losses(network) / self.losses(usual) - 1
        return more

    def cost(self, title: str, method: str) -> Vector:
        """What a condition costs a method, per seed."""
        rate, changes = CONDITIONS[title]
        usual = self.network(rate, method=method)
        return self.more(self.network(rate, changes, method), usual)

    def lie_cost(self, clip: float) -> Vector:
        """What a liar costs the honest, as a part of their loss, per seed."""
        return self.more(self.lied_to(clip, True), self.lied_to(clip, False))

    def bins(self, size: int) -> list[tuple[Sequence[float], Sequence[float]]]:
        """Losses and samples per bin of virtual time, per seed."""
        name = self.network(STEADY, num_nodes=size).name
        sums, counts = (values(self.runs, it, case=name).tolist() for it in ("sums", "counts"))
        return list(zip(sums, counts, strict=True))

    def seconds(self, size: int) -> Vector:
        """Time to a loss 5 % above what the smallest network of the seed ends with, per seed."""
        ends = [end_loss(*it) for it in self.bins(min(self.sizes))]
        pairs = zip(ends, self.bins(size), strict=True)
        return np.array([bins_to(NEAR_END * end, *it) for end, it in pairs]) / (TICKS * STEADY)

    def exponents(self) -> Vector:
        """The p of time ~ n^p per seed, by least squares over sizes; infinite if not reached."""
        times = np.array([self.seconds(size) for size in self.sizes])
        slopes = [
            float(np.polyfit(np.log(self.sizes), np.log(column), 1)[0])
            if np.isfinite(column).all()
            else math.inf
            for column in times.T
        ]
        return np.array(slopes)


# Claims -------------------------------------------------------------------------------------------


def judged(answers: Answers) -> list[Claim]:
    """An answer to each question, with a verdict."""
    clip, none = CLIPS
    setting = f"one liar among {answers.num_nodes:,} peers"
    with_clip, without = (answers.lie_cost(it) for it in (clip, none))
    together = [method for method in METHODS if method != ALONE]
    return [
        *(_cheap(answers, method) for method in together),
        *(_better_than_alone(answers, method) for method in together),
        _claim(
            f"No other window, batch or presumed-death time is better by {SAME:.0%} of the loss "
            "than the peers' own.",
            list(_choices(answers)),
        ),
        _claim(
            f"Time to a given loss grows more slowly than n^{SLOWLY:g} with the number n of peers.",
            [
                below(
                    f"{min(answers.sizes):,} to {max(answers.sizes):,} peers",
                    answers.exponents(),
                    SLOWLY,
                    "exponent p of time ~ n^p",
                )
            ],
        ),
        _claim(
            f"With the clip at {clip:g} one liar in {answers.num_nodes:,} costs the honest less "
            f"than {SAME:.0%} of their loss.",
            [below(setting, with_clip, SAME, "cost to the honest, part of their loss")],
        ),
        _claim(
            "Without the clip a liar costs the honest more.",
            [paired(setting, without - with_clip, "cost without the clip minus cost with it")],
        ),
    ]


def _claim(text: str, findings: Sequence[Finding]) -> Claim:
    return Claim(text, "", tuple(findings), everywhere(findings))


def _cheap(answers: Answers, method: str) -> Claim:
    own = label(method).title
    return _claim(
        f"No condition costs {own} more than {CHEAP:.0%} of its loss.",
        [
            below(title, answers.cost(title, method), CHEAP, f"cost of it to {own}, part of loss")
            for title in CONDITIONS
        ],
    )


def _better_than_alone(answers: Answers, method: str) -> Claim:
    own = label(method).title
    findings = []
    for title, changed in CONDITIONS.items():
        together, alone = (answers.network(*changed, method=it) for it in (method, ALONE))
        gain = answers.losses(alone) - answers.losses(together)
        findings.append(paired(title, gain, f"loss alone minus loss of {own}"))
    return _claim(
        f"Under every condition {own} with noise is better than nodes alone without.", findings
    )


def _choices(answers: Answers) -> Iterator[Finding]:
    """How much better than the default every other choice is, as a part of the loss."""
    reading = "loss of the default minus loss of this, part of the former"
    for links, words in (((), ""), ((SLOW_LINKS,), ", delay x 10")):
        usual = answers.windowed(DEFAULT_WINDOW, links)
        for window in (it for it in WINDOWS if it != DEFAULT_WINDOW):
            less = -answers.more(answers.windowed(window, links), usual)
            yield below(f"window {window}{words}", less, SAME, reading)
    for samples in (it for it in BATCHES if it != DEFAULT_SAMPLES):
        less = -answers.more(answers.network(CALM, samples=samples), answers.network(CALM))
        yield below(f"batches of {samples}", less, SAME, reading)
    for seconds in (it for it in DEATHS if it != DEFAULT_DEATH):
        less = -answers.more(answers.presuming(seconds), answers.presuming(DEFAULT_DEATH))
        yield below(f"presumed dead after {seconds:g} s", less, SAME, reading)


# The report ---------------------------------------------------------------------------------------

TEXT = (
    "A network of peers with clocks of their own, as arrays in ticks of a quarter of the time "
    "between two samples: delays of 50 ms (lognormal), windows, acknowledgements, batches, "
    "presumed deaths and the clip as in the peer. Peers learn as in a new task: logistic "
    "regression, batches of 16 samples, noise "
    "for epsilon 8, rates chosen while learning; learning alone sends nothing and has neither "
    "batches nor noise. Sleepers, newcomers, leavers and slow peers also learn from fewer "
    "samples, which costs them alone as well: what the network adds to that is the difference to "
    "the last column."
)


def asynchronous(scope: Scope) -> Report:
    """Measure what conditions, choices, size and liars cost."""
    answers = Answers(6, 32, (6, 12)) if scope.quick else Answers(100, 160, (100, 1_000, 10_000))
    jobs = [NetworkJob(it, seed) for it in answers.networks() for seed in scope.seeds]
    answers = replace(answers, runs=grid(simulate_network, jobs, scope.cache))
    parts = [TEXT, _costs(answers), _windows(answers), *_choice_tables(answers)]
    parts += [_sizes(answers), _liars(answers)]
    title = "An asynchronous network"
    charts = {"conditions": _drawn(answers)}
    return Report(title, judged(answers), parts, {"runs": answers.runs}, charts)


def _where(answers: Answers, rate: float) -> str:
    return (
        f"{answers.num_nodes} peers with 1 to {MAX_RECEIVERS} receivers, {answers.rounds} samples "
        f"each at {rate:g} a second: mean over seeds ± half the 95 % interval."
    )


def _costs(answers: Answers) -> str:
    usual = (spread(answers.losses(answers.network(CALM, method=it))) for it in METHODS)
    rows = [
        ["loss without", *usual],
        *(
            [title, *(spread(answers.cost(title, method), ".1%") for method in METHODS)]
            for title in CONDITIONS
        ),
    ]
    return table(
        ("cost, part of the loss", *(label(it).title for it in METHODS)),
        rows,
        f"{_where(answers, CALM)} Rows that say so have {BUSY:g} samples a second. The cost is the "
        "loss with the condition over that of the same seed without it, less one.",
    )


def _loss_and_pushes(answers: Answers, network: Network) -> list[str]:
    pushes = values(answers.runs, "pushes", case=network.name)
    return [spread(answers.losses(network)), f"{pushes.mean():.2f}"]


def _windows(answers: Answers) -> str:
    rows = []
    for window in WINDOWS:
        usual, slow = (answers.windowed(window, it) for it in ((), (SLOW_LINKS,)))
        cells = (*_loss_and_pushes(answers, usual), *_loss_and_pushes(answers, slow))
        rows.append([str(window), *cells])
    return table(
        ("window", "loss", "pushes", "loss, delay x 10", "pushes"),
        rows,
        f"{_where(answers, BUSY)} Relay; pushes are a second and peer, over all its edges.",
    )


def _choice_tables(answers: Answers) -> list[str]:
    """Batches, and the time after which the silent are presumed dead."""
    batches = (
        [str(it), *_loss_and_pushes(answers, answers.network(CALM, samples=it))] for it in BATCHES
    )
    deaths = ([f"{it:g} s", *_loss_and_pushes(answers, answers.presuming(it))] for it in DEATHS)
    where = _where(answers, CALM)
    return [
        table(("samples in a batch", "loss", "pushes"), batches, f"{where} Relay, epsilon 8."),
        table(
            ("presumed dead after", "loss", "pushes"),
            deaths,
            f"{where} Relay; 30 % of the peers sleep half of the time.",
        ),
    ]


def _sizes(answers: Answers) -> str:
    rows = []
    for size in answers.sizes:
        seconds, ends = (
            answers.seconds(size),
            np.array([end_loss(*it) for it in answers.bins(size)]),
        )
        reached = spread(seconds, ".0f") if np.isfinite(seconds).all() else "not reached"
        losses = answers.losses(answers.network(STEADY, num_nodes=size))
        rows.append([f"{size:,}", reached, spread(losses), spread(ends)])
    mean, low, high = interval(answers.exponents())
    return table(
        ("peers", "seconds to the loss", "average loss", "loss in the last quarter"),
        rows,
        f"Relay, {answers.rounds} samples each at {STEADY:g} a second. The loss to reach is "
        f"{NEAR_END - 1:.0%} above that of the last quarter of the smallest network with the same "
        "seed; losses of bins of virtual time are smoothed by isotonic regression. time ~ n^p with "
        f"p = {mean:.3f}, 95 % interval {low:.3f} to {high:.3f} over seeds.",
    )


def _liars(answers: Answers) -> str:
    rows = []
    for clip in CLIPS:
        honest, lied = (spread(answers.losses(answers.lied_to(clip, it))) for it in (False, True))
        name = "none" if math.isinf(clip) else f"{clip:g}"
        rows.append([name, honest, lied, spread(answers.lie_cost(clip), ".1%")])
    return table(
        ("clip", "loss without liars", f"one liar in {answers.num_nodes:,}", "cost"),
        rows,
        f"{_where(answers, STEADY)} Relay; loss of the honest. The liar pushes a model of norm 10 "
        "all the time; its mass is honest.",
    )


def _drawn(answers: Answers) -> Figure:
    points = []
    for method in METHODS:
        look = label(method)
        intervals = [interval(answers.cost(title, method)) for title in CONDITIONS]
        points.append(Points(look.title, intervals, look.color, look.dashes))
    ticks = [title.replace(", ", "\n").replace(": ", "\n") for title in CONDITIONS]
    ylabel = "cost, part of the loss"
    chart = interval_chart(points, ticks, "What conditions cost", (10.4, 3.9), ylabel=ylabel)
    for tick in chart.axes[0].get_xticklabels():
        tick.set(rotation=30, ha="right")
    return chart


if __name__ == "__main__":
    run(asynchronous, seeds=5)
