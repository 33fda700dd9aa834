"""Learning-rate schedules: a learning rate that depends on how many steps came before."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from oneway.registry import Registry

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
