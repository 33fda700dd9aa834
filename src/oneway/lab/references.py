"""The five methods in the simulator on a lab's samples: curves to see the real peers against."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from queue import SimpleQueue

from oneway.errors import OnewayError
from oneway.lab.methods import run_method
from oneway.lab.problem import Problem
from oneway.methods import BY_NAME
from oneway.metrics import evenly_spread, loss_curve
from oneway.records import RunRecord
from oneway.records.network import ReferenceCurve
from oneway.simulator import Run
from oneway.streams.stream import Stream
from oneway.topology import TrustGraph

MOST_POINTS = 200
MOST_ROUNDS = 20_000
"""Curves end here: more would keep a core busy for minutes, and look the same."""


def simulate_all(
    problem: Problem,
    stream: Stream,
    note: Callable[[str], object] = lambda _: None,
    methods: Iterable[str] = BY_NAME,
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


class References:
    """Computes the curves in a thread of its own, one method after the other."""

    def __init__(self, problem: Problem, deliver: Callable[[list[ReferenceCurve]], None]) -> None:
        """Begin to compute.

        Args:
            problem: What the peers were made for.
            deliver: Called once with all the curves, from the thread.
        """
        self._problem = problem
        self._deliver = deliver
        self._notes: SimpleQueue[str] = SimpleQueue()
        self._stop = threading.Event()
        # A daemon: a lab that is left in a hurry does not wait for a simulation.
        self._thread = threading.Thread(target=self._run, name="references", daemon=True)
        self._thread.start()

    def notes(self) -> list[str]:
        """What went wrong since it was last asked, in sentences."""
        return [self._notes.get() for _ in range(self._notes.qsize())]

    def close(self) -> None:
        """Begin no further method."""
        self._stop.set()

    def _run(self) -> None:
        stream = self._problem.stream.head(MOST_ROUNDS)
        curves = []
        for name in BY_NAME:
            if self._stop.is_set():
                return
            runs = simulate_all(self._problem, stream, self._notes.put, [name])
            graph = self._problem.graph
            curves += [reference_curve(run.record, graph) for run in runs.values()]
        self._deliver(curves)
