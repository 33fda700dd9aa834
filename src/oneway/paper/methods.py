"""The methods of the reproduction: the paper's own, as published, and variants beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from oneway.methods import Gradients, Method, OnlinePushSum, State
from oneway.methods.labels import Label, label_of
from oneway.records import Matrix
from oneway.task.learning import Learning
from oneway.task.privacy import NO_PRIVACY, Privacy

PUBLISHED = ("ops", "dol-symm", "dol-asymm", "col", "local")
"""The paper's own methods."""
VARIANTS: dict[str, dict[str, Any]] = {
    **{f"{name}-published": {"method": name, "step": "paper"} for name in PUBLISHED},
    **{
        f"{name}-plain": {"method": name, "step": "paper"} for name in ("relay", "tracking", "pull")
    },
    "ops-capped": {"method": "ops", "step": "capped"},
    "ops-mass": {"method": "ops", "step": "mass"},
    "ops-curvature": {"method": "ops", "step": "curvature"},
    "ops-mass-twice": {"method": "ops", "step": "mass", "mixes": 2},
    "ops-mass-adagrad": {"method": "ops", "step": "mass", "transforms": ("adagrad",)},
    "relay-curvature": {"method": "relay", "step": "curvature"},
    "relay-mass": {"method": "relay", "step": "paper", "options": {"relay": {"deposit": "mass"}}},
    "relay-adagrad": {
        "method": "relay",
        "step": "paper",
        "options": {"relay": {"deposit_transforms": ("adagrad",)}},
    },
}
"""What `Learning` is told, by what it is called here: methods whose step is the one that is said,
also with batches, where others have that of a new task."""
_LABELS = {
    "ops-published": replace(label_of("ops"), title="Online Push-Sum, as published"),
    "relay-curvature": Label(
        "Relay, curvature step", "steps that never overshoot", "#44aa99", "dashed"
    ),
    "ops-capped": Label(
        "Online Push-Sum, capped step", "step shortened below mass 1", "#56b4e9", "dashed"
    ),
    "ops-mass": Label(
        "Online Push-Sum, mass step", "step in proportion to mass", "#e69f00", "solid"
    ),
    "ops-curvature": Label(
        "Online Push-Sum, curvature step", "step that never overshoots", "#999933", "dashdot"
    ),
    "ops-mass-twice": Label(
        "Online Push-Sum, mass step, two mixes", "two exchanges a step", "#ddaa33", "dotted"
    ),
    "ops-mass-adagrad": Label(
        "Online Push-Sum, mass step, AdaGrad", "a step of its own per parameter", "#994f00", "solid"
    ),
    "relay-mass": Label("Relay, by mass", "deposits by mass alone", "#6699cc", "dashed"),
    "relay-adagrad": Label(
        "Relay, AdaGrad deposits", "deposits scaled per parameter", "#aa4499", "dashdot"
    ),
}


def make(method: str, rate: float) -> Method:
    """A method at a learning rate, every sample a step: as published, or one of the `VARIANTS`."""
    return _built(method, rate, {"step": "paper", "samples_per_push": 1, "privacy": NO_PRIVACY})


def make_private(method: str, rate: float, epsilon: float, dim: int) -> Method:
    """A method at a learning rate as a new task has it, noised for epsilon; infinite for no noise.

    A method that sends nothing has neither batches nor noise.
    """
    privacy = NO_PRIVACY if math.isinf(epsilon) else Privacy(epsilon=epsilon)
    return _built(method, rate, {"privacy": privacy}, dim)


def _built(method: str, rate: float, told: dict[str, Any], dim: int = 1) -> Method:
    wanted = told | VARIANTS.get(method, {"method": method})
    return Learning(learning_rate=rate, **wanted).build_method(dim)


def label(method: str) -> Label:
    """How a method of `make` is called and drawn."""
    return _LABELS.get(method) or label_of(method.removesuffix("-published").removesuffix("-plain"))


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
