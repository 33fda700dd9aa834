"""Beyond the paper: methods that come near a server's loss without one, measured together.

Every sample a step and all in lockstep, as in the paper; then as peers learn, in batches with
noise; then asynchronously; then where nodes differ (`bias.py`). Every method is at the best
learning rate of one grid for that very setting. Needs susy, occupancy, advogato and epinions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from bias import TEXT, bias_table, measured_biases
from held_networks import held
from lib import (
    NO_NOISE,
    QUICK_RATES,
    Case,
    Claim,
    Finding,
    Job,
    Report,
    Scope,
    at_edge,
    below,
    everywhere,
    grid,
    interval,
    label,
    make,
    paired,
    run,
    simulate_job,
    spread,
    table,
    trust_network,
    tuned,
    values,
)
from oneway.datasets import DATASETS
from oneway.display.charts import Curve, Points, interval_chart, loss_chart
from oneway.methods.batches import DEFAULT_SAMPLES
from oneway.records import Vector
from paper import graph_table
from privacy_tradeoff import epsilon_name

RATES = (0.003, 0.01, 0.03, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""The grid of learning rates, the same for all methods."""
SERVER, PUBLISHED_OPS, ALONE = "col-published", "ops-published", "local-published"
OPS_BY_RULE = (PUBLISHED_OPS, "ops-capped", "ops-mass", "ops-curvature")
"""OPS with every step rule there is."""
TWICE = "ops-mass-twice"
"""Costs as much as a method that sends two vectors a push."""
NEW = ("pull-plain", "tracking-plain", "relay-plain")
GOSSIP = ("dol-symm-published", "dol-asymm-published")
LOCKSTEP = (SERVER, *OPS_BY_RULE, TWICE, "ops-mass-adagrad", ALONE, *GOSSIP, *NEW)
BATCHED = (SERVER, *OPS_BY_RULE, TWICE, ALONE, *NEW, "relay-curvature")
DRAWN = (SERVER, PUBLISHED_OPS, "ops-mass", ALONE, "pull-plain", "tracking-plain", "relay-plain")
"""The curves of a chart; the tables have all methods."""
EPSILONS = (NO_NOISE, 8.0, 1.0)
NETWORKS = {"advogato": ("Advogato", 4), "epinions": ("Epinions", 2)}
"""Titles, and how many seeds at most: ten times the nodes take ten times as long."""
FEW = 3
"""Seeds at most with batches and without lockstep."""
SHORT = 500
"""Samples a node on SUSY at most where nothing is in lockstep."""
HUGE = 100.0
"""No model that learns has an average loss above this."""
CHOSEN = "relay-plain"
"""What the claims are about: with the plain step."""
DEFAULT = "relay-curvature"
"""What a new task runs."""
NEAR = 0.02
"""A loss reaches the server's if it is larger by less than this part of it."""
UNBIASED = 0.1
"""A common model is called the best one if it is off by less than this part of the spread."""


@dataclass(frozen=True)
class Setting:
    """A column of a table: a title, a case, the methods, and how many seeds at most."""

    title: str
    case: Case
    methods: tuple[str, ...]
    most_seeds: int


def settings(quick: bool) -> dict[str, list[Setting]]:
    """The settings by the part they belong to."""
    rounds = 64 if quick else 2000
    room = Case("occupancy", 20, max_receivers=10, rounds=64 if quick else None)
    susy = Case("susy", 128, max_receivers=32, rounds=rounds)
    here = {name: (title, FEW) for name, title in held().items() if DATASETS[name].is_here()}
    networks = {
        about: Case(
            "susy", trust_network(name).num_nodes, rounds=16 if quick else 150, network=name
        )
        for name, about in (NETWORKS | here).items()
    }
    advogato = networks[NETWORKS["advogato"]]
    random = {("Room Occupancy", 10): room, ("SUSY, 128 nodes", 5): susy}
    few = {"Room Occupancy": room, "SUSY, 128 nodes": susy, "Advogato": advogato}
    late = few | {"SUSY, 128 nodes": replace(susy, rounds=min(SHORT, rounds))}
    return {
        "lockstep": [
            Setting(title, case, LOCKSTEP, most)
            for (title, most), case in (random | networks).items()
        ],
        "private": [
            Setting(
                f"{title}, epsilon {epsilon_name(epsilon)}",
                replace(case, epsilon=epsilon),
                BATCHED,
                FEW,
            )
            for title, case in few.items()
            for epsilon in EPSILONS
        ],
        "asynchronous": [
            Setting(
                f"{title}, {words}",
                replace(case, asynchronous=True, epsilon=epsilon),
                BATCHED,
                FEW,
            )
            for epsilon, words in ((None, "every sample a step"), (8.0, "batches, epsilon 8"))
            for title, case in late.items()
        ],
    }


