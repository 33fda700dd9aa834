"""Hyperparameter sweep: learning rates x methods x seeds, run in parallel."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import joblib

from oneway.errors import ConfigError, DivergenceError
from oneway.methods import METHODS, Method
from oneway.models import Model
from oneway.simulator.driver import simulate
from oneway.simulator.engine_choice import EngineName, Precision
from oneway.simulator.fast_engine import supports
from oneway.simulator.network import Graphs
from oneway.simulator.parallel import in_parallel
from oneway.streams import Stream
from oneway.tables import Table
from oneway.task.assembly import assemble
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
    names = tuple(dict.fromkeys(methods)) or (settings.method,)
    grid = tuple(dict.fromkeys(rates))
    numbers = tuple(dict.fromkeys(seeds)) or (settings.seed,)
    if not grid:
        raise ConfigError("there are no learning rates to try; give at least one, such as 0.1")
    chosen = {(name, rate): changed(settings, name, rate) for name in names for rate in grid}
    work = _work(settings, chosen, numbers, table)
    first = next(work)
    threads = _compiled(settings, chosen.values(), first[1][2])
    found: dict[tuple[str, Any, int], Trial] = {}
    for trial in in_parallel(chain([first], work), jobs, threads=threads):
        found[trial.method, trial.learning_rate, trial.seed] = trial
        tick()
    return [found[name, rate, seed] for name, rate in chosen for seed in numbers]


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


def _work(
    settings: Settings,
    chosen: Mapping[tuple[str, Any], Settings],
    seeds: Sequence[int],
    table: Table | None,
) -> Iterator[Any]:
    """Runs to be carried out; the data of a seed is read once, here and not by every worker."""
    for seed in seeds:
        parts = assemble(replace(settings, seed=seed), table)
        dim = parts.model.dim(parts.stream.dim)
        for (name, rate), each in chosen.items():
            yield joblib.delayed(_trial)(
                (name, rate, seed),
                each.build_method(dim),
                parts.model,
                parts.stream,
                parts.graph,
                settings.engine,
                settings.precision,
            )


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
        run = simulate(method, model, stream, graph, **told)
    except DivergenceError:
        return Trial(*key, math.inf, None, math.inf, 0.0)
    loss, last = run.average_loss, float(run.disagreement[-1])
    return Trial(*key, loss, run.accuracy, last, run.record.seconds)
