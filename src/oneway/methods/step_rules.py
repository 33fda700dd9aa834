"""Step rules: how far a node moves its numerator, given its learning rate, its mass and curvature.

A step of length s on the numerator moves the estimate z / omega by s / omega. The paper's step is
the same at every mass, so every sample counts alike, but where mass is tiny the estimate leaps.
The other rules shorten it there; nodes of little mass then count for less, which is a bias.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from oneway.errors import ConfigError
from oneway.records import Vector
from oneway.registry import Registry, describe


@dataclass(frozen=True)
class StepRule(ABC):
    """The length of a step, for one row or for one per node."""

    name: ClassVar[str]
    """Short name, as in a task and on the command line."""
    needs_curvature: ClassVar[bool] = False
    """Whether `lengths` makes use of curvatures."""

    @abstractmethod
    def lengths(self, rate: float | Vector, masses: Vector, curvatures: Vector | None) -> Vector:
        """Step lengths on the numerators, `[node]`.

        Args:
            rate: gamma, for all nodes or one per node.
            masses: omega; without a positive one the step must be 0.
            curvatures: L, the largest second derivative of the node's loss; None if it has none.
        """

    def describe(self) -> dict[str, Any]:
        """Name and parameters, in terms JSON can hold."""
        return describe(self)


STEP_RULES: Registry[type[StepRule]] = Registry("step")
"""The step rules by name."""

DEFAULT_STEP = "curvature"
"""What a specification (task, command line, lab, peer) takes by default."""


@STEP_RULES.register
@dataclass(frozen=True)
class Paper(StepRule):
    """Algorithm 1: gamma, whatever the mass."""

    name = "paper"

    def lengths(self, rate: float | Vector, masses: Vector, curvatures: Vector | None) -> Vector:
        """Return gamma."""
        return np.where(masses > 0.0, rate, 0.0)


@STEP_RULES.register
@dataclass(frozen=True)
class Capped(StepRule):
    """gamma * min(cap, omega): no estimate moves by more than gamma times its gradient.

    >>> Capped().lengths(0.5, np.array([2.0, 0.01]), None)
    array([0.5  , 0.005])
    """

    name = "capped"
    cap: float = 1.0

    def __post_init__(self) -> None:
        if not (isinstance(self.cap, int | float) and self.cap > 0 and math.isfinite(self.cap)):
            raise ConfigError(
                f"cap is {self.cap!r}; it must be a finite number above 0, 1 is usual "
                "(step 'mass' has no cap)"
            )

    def lengths(self, rate: float | Vector, masses: Vector, curvatures: Vector | None) -> Vector:
        """Return gamma * min(cap, omega)."""
        capped: Vector = rate * np.minimum(self.cap, np.maximum(masses, 0.0))
        return capped


@STEP_RULES.register
@dataclass(frozen=True)
class Mass(StepRule):
    """gamma * omega: every estimate moves by exactly gamma times its gradient.

    The smallest noise, but samples count by their node's mass.
    """

    name = "mass"

    def lengths(self, rate: float | Vector, masses: Vector, curvatures: Vector | None) -> Vector:
        """Return gamma * omega."""
        lengths: Vector = rate * np.maximum(masses, 0.0)
        return lengths


@STEP_RULES.register
@dataclass(frozen=True)
class Curvature(StepRule):
    """min(gamma, stable * omega / L): the paper's step, unless it would overshoot on this sample.

    L / omega is the curvature of the loss seen from the numerator; a step of omega / L goes to the
    minimum of the quadratic with that curvature. Where a loss has no curvature bound: as `Capped`.

    >>> Curvature().lengths(0.5, np.array([1.0, 0.01]), np.array([0.25, 0.25]))
    array([0.5 , 0.02])

    Attributes:
        stable: Of the step that would make the sample's loss stop falling, how much at most.
    """

    name = "curvature"
    needs_curvature = True
    stable: float = 0.5

    def __post_init__(self) -> None:
        if not (isinstance(self.stable, int | float) and 0 < self.stable <= 2):
            raise ConfigError(f"stable is {self.stable!r}; it must be above 0 and at most 2")

    def lengths(self, rate: float | Vector, masses: Vector, curvatures: Vector | None) -> Vector:
        """Return min(gamma, stable * omega / L)."""
        if curvatures is None:
            return Capped().lengths(rate, masses, None)
        if (curvatures > 0.0).all():
            return np.minimum(rate, self.stable * np.maximum(masses, 0.0) / curvatures)
        bent = curvatures > 0.0
        limited = self.lengths(rate, masses, np.where(bent, curvatures, 1.0))
        return np.where(bent, limited, self.lengths(rate, masses, None))
