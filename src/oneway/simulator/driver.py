"""Run a method over a stream: check what is given, run the rounds, write the result down."""

from __future__ import annotations

import platform
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from oneway.errors import ConfigError
from oneway.files.typed_values import whole_number
from oneway.methods import Isolated, Method
from oneway.models import Model
from oneway.records import Batch, Matrix, RunRecord, checksum
from oneway.simulator.checkpoint import CHECKPOINT_SECONDS, Checkpoint
from oneway.simulator.engine_choice import (
    EngineChoice,
    EngineName,
    Parts,
    Precision,
    check_memory,
)
from oneway.simulator.measurements import Measurements, Seed
from oneway.simulator.network import Graphs, Network
from oneway.simulator.raw_rows import num_classes
from oneway.simulator.run import Run
from oneway.simulator.run_loop import RunLoop
from oneway.simulator.tallying import Tallying
from oneway.streams import Stream


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
    parts: Parts | None = None,
    disagreement_every: int | None = None,
    checkpoint: Path | str | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Run:
    """Run every node of a network through a stream.

    Ctrl-C ends the run after the stretch of rounds it is in (about a tenth of a second); what was
    computed so far is returned with `run.complete` False. A second Ctrl-C interrupts at once. A run
    with a `checkpoint` goes on from there when it is started again, also after a crash.

    Args:
        method: How nodes learn, with its learning rate.
        model: What is learned.
        stream: The samples of every node in every round.
        graph: Who sends to whom: a `TrustGraph`, a sequence of graphs that take turns, or a
            function of the round. `Centralised` and `Isolated` need none.
        engine: "reference" (NumPy, any method and model), "fast" (compiled, where it has a kernel),
            or "auto": fast where it can. "ray" spreads one network over the machines of a Ray
            cluster, "ray://HOST:PORT" over those of the one there: the same bits, and slower than
            one process wherever that has the memory (docs/clusters.md).
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
        parts: For "ray", into how many parts nodes are divided, or the part of each node, from 0
            on, or a file with that; by default one for each machine.
        disagreement_every: For "ray", disagreement is measured after so many rounds and the last,
            10 by default, and is nan elsewhere.
        checkpoint: A folder. All that is needed to go on is written there now and then; a run that
            finds it there goes on, and ends with the same bits as one that was never interrupted.
        checkpoint_seconds: How long to wait between two of them, at least.

    Raises:
        ConfigError: If an argument is not valid, or `engine="fast"` has no kernel for this.
        DataError: If the labels do not fit the model.
        GraphError: If the graph does not fit the stream, or is not strongly connected; if parts do
            not fit the network, or one is empty.
        StoreError: If the checkpoint is damaged, that of another run, or in use by one.
        ClusterError: If a Ray cluster does not answer, or does not fit.
        DivergenceError: If the numbers leave the finite range.
    """
    check_kinds(method, model, stream)
    seed = _plain(seed)
    choice = EngineChoice(engine, delays, parts, disagreement_every, precision)
    model = model.shaped(stream.shape).told(stream.dim, stream.labels)
    check_memory(model, stream, choice)
    model.check_labels(stream.labels)
    network = Network(method, graph, stream, progress)
    tallying = Tallying(model, stream, num_classes(model, stream)) if measure else None
    measurements = Measurements.blank(stream.num_rounds, tallying)
    with ExitStack() as stack:
        runner, about = choice.begin(method, model, stream, network, measurements, seed, stack)
        config = {
            **method.describe(),
            "model": model.describe(),
            "stream": stream.description,
            "graph": network.origin,
            "engine": runner.name,
            **about,
            "num_nodes": stream.num_nodes,
            "num_rounds": stream.num_rounds,
            "seed": seed,
        }
        kept = None
        if checkpoint is not None:
            told = _identity(config, method, stream, measure)
            kept = Checkpoint(checkpoint, checkpoint_seconds, told)
            stack.enter_context(kept.held())
        loop = RunLoop(runner, network, measurements, stream.num_rounds, kept)
        loop.run(f"{method.name}, rounds", progress)
        if loop.restarts:
            config["restarts"] = loop.restarts
        state, done = loop.state, loop.done
    assert state is not None
    skipped = measurements.skipped_counts[:done]
    return Run(
        record=RunRecord(
            algorithm=method.name,
            loss_sums=measurements.loss_sums[:done],
            sample_counts=(stream.rows[:done] >= 0).sum(axis=1)
            - measurements.lossless_counts[:done],
            correct_counts=measurements.correct_counts[:done]
            if classifies(model, stream)
            else None,
            disagreement=measurements.disagreement[:done],
            numerators=np.require(state.numerators, choice.held_type(model), ["C", "O", "W"]),
            masses=np.require(state.masses, np.float64, ["C", "O", "W"]),
            complete=done == stream.num_rounds,
            seconds=loop.seconds,
            config=config,
            versions=versions(),
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
            parts=parts,
            disagreement_every=disagreement_every,
        ),
        alone=alone_run(method, model, progress, seed, choice),
    )


def alone_run(
    method: Method,
    model: Model,
    progress: bool | None,
    seed: Seed,
    choice: EngineChoice | None = None,
) -> Any:
    """How to run the same on a stream with every node alone; None if it is."""
    if not method.payload and method.exchange == "none":
        return None
    isolated = Isolated(method.learning_rate, method.step, method.transforms)
    elsewhere = {} if choice is None else choice.elsewhere
    return partial(simulate, isolated, model, progress=progress, seed=seed, **elsewhere)


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


def _plain(seed: Any) -> Seed:
    """A seed in terms JSON can hold, also one of NumPy's integers.

    Raises:
        ConfigError: It is none.
    """
    seed = seed.tolist() if isinstance(seed, np.ndarray) else seed
    if isinstance(seed, list | tuple | range):
        return [whole_number("seed", each, 0, ConfigError) for each in seed]
    return whole_number("seed", seed, 0, ConfigError)


def _identity(
    config: dict[str, Any], method: Method, stream: Stream, measure: bool
) -> dict[str, Any]:
    """All that the numbers of a run follow from, to tell its checkpoint from others."""
    return {
        **config,
        "learning_rates": checksum(method.rates(0, stream.num_rounds)),
        "features": checksum(stream.features),
        "measure": measure,
        "versions": versions(),
    }


def classifies(model: Model, stream: Stream) -> bool:
    """Whether a prediction of the model is right or wrong."""
    one = Batch(stream.features[:1], stream.labels[:1])
    stack: Matrix = np.zeros((len(one), model.dim(stream.dim)), model.dtype)
    return model.correct(stack, one) is not None


def versions() -> dict[str, str]:
    """What a run was made with, by package."""
    packages = ("oneway", "numpy", "scipy", "numba")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
