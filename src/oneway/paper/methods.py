"""The methods of the reproduction: the paper's own, as published, and OPS with other steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from oneway.methods import METHODS, STEP_RULES, Gradients, Method, OnlinePushSum, State
from oneway.records import Matrix, Vector
from oneway.report.labels import Label, label_of
from oneway.task.learning import Learning
from oneway.task.privacy import NO_PRIVACY, Privacy

STEPS = {"ops": "paper", "ops-capped": "capped", "ops-mass": "mass"}
"""OPS by its step rule: as published, learning rate * min(1, mass), and learning rate * mass."""
_LABELS = {
    "ops-capped": Label(
        "Online Push-Sum, capped step", "step shortened below mass 1", "#56b4e9", "dashed"
    ),
    "ops-mass": Label(
        "Online Push-Sum, mass step", "step in proportion to mass", "#e69f00", "solid"
    ),
}


def make(method: str, rate: float) -> Method:
    """A method at a learning rate: as published, or OPS with one of the `STEPS`."""
    if method in STEPS:
        return OnlinePushSum(rate, step=STEPS[method])
    return METHODS[method](rate, step="paper")


def make_private(method: str, rate: float, epsilon: float, dim: int) -> Method:
    """A method at a learning rate as a new task has it, noised for epsilon; infinite for no noise.

    A method that sends nothing has neither batches nor noise.
    """
    privacy = NO_PRIVACY if math.isinf(epsilon) else Privacy(epsilon=epsilon)
    return Learning(method=method, learning_rate=rate, privacy=privacy).build_method(dim)


def label(method: str) -> Label:
    """How a method of `make` is called and drawn."""
    return _LABELS.get(method) or label_of(method)


def step_scale(method: str, masses: Vector) -> Vector:
    """What the learning rate is multiplied with at each node, by the step rule of an OPS."""
    return STEP_RULES[STEPS[method]]().lengths(1.0, masses, None)


@dataclass
class Notes:
    """What a run met: all the proofs talk about."""

    estimates: list[Matrix] = field(default_factory=list)
    largest_gradient: float = 0.0
    squared_gradients: float = 0.0


@dataclass(frozen=True)
class WatchedPushSum(OnlinePushSum):
    """Push-sum as published, noting gradients in all rounds and estimates at checkpoints."""

    checkpoints: frozenset[int] = frozenset()
    notes: Notes = field(default_factory=Notes)

    def local_step(self, state: State, gradients: Gradients, rng: np.random.Generator) -> State:
        """Take notes, then descend."""
        squares = np.einsum("nd,nd->n", gradients.values, gradients.values)
        self.notes.squared_gradients += float(squares.sum())
        self.notes.largest_gradient = max(
            self.notes.largest_gradient, float(np.sqrt(squares.max()))
        )
        if gradients.index in self.checkpoints:
            self.notes.estimates.append(self.estimate(state))
        return super().local_step(state, gradients, rng)
