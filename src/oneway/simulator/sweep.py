"""Sweep of learning rates, methods and seeds: the runs in parallel, a table, a chart, the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oneway.display.frames import as_frame
from oneway.display.html import Html, card, grid, sentence
from oneway.errors import ConfigError, DivergenceError, needs_extra
from oneway.methods import METHODS, Method
from oneway.methods.base import label_of
from oneway.metrics.measure_rows import loss_number
from oneway.models import Model
from oneway.records import checksum
from oneway.sentences import shown
from oneway.simulator.driver import EngineName, simulate
from oneway.simulator.fast_engine import supports
from oneway.simulator.grid import LOCAL, open_workers, require_complete, run_grid
from oneway.simulator.run import Run
from oneway.streams import Stream
from oneway.tables import Table
from oneway.task.assembly import Parts, assemble, read_table, started
from oneway.task.learning import Learning
from oneway.task.settings import Settings, read_settings
from oneway.task.task import Task
from oneway.topology import TrustGraph

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Learning rates to try by default."""


_Key = tuple[str, Any, int]
"""Method, learning rate and seed of a run."""


@dataclass(frozen=True)
class Trial:
    """One run of a sweep.

    Attributes:
        method: Its name.
        learning_rate: As in the settings.
        seed: Of graph, dealing and noise.
        average_loss: Infinite if the run diverged.
        accuracy: None where a prediction is not right or wrong, or the run diverged.
        disagreement: In the last round.
        seconds: What the rounds took.
    """

    method: str
    learning_rate: Any
    seed: int
    average_loss: float
    accuracy: float | None
    disagreement: float
    seconds: float

    @property
    def diverged(self) -> bool:
        """Whether numbers left the finite range."""
        return math.isinf(self.average_loss)


@dataclass(frozen=True)
class Setting:
    """A method at one learning rate, over all seeds.

    Attributes:
        method: Its name.
        learning_rate: As in the settings.
        trials: One for each seed.
    """

    method: str
    learning_rate: Any
    trials: tuple[Trial, ...]

    @property
    def average_loss(self) -> float:
        """The mean over seeds; infinite if one run diverged."""
        return sum(trial.average_loss for trial in self.trials) / len(self.trials)

    @property
    def standard_error(self) -> float | None:
        """Of that mean; None with a single seed, or if a run diverged."""
        count, mean = len(self.trials), self.average_loss
        if count < 2 or math.isinf(mean):
            return None
        squares = sum((trial.average_loss - mean) ** 2 for trial in self.trials)
        return math.sqrt(squares / (count - 1) / count)

    @property
    def accuracy(self) -> float | None:
        """The mean over seeds; None where it has no meaning."""
        known = [trial.accuracy for trial in self.trials if trial.accuracy is not None]
        return sum(known) / len(known) if len(known) == len(self.trials) else None


