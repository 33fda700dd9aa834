"""What the studies share: cases, a cached grid of runs, verdicts, Markdown tables and a report.

A study makes one long data frame with a row for every run, judges claims on it, and writes
`report.md`, `claims.csv`, `runs.csv` and charts into a folder of `studies/results`.
"""

from __future__ import annotations

import argparse
import importlib
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from scipy import stats

from oneway.datasets import DATASETS, load
from oneway.display.charts import as_png
from oneway.errors import DivergenceError
from oneway.methods import Method
from oneway.methods.auto_rate import Rate
from oneway.methods.base import Label, label_of
from oneway.metrics import evenly_spread
from oneway.models import LogisticRegression
from oneway.records import Vector
from oneway.simulator import simulate
from oneway.simulator.grid import require_complete, run_grid
from oneway.streams import Stream
from oneway.tables import Table
from oneway.task.conditions import Conditions, Delay
from oneway.task.learning import Learning
from oneway.task.privacy import NO_PRIVACY, Privacy
from oneway.topology import TrustGraph

RESULTS = Path(__file__).parent / "results"
QUICK_RATES = (0.03, 0.3, 3.0)
"""Learning rates of a smoke run."""
NO_NOISE = math.inf
"""The epsilon of batches without noise."""
ASYNCHRONOUS = Conditions(rate=1.0, delay=Delay.parse("uniform:0.5,2.5"))
"""A push takes half to two and a half times as long as the next sample of its sender."""
_POINTS = 240
"""Points kept of a loss curve."""

# Methods ------------------------------------------------------------------------------------------

VARIANTS: dict[str, dict[str, Any]] = {
    **{
        f"{name}-published": {"method": name, "step": "paper"}
        for name in ("ops", "dol-symm", "dol-asymm", "col", "local")
    },
    **{
        f"{name}-plain": {"method": name, "step": "paper"} for name in ("relay", "tracking", "pull")
    },
    "ops-capped": {"method": "ops", "step": "capped"},
    "ops-mass": {"method": "ops", "step": "mass"},
    "ops-curvature": {"method": "ops", "step": "curvature"},
    "ops-mass-twice": {"method": "ops", "step": "mass", "mixes": 2},
    "ops-mass-adagrad": {"method": "ops", "step": "mass", "transforms": ("adagrad",)},
    "relay-curvature": {"method": "relay", "step": "curvature"},
}
"""Methods with a fixed step rule, as arguments of `Learning`; other names take the default step."""
_LABELS = {
    "ops-published": replace(label_of("ops"), title="Online Push-Sum, as published"),
    "ops-capped": Label("Online Push-Sum, capped step", "", "#56b4e9", "dashed"),
    "ops-mass": Label("Online Push-Sum, mass step", "", "#e69f00", "solid"),
    "ops-curvature": Label("Online Push-Sum, curvature step", "", "#999933", "dashdot"),
    "ops-mass-twice": Label("Online Push-Sum, mass step, two mixes", "", "#ddaa33", "dotted"),
    "ops-mass-adagrad": Label("Online Push-Sum, mass step, AdaGrad", "", "#994f00", "solid"),
    "relay-curvature": Label("Relay, curvature step", "", "#44aa99", "dashed"),
}


def make(method: str, rate: float) -> Method:
    """A method at a learning rate that steps after every sample, without noise."""
    plain: dict[str, Any] = {"step": "paper", "samples_per_push": 1, "privacy": NO_PRIVACY}
    options = plain | VARIANTS.get(method, {"method": method})
    return Learning(learning_rate=rate, **options).build_method()


def make_private(method: str, rate: Rate, epsilon: float, dim: int) -> Method:
    """A method at a learning rate with the batches of a new task and noise for epsilon."""
    privacy = NO_PRIVACY if math.isinf(epsilon) else Privacy(epsilon=epsilon)
    options = {"privacy": privacy, **VARIANTS.get(method, {"method": method})}
    return Learning(learning_rate=rate, **options).build_method(dim)


def label(method: str) -> Label:
    """Title, colour and line style of a method or variant."""
    return _LABELS.get(method) or label_of(method.removesuffix("-published").removesuffix("-plain"))


