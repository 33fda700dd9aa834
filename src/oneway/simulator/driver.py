"""Run a method over a stream: choose the engine, keep time, show progress, stop politely."""

from __future__ import annotations

import platform
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from types import FrameType
from typing import Any, Literal, Protocol

import numpy as np

from oneway.display.progress import progress_bar
from oneway.errors import ConfigError
from oneway.files.memory import require_memory
from oneway.files.typed_values import checked
from oneway.methods import Isolated, Method
from oneway.models import Model
from oneway.records import Batch, Matrix, NetworkState, RunRecord
from oneway.simulator import fast_engine
from oneway.simulator.delayed_engine import DelayedEngine
from oneway.simulator.exchange import Mixing
from oneway.simulator.measurements import Measurements, Seed
from oneway.simulator.network import Graphs, Network
from oneway.simulator.raw_rows import num_classes
from oneway.simulator.reference_engine import ReferenceEngine
from oneway.simulator.run import Run
from oneway.simulator.tallying import Tallying
from oneway.streams import Stream

EngineName = Literal["auto", "reference", "fast"]
Precision = Literal["float64", "float32"]

_PACE = 0.1
"""Seconds between two looks at the clock, the progress bar and Ctrl-C."""

_COPIES = 6
"""How often the parameters of all nodes are in memory at the same time, about."""


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
    precision: Precision = "float64",
    delays: tuple[int, int] | None = None,
    progress: bool | None = None,
    seed: Seed = 0,
    measure: bool = False,
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
        precision: How nodes hold what they hold and send: "float32" takes half the memory and less
            time in large networks; masses and all arithmetic stay float64, see `docs/speed.md` for
            the error. Models that are float32 themselves, such as Torch, are held so in any case.
        delays: An asynchronous network: only nodes that have a sample act in a round (see
            `Stream.at_random_rounds`), and their pushes arrive after at least and at most so many
            rounds. In the reference engine, over one graph; None if every push arrives at once.
        progress: Show a progress bar; by default in a terminal or a notebook, if the run is long.
        seed: Of all that is random in the model's start and in the method.
        measure: Tally predictions on the way, for `run.measures`; without, asking for these runs
            everything once more.

    Raises:
        ConfigError: If an argument is not valid, or `engine="fast"` has no kernel for this.
        DataError: If the labels do not fit the model.
        GraphError: If the graph does not fit the stream, or is not strongly connected.
        DivergenceError: If the numbers leave the finite range.
    """
    _check_kinds(method, model, stream)
    model = model.shaped(stream.shape).told(stream.dim, stream.labels)
    dim = model.dim(stream.dim)
    require_memory(
        _COPIES * float(_held_type(precision, model).itemsize) * stream.num_nodes * dim,
        f"{stream.num_nodes:,} nodes with {dim:,} parameters each: a simulation of them",
        ConfigError,
        remedy="use fewer nodes, or fewer features",
    )
    model.check_labels(stream.labels)
    network = Network(method, graph, stream, progress)
    tallying = Tallying(model, stream, num_classes(model, stream)) if measure else None
    measurements = Measurements.blank(stream.num_rounds, tallying)
    begin_engine = _choose(engine, method, model)
    if precision == "float32":
        begin_engine = partial(begin_engine, single=True)
    if delays is not None:
        begin_engine = _delayed(delays, engine, precision, network)
    runner = begin_engine(method, model, stream, measurements, seed)
    config = {
        **method.describe(),
        "model": model.describe(),
        "stream": stream.description,
        "graph": network.origin,
        "engine": runner.name,
        **({} if precision == "float64" else {"precision": precision}),
        **({} if delays is None else {"delays": list(delays)}),
        "num_nodes": stream.num_nodes,
        "num_rounds": stream.num_rounds,
        "seed": seed if isinstance(seed, int) else list(seed),
    }
    started = time.perf_counter()
    done = 0
    what = f"{method.name}, rounds"
    with _politely() as stop, progress_bar(what, stream.num_rounds, progress) as bar:
        for last in _paced(stream.num_rounds, stop):
            for begin, end, mixing in network.stretches(done, last):
                runner.advance(begin, end, mixing)
            done = last
            bar.update(done)
    seconds = time.perf_counter() - started
    skipped = measurements.skipped_counts[:done]
    state = runner.state
    return Run(
        record=RunRecord(
            algorithm=method.name,
            loss_sums=measurements.loss_sums[:done],
            sample_counts=(stream.rows[:done] >= 0).sum(axis=1)
            - measurements.lossless_counts[:done],
            correct_counts=measurements.correct_counts[:done]
            if _classifies(model, stream)
            else None,
            disagreement=measurements.disagreement[:done],
            numerators=np.require(state.numerators, _held_type(precision, model), ["C", "O", "W"]),
            masses=np.require(state.masses, np.float64, ["C", "O", "W"]),
            complete=done == stream.num_rounds,
            seconds=seconds,
            config=config,
            versions=_versions(),
            skipped_counts=skipped if skipped.any() else None,
        ),
        model=model,
        stream=stream,
        tally=None if tallying is None else tallying.tally,
        again=partial(
            simulate,
            method,
            model,
            graph=graph,
            engine=engine,
            precision=precision,
            delays=delays,
            progress=progress,
            seed=seed,
            measure=True,
        ),
        alone=_alone(method, model, precision, progress, seed),
    )


def _held_type(precision: Precision, model: Model) -> np.dtype[Any]:
    """What the parameters of all nodes are held in."""
    checked("precision", precision, Precision)
    return np.dtype(np.float32 if precision == "float32" else model.dtype)


def _alone(
    method: Method, model: Model, precision: Precision, progress: bool | None, seed: Seed
) -> Any:
    """How to run the same on a stream with every node alone; None if it is."""
    if not method.payload and method.exchange == "none":
        return None
    isolated = Isolated(method.learning_rate, method.step, method.transforms)
    return partial(simulate, isolated, model, precision=precision, progress=progress, seed=seed)


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
        known = ", ".join(kind.name for kind in fast_engine.COMPILED)
        raise ConfigError(
            f"engine='fast' has no kernel for {type(method).__name__} with "
            f"{type(model).__name__}; it knows {known} with the built-in step rules, without "
            "transforms, with the linear models; engine='reference' runs everything"
        )
    raise ConfigError(f"engine={engine!r} is unknown; it is 'auto', 'reference' or 'fast'")


def _delayed(
    delays: tuple[int, int], engine: EngineName, precision: Precision, network: Network
) -> Any:
    pair = delays if isinstance(delays, tuple | list) else ()
    if not ([type(it) for it in pair] == [int, int] and 1 <= pair[0] <= pair[1]):
        raise ConfigError(
            f"delays are {delays!r}; they must be two whole numbers of rounds, the shortest from 1 "
            "on and the longest not below it"
        )
    if engine == "fast" or not network.constant:
        raise ConfigError(
            f"delays are {delays!r} and engine={engine!r}, with "
            f"{'one graph' if network.constant else 'graphs that change'}; pushes take time in the "
            "reference engine only, over one graph: leave engine out, or give one graph"
        )
    if precision != "float64":
        raise ConfigError(
            f"delays are {delays!r} and precision is {precision!r}; pushes that take time are "
            "simulated in float64 only, leave one of the two out"
        )
    return partial(DelayedEngine, delays=delays)


def _classifies(model: Model, stream: Stream) -> bool:
    one = Batch(stream.features[:1], stream.labels[:1])
    stack: Matrix = np.zeros((len(one), model.dim(stream.dim)), model.dtype)
    return model.correct(stack, one) is not None


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
