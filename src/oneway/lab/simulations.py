"""The simulator on a lab's samples: the peers' method, learning alone, and mutual trust only.

Nodes predict personally, as peers do, where the model lets them; alone is one of their experts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from oneway.errors import ConfigError, OnewayError
from oneway.lab.problem import Problem
from oneway.methods import Isolated, MutualGossip, OnlinePushSum
from oneway.methods.step_rules import Paper
from oneway.metrics import evenly_spread, loss_curve
from oneway.models import Model
from oneway.peer.store.snapshot import Journal
from oneway.personal import link_of
from oneway.records import Ints, RunRecord, Vector
from oneway.records.network import ReferenceCurve
from oneway.records.values import ALONE, YOURS
from oneway.simulator import Run, simulate
from oneway.streams.stream import Stream
from oneway.topology import TrustGraph

MOST_POINTS = 200
MOST_ROUNDS = 20_000
"""Reference curves end here: more rounds would keep a core busy for minutes."""


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
    personal = bool(method.payload) and _has_personal(model)
    return simulate(
        method, model, stream, problem.graph, progress=False, seed=seed, personal=personal
    )


def _has_personal(model: Model) -> bool:
    try:
        link_of(model)
    except ConfigError:
        return False
    return True


def samples_of(problem: Problem, journals: Sequence[Journal]) -> Stream | None:
    """The samples that the founders learned from by their journals, in order; None if none."""
    counts: Ints = np.array([journal.samples for journal in journals[: problem.graph.num_nodes]])
    if not counts.any():
        return None
    stream = problem.stream
    rows = np.where(np.arange(stream.num_rounds)[:, None] < counts, stream.rows, -1)
    return replace(stream, rows=rows[: int(counts.max())])


def compared_methods(problem: Problem) -> list[str]:
    """The methods that a lab is compared with, by name."""
    return list(dict.fromkeys([problem.task.method, MutualGossip.name]))


def simulate_all(
    problem: Problem, stream: Stream, note: Callable[[str], object] = lambda _: None
) -> dict[str, Run]:
    """Run the compared methods on a stream; one that fails is left out and noted."""
    runs = {}
    for name in compared_methods(problem):
        try:
            runs[name] = run_method(name, problem, stream)
        except OnewayError as error:
            note(f"the simulation of {name} is left out: {error}")
    return runs


def reference_curves(records: Sequence[RunRecord], graph: TrustGraph) -> list[ReferenceCurve]:
    """The average losses so far, at no more than a few hundred evenly spaced numbers of samples.

    Of what answers in each run; and of each node alone, by the first run that knows it.
    """
    curves = [
        (it.method, it.personal.loss_curves[:, YOURS] if it.personal else loss_curve(it))
        for it in records
    ]
    alone = [it.personal.loss_curves[:, ALONE] for it in records if it.personal]
    curves[1:1] = [(Isolated.name, it) for it in alone[:1]]
    return [_reference(name, curve, graph) for name, curve in curves]


def _reference(name: str, curve: Vector, graph: TrustGraph) -> ReferenceCurve:
    places = evenly_spread(len(curve), MOST_POINTS)
    return ReferenceCurve(
        method=name,
        arrows=graph.num_edges,
        one_way=round((1.0 - graph.reciprocity) * graph.num_edges),
        samples=(places + 1).tolist(),
        average_loss=curve[places].tolist(),
    )


class References:
    """The simulations of a lab's samples, computed in a thread while the peers learn.

    Attributes:
        runs: By method, once all are computed.
    """

    def __init__(self, problem: Problem, note: Callable[[str], object]) -> None:
        """Prepare; `note` gets a sentence about a simulation that fails."""
        self.runs: dict[str, Run] = {}
        self._thread: threading.Thread | None = None
        self._problem = problem
        self._note = note
        self._stream = problem.stream.head(MOST_ROUNDS)

    def start(self, deliver: Callable[[list[ReferenceCurve]], None]) -> None:
        """Compute, and deliver all curves at once from the thread."""

        def compute() -> None:
            self.runs = simulate_all(self._problem, self._stream, self._note)
            graph = self._problem.graph
            deliver(reference_curves([run.record for run in self.runs.values()], graph))

        # A daemon: a lab that is left in a hurry does not wait for a simulation.
        self._thread = threading.Thread(target=compute, name="references", daemon=True)
        self._thread.start()

    def runs_on(self, stream: Stream) -> dict[str, Run]:
        """The simulations on a stream; those of the thread, if they are of the same samples."""
        if self._thread is not None and np.array_equal(stream.rows, self._stream.rows):
            self._thread.join()
            return self.runs
        return simulate_all(self._problem, stream, self._note)
