"""Any of the five methods in the simulator, with the steps of a task instead of its own.

A task's steps are shorter than the paper's where mass is small, or where a sample is steep.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from oneway.lab.problem import Problem
from oneway.methods import BY_NAME, Algorithm
from oneway.methods.base import Mixing
from oneway.protocol.steps import STEP_RULES
from oneway.records import Ints, Matrix, NetworkState, Vector
from oneway.simulator import Run, simulate
from oneway.streams.stream import Stream
from oneway.task.task import Task


def run_method(name: str, problem: Problem, stream: Stream) -> Run:
    """Run one method as the peers of a problem would: same graph, same task.

    Args:
        name: As on the command line: ops, dol-symm, dol-asymm, col or local.
        problem: What the peers were made for.
        stream: The samples, some or all of the problem's.

    Raises:
        DivergenceError: If the simulation leaves the finite numbers.
    """
    return simulate(
        with_steps(BY_NAME[name], TaskSteps(problem.task, stream)),
        problem.task.build_model(),
        stream,
        problem.graph,
        engine="reference",
        progress=False,
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

    def describe(self) -> dict[str, Any]:
        """The rule, in terms JSON can hold."""
        return {"learning_rate": self._task.learning_rate, "step": self._task.step}


def with_steps(method: type[Algorithm], steps: TaskSteps) -> Algorithm:
    """A method that takes the steps of a task; where masses stay 1, the rule sees a mass of 1."""

    class Stepped(method):  # type: ignore[valid-type, misc]
        def step(
            self, state: NetworkState, gradients: Matrix, mixing: Mixing | None, round_index: int
        ) -> NetworkState:
            applied = steps.applied(gradients, state.masses, round_index)
            stepped: NetworkState = super().step(state, applied, mixing, round_index)
            return stepped

        def describe(self) -> dict[str, Any]:
            return {"algorithm": method.name, **steps.describe()}

    stepped: Algorithm = Stepped(1.0)
    return stepped
