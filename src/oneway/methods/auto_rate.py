"""Adaptive learning rate: AdaGrad by norm, of what a node's steps are made of; and schedules.

Every node remembers s, the sum of the squared norms of its updates (a gradient; or a batch, clipped
and noised), and its rate is

    min(ceiling, reach / sqrt(s))

so steps become shorter as one over the root of their number, whatever the size of the gradients, no
step moves a model of mass 1 by more than `reach`, and T steps of nothing but noise carry a model of
mass 1 no further than about reach * sqrt(log T). Streeter and McMahan (2010), Duchi, Hazan and
Singer (2011); by norm as in Ward, Wu and Bottou (2019).

Where samples are private, s is a function of the noised batches alone: post-processing, which costs
no privacy. A sample's curvature limits its gradient by the rate of the batches before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from oneway.errors import ConfigError
from oneway.records import Matrix, Vector
from oneway.registry import Registry

AUTO: Literal["auto"] = "auto"
"""The learning rate of a method that chooses it as it learns."""
Rate: TypeAlias = float | Literal["auto"]
"""A learning rate as specifications have it."""
SQUARES = "auto.squares"
"""Name of the memory of s, `[node, 1]`."""
STABLE = 0.5
"""Of the step that would make the loss of a standardised sample stop falling, how much at most."""


@dataclass(frozen=True)
class AutoRate:
    """How a learning rate is chosen from what was learned so far; rows are nodes.

    Attributes:
        reach: How far from the start models are looked for. 2 suits logistic regression on
            standardised features.
        ceiling: The largest rate. If None, `reach` over the number of parameters.
    """

    reach: float = 2.0
    ceiling: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("reach", self.reach), ("ceiling", self.ceiling)):
            if value is not None and not (isinstance(value, int | float) and 0 < value < math.inf):
                raise ConfigError(f"{name} is {value!r}; it must be a finite number above 0")

    def suited(self, curvature: float | None, num_features: int) -> AutoRate:
        """The same for a model with this curvature at a sample of standardised features.

        Such a sample, with its constant feature, has about the squared length num_features + 1. The
        ceiling is half the step to where its loss stops falling, and the reach is that times the
        squared length: 2 for logistic regression, 1 for softmax, 1/2 for least squares of labels
        with variance 1. Without a curvature the reach stays; a ceiling that is given stays, too.

        >>> AutoRate().suited(0.25 * 19, 18)
        AutoRate(reach=2.0, ceiling=0.10526315789473684)
        """
        if self.ceiling is not None:
            return self
        if curvature is None:
            return replace(self, ceiling=self.reach / (num_features + 1))
        ceiling = STABLE / curvature
        return replace(self, reach=ceiling * (num_features + 1), ceiling=ceiling)

    def start(self, num_nodes: int) -> dict[str, Matrix]:
        """The memory before the first step."""
        return {SQUARES: np.zeros((num_nodes, 1))}

    def most(self, dim: int) -> float:
        """The largest rate with so many parameters."""
        return self.reach / dim if self.ceiling is None else self.ceiling

    def rates(self, squares: Matrix, dim: int) -> Vector:
        """The rate of every node."""
        with np.errstate(divide="ignore"):
            rates: Vector = np.minimum(self.most(dim), self.reach / np.sqrt(squares[:, 0]))
        return rates

    def inverted(self, squares: float, length: float) -> float:
        """How much longer s became by a step of this length, given s before it; what others see.

        >>> rate = AutoRate(reach=5.0, ceiling=2.0)
        >>> rate.inverted(9.0, 5.0 / 5.0 * 4.0)  # an update of length 4 after 3: the rate is 5/5
        16.0
        """
        most = self.most(1)
        if squares + (length / most) ** 2 <= (self.reach / most) ** 2:
            return (length / most) ** 2
        return squares * length**2 / max(self.reach**2 - length**2, 1e-12 * self.reach**2)

    def grown(self, squares: Matrix, updates: Matrix) -> Matrix:
        """The memory after updates `[node, dim]`."""
        grown: Matrix = squares + np.einsum("nd,nd->n", updates, updates)[:, None]
        return grown

    def describe(self) -> dict[str, Any]:
        """Its name alone: all else follows from the model."""
        return {"name": AUTO}


# Rates that are given.

Schedule: TypeAlias = Callable[[int], float]
"""`schedule(index)`: the learning rate of step `index`, counted from 0."""


@dataclass(frozen=True)
class InverseSqrt:
    """The schedule `scale / sqrt(index + 1)`.

    >>> InverseSqrt(0.5)(3)
    0.25
    """

    scale: float

    def __call__(self, index: int) -> float:
        """The learning rate of this step."""
        return self.scale / math.sqrt(index + 1)


SCHEDULES: Registry[Callable[[float], float | Schedule]] = Registry("schedule")
"""By name: from the first learning rate to a number or a schedule."""
SCHEDULES.register(float, "constant")
SCHEDULES.register(InverseSqrt, "inverse-sqrt")
