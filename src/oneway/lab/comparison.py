"""What the simulator makes of the same graph, samples and order; and what learning alone would.

Both take the steps of the task, which are shorter than the paper's where mass is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from oneway.algorithms import Isolated, OnlinePushSum
from oneway.algorithms.base import Mixing
from oneway.lab.problem import Problem
from oneway.peer.store.snapshot import Journal
from oneway.peer.task.task import Task
from oneway.protocol.steps import STEP_RULES
from oneway.records import Ints, Matrix, NetworkState, Vector
from oneway.simulator import simulate
from oneway.streams.stream import Stream


@dataclass(frozen=True)
class Comparison:
    """Average loss over all samples, each suffered before it was learned from."""

    together: float
    simulated: float
    alone: float


def compare(problem: Problem, journals: Sequence[Journal]) -> Comparison | None:
    """Compare what peers suffered with the simulator, on the very samples they learned from.

    Args:
        problem: What the peers were made for.
        journals: What each has learned from; of peers that joined later, nothing counts.

    Returns:
        None if nothing was learned from.

    Raises:
        DivergenceError: If the simulation leaves the finite numbers.
    """
    own = journals[: problem.graph.num_nodes]
    counts = np.array([journal.samples for journal in own])
    if not counts.any():
        return None
    model, stream = problem.task.build_model(), learned_from(problem.stream, counts)
    steps = TaskSteps(problem.task, stream)
    together = simulate(
        _Together(1.0, steps=steps), model, stream, problem.graph, engine="reference"
    )
    alone = simulate(_Alone(1.0, steps=steps), model, stream, engine="reference")
    return Comparison(
        together=sum(journal.loss_sum for journal in own) / int(counts.sum()),
        simulated=together.average_loss,
        alone=alone.average_loss,
    )


def learned_from(stream: Stream, counts: Ints) -> Stream:
    """The first `counts[node]` samples of every node."""
    places = np.arange(stream.num_rounds)[:, None]
    rows = np.where(places < counts, stream.rows, -1)
    return replace(stream, rows=rows[: int(counts.max())])


class TaskSteps:
    """How far each peer moves its numerator in each round, by the rule of the task."""

    def __init__(self, task: Task, stream: Stream) -> None:
        self._task = task
        self._rule = STEP_RULES[task.step]
        self._stream = stream
        self._curvatures = task.build_model().curvature_bounds(stream.features)

    def applied(self, gradients: Matrix, masses: Vector, round_index: int) -> Matrix:
        """The gradients, each times its node's step."""
        rate = self._task.rate(round_index)
        bounds = self._curvatures
        # A node without a sample has no gradient either; which row it looks up does not matter.
        rows = self._stream.rows[round_index]
        curvatures = [None] * len(rows) if bounds is None else bounds[rows].tolist()
        steps = [
            self._rule(rate, mass, curvature)
            for mass, curvature in zip(masses.tolist(), curvatures, strict=True)
        ]
        applied: Matrix = np.array(steps)[:, None] * gradients
        return applied


@dataclass(frozen=True)
class _Together(OnlinePushSum):
    """Online Push-Sum, with the steps of a task instead of its own."""

    steps: TaskSteps | None = None

    def step(
        self, state: NetworkState, gradients: Matrix, mixing: Mixing | None, round_index: int
    ) -> NetworkState:
        assert self.steps is not None
        applied = self.steps.applied(gradients, state.masses, round_index)
        return OnlinePushSum(1.0).step(state, applied, mixing, round_index)


@dataclass(frozen=True)
class _Alone(Isolated):
    """Every peer by itself, with the steps of a task."""

    steps: TaskSteps | None = None

    def step(
        self, state: NetworkState, gradients: Matrix, mixing: Mixing | None, round_index: int
    ) -> NetworkState:
        assert self.steps is not None
        applied = self.steps.applied(gradients, state.masses, round_index)
        return Isolated(1.0).step(state, applied, mixing, round_index)
