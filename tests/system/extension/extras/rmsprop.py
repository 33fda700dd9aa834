"""RMSProp with push-sum: every parameter has a learning rate of its own, by its late gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from oneway import OnlinePushSum
from oneway.methods import METHODS, Gradients, State
from oneway.records import Matrix


@METHODS.register
@dataclass(frozen=True)
class RMSPropPushSum(OnlinePushSum):
    """Online Push-Sum on g / sqrt(an exponential mean of g * g): what changed lately counts."""

    name = "rmsprop"
    label = "RMSProp push-sum"
    start_at: float = 1.0
    kept: float = 0.95

    def start(self, params: Matrix) -> State:
        """As push-sum, with a memory of squared gradients."""
        state = super().start(params)
        squares = np.full_like(params, self.start_at)
        return replace(state, memory={**state.memory, "squares": squares})

    def local_step(self, state: State, gradients: Gradients, rng: np.random.Generator) -> State:
        """Scale the gradients, then step as push-sum does."""
        before = state.memory["squares"]
        squares = self.kept * before + (1.0 - self.kept) * gradients.values**2
        scaled = replace(gradients, values=gradients.values / np.sqrt(squares))
        after = super().local_step(state, scaled, rng)
        if gradients.active is not None:
            squares = np.where(gradients.active[:, None], squares, before)
        return replace(after, memory={**after.memory, "squares": squares})
