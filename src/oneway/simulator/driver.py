"""Run a method over a stream: choose the engine, keep time, show progress, stop politely."""

from __future__ import annotations

import platform
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from types import FrameType
from typing import Any, Literal, Protocol

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from oneway.errors import ConfigError
from oneway.methods import Method
from oneway.models import Model
from oneway.records import NetworkState, RunRecord
from oneway.simulator import fast_engine
from oneway.simulator.exchange import Mixing
from oneway.simulator.measurements import Measurements, Seed
from oneway.simulator.network import Graphs, Network
from oneway.simulator.reference_engine import ReferenceEngine
from oneway.simulator.run import Run
from oneway.streams import Stream

EngineName = Literal["auto", "reference", "fast"]

_PACE = 0.1
"""Seconds between two looks at the clock, the progress bar and Ctrl-C."""
_PATIENCE = 1.5
"""Seconds a run takes before a progress bar appears."""


class Engine(Protocol):
    """What carries the rounds out."""

    name: str

    @property
    def state(self) -> NetworkState:
        """What all nodes hold now."""

    def advance(self, first: int, last: int, mixing: Mixing | None) -> None:
        """Run some rounds with the same shares, filling the measurements."""


def simulate(
    method: Method,
    model: Model,
    stream: Stream,
    graph: Graphs | None = None,
    *,
    engine: EngineName = "auto",
    progress: bool | None = None,
    seed: Seed = 0,
) -> Run:
    """Run every node of a network through a stream.

    Ctrl-C ends the run after the stretch of rounds it is in (about a tenth of a second); what was
    computed so far is returned with `run.complete` False. A second Ctrl-C interrupts at once.

    Args:
        method: How nodes learn, with its learning rate.
        model: What is learned.
        stream: The samples of every node in every round.
        graph: Who sends to whom: a `TrustGraph`, a sequence of graphs that take turns, or a
            function of the round. `Centralised` and `Isolated` need none.
        engine: "reference" (NumPy, any method and model), "fast" (compiled, where it has a kernel),
            or "auto": fast where it can.
        progress: Show a progress bar on stderr; by default in a terminal, if the run is long.
        seed: Of all that is random in the model's start and in the method.

    Raises:
        ConfigError: If an argument is not valid, or `engine="fast"` has no kernel for this.
        DataError: If the labels do not fit the model.
        GraphError: If the graph does not fit the stream, or is not strongly connected.
        DivergenceError: If the numbers leave the finite range.
    """
    _check_kinds(method, model, stream)
    model.check_labels(stream.labels)
    network = Network(method, graph, stream)
    measurements = Measurements.blank(stream.num_rounds)
    runner = _choose(engine, method, model)(method, model, stream, measurements, seed)
    config = {
        **method.describe(),
        "model": model.describe(),
        "stream": stream.description,
        "graph": network.origin,
        "engine": runner.name,
        "num_nodes": stream.num_nodes,
        "num_rounds": stream.num_rounds,
        "seed": seed if isinstance(seed, int) else list(seed),
    }
    started = time.perf_counter()
    done = 0
    with _politely() as stop, _bar(method.name, stream.num_rounds, progress) as bar:
        for last in _paced(stream.num_rounds, stop):
            for begin, end, mixing in network.stretches(done, last):
                runner.advance(begin, end, mixing)
            done = last
            bar.show(done)
    seconds = time.perf_counter() - started
    return Run(
        record=RunRecord(
            algorithm=method.name,
            loss_sums=measurements.loss_sums[:done],
            sample_counts=(stream.rows[:done] >= 0).sum(axis=1),
            correct_counts=measurements.correct_counts[:done]
            if _classifies(model, stream)
            else None,
            disagreement=measurements.disagreement[:done],
            numerators=np.array(runner.state.numerators),
            masses=np.array(runner.state.masses),
            complete=done == stream.num_rounds,
            seconds=seconds,
            config=config,
            versions=_versions(),
        ),
        model=model,
        stream=stream,
    )


def _check_kinds(method: object, model: object, stream: object) -> None:
    """Name a mixed-up argument, instead of failing deep inside."""
    if not isinstance(method, Method):
        raise ConfigError(
            f"method is {method!r}; it must be a method with its learning rate, for example "
            "OnlinePushSum(0.1)"
        )
    if not isinstance(model, Model):
        raise ConfigError(
            f"model is {model!r}; it must be a model, for example LogisticRegression()"
        )
    if not isinstance(stream, Stream):
        raise ConfigError(
            f"stream is {stream!r}; it must be a Stream: deal a table with "
            "table.deal(num_nodes) or table.deal_by(column)"
        )


def _choose(engine: EngineName, method: Method, model: Model) -> Any:
    supported = fast_engine.supports(method, model)
    if engine == "auto":
        return fast_engine.FastEngine if supported else ReferenceEngine
    if engine == "reference":
        return ReferenceEngine
    if engine == "fast":
        if supported:
            return fast_engine.FastEngine
        raise ConfigError(
            f"engine='fast' has no kernel for {type(method).__name__} with "
            f"{type(model).__name__}; it knows the built-in methods and step rules without "
            "transforms, with the linear models; engine='reference' runs everything"
        )
    raise ConfigError(f"engine={engine!r} is unknown; it is 'auto', 'reference' or 'fast'")


def _classifies(model: Model, stream: Stream) -> bool:
    nodes, batch = stream.batch(0)
    return model.correct(np.zeros((len(nodes), model.dim(stream.dim))), batch) is not None


def _versions() -> dict[str, str]:
    packages = ("oneway", "numpy", "scipy", "numba")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


@dataclass
class _Stop:
    """Whether somebody asked the run to end."""

    requested: bool = False


@contextmanager
def _politely() -> Iterator[_Stop]:
    """Turn the first Ctrl-C into a request; a second one interrupts as usual."""
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    usual = signal.getsignal(signal.SIGINT)

    def request(_signal: int, _frame: FrameType | None) -> None:
        stop.requested = True
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, request)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, usual)


def _paced(num_rounds: int, stop: _Stop) -> Iterator[int]:
    """Ends of stretches that take about `_PACE` seconds each, until the last round or a stop."""
    done, stretch = 0, 1
    while done < num_rounds and not stop.requested:
        began = time.perf_counter()
        done = min(done + stretch, num_rounds)
        yield done
        took = time.perf_counter() - began
        stretch = 2 * stretch if took < _PACE / 2 else max(1, round(stretch * _PACE / took))


@dataclass
class _Bar:
    """A progress bar that appears once a run turns out to be long."""

    name: str
    num_rounds: int
    wanted: bool
    began: float = field(default_factory=time.perf_counter)
    bar: Progress | None = None

    def show(self, done: int) -> None:
        """Say how far the run is."""
        if self.bar is None and self.wanted and time.perf_counter() - self.began > _PATIENCE:
            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=Console(file=sys.stderr),
                transient=True,
            )
            self.bar.add_task(f"{self.name}, rounds", total=self.num_rounds)
            self.bar.start()
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=done)


@contextmanager
def _bar(name: str, num_rounds: int, progress: bool | None) -> Iterator[_Bar]:
    bar = _Bar(name, num_rounds, sys.stderr.isatty() if progress is None else progress)
    try:
        yield bar
    finally:
        if bar.bar is not None:
            bar.bar.stop()
