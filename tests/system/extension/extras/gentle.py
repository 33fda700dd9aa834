"""A step rule: the paper's step times the square root of the mass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oneway.methods.step_rules import STEP_RULES, StepRule
from oneway.records import Vector


@STEP_RULES.register
@dataclass(frozen=True)
class Gentle(StepRule):
    """Between the paper's step and that in proportion to mass."""

    name = "gentle"
    power: float = 0.5

    def lengths(self, rate: float, masses: Vector, curvatures: Vector | None) -> Vector:
        """Return gamma * omega^power."""
        return rate * np.maximum(masses, 0.0) ** self.power