@dataclass(frozen=True, repr=False)
class SweepResult:
    """All runs of a sweep, by method, learning rate and seed.

    Attributes:
        trials: One for each run.
        settings: What they have in common, with where the model starts.
        table: What was learned from.
    """

    trials: tuple[Trial, ...]
    settings: Settings
    table: Table

    @property
    def ranked(self) -> list[Setting]:
        """Methods at their rates, the smallest mean loss first."""
        groups: dict[tuple[str, Any], list[Trial]] = {}
        for trial in self.trials:
            groups.setdefault((trial.method, trial.learning_rate), []).append(trial)
        settings = [Setting(*key, tuple(group)) for key, group in groups.items()]
        return sorted(settings, key=lambda setting: setting.average_loss)

    @property
    def best(self) -> Setting:
        """The method and rate with the smallest mean loss.

        Raises:
            ConfigError: Every setting diverged with some seed.
        """
        first = self.ranked[0]
        if math.isinf(first.average_loss):
            tried = ", ".join(dict.fromkeys(str(trial.learning_rate) for trial in self.trials))
            raise ConfigError(f"runs diverged at every learning rate ({tried}); give smaller ones")
        return first

    @property
    def best_settings(self) -> Settings:
        """The settings of the sweep with the best method and rate: to simulate, or for a task."""
        return changed(self.settings, self.best.method, self.best.learning_rate)

    @property
    def best_task(self) -> Task:
        """The best method and rate as a task for peers, labs and simulations."""
        chosen = self.best_settings
        learning = {it.name: getattr(chosen, it.name) for it in fields(Learning)}
        if chosen.task is None:
            return Task.of(self.table, **learning)
        return replace(chosen.task, **learning)

    @property
    def at_edge(self) -> bool:
        """Whether the best rate is the smallest or largest tried: a better one may lie beyond."""
        numbers = [it.learning_rate for it in self.trials if not isinstance(it.learning_rate, str)]
        edges = (min(numbers), max(numbers)) if len(set(numbers)) > 1 else ()
        return self.best.learning_rate in edges

    def to_frame(self) -> Any:
        """A row for every run: method, learning_rate, seed, average_loss, accuracy and so on."""
        names = Trial.__dataclass_fields__
        columns = {name: [getattr(trial, name) for trial in self.trials] for name in names}
        if any(isinstance(rate, str) for rate in columns["learning_rate"]):
            columns["learning_rate"] = list(map(str, columns["learning_rate"]))
        return as_frame(columns)

    def plot(self, ax: Axes | None = None) -> Figure:
        """Average loss at every rate, a line for each method, with standard errors over seeds.

        Args:
            ax: Where to draw; None for a new figure. No window is opened.
        """
        with needs_extra("a plot", "lab"):
            from oneway.display.charts import Points, interval_chart
        rates = list(dict.fromkeys(trial.learning_rate for trial in self.trials))
        found = {(it.method, it.learning_rate): it for it in self.ranked}
        lines = []
        for method in dict.fromkeys(trial.method for trial in self.trials):
            label = label_of(method)
            intervals = [_interval(found[method, rate]) for rate in rates]
            lines.append(Points(label.title, intervals, label.color, label.dashes))
        return interval_chart(lines, [str(rate) for rate in rates], xlabel="learning rate", ax=ax)

    def __repr__(self) -> str:
        lines = (f"{_name(it)}: {_loss(it)}" for it in self.ranked)
        return "\n".join([f"<SweepResult: {len(self.trials)} runs, smallest loss first>", *lines])

    def _repr_html_(self) -> str:
        rows = [
            (
                label_of(it.method).title,
                f"{it.learning_rate}",
                _loss(it),
                "-" if it.accuracy is None else f"{it.accuracy:.2%}",
                f"{len(it.trials)}",
            )
            for it in self.ranked
        ]
        shown = grid(("method", "rate", "average loss", "accuracy", "seeds"), rows)
        edge = "The best rate is the smallest or largest tried: a better one may lie beyond."
        finite = not math.isinf(self.ranked[0].average_loss)
        doubt = sentence(edge) if finite and self.at_edge else Html("")
        return card("Sweep", shown, doubt, quiet=f"{len(self.trials)} runs")