@dataclass(frozen=True, eq=False)
class Column:
    """The runs of a setting, each method at its best learning rate there."""

    setting: Setting
    best: pl.DataFrame

    @property
    def title(self) -> str:
        """Title of the setting."""
        return self.setting.title

    def losses(self, method: str) -> Vector:
        """Average loss per seed."""
        return values(self.best, method=method)

    def closed(self, method: str) -> Vector:
        """The share of the gap between published OPS and the server that is closed, per seed."""
        published = self.losses(PUBLISHED_OPS)
        with np.errstate(divide="ignore", invalid="ignore"):  # there may be no gap
            share: Vector = (published - self.losses(method)) / (published - self.losses(SERVER))
        return share


# Claims -------------------------------------------------------------------------------------------


def judged(columns: Sequence[Column], biases: pl.DataFrame) -> list[Claim]:
    """Every claim with a finding for each setting that can judge it."""
    own = label(CHOSEN).title
    note = (
        "Paired by seed, each method at its best rate in that very setting. "
        "Mixed is undecided for one setting, and for all together that settings differ."
    )
    networks = [it for it in columns if it.setting.case.network and it.setting.methods == LOCKSTEP]
    sentences: list[tuple[str, Iterable[Finding], str]] = [
        (
            f"{own} has a smaller loss than OPS with any step rule.",
            _against(columns, _best_rule),
            "Against the step rule with the smallest mean loss in that setting.",
        ),
        (
            "A new task's method and step have a smaller loss than OPS with any step rule.",
            _against(columns, _best_rule, DEFAULT),
            "Relay with the curvature step, where it was run.",
        ),
        (
            f"{own} has a smaller loss than OPS at equal cost.",
            _against(columns, lambda _: TWICE),
            f"{own} sends two vectors a push; OPS with the mass step exchanges twice a sample.",
        ),
        (
            f"{own} has a smaller loss than Tracking.",
            _against(columns, lambda _: "tracking-plain"),
            "",
        ),
        (f"{own} has a smaller loss than Pull.", _against(columns, lambda _: "pull-plain"), ""),
        (
            f"{own} has a smaller loss than learning alone.",
            _against(columns, lambda _: ALONE),
            "Alone has neither batches nor noise at any epsilon.",
        ),
        (
            f"{own} reaches the server's loss up to {NEAR:.0%}.",
            [
                below(
                    it.title,
                    it.losses(CHOSEN) / it.losses(SERVER) - 1.0,
                    NEAR,
                    "excess over the server, as a fraction",
                )
                for it in columns
            ],
            "",
        ),
        (
            "Published OPS is worse than learning alone on real trust networks.",
            [paired(it.title, it.losses(PUBLISHED_OPS) - it.losses(ALONE)) for it in networks],
            "Only the listed networks were measured.",
        ),
        (
            f"Where nodes differ, {own} settles within {UNBIASED:g} spreads of the best model.",
            [
                below(
                    place,
                    values(biases, "measured", case=place, method="relay"),
                    UNBIASED,
                    "distance of the common model from the best one, in spreads",
                )
                for place in biases["case"].unique(maintain_order=True)
            ],
            "",
        ),
    ]
    claims = []
    for text, found, more in sentences:
        findings = tuple(found)
        claims.append(Claim(text, "", findings, everywhere(findings), f"{note} {more}".strip()))
    return claims


def _against(
    columns: Sequence[Column], rival: Callable[[Column], str], own: str = CHOSEN
) -> Iterator[Finding]:
    for it in columns:
        other = rival(it)
        if {other, own} <= set(it.setting.methods):
            reading = f"loss of {label(other).title} minus loss of {label(own).title}"
            yield paired(it.title, it.losses(other) - it.losses(own), reading)


def _best_rule(it: Column) -> str:
    return min(OPS_BY_RULE, key=lambda rule: float(it.losses(rule).mean()))


# The report ---------------------------------------------------------------------------------------

_LOCKSTEP = (
    "Every sample is a step, and every node pushes in every round, as in the paper. The first two "
    "columns are the paper's random graphs, the others real trust networks. Those are skewed: a "
    "few nodes receive much, many receive almost nothing. A node's mass settles at its share of "
    "what flows through the network, and published OPS moves a node's model by learning rate / "
    "mass. Where the mass is 7e-5 that is fourteen thousand times the learning rate, so the rate "
    "must be tiny for all nodes, and none learns.",
    "The capped step uses learning rate x min(1, mass): no model moves by more than the learning "
    "rate. The mass step uses learning rate x mass: every model moves by exactly the learning "
    "rate. The curvature step is the published one unless it would overshoot on this sample. Relay "
    "lets gradients travel on until nodes with mass have taken them in; Tracking averages models "
    "and moves them by a tracked momentum; Pull averages models without mass. Vectors is the "
    "number of vectors in a push times the exchanges per sample: what a method costs.",
)
_BATCHED = (
    f"As peers learn by default: batches of {DEFAULT_SAMPLES} samples, and noise for epsilon (none "
    "has the same batches). Learning alone sends nothing and so needs neither. Methods take the "
    "plain step where no step rule is named; the curvature step is the default of a new task."
)
_ASYNCHRONOUS = (
    "There are no rounds that all nodes wait for: nodes come to samples at random moments, and a "
    "push takes half to two and a half times as long as the next sample. The server's row has no "
    "delays."
)