# Cases and their runs -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Data, dealing, graph and privacy of a run: everything but method, rate and seed.

    Attributes:
        data: Name of a data set.
        num_nodes: Nodes of the network.
        stochastic: Fraction of the rows dealt at random; the rest is dealt by cluster.
        max_receivers: Bound of the paper's random graph; None with `network`.
        rounds: Rounds to run; None for as many as the data has.
        shuffled: Whether a node's cluster is spread over its stream, or comes first.
        overflow: Where rows of a cluster go that exceed a node's quota; see `Table.deal`.
        network: Name of a real trust network; its largest strong component with equal shares.
        asynchronous: Whether there are no rounds, and pushes take time (`ASYNCHRONOUS`).
        epsilon: Batches of a new task with noise for this epsilon (`NO_NOISE` for none); None for
            a step after every sample, as in the paper.
    """

    data: str
    num_nodes: int
    stochastic: float = 1.0
    max_receivers: int | None = None
    rounds: int | None = None
    shuffled: bool = True
    overflow: Literal["pool", "next"] = "pool"
    network: str | None = None
    asynchronous: bool = False
    epsilon: float | None = None

    @property
    def name(self) -> str:
        """All values that differ from the default."""
        values = ((it.name, getattr(self, it.name), it.default) for it in fields(self))
        return " ".join(f"{name}={value}" for name, value, usual in values if value != usual)

    @property
    def is_resampled(self) -> bool:
        """Whether the case needs more rows than the data set has, so that rows repeat."""
        return (self.rounds or 0) * self.num_nodes > len(data_table(self.data))

    def stream(self, seed: int) -> Stream:
        """The samples of every node."""
        stream = data_table(self.data).deal(
            self.num_nodes,
            adversarial=1.0 - self.stochastic,
            seed=seed,
            resample=(self.rounds or 0) * self.num_nodes if self.is_resampled else None,
            shuffle=self.shuffled,
            overflow=self.overflow,
        )
        if self.rounds is not None:
            stream = stream.head(self.rounds)
        return stream

    def graph(self, seed: int) -> TrustGraph:
        """The trust graph."""
        if self.network is not None:
            return trust_network(self.network)
        assert self.max_receivers is not None
        return TrustGraph.random(self.num_nodes, self.max_receivers, seed)


@lru_cache(maxsize=4)
def data_table(name: str) -> Table:
    """A data set, loaded once in every process."""
    return load(name)


@lru_cache(maxsize=4)
def trust_network(name: str) -> TrustGraph:
    """The largest strong component of a real trust network, with equal shares."""
    component = DATASETS[name].load().largest_strong_component()
    return TrustGraph.from_edges(np.stack(component.edges(), axis=1), component.num_nodes)


@dataclass(frozen=True)
class Job:
    """A method in a case with a seed, at every learning rate of a grid."""

    case: Case
    method: str
    seed: int
    rates: tuple[float, ...]


def simulate_job(job: Job) -> list[dict[str, Any]]:
    """Run a job with logistic regression: a row for every learning rate.

    The loss is infinite where the run diverged. `curve` is the running average loss at `rounds`.
    """
    case, seed, model = job.case, job.seed, LogisticRegression()
    stream, graph = _stream_and_graph(replace(case, epsilon=None), seed)
    rounds = evenly_spread(stream.num_rounds, _POINTS)
    rows = []
    for rate in job.rates:
        row = {
            "data": case.data,
            "epsilon": case.epsilon,
            "rate": rate,
            "loss": math.inf,
            "disagreement": math.inf,
            "adversarial_share": stream.adversarial_share,
            "rounds": (rounds + 1).tolist(),
            "curve": [math.inf] * len(rounds),
        }
        if case.epsilon is None:
            method = make(job.method, rate)
        else:
            method = make_private(job.method, rate, case.epsilon, model.dim(stream.dim))
        # A server hears all nodes at once: its row has no delays.
        is_late = case.asynchronous and method.exchange != "average"
        conditions = ASYNCHRONOUS if is_late else None
        try:
            run = require_complete(
                simulate(
                    method, model, stream, graph, conditions=conditions, progress=False, seed=seed
                )
            )
        except DivergenceError:
            pass
        else:
            ticks = run.record.num_rounds // stream.num_rounds
            row |= {
                "loss": run.average_loss,
                "disagreement": float(run.disagreement[-1]),
                "curve": run.loss_curve[ticks * (rounds + 1) - 1].tolist(),
            }
        rows.append(row)
    return rows


@lru_cache(maxsize=2)
def _stream_and_graph(case: Case, seed: int) -> tuple[Stream, TrustGraph]:
    return case.stream(seed), case.graph(seed)


def grid(
    run: Callable[[Any], list[dict[str, Any]]], jobs: Iterable[Any], cache: Path
) -> pl.DataFrame:
    """Run jobs on all cores and return their rows as one frame, which starts with the jobs' fields.

    Finished jobs are remembered, as `oneway.simulator.grid.run_grid` says.

    Args:
        run: Computes the rows of a job; a function of a module.
        jobs: Frozen dataclasses with a `case` that has a name; duplicates run once.
        cache: Folder of finished jobs.
    """
    found = run_grid(
        run, {job: (job,) for job in jobs}, folder=cache, kind=list[dict[str, Any]], progress=None
    )
    rows = []
    for job, made in found.items():
        named = {f.name: getattr(job, f.name) for f in fields(job) if f.name != "rates"}
        named["case"] = job.case.name
        rows += [named | row for row in made]
    return pl.DataFrame(rows, infer_schema_length=None)


# Questions to the frame ---------------------------------------------------------------------------


def tuned(frame: pl.DataFrame, by: Sequence[str] = ("case", "method")) -> pl.DataFrame:
    """The rows at the learning rate with the smallest mean loss of every group."""
    means = frame.group_by(*by, "rate").agg(pl.col("loss").mean())
    best = means.sort("loss", "rate").group_by(by, maintain_order=True).first()
    return frame.join(best.select(*by, "rate"), on=[*by, "rate"])


def values(frame: pl.DataFrame, column: str = "loss", **where: Any) -> Vector:
    """A column of the rows with these values, one number per seed, in the order of the seeds."""
    for name, value in where.items():
        frame = frame.filter(pl.col(name) == (value.name if isinstance(value, Case) else value))
    return frame.sort("seed")[column].to_numpy()


def at_edge(rate: float, rates: Iterable[float]) -> str:
    """A dagger if the rate is an end of the grid, so that a better one may lie beyond."""
    return "†" if rate in (min(rates := list(rates)), max(rates)) else ""


# Verdicts -----------------------------------------------------------------------------------------

Verdict = Literal["holds", "fails", "mixed"]
LEVEL = 0.05
"""Two-sided level of a test; the intervals cover the rest."""
SKEWED = 1.0
"""Beyond this skewness, either way, Student's t alone is not trusted with a few seeds."""


