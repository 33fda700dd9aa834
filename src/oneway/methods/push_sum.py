"""Online Push-Sum (OPS), Algorithm 1 of the paper."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from oneway.errors import ConfigError
from oneway.methods.base import Algorithm, Mixing
from oneway.records import Matrix, NetworkState, Vector


@dataclass(frozen=True)
class OnlinePushSum(Algorithm):
    """Every node pushes shares of its numerator and of its mass to those it trusts.

    With W = `mixing[sender, receiver]`, z the numerators, omega the masses, x = z / omega:

        z'     = W.T @ (z - gamma * gradient(x))
        omega' = W.T @ omega

    Rows of W sum to 1, so the total mass never changes, and dividing by the mass removes the bias
    that a directed graph puts on the numerators.

    Attributes:
        learning_rate: gamma, a number or a schedule of the round.
        cap_step: Replace gamma by `gamma * min(cap_step, omega)` at each node; True means 1. A node
            of tiny mass moves its estimate by gamma / omega, which blows up on skewed graphs;
            capped, no estimate moves by more than gamma times its gradient. With infinity every
            estimate moves by exactly gamma times its gradient: the smallest noise, but nodes then
            count by their mass. False, the default, is the paper's step.
    """

    cap_step: bool | float = False

    name = "ops"
    moves_mass = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.cap_step >= 0:
            raise ConfigError(
                f"cap_step is {self.cap_step}; it must be True, False or a number, 0 or more"
            )

    def step(
        self, state: NetworkState, gradients: Matrix, mixing: Mixing | None, round_index: int
    ) -> NetworkState:
        """Descend, push, sum."""
        assert mixing is not None
        steps = self.rate(round_index) * self.step_scale(state.masses)
        descended = state.numerators - steps[:, None] * gradients
        return NetworkState(numerators=mixing.T @ descended, masses=mixing.T @ state.masses)

    def step_scale(self, masses: Vector) -> Vector:
        """What the learning rate is multiplied with at each node: 1, or min(cap_step, omega)."""
        return np.minimum(self.cap_step, masses) if self.cap_step else np.ones_like(masses)

    def describe(self) -> dict[str, Any]:
        """Name and parameters, in terms JSON can hold."""
        # JSON has no infinity.
        cap = self.cap_step if math.isfinite(self.cap_step) else "infinite"
        return {**super().describe(), "cap_step": cap}
