"""The simulator on a lab's samples: every method on the same graph, with the task's step rule."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from oneway.errors import OnewayError
from oneway.lab.problem import Problem
from oneway.methods import METHODS, Isolated, OnlinePushSum
from oneway.methods.step_rules import Paper
from oneway.metrics import evenly_spread, loss_curve
from oneway.peer.store.snapshot import Journal
from oneway.records import Ints, RunRecord
from oneway.records.network import ReferenceCurve
from oneway.simulator import Run, simulate
from oneway.streams.stream import Stream
from oneway.topology import TrustGraph

ALONE_METHOD = Isolated.name
"""What they would do without each other."""

MOST_POINTS = 200
MOST_ROUNDS = 20_000
"""Curves end here: more would keep a core busy for minutes, and look the same."""


def run_method(name: str, problem: Problem, stream: Stream) -> Run:
    """Run one method, by name, on some or all of a problem's samples: same graph, same task.

    Online Push-Sum steps as published, unless it is what the peers do.

    Raises:
        DivergenceError: If the simulation leaves the finite numbers.
    """
    task = problem.task
    if name != task.method:
        step = Paper.name if name == OnlinePushSum.name else task.step
        task = task.with_method(name, step)
    method, model = task.build_method(), task.build_model()
    # The peers draw their first model from the fingerprint of their task.
    seed = list(problem.task.fingerprint)
    return simulate(method, model, stream, problem.graph, progress=False, seed=seed)


def samples_of(problem: Problem, journals: Sequence[Journal]) -> Stream | None:
    """The samples that the founders learned from by their journals, in order; None if none."""
    counts: Ints = np.array([journal.samples for journal in journals[: problem.graph.num_nodes]])
    if not counts.any():
        return None
    stream = problem.stream
    rows = np.where(np.arange(stream.num_rounds)[:, None] < counts, stream.rows, -1)
    return replace(stream, rows=rows[: int(counts.max())])


def simulate_all(
    problem: Problem,
    stream: Stream,
    note: Callable[[str], object] = lambda _: None,
    methods: Iterable[str] = METHODS,
) -> dict[str, Run]:
    """Run the methods on a stream, by name; one that fails is left out and noted in a sentence."""
    runs = {}
    for name in methods:
        try:
            runs[name] = run_method(name, problem, stream)
        except OnewayError as error:
            note(f"the simulation of {name} is left out: {error}")
    return runs


def reference_curve(record: RunRecord, graph: TrustGraph) -> ReferenceCurve:
    """The average loss so far, at no more than a few hundred evenly spaced numbers of samples."""
    places = evenly_spread(record.num_rounds, MOST_POINTS)
    return ReferenceCurve(
        algorithm=record.algorithm,
        arrows=graph.num_edges,
        one_way=round((1.0 - graph.reciprocity) * graph.num_edges),
        samples=(places + 1).tolist(),
        average_loss=loss_curve(record)[places].tolist(),
    )


def compute_references(
    problem: Problem,
    deliver: Callable[[list[ReferenceCurve]], None],
    note: Callable[[str], object],
    stop: threading.Event,
) -> None:
    """Compute the curves in a thread of its own, one method after the other, until `stop` is set.

    From that thread, `deliver` gets all curves at once, and `note` a sentence on what failed.
    """

    def compute() -> None:
        curves, stream = [], problem.stream.head(MOST_ROUNDS)
        for name in METHODS:
            if stop.is_set():
                return
            runs = simulate_all(problem, stream, note, [name])
            curves += [reference_curve(run.record, problem.graph) for run in runs.values()]
        deliver(curves)

    # A daemon: a lab that is left in a hurry does not wait for a simulation.
    threading.Thread(target=compute, name="references", daemon=True).start()
