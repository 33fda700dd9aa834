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
from oneway.simulator.asynchronous import AsynchronousEngine, Schedule
from oneway.simulator.measurements import Measurements, Seed
from oneway.simulator.network import Graphs, Network
from oneway.simulator.personal_pass import PersonalPass
from oneway.simulator.raw_rows import num_classes
from oneway.simulator.reference_engine import ReferenceEngine
from oneway.simulator.run import Run
from oneway.simulator.tallying import Tallying
from oneway.streams import Stream
from oneway.task.conditions import Conditions

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
    conditions: Conditions | None = None,
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
        conditions: Clocks, delays, losses, faults and liars of an asynchronous network, whose k-th
            sample of a node is its row in the k-th round of the stream; None for rounds in which
            every push arrives at once. A round of the run is then a tick, a quarter of the time
            between two samples of a node of ordinary speed, and `run.stream` has the samples in
            the ticks in which nodes came to them. Over one graph, with masses within bounds, as
            peers keep them; the losses of liars are not counted. See `docs/asynchronous.md`.
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
    asked, method, dealt = method, network.method, stream
    schedule = None
    late: dict[str, Any] = {}
    if conditions is not None:
        _check_conditions(conditions, engine, network)
        method = asked.suited_to_peers()
        schedule = Schedule.draw(conditions, stream.num_rounds, stream.num_nodes, seed)
        stream = schedule.stream(stream)
        late = {"conditions": conditions, "schedule": schedule}
    tallying = Tallying(model, stream, num_classes(model, stream)) if measure else None
    make = _engine(engine, method, model)
    if schedule is not None:
        make = partial(AsynchronousEngine, **late)
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
    options: dict[str, Any] = {"engine": engine, "conditions": conditions, "personal": personal}

    def again(again_of: Stream) -> Run:
        of = again_of if schedule is None else dealt
        return simulate(
            method, model, of, graph, progress=progress, seed=seed, measure=True, **options
        )

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
                "num_nodes": stream.num_nodes,
                "num_rounds": stream.num_rounds,
                "seed": seed,
                **(_as_lived(runner, done) if isinstance(runner, AsynchronousEngine) else {}),
            },
            versions=versions(),
            skipped_counts=skipped if skipped.any() else None,
            personal=None if own is None else own.record(done),
        ),
        model=model,
        stream=stream,
        tally=None if tallying is None else tallying.tally,
        again=None if schedule is not None and done < stream.num_rounds else again,
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


def _engine(name: EngineName, method: Method, model: Model) -> Callable[..., Engine]:
    """The class of the engine that runs the rounds.

    Raises:
        ConfigError: It cannot run this.
    """
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


def _check_conditions(conditions: object, engine: EngineName, network: Network) -> None:
    """Refuse what an asynchronous network cannot be run with.

    Raises:
        ConfigError: The conditions are none, or engine, graph or method do not go with them.
    """
    if not isinstance(conditions, Conditions):
        raise ConfigError(
            f"conditions are {conditions!r}; they must be Conditions, for example "
            "Conditions(loss=0.1)"
        )
    if engine != "auto":
        raise ConfigError(
            f"engine is {engine!r}, which is for a network with rounds; leave it or the conditions "
            "out"
        )
    if not network.constant:
        raise ConfigError(
            "graph changes from round to round, and an asynchronous network has no rounds; give "
            "one TrustGraph"
        )
    if network.method.exchange == "average":
        raise ConfigError(
            f"{network.method.name} needs a server that hears all nodes at once, which an "
            "asynchronous network does not have; choose another method, or leave the conditions out"
        )


def _as_lived(runner: AsynchronousEngine, done: int) -> dict[str, Any]:
    """What a record of an asynchronous network says besides."""
    return {
        "conditions": runner.conditions.describe(),
        "virtual_seconds": runner.schedule.tick * done,
        "pushes": runner.pushes,
        "mass_in_flight": runner.mass_in_flight,
        "mass_minted": runner.minted,
        "mass_burned": runner.burned,
    }


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
