"""Run a method over a stream: check the arguments, run the rounds, record the result."""

from __future__ import annotations

import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from types import FrameType
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from oneway.display.progress import progress_bar
from oneway.errors import ConfigError
from oneway.files.memory import require_memory
from oneway.files.validation import whole_number
from oneway.methods import Isolated, Method
from oneway.methods.auto_rate import AUTO
from oneway.models import Model, Torch
from oneway.personal.personal import MOST_ALONE
from oneway.records import Batch, Matrix, RunRecord
from oneway.simulator import fast_engine
from oneway.simulator.delayed_engine import DelayedEngine
from oneway.simulator.measurements import Measurements, Seed
from oneway.simulator.network import Graphs, Network
from oneway.simulator.personal_pass import PersonalPass
from oneway.simulator.raw_rows import num_classes
from oneway.simulator.reference_engine import ReferenceEngine
from oneway.simulator.run import Run
from oneway.simulator.tallying import Tallying
from oneway.streams import Stream

EngineName: TypeAlias = Literal["auto", "reference", "fast"]
"""What runs the rounds."""
Engine: TypeAlias = ReferenceEngine | fast_engine.FastEngine
_COPIES = 6
"""How often the parameters of all nodes are in memory at the same time, roughly."""
_PACE = 0.1
"""Seconds between two looks at the clock, the progress bar and Ctrl-C."""


def simulate(
    method: Method,
    model: Model,
    stream: Stream,
    graph: Graphs | None = None,
    *,
    engine: EngineName = "auto",
    delays: tuple[int, int] | None = None,
    progress: bool | None = None,
    seed: Seed = 0,
    measure: bool = False,
    personal: bool = False,
) -> Run:
    """Run every node of a network through a stream.

    Ctrl-C ends the run after about a tenth of a second; the rounds done so far are returned with
    `run.complete` False. A second Ctrl-C interrupts at once.

    Args:
        method: How nodes learn, with its learning rate.
        model: What is learned.
        stream: The samples of every node in every round.
        graph: Who sends to whom: a `TrustGraph`, a sequence of graphs that take turns, or a
            function of the round. `Centralised` and `Isolated` need none. On a graph (or turns
            that all together are one) that is not strongly connected, masses are kept within
            `method.usual_bounds`, unless the method has bounds; see `docs/one-way-streets.md`.
        engine: "reference" (NumPy, any method and model), "fast" (compiled, where it has a kernel),
            or "auto": fast where it can.
        delays: The shortest and the longest time in rounds that a push takes, for an asynchronous
            network: nodes act when they have a sample (see `Stream.at_random_rounds`), or pass on
            what they received if they have waited too long for one. In the reference engine, over
            one graph; None if every push arrives at once.
        progress: Show a progress bar; by default in a terminal or a notebook, if the run is long.
        seed: Seeds the model's start and all randomness of the method.
        measure: Tally predictions during the run, for `run.measures`; otherwise these take a second
            run.
        personal: Let every node also predict with its own mixture of the shared model and models
            that never leave it, for `run.personal`; see `oneway.personal`. It feeds nothing back.
            Measures are then those of personal predictions.

    Raises:
        ConfigError: If an argument is not valid, `engine="fast"` has no kernel for this, or the
            model has no personal predictions.
        DataError: If the labels do not fit the model.
        GraphError: If the graph does not fit the stream.
        DivergenceError: If the numbers leave the finite range.
    """
    check_kinds(method, model, stream)
    seed = _plain(seed)
    if engine not in get_args(EngineName):
        raise ConfigError(
            f"engine={engine!r} is unknown; choose one of {', '.join(get_args(EngineName))}"
        )
    model = model.for_samples(stream.shape, stream.labels)
    _check_memory(model, stream)
    model.check_labels(stream.labels)
    network = Network(method, graph, stream)
    method = network.method
    tallying = Tallying(model, stream, num_classes(model, stream)) if measure else None
    make = _engine(engine, delays, network, method, model)
    own = None
    if personal:
        compiled = make is fast_engine.FastEngine
        own = _personal(model, stream, seed, tallying, compiled=compiled)
    counted = None if personal else tallying
    measurements = Measurements.blank(stream.num_rounds, counted, own)
    runner = make(method, model, stream, measurements, seed)
    began = time.perf_counter()
    done = _run_rounds(runner, network, stream.num_rounds, f"{method.name}, rounds", progress)
    seconds = time.perf_counter() - began
    state = runner.state
    skipped = measurements.skipped_counts[:done]
    return Run(
        record=RunRecord(
            method=method.name,
            loss_sums=measurements.loss_sums[:done],
            sample_counts=(stream.rows[:done] >= 0).sum(axis=1)
            - measurements.lossless_counts[:done],
            correct_counts=measurements.correct_counts[:done]
            if classifies(model, stream)
            else None,
            disagreement=measurements.disagreement[:done],
            numerators=np.require(state.numerators, model.dtype, ["C", "O", "W"]),
            masses=np.require(state.masses, np.float64, ["C", "O", "W"]),
            complete=done == stream.num_rounds,
            seconds=seconds,
            config={
                **method.describe(),
                "model": model.describe(),
                "stream": stream.description,
                "graph": network.origin,
                "engine": runner.name,
                **({} if delays is None else {"delays": list(delays)}),
                "num_nodes": stream.num_nodes,
                "num_rounds": stream.num_rounds,
                "seed": seed,
            },
            versions=versions(),
            skipped_counts=skipped if skipped.any() else None,
            personal=None if own is None else own.record(done),
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
            delays=delays,
            progress=progress,
            seed=seed,
            measure=True,
            personal=personal,
        ),
        is_alone=is_alone(method),
    )


