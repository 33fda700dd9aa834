"""Online Push-Sum (OPS), Algorithm 1 of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oneway.algorithms.base import Algorithm, Mixing
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
        cap_step: Replace gamma by `gamma * min(1, omega)` at each node. A node of tiny mass moves
            its estimate by gamma / omega, which blows up on skewed graphs; capped, no estimate
            moves by more than gamma times its gradient. Off by default, as in the paper.
    """

    cap_step: bool = False

    name = "ops"
    moves_mass = True

    def step(
        self, state: NetworkState, gradients: Matrix, mixing: Mixing | None, round_index: int
    ) -> NetworkState:
        """Descend, push, sum."""
        assert mixing is not None
        steps = self.rate(round_index) * self.step_scale(state.masses)
        descended = state.numerators - steps[:, None] * gradients
        return NetworkState(numerators=mixing.T @ descended, masses=mixing.T @ state.masses)

    def step_scale(self, masses: Vector) -> Vector:
        """What the learning rate is multiplied with at each node: 1, or min(1, omega)."""
        return np.minimum(1.0, masses) if self.cap_step else np.ones_like(masses)

    def describe(self) -> dict[str, Any]:
        """Name and parameters, in terms JSON can hold."""
        return {**super().describe(), "cap_step": self.cap_step}