@dataclass(frozen=True)
class Finding:
    """What one setting says about a claim.

    Attributes:
        setting: Where it was measured.
        effect: Mean over seeds; positive speaks for the claim unless `reading` says otherwise.
        low: Lower end of the 95 % interval of that mean (Student's t over seeds).
        high: Upper end.
        num_for: Seeds that speak for the claim.
        num_against: Seeds that speak against it.
        p_student: Two-sided p-value of Student's t.
        p_wilcoxon: Two-sided p-value of Wilcoxon's signed-rank test.
        skewness: Skewness of the seeds' values.
        verdict: Verdict for this setting alone.
        reading: What the effect is.
    """

    setting: str
    effect: float
    low: float
    high: float
    num_for: int
    num_against: int
    p_student: float
    p_wilcoxon: float
    skewness: float
    verdict: Verdict
    reading: str

    @property
    def skewed(self) -> bool:
        """Whether the verdict needs both tests."""
        return abs(self.skewness) > SKEWED

    @property
    def p_value(self) -> float:
        """The p-value that decides: the larger of both tests where values are skewed."""
        return max(self.p_student, self.p_wilcoxon) if self.skewed else self.p_student


@dataclass(frozen=True)
class Claim:
    """A claim with what speaks for and against it."""

    text: str
    where: str
    findings: tuple[Finding, ...]
    verdict: Verdict
    note: str = ""

    @property
    def tally(self) -> str:
        """How many settings hold and fail, and how many after a correction for several tests."""
        found, stay = (
            [finding.verdict for finding in findings]
            for findings in (self.findings, standing(self.findings))
        )
        return (
            f"Of {len(found)} settings {found.count('holds')} hold and {found.count('fails')} "
            f"fail; with the level divided by {len(found)} tests, {stay.count('holds')} and "
            f"{stay.count('fails')}."
        )


