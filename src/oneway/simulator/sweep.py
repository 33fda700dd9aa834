"""Hyperparameter sweep: learning rates x methods x seeds, run in parallel."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from oneway.errors import ConfigError, DivergenceError
from oneway.methods import METHODS, Method
from oneway.models import Model
from oneway.records import checksum
from oneway.simulator.driver import simulate
from oneway.simulator.engine_choice import EngineName, Precision
from oneway.simulator.executors import Executor, Job, Local
from oneway.simulator.fast_engine import supports
from oneway.simulator.network import Graphs
from oneway.simulator.result_folder import ResultFolder, key_of, whole
from oneway.streams import Stream
from oneway.tables import Table
from oneway.task.assembly import Parts, assemble
from oneway.task.settings import Settings

RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Learning rates that are tried unless others are given."""


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


def sweep(
    settings: Settings,
    *,
    rates: Sequence[Any] = RATES,
    methods: Sequence[str] = (),
    seeds: Sequence[int] = (),
    jobs: int | None = None,
    table: Table | None = None,
    tick: Callable[[], None] = lambda: None,
    executor: Executor | None = None,
    folder: Path | None = None,
) -> list[Trial]:
    """Run every method at every learning rate with every seed.

    All methods of a seed learn from the same stream over the same graph.

    Args:
        settings: All the rest; options of methods other than the one that runs are left out.
        rates: What `learning_rate` may be.
        methods: Names; that of the settings if there are none.
        seeds: That of the settings if there are none.
        jobs: So many at a time, by default one for each core; in threads where all runs are
            compiled, else in processes.
        table: What to learn from, if it is in memory already, instead of the settings' data.
        tick: Called after every run, for a progress bar.
        executor: Where the runs are carried out; on this machine if None. The numbers are the same.
        folder: Where finished runs are remembered; those that are there are not repeated.

    Returns:
        The trials, by method, learning rate and seed in the order given.

    Raises:
        ConfigError: There are no rates, or a value breaks its rule.
        OnewayError: As `assemble` and `simulate`, except that a run may diverge.

    >>> from oneway.task.privacy import NO_PRIVACY
    >>> few = Settings(data="synthetic", nodes=4, rounds=60, privacy=NO_PRIVACY)
    >>> trials = sweep(few, rates=(0.01, 0.3), methods=("relay", "local"), jobs=1)
    >>> [(trial.method, trial.learning_rate) for trial in trials]
    [('relay', 0.01), ('relay', 0.3), ('local', 0.01), ('local', 0.3)]
    >>> best(trials).learning_rate
    0.3
    """
    if settings.engine.startswith("ray"):
        raise ConfigError(
            f"engine is {settings.engine!r}, which spreads one network over a cluster, and a sweep "
            "is many runs; leave engine out, and say on='ray' (--on ray)"
        )
    chosen = combinations(settings, rates, methods)
    numbers = tuple(dict.fromkeys(seeds)) or (settings.seed,)
    first = assemble(replace(settings, seed=numbers[0]), table)
    memory: ResultFolder[Trial] = ResultFolder(folder, Trial)
    work = _Work(settings, chosen, numbers, table, first, memory)
    threads = _compiled(settings, chosen.values(), first.model)
    found: dict[tuple[str, Any, int], Trial] = {}

    def take(trial: Trial) -> None:
        found[trial.method, trial.learning_rate, trial.seed] = trial
        tick()

    for trial in (executor or Local()).results(work.jobs(), num_workers=jobs, threads=threads):
        memory.put(work.keys[trial.method, trial.learning_rate, trial.seed], trial)
        take(trial)
        while work.known:
            take(work.known.popleft())
    for trial in work.known:
        take(trial)
    return [found[name, rate, seed] for name, rate in chosen for seed in numbers]


