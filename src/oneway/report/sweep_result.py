"""Sweep of learning rates, methods and seeds, with its table, its chart and its best setting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oneway.display.frames import FrameKind, as_frame
from oneway.display.html import Html, card, grid, sentence
from oneway.display.progress import progress_bar
from oneway.errors import ConfigError, needs_extra
from oneway.files.paths import as_path
from oneway.methods.labels import label_of
from oneway.report.pages import loss_text
from oneway.sentences import shown
from oneway.simulator import sweep as sweeps
from oneway.simulator.executors import DEFAULT, opened
from oneway.simulator.sweep import RATES, Setting, Trial
from oneway.tables import Table
from oneway.task.assembly import read_table, started
from oneway.task.learning import Learning
from oneway.task.settings import Settings, read_settings
from oneway.task.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_FOLDER = "give a folder's name"


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
        return sweeps.by_setting(self.trials)

    @property
    def best(self) -> Setting:
        """The method and rate with the smallest mean loss.

        Raises:
            ConfigError: Every setting diverged with some seed.
        """
        return sweeps.best(self.trials)

    @property
    def best_settings(self) -> Settings:
        """The settings of the sweep with the best method and rate: to simulate, or for a task."""
        return sweeps.changed(self.settings, self.best.method, self.best.learning_rate)

    @property
    def best_task(self) -> Task:
        """The best method and rate as a task for peers, labs and simulations."""
        chosen = self.best_settings
        learning = {it.name: getattr(chosen, it.name) for it in fields(Learning)}
        if chosen.encoder is None:
            return Task.of(self.table, **learning)
        known = {name: getattr(chosen, name) for name in ("radius", "mass_cap")}
        model, label = learning.pop("model"), chosen.label or ""
        return Task(model, label, chosen.features, chosen.classes, **known, **learning)

    @property
    def at_edge(self) -> bool:
        """Whether the best rate is the smallest or largest tried: a better one may lie beyond."""
        return sweeps.at_edge(self.trials, self.best)

    def to_frame(self, kind: FrameKind = "polars") -> Any:
        """A row for every run: method, learning_rate, seed, average_loss, accuracy and so on."""
        names = Trial.__dataclass_fields__
        columns = {name: [getattr(trial, name) for trial in self.trials] for name in names}
        if any(isinstance(rate, str) for rate in columns["learning_rate"]):
            columns["learning_rate"] = list(map(str, columns["learning_rate"]))
        return as_frame(columns, kind)

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
    on: str = DEFAULT,
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
        jobs: So many at a time, by default one for each core.
        on: Where runs are carried out: "local", "ray", or "ray://HOST:PORT" for the cluster there
            (extra `ray`). The numbers are the same.
        resume: A folder in which finished runs are remembered: called again, say after an
            interruption, only those are carried out that are missing there.
        progress: Whether there is a progress bar; by default in a terminal and in a notebook.
        settings: All else that `oneway simulate` has a flag for, such as `nodes`, `label`,
            `owner`, `rounds`, `model`, `epsilon` or `privacy="none"`.

    Raises:
        ConfigError: There are no rates, or a value breaks its rule.
        ClusterError: The cluster does not answer, or does not fit.
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
    count = max(1, len(methods)) * max(1, len(seeds)) * len(rates)
    done = 0
    with progress_bar("runs", count, progress) as bar:

        def tick() -> None:
            nonlocal done
            done += 1
            bar.update(done)

        folder = None if resume is None else as_path(resume, "resume", ConfigError, _FOLDER)
        return tuned(chosen, rates, methods, seeds, jobs, tick, table, on=on, folder=folder)


def tuned(
    settings: Settings,
    rates: Sequence[Any],
    methods: Sequence[str],
    seeds: Sequence[int],
    jobs: int | None = None,
    tick: Callable[[], None] = lambda: None,
    table: Table | None = None,
    *,
    on: str = DEFAULT,
    folder: Path | None = None,
) -> SweepResult:
    """Sweep, as `sweep` does, over settings: all runs have the same data and the same model.

    Args:
        settings: As flags and TOML files give them.
        rates: Learning rates, numbers or "auto".
        methods: Their names.
        seeds: Of graph, dealing and noise.
        jobs: So many at a time, by default one for each core.
        tick: Called after every run.
        table: The data; that of the settings if not given.
        on: Where runs are carried out.
        folder: Where finished runs are remembered; nowhere if None.
    """
    sweeps.combinations(settings, rates, methods)  # what is wrong with them is said at once
    with opened(on) as executor:  # before data is read, which may take long
        table = read_table(settings) if table is None else table
        known = started(settings, table)
        trials = sweeps.sweep(
            known,
            rates=rates,
            methods=methods,
            seeds=seeds,
            jobs=jobs,
            table=table,
            tick=tick,
            executor=executor,
            folder=folder,
        )
    return SweepResult(tuple(trials), known, table)


def _interval(setting: Setting) -> tuple[float, float, float]:
    mean, error = setting.average_loss, setting.standard_error or 0.0
    return mean, mean - error, mean + error


def _name(setting: Setting) -> str:
    return f"{setting.method} at {setting.learning_rate}"


def _loss(setting: Setting) -> str:
    error = setting.standard_error
    return loss_text(setting.average_loss) + ("" if error is None else f" ± {error:.4f}")