def interval(values: Vector) -> tuple[float, float, float]:
    """Mean over seeds and its 95 % interval; infinite with fewer than two finite values."""
    mean = float(np.mean(values))
    if len(values) < 2 or not np.isfinite(mean):
        return mean, -np.inf, np.inf
    error = float(stats.sem(values))
    if error == 0:
        return mean, mean, mean
    low, high = stats.t.interval(1 - LEVEL, len(values) - 1, loc=mean, scale=error)
    return mean, float(low), float(high)


def paired(
    setting: str, differences: Vector, reading: str = "difference of average losses"
) -> Finding:
    """A claim that the differences, one per seed, are positive.

    It holds if the whole interval of the mean is above 0, fails if none of it is, and is mixed in
    between. Where the differences are skewed Wilcoxon's test must say the same; otherwise it is
    mixed. That test needs six seeds to say anything.
    """
    return _judged(setting, differences, differences, reading)


def below(setting: str, values: Vector, limit: float, reading: str) -> Finding:
    """A claim that the values, one per seed, are smaller than `limit`; judged like `paired`."""
    return _judged(setting, values, limit - values, reading)


def _judged(setting: str, values: Vector, margins: Vector, reading: str) -> Finding:
    """Judge that the margins are positive; the effect and its interval are those of the values."""
    _, low, high = interval(margins)
    verdict: Verdict = "holds" if low > 0 else "fails" if high <= 0 else "mixed"
    student, wilcoxon, skewness = _tests(margins)
    if abs(skewness) > SKEWED and verdict != _by_ranks(margins, wilcoxon):
        verdict = "mixed"
    num_for = int((margins > 0).sum())
    counts = (num_for, len(margins) - num_for)
    return Finding(
        setting, *interval(values), *counts, student, wilcoxon, skewness, verdict, reading
    )


def _tests(margins: Vector) -> tuple[float, float, float]:
    """The p-values of Student's t and of Wilcoxon's test, and the skewness."""
    if len(margins) < 2 or not np.isfinite(margins).all() or not margins.any():
        return 1.0, 1.0, 0.0
    wilcoxon = float(stats.wilcoxon(margins).pvalue)
    deviations = margins - margins.mean()
    variance = float(np.mean(deviations**2))
    if variance == 0:
        return 0.0, wilcoxon, 0.0
    freedom = len(margins) - 1
    student = 2 * stats.t.sf(abs(margins.mean()) / np.sqrt(variance / freedom), freedom)
    return float(student), wilcoxon, float(np.mean(deviations**3) / variance**1.5)


def _by_ranks(margins: Vector, p_value: float) -> Verdict:
    """The verdict of Wilcoxon's test."""
    if p_value >= LEVEL:
        return "mixed"
    signed_ranks = np.sign(margins) * stats.rankdata(np.abs(margins))
    return "holds" if signed_ranks.sum() > 0 else "fails"


def everywhere(findings: Sequence[Finding]) -> Verdict:
    """The verdict on a claim made for every setting.

    No correction for several tests: that all of them hold by chance is rarer than that one does.
    """
    verdicts = {finding.verdict for finding in findings}
    return verdicts.pop() if len(verdicts) == 1 else "mixed"


def standing(findings: Sequence[Finding]) -> list[Finding]:
    """The findings decided also after a correction for several tests (Bonferroni).

    The more settings are looked at, the likelier is that one is decided by chance: each of m must
    be at the m-th part of the level.
    """
    corrected = LEVEL / max(1, len(findings))
    return [found for found in findings if found.verdict != "mixed" and found.p_value < corrected]