def beyond(scope: Scope) -> Report:
    """Measure Relay, Tracking and Pull beside OPS."""
    parts = settings(scope.quick)
    rates = QUICK_RATES if scope.quick else RATES
    jobs = [
        Job(it.case, method, seed, rates)
        for part in parts.values()
        for it in part
        for method in it.methods
        for seed in scope.seeds[: it.most_seeds]
    ]
    runs = grid(simulate_job, jobs, scope.cache)
    best = tuned(runs)
    columns = {
        name: [Column(it, best.filter(pl.col("case") == it.case.name)) for it in part]
        for name, part in parts.items()
    }
    lockstep, private, late = columns.values()
    biases = measured_biases(scope)
    absent = [title for name, title in held().items() if not DATASETS[name].is_here()]
    tables = [
        "## Every sample a step, in lockstep",
        *_LOCKSTEP,
        *([f"Left out, because the files are absent: {', '.join(absent)}."] if absent else []),
        _losses(lockstep, rates),
        _closed(lockstep),
        graph_table([it.setting.case for it in lockstep], scope.seeds[0]),
        "## Batches and noise, as peers learn",
        _BATCHED,
        *(_losses(some, rates) for some in _by_place(private).values()),
        "## An asynchronous network",
        _ASYNCHRONOUS,
        _losses(late, rates),
        "## Nodes that differ",
        TEXT,
        bias_table(biases, "the common model", "measured"),
        bias_table(biases, "a typical node's model", "typical"),
    ]
    charts = {_short(it.title): _curves(it) for it in (*lockstep, *late)}
    charts |= {
        f"private-{_short(place)}": _by_epsilon(place, some)
        for place, some in _by_place(private).items()
    }
    claims = judged([*lockstep, *private, *late], biases)
    return Report("Beyond the paper", claims, tables, {"runs": runs, "biases": biases}, charts)


def _by_place(columns: Sequence[Column]) -> dict[str, list[Column]]:
    """The settings with different epsilons, by what else they have in common."""
    found: dict[str, list[Column]] = {}
    for it in columns:
        found.setdefault(it.title.rpartition(",")[0], []).append(it)
    return found


def _losses(columns: Sequence[Column], rates: Sequence[float]) -> str:
    """Average loss of every method in some settings."""
    rows = []
    for method in columns[0].setting.methods:
        cells = []
        for it in columns:
            rate = float(values(it.best, "rate", method=method)[0])
            cells.append(f"{_loss(it.losses(method))} at {rate:g}{at_edge(rate, rates)}")
        rows.append([label(method).title, _vectors(method), *cells])
    seeds = (len(it.losses(SERVER)) for it in columns)
    titles = (f"{it.title} ({n} seeds)" for it, n in zip(columns, seeds, strict=True))
    return table(
        ("average loss", "vectors", *titles),
        rows,
        "Mean over seeds ± half the 95 % interval, at the best learning rate. † the edge of the "
        "grid: a better rate may lie beyond.",
    )


def _loss(losses: Vector) -> str:
    """Mean and interval, or the order of magnitude of a loss that exploded."""
    mean = float(losses.mean())
    return f"{mean:.0e}" if HUGE < mean < np.inf else spread(losses)


def _vectors(method: str) -> str:
    """How many vectors go to a receiver for a sample."""
    made = make(method, 1.0)
    return str(made.mixes * sum(segment.is_vector for segment in made.payload))


def _closed(columns: Sequence[Column]) -> str:
    rows = [
        [label(method).title, *(spread(it.closed(method), ".0%") for it in columns)]
        for method in columns[0].setting.methods
        if method not in (SERVER, PUBLISHED_OPS)
    ]
    return table(
        ("share of the gap that is closed", *(it.title for it in columns)),
        rows,
        "The gap is the loss of published OPS minus that of the server. Mean over seeds ± half the "
        "95 % interval; negative is worse than published OPS, above 100 % better than the server.",
    )


def _curves(it: Column) -> Figure:
    curves = []
    for method in DRAWN:
        look = label(method)
        rounds = values(it.best, "rounds", method=method)[0]
        losses = np.stack(values(it.best, "curve", method=method).tolist())
        curves.append(Curve(look.title, rounds, losses, look.color, look.dashes))
    return loss_chart(curves, it.title, (5.2, 3.7), xlabel="iteration")


def _by_epsilon(place: str, columns: Sequence[Column]) -> Figure:
    points = [
        Points(
            label(method).title,
            [interval(it.losses(method)) for it in columns],
            label(method).color,
            label(method).dashes,
        )
        for method in DRAWN
    ]
    ticks = list(map(epsilon_name, EPSILONS))
    return interval_chart(points, ticks, place, (5.2, 3.7), xlabel="epsilon")


def _short(title: str) -> str:
    return title.lower().replace(",", "").replace(" ", "-")


if __name__ == "__main__":
    run(beyond, seeds=10)
