"""Heavy-ball momentum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from oneway.errors import ConfigError
from oneway.methods.transforms.base import TRANSFORMS, Transform
from oneway.records import Matrix


@TRANSFORMS.register
@dataclass(frozen=True)
class Momentum(Transform):
    """m' = beta m + (1 - beta) g, and m' goes on: an exponential mean of the gradients."""

    name = "momentum"
    beta: float = 0.9

    def __post_init__(self) -> None:
        if not (isinstance(self.beta, int | float) and 0 <= self.beta < 1):
            raise ConfigError(f"beta is {self.beta!r}; it must be from 0 up to, but not, 1")

    def init(self, params: Matrix) -> dict[str, Matrix]:
        """No gradient has been seen."""
        return {"mean": np.zeros_like(params)}

    def update(
        self, gradients: Matrix, memory: Mapping[str, Matrix], rng: np.random.Generator
    ) -> tuple[Matrix, dict[str, Matrix]]:
        """Move the mean towards the gradients."""
        mean = self.beta * memory["mean"] + (1.0 - self.beta) * gradients
        return mean, {"mean": mean}