def somewhere(findings: Sequence[Finding]) -> Verdict:
    """The verdict on a claim made for some setting: one must hold after the correction.

    Holm's correction would give the same verdict, as its first step is Bonferroni's.
    """
    if any(found.verdict == "holds" for found in standing(findings)):
        return "holds"
    return "fails" if {found.verdict for found in findings} == {"fails"} else "mixed"


# The report ---------------------------------------------------------------------------------------


def spread(values: Vector, form: str = ".4f") -> str:
    """Mean over seeds ± half its 95 % interval."""
    mean, low, high = interval(values)
    if not np.isfinite(mean):
        return "diverged"
    return f"{mean:{form}} ± {(high - low) / 2:{form}}" if np.isfinite(low) else f"{mean:{form}}"


def table(heading: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A Markdown table with a caption below."""
    lines = [heading, ["---"] * len(heading), *rows]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{text}\n\n{caption}" if caption else text


@dataclass(frozen=True)
class Scope:
    """How much a study runs.

    Attributes:
        quick: A smoke run, with few rounds and rates.
        seeds: The seeds.
        cache: Folder of finished jobs.
    """

    quick: bool
    seeds: range
    cache: Path


@dataclass(frozen=True)
class Report:
    """What a study found.

    Attributes:
        title: Heading of the report.
        claims: What was judged.
        parts: Markdown that follows the claims: text, and tables of `table`.
        frames: CSV files by name; columns that hold lists are left out.
        charts: PNG files by name.
    """

    title: str
    claims: Sequence[Claim]
    parts: Sequence[str]
    frames: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    charts: Mapping[str, Figure] = field(default_factory=dict)


def run(study: Callable[[Scope], Report], seeds: int) -> None:
    """Run a study with the flags of the command line and write its report.

    Args:
        study: The study.
        seeds: How many seeds it runs by default.
    """
    name = Path(sys.argv[0]).stem
    parser = argparse.ArgumentParser(description=study.__doc__)
    parser.add_argument("--seeds", type=int, help=f"default: {seeds}, or 2 with --quick")
    parser.add_argument("--quick", action="store_true", help="a smoke run: few rounds and rates")
    parser.add_argument("--out", type=Path, default=RESULTS / name, help="folder of the results")
    args = parser.parse_args()
    count = args.seeds or (2 if args.quick else seeds)
    scope = Scope(args.quick, range(count), args.out / "cells")
    flags = "".join([" --quick" * args.quick, f" --seeds {args.seeds}" if args.seeds else ""])
    # As a module and not as `__main__`: worker processes import functions by the module's name.
    study = getattr(importlib.import_module(name), study.__name__)
    write(study(scope), scope, args.out, f"python studies/{name}.py{flags}")


def write(report: Report, scope: Scope, out: Path, command: str) -> None:
    """Write the report, its CSV files and its charts, and print the verdicts."""
    out.mkdir(parents=True, exist_ok=True)
    for name, figure in report.charts.items():
        (out / f"{name}.png").write_bytes(as_png(figure))
    frames = dict(report.frames)
    findings = [{"claim": c.text} | vars(found) for c in report.claims for found in c.findings]
    if findings:
        frames["claims"] = pl.DataFrame(findings, infer_schema_length=None)
    for name, frame in frames.items():
        flat = [column for column, kind in frame.schema.items() if not kind.is_nested()]
        frame.select(flat).write_csv(out / f"{name}.csv")
    text = [f"# {report.title}", f"Seeds 0 to {scope.seeds[-1]}. Made by `{command}`."]
    if report.claims:
        summary = ([c.verdict, c.text, c.where, c.tally] for c in report.claims)
        text += ["## Claims", table(["verdict", "claim", "where", "settings"], summary)]
        text += [f"- *{claim.text}* {claim.note}" for claim in report.claims if claim.note]
    text += report.parts
    if report.charts:
        names = ", ".join(f"`{name}.png`" for name in report.charts)
        text.append(f"The command also writes charts: {names}.")
    (out / "report.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")
    for claim in report.claims:
        print(f"{claim.verdict:6} {claim.text} {claim.tally}")
    print(f"Report: {out / 'report.md'}")