def combinations(
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


def by_setting(trials: Sequence[Trial]) -> list[Setting]:
    """Methods at their rates, the smallest mean loss first."""
    groups: dict[tuple[str, Any], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.method, trial.learning_rate), []).append(trial)
    settings = [Setting(*key, tuple(group)) for key, group in groups.items()]
    return sorted(settings, key=lambda setting: setting.average_loss)


def best(trials: Sequence[Trial]) -> Setting:
    """The method and rate with the smallest mean loss.

    Raises:
        ConfigError: Every setting diverged with some seed.
    """
    first = by_setting(trials)[0]
    if math.isinf(first.average_loss):
        tried = ", ".join(dict.fromkeys(str(trial.learning_rate) for trial in trials))
        raise ConfigError(f"runs diverged at every learning rate ({tried}); give smaller ones")
    return first


def at_edge(trials: Sequence[Trial], setting: Setting) -> bool:
    """Whether the rate is the smallest or largest number tried: a better one may lie beyond."""
    numbers = [it.learning_rate for it in trials if not isinstance(it.learning_rate, str)]
    edges = (min(numbers), max(numbers)) if len(set(numbers)) > 1 else ()
    return setting.learning_rate in edges


def _compiled(settings: Settings, chosen: Iterable[Settings], model: Model) -> bool:
    methods = (each.build_method() for each in chosen)
    return settings.engine != "reference" and all(supports(it, model) for it in methods)


@dataclass(frozen=True, eq=False)
class _Work:
    """Runs to be carried out; the data of a seed is dealt once, here and not by every worker.

    Attributes:
        first: Of the first seed.
        keys: Of the runs in the folder, filled as jobs are read.
        known: Trials that the folder has, likewise.
    """

    settings: Settings
    chosen: Mapping[tuple[str, Any], Settings]
    seeds: Sequence[int]
    table: Table | None
    first: Parts
    memory: ResultFolder[Trial]
    keys: dict[tuple[str, Any, int], str] = field(default_factory=dict)
    known: deque[Trial] = field(default_factory=deque)

    def jobs(self) -> Iterator[Job]:
        """A job for each run that the folder does not have; may be read in any thread."""
        for place, seed in enumerate(self.seeds):
            parts = self.first
            if place:
                parts = assemble(replace(self.settings, seed=seed), self.table)
            dim = parts.model.dim(parts.stream.dim)
            described = _described(parts) if self.memory.folder else {}
            for (name, rate), each in self.chosen.items():
                method = each.build_method(dim)
                key = self.keys[name, rate, seed] = (
                    key_of({**described, "method": method.describe()}) if described else ""
                )
                known = self.memory.get(key)
                if known is not None and (known.method, known.seed) == (name, seed):
                    self.known.append(replace(known, learning_rate=rate))
                    continue
                yield Job(
                    _trial,
                    (
                        (name, rate, seed),
                        method,
                        parts.model,
                        parts.stream,
                        parts.graph,
                        self.settings.engine,
                        self.settings.precision,
                    ),
                )


def _described(parts: Parts) -> dict[str, Any]:
    """All that determines the trials of a seed but the method."""
    stream, graph = parts.stream, parts.graph
    return {
        "model": parts.model.describe(),
        "stream": checksum(stream.features, stream.labels, stream.rows, stream.late),
        "graph": checksum(graph.indptr, graph.receivers, graph.weights, graph.kept_shares),
        "engine": parts.settings.engine,
        "precision": parts.settings.precision,
        "seed": parts.settings.seed,
    }


def _trial(
    key: tuple[str, Any, int],
    method: Method,
    model: Model,
    stream: Stream,
    graph: Graphs,
    engine: EngineName,
    precision: Precision,
) -> Trial:
    told: Any = {"engine": engine, "precision": precision, "progress": False, "seed": key[2]}
    try:
        run = whole(simulate(method, model, stream, graph, **told))
    except DivergenceError:
        return Trial(*key, math.inf, None, math.inf, 0.0)
    loss, last = run.average_loss, float(run.disagreement[-1])
    return Trial(*key, loss, run.accuracy, last, run.record.seconds)
