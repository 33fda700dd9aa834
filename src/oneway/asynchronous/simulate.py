"""Simulate an asynchronous network in virtual time: the entry to both levels."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib import import_module
from typing import Any, get_args

import numpy as np

from oneway.asynchronous.conditions import Conditions, Level
from oneway.asynchronous.outcome import Outcome
from oneway.errors import ConfigError
from oneway.files.typed_values import whole_number
from oneway.methods import Method
from oneway.models import Model
from oneway.records import RunRecord
from oneway.simulator.driver import alone_run, check_kinds, versions
from oneway.simulator.network import Network
from oneway.simulator.run import Run
from oneway.streams import Stream
from oneway.topology import TrustGraph

_AS_USUAL = Conditions()


def simulate_async(
    method: Method,
    model: Model,
    stream: Stream,
    graph: TrustGraph | None = None,
    *,
    conditions: Conditions = _AS_USUAL,
    level: Level = "fast",
    seed: int = 0,
    progress: bool | None = None,
) -> Run:
    """Run a network of peers with clocks of their own, in virtual time.

    The k-th sample of a node is its row in the k-th round of the stream, at a moment of its own.
    Time is cut into as many bins as the stream has rounds: a bin of the run is what a round is in
    `simulate`, about the time in which a node of ordinary speed has one sample. Ctrl-C ends the run
    after the bin it is in.

    Args:
        method: How nodes learn, with its learning rate.
        model: What is learned.
        stream: The samples of every node.
        graph: Who sends to whom. `Isolated` needs none.
        conditions: Clocks, links, faults and liars, and the limits of the peers.
        level: "fast": a compiled event loop, for many nodes; "exact": the state machine of the
            peers themselves, whose books are audited in the end.
        seed: Of all that is random; the same seed gives the same bits.
        progress: Show a progress bar; by default in a terminal or a notebook, if the run is long.

    Returns:
        A run as of `simulate`. Its config has `conditions`, `traffic`, `virtual_seconds`,
        `mass_in_flight` and, of the exact level, `exact_books`.

    Raises:
        ConfigError: If an argument is not valid, or the level cannot run this.
        DataError: If the labels do not fit the model.
        GraphError: If the graph does not fit the stream, or is not strongly connected.

    >>> import oneway as ow
    >>> stream = ow.streams.synthetic(num_samples=200, num_features=3, seed=1).table.deal(8)
    >>> graph = ow.TrustGraph.random(num_nodes=8, max_receivers=3, seed=1)
    >>> run = ow.simulate_async(
    ...     ow.Relay("auto"), ow.models.LogisticRegression(), stream, graph,
    ...     conditions=ow.Conditions(loss=0.1), level="exact",
    ... )
    >>> run.record.config["exact_books"]
    True
    """
    check_kinds(method, model, stream)
    if not isinstance(conditions, Conditions):
        raise ConfigError(
            f"conditions are {conditions!r}; they must be Conditions, for example "
            "Conditions(loss=0.1)"
        )
    if level not in get_args(Level):
        raise ConfigError(f"level is {level!r}; it must be 'fast' or 'exact'")
    seed = whole_number("seed", seed, 0, ConfigError)
    model = model.shaped(stream.shape).told(stream.dim, stream.labels)
    model.check_labels(stream.labels)
    network = Network(method, graph, stream)
    if not network.constant:
        raise ConfigError(
            "graph changes from round to round, and an asynchronous network has no rounds; give "
            "one TrustGraph"
        )
    if method.exchange == "graph" and graph is not None:
        graph = network.in_order(graph)
    run_level = getattr(import_module(f"oneway.asynchronous.{level}"), f"run_{level}")
    started = time.perf_counter()
    outcome: Outcome = run_level(
        method, model, stream, graph, conditions, seed, bins=stream.num_rounds, progress=progress
    )
    seconds = time.perf_counter() - started
    config = {
        **method.describe(),
        "model": model.describe(),
        "stream": stream.description,
        "graph": network.origin,
        "engine": f"asynchronous, {level}",
        "level": level,
        "conditions": conditions.describe(),
        "num_nodes": stream.num_nodes,
        "num_rounds": stream.num_rounds,
        "seed": seed,
        **_told(outcome),
    }
    return Run(
        record=RunRecord(
            algorithm=method.name,
            loss_sums=outcome.loss_sums,
            sample_counts=outcome.sample_counts,
            correct_counts=outcome.correct_counts,
            disagreement=outcome.disagreement,
            numerators=outcome.numerators,
            masses=outcome.masses,
            complete=outcome.complete,
            seconds=seconds,
            config=config,
            versions=versions(),
        ),
        model=model,
        stream=_learned(stream, outcome),
        alone=alone_run(method, model, progress, seed),
    )


def _told(outcome: Outcome) -> dict[str, Any]:
    """What a run has besides that of a synchronous one."""
    return {
        "virtual_seconds": outcome.seconds,
        "traffic": outcome.traffic.describe(),
        "mass_in_flight": outcome.mass_in_flight,
        "exact_books": outcome.exact_books,
        "drained_after": outcome.drained_after,
    }


def _learned(stream: Stream, outcome: Outcome) -> Stream:
    """The samples that were learned from, so that baselines are of the same ones."""
    if outcome.learned is None:
        return stream
    reached = np.arange(stream.num_rounds)[:, None] < outcome.learned[None, :]
    return replace(stream, rows=np.where(reached, stream.rows, -1))
