"""AdaGrad with push-sum: every parameter has a learning rate of its own, by its past gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from oneway import OnlinePushSum
from oneway.methods import METHODS, Gradients, State
from oneway.records import Matrix


@METHODS.register
@dataclass(frozen=True)
class AdaGradPushSum(OnlinePushSum):
    """Online Push-Sum on g / sqrt(start + the sum of g * g so far)."""

    name = "adagrad"
    label = "AdaGrad push-sum"
    start_at: float = 1.0

    def start(self, params: Matrix) -> State:
        """As push-sum, with a memory of squared gradients."""
        state = super().start(params)
        squares = np.full_like(params, self.start_at)
        return replace(state, memory={**state.memory, "squares": squares})

    def local_step(self, state: State, gradients: Gradients, rng: np.random.Generator) -> State:
        """Scale the gradients, then step as push-sum does."""
        squares = state.memory["squares"] + gradients.values**2
        scaled = replace(gradients, values=gradients.values / np.sqrt(squares))
        remembering = replace(state, memory={**state.memory, "squares": squares})
        after = super().local_step(remembering, scaled, rng)
        if gradients.active is None:
            return after
        kept = np.where(gradients.active[:, None], squares, state.memory["squares"])
        return replace(after, memory={**after.memory, "squares": kept})