def sweep(
    data: Table | str | PathLike[str],
    *,
    rates: Sequence[Any] = RATES,
    methods: Sequence[str] = (),
    seeds: Sequence[int] = (),
    jobs: int | None = None,
    on: str = LOCAL,
    resume: str | PathLike[str] | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> SweepResult:
    """Try learning rates, methods and seeds on the same data, several at a time.

    Args:
        data: A table, a known data set by name, or the path of a file.
        rates: Learning rates, numbers or "auto".
        methods: Names such as "relay" and "local"; the default method if there are none.
        seeds: Of graph, dealing and noise: 0 if there are none.
        jobs: Number of runs at a time, by default one for each core.
        on: Where runs are carried out: "local", "ray", or "ray://HOST:PORT" for the cluster there
            (extra `ray`). The numbers are the same.
        resume: A folder for finished runs: a second call, say after an interruption, carries out
            only the runs that are missing there. Runs of other code are not taken.
        progress: Whether there is a progress bar; by default in a terminal and in a notebook.
        settings: All else that `oneway simulate` has a flag for, such as `nodes`, `label`,
            `owner`, `rounds`, `model`, `epsilon` or `privacy="none"`.

    Raises:
        ConfigError: There are no rates, or a value breaks its rule.
        ClusterError: The cluster does not answer, or lost a worker.
        OnewayError: As `simulate`, except that a run may diverge.
    """
    table = data if isinstance(data, Table) else None
    if table is None and not isinstance(data, str | PathLike):
        raise ConfigError(
            f"data is {shown(data)}; give a table, the name of a data set or a path: a frame "
            "becomes a table with Table.from_frame(frame, label=...)"
        )
    named = {} if table is not None else {"data": str(data)}
    # Options may be for any of the methods; of each run only its own are used.
    first = {"method": methods[0]} if methods else {}
    chosen = read_settings(None, {**first, **settings, **named})
    return sweep_settings(
        chosen,
        rates,
        methods=methods,
        seeds=seeds,
        jobs=jobs,
        table=table,
        progress=progress,
        on=on,
        folder=None if resume is None else Path(resume),
    )


def sweep_settings(
    settings: Settings,
    rates: Sequence[Any] = RATES,
    *,
    methods: Sequence[str] = (),
    seeds: Sequence[int] = (),
    jobs: int | None = None,
    table: Table | None = None,
    progress: bool | None = False,
    on: str = LOCAL,
    folder: Path | None = None,
) -> SweepResult:
    """Run every method at every learning rate with every seed.

    All methods of a seed learn from the same stream over the same graph, and all runs start from
    the same model.

    Args:
        settings: All the rest; options of methods other than the one that runs are left out.
        rates: Learning rates, numbers or "auto".
        methods: Names; that of the settings if there are none.
        seeds: That of the settings if there are none.
        jobs: Number of runs at a time, by default one for each core; in threads where all runs are
            compiled, else in processes.
        table: The data, if it is in memory already; otherwise that of the settings.
        progress: Whether there is a progress bar; None for one in a terminal.
        on: Where runs are carried out, as in `sweep`.
        folder: Where finished runs are stored; runs that it has are not repeated.

    Returns:
        The trials, by method, learning rate and seed in the order given.

    Raises:
        ConfigError: There are no rates, or a value breaks its rule.
        OnewayError: As `assemble` and `simulate`, except that a run may diverge.
    """
    _combinations(settings, rates, methods)  # mistakes are named before anything is read
    numbers = tuple(dict.fromkeys(seeds)) or (settings.seed,)
    with open_workers(on) as workers:  # before data is read, which may take long
        table = read_table(settings) if table is None else table
        settings = started(settings, table)
        chosen = _combinations(settings, rates, methods)
        # The samples of a seed are dealt here, once, and not by every worker.
        worlds = {seed: assemble(replace(settings, seed=seed), table) for seed in numbers}
        shared = workers.shared({it: _World.of(parts) for it, parts in worlds.items()})
        described = {it: _described(parts) if folder else {} for it, parts in worlds.items()}
        runs: dict[_Key, tuple[Any, ...]] = {}
        for (name, rate), each in chosen.items():
            for seed, parts in worlds.items():
                method = each.build_method(parts.model.dim(parts.stream.dim))
                runs[name, rate, seed] = ((name, rate, seed), method, shared, settings.engine)
        found = run_grid(
            _trial,
            runs,
            workers=workers,
            num_workers=jobs,
            threads=_compiled(settings, chosen.values(), worlds[numbers[0]].model),
            folder=folder,
            described=lambda key: {**described[key[2]], "method": runs[key][1].describe()},
            kind=Trial,
            progress=progress,
        )
    # A remembered rate may be that of other settings that make the same method.
    trials = tuple(
        replace(trial, method=name, learning_rate=rate) for (name, rate, _), trial in found.items()
    )
    return SweepResult(trials, settings, table)


def _combinations(
    settings: Settings, rates: Sequence[Any], methods: Sequence[str]
) -> dict[tuple[str, Any], Settings]:
    """Every method at every learning rate, with its settings, in the order given.

    Raises:
        ConfigError: There are no rates, or a value breaks its rule.
    """
    names = tuple(dict.fromkeys(methods)) or (settings.method,)
    grid = tuple(dict.fromkeys(rates))
    if not grid:
        raise ConfigError("there are no learning rates to try; give at least one, such as 0.1")
    return {(name, rate): changed(settings, name, rate) for name in names for rate in grid}


def changed(settings: Settings, method: str, learning_rate: Any) -> Settings:
    """The settings with another method and learning rate, without other methods' options.

    Raises:
        ConfigError: There is no such method, or it has no such rate.
    """
    options = {
        name: given
        for name, given in settings.options.items()
        if name == method or name not in METHODS
    }
    return replace(settings, method=method, learning_rate=learning_rate, options=options)


def _compiled(settings: Settings, chosen: Iterable[Settings], model: Model) -> bool:
    methods = (each.build_method() for each in chosen)
    return settings.engine != "reference" and all(supports(it, model) for it in methods)


@dataclass(frozen=True, eq=False)
class _World:
    """What all runs of a seed have in common."""

    model: Model
    stream: Stream
    graph: TrustGraph

    @classmethod
    def of(cls, parts: Parts) -> _World:
        return cls(parts.model, parts.stream, parts.graph)


def _described(parts: Parts) -> dict[str, Any]:
    """All that determines the trials of a seed but the method."""
    stream, graph = parts.stream, parts.graph
    return {
        "model": parts.model.describe(),
        "stream": checksum(stream.features, stream.labels, stream.rows, stream.late),
        "graph": checksum(graph.indptr, graph.receivers, graph.weights, graph.kept_shares),
        "engine": parts.settings.engine,
        "seed": parts.settings.seed,
    }


def _trial(
    key: _Key, method: Method, shared: Callable[[], dict[int, _World]], engine: EngineName
) -> Trial:
    """One run, in a worker."""
    world = shared()[key[2]]
    try:
        run = require_complete(
            simulate(
                method,
                world.model,
                world.stream,
                world.graph,
                engine=engine,
                progress=False,
                seed=key[2],
            )
        )
    except DivergenceError:
        return Trial(*key, math.inf, None, math.inf, 0.0)
    last = float(run.disagreement[-1])
    return Trial(*key, run.average_loss, run.accuracy, last, run.record.seconds)


def _interval(setting: Setting) -> tuple[float, float, float]:
    mean, error = setting.average_loss, setting.standard_error or 0.0
    return mean, mean - error, mean + error


def _name(setting: Setting) -> str:
    return f"{setting.method} at {setting.learning_rate}"


def _loss(setting: Setting) -> str:
    error = setting.standard_error
    return loss_number(setting.average_loss) + ("" if error is None else f" ± {error:.4f}")


# Methods whose runs are of interest, each at its own best learning rate.


Maker = Callable[[float], Method]
"""A method that still lacks its learning rate."""


@dataclass(frozen=True)
class Tuned:
    """A method at the learning rate with the smallest average loss.

    Attributes:
        run: The run at that rate.
        learning_rate: The rate.
        tried: Average loss at every rate of the grid; infinite where the run diverged.
        late_loss: Average loss at that rate where labels come later; None if it was not run.
    """

    run: Run
    learning_rate: float
    tried: Mapping[float, float]
    late_loss: float | None = None

    @property
    def at_edge(self) -> bool:
        """Whether the best rate is the smallest or largest tried: a better one may lie beyond."""
        return self.learning_rate in (min(self.tried), max(self.tried))

    @property
    def roc_auc(self) -> float | None:
        """The area under the ROC curve, if the predictions were measured."""
        measures = self.run.measures if self.run.was_asked_for("measures") else None
        return None if measures is None else measures.roc_auc

    @property
    def numbers(self) -> dict[str, float | None]:
        """A line of a table of results, for programs and pages."""
        return {
            "average_loss": self.run.average_loss,
            "late_loss": self.late_loss,
            "accuracy": self.run.accuracy,
            "roc_auc": self.roc_auc,
            "disagreement": float(self.run.disagreement[-1]),
            "learning_rate": self.learning_rate,
            "at_edge": self.at_edge,
            "seconds": self.run.record.seconds,
        }


def compare(
    methods: Mapping[str, Maker],
    rates: Sequence[float],
    model: Model,
    stream: Stream,
    graph: TrustGraph,
    on_run: Callable[[], None] = lambda: None,
) -> dict[str, Tuned]:
    """Tune every method on a grid of learning rates; runs share the cores.

    Args:
        methods: What to compare, by name.
        rates: The grid, the same for all.
        model: What is learned.
        stream: What it is learned from.
        graph: Who sends to whom.
        on_run: Called after every run, for a progress bar.

    Raises:
        DivergenceError: If a method diverges at every rate.
    """
    jobs = {
        (name, rate): (make(rate), model, stream, graph)
        for name, make in methods.items()
        for rate in rates
    }
    outcomes = run_grid(_run_or_divergence, jobs, threads=True, tick=on_run)
    return {name: _best_of({rate: outcomes[name, rate] for rate in rates}) for name in methods}


def _run_or_divergence(
    method: Method, model: Model, stream: Stream, graph: TrustGraph
) -> Run | DivergenceError:
    try:
        return require_complete(simulate(method, model, stream, graph, progress=False))
    except DivergenceError as error:
        return error


def _best_of(outcomes: Mapping[float, Run | DivergenceError]) -> Tuned:
    runs = {rate: run for rate, run in outcomes.items() if isinstance(run, Run)}
    if not runs:
        raise next(iter(outcomes.values()))  # type: ignore[misc]
    tried = {rate: runs[rate].average_loss if rate in runs else math.inf for rate in outcomes}
    best = min(runs, key=lambda rate: tried[rate])
    return Tuned(runs[best], best, tried)
