"""How far a peer moves its numerator for one sample.

The paper's step moves the estimate by learning_rate / mass, which explodes where mass is tiny.
"""

from __future__ import annotations

from collections.abc import Callable

STABLE = 0.5
"""Of the step that would make one sample's loss stop falling, how much is taken at most."""


def capped_step(learning_rate: float, mass: float, curvature: float | None) -> float:
    """The step on z: never so long that the estimate overshoots on this very sample.

    Args:
        learning_rate: gamma.
        mass: omega; without a positive one no step is taken.
        curvature: L, the largest second derivative of the sample's loss; None if it has none.

    >>> capped_step(0.5, mass=1.0, curvature=0.25), capped_step(0.5, mass=0.01, curvature=0.25)
    (0.5, 0.02)
    """
    if mass <= 0.0:
        return 0.0
    if not curvature:
        return learning_rate * min(1.0, mass)
    return min(learning_rate, STABLE * mass / curvature)


def mass_step(learning_rate: float, mass: float, _curvature: float | None) -> float:
    """The step on z that moves the estimate by exactly learning_rate times the gradient."""
    return learning_rate * max(mass, 0.0)


def paper_step(learning_rate: float, mass: float, _curvature: float | None) -> float:
    """The step of Algorithm 1: the same on z whatever the mass."""
    return learning_rate if mass > 0.0 else 0.0


StepRule = Callable[[float, float, float | None], float]

STEP_RULES: dict[str, StepRule] = {
    "capped": capped_step,
    "mass": mass_step,
    "paper": paper_step,
}
"""The rules by the name a task gives them."""