def is_alone(method: Method) -> bool:
    """Whether nodes of this method hear nobody."""
    return not method.payload and method.exchange == "none"


def _personal(
    model: Model, stream: Stream, seed: Seed, tallying: Tallying | None, *, compiled: bool
) -> PersonalPass:
    """What predicts personally; with a network of its own at every node, if that is not large."""
    network = None
    if isinstance(model, Torch) and model.dim(stream.dim) <= MOST_ALONE:
        blank = Measurements.blank(stream.num_rounds)
        network = ReferenceEngine(Isolated(AUTO), model, stream, blank, seed)
    return PersonalPass(model, stream, seed, tallying, compiled=compiled, network=network)


def check_kinds(method: object, model: object, stream: object) -> None:
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


def classifies(model: Model, stream: Stream) -> bool:
    """Whether a prediction of the model is right or wrong."""
    one = Batch(stream.features[:1], stream.labels[:1])
    stack: Matrix = np.zeros((len(one), model.dim(stream.dim)), model.dtype)
    return model.correct(stack, one) is not None


def versions() -> dict[str, str]:
    """Versions of the packages that determine the numbers of a run."""
    packages = ("oneway", "numpy", "scipy", "numba")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def _plain(seed: Any) -> Seed:
    """A seed in terms JSON can hold, also one of NumPy's integers.

    Raises:
        ConfigError: It is not a whole number, nor a sequence of them.
    """
    seed = seed.tolist() if isinstance(seed, np.ndarray) else seed
    if isinstance(seed, list | tuple | range):
        return [whole_number("seed", each, 0, ConfigError) for each in seed]
    return whole_number("seed", seed, 0, ConfigError)


def _check_memory(model: Model, stream: Stream) -> None:
    """Refuse a network that does not fit into the memory of this machine."""
    dim = model.dim(stream.dim)
    require_memory(
        float(_COPIES) * np.dtype(model.dtype).itemsize * dim * stream.num_nodes,
        f"{stream.num_nodes:,} nodes with {dim:,} parameters each: a simulation of them",
        ConfigError,
        remedy="use fewer nodes, or fewer features",
    )


# Engines.


def _engine(
    name: EngineName,
    delays: tuple[int, int] | None,
    network: Network,
    method: Method,
    model: Model,
) -> Callable[..., Engine]:
    """The class of the engine that runs the rounds.

    Raises:
        ConfigError: It cannot run this.
    """
    if delays is not None:
        _check_delays(delays, name, network)
        return partial(DelayedEngine, delays=delays)
    if name != "reference" and fast_engine.supports(method, model):
        return fast_engine.FastEngine
    if name == "fast":
        raise ConfigError(
            f"engine='fast' has no kernel for {type(method).__name__} with {type(model).__name__}; "
            f"it has kernels for {', '.join(it.name for it in fast_engine.COMPILED)} with the "
            "built-in step rules, without transforms, with the linear models; engine='reference' "
            "runs everything"
        )
    return ReferenceEngine


def _check_delays(delays: Any, engine: EngineName, network: Network) -> None:
    pair: Any = delays if isinstance(delays, tuple | list) else ()
    if not ([type(it) for it in pair] == [int, int] and 1 <= pair[0] <= pair[1]):
        raise ConfigError(
            f"delays are {delays!r}; they must be two whole numbers of rounds, the shortest at "
            "least 1 and the longest not below it"
        )
    if engine == "fast" or not network.constant:
        raise ConfigError(
            f"delays are {delays!r} and engine={engine!r}, with "
            f"{'one graph' if network.constant else 'graphs that change'}; pushes take time in "
            "the reference engine only, over one graph: leave engine out, or give one graph"
        )


# The loop over rounds.


def _run_rounds(
    runner: Engine, network: Network, num_rounds: int, what: str, progress: bool | None
) -> int:
    """Run all rounds, or those until Ctrl-C; return how many were done."""
    done, stretch = 0, 1
    with stoppable() as stop, progress_bar(what, num_rounds, progress) as bar:
        while done < num_rounds and not stop.requested:
            began = time.perf_counter()
            last = min(done + stretch, num_rounds)
            for begin, end, mixing in network.stretches(done, last):
                runner.advance(begin, end, mixing)
            done = last
            bar.update(done)
            took = time.perf_counter() - began
            stretch = 2 * stretch if took < _PACE / 2 else max(1, round(stretch * _PACE / took))
    return done


@dataclass
class _Stop:
    """Whether somebody asked the run to end."""

    requested: bool = False


@contextmanager
def stoppable() -> Iterator[_Stop]:
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
