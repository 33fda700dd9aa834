"""AdaGrad: a step size of its own for every parameter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from oneway.errors import ConfigError
from oneway.methods.transforms.base import TRANSFORMS, Transform
from oneway.records import Matrix


@TRANSFORMS.register
@dataclass(frozen=True)
class AdaGrad(Transform):
    """s' = s + g^2, and g / (sqrt(s') + epsilon) goes on: Duchi, Hazan and Singer (2011).

    Parameters that move rarely move far when they do. Whatever the size of the gradients, steps
    begin with the learning rate and fall like one over the root of their number.
    """

    name = "adagrad"
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        if not (isinstance(self.epsilon, int | float) and 0 < self.epsilon < np.inf):
            raise ConfigError(f"epsilon is {self.epsilon!r}; it must be a finite number above 0")

    def init(self, params: Matrix) -> dict[str, Matrix]:
        """No gradient has been seen."""
        return {"squares": np.zeros_like(params)}

    def update(
        self, gradients: Matrix, memory: Mapping[str, Matrix], rng: np.random.Generator
    ) -> tuple[Matrix, dict[str, Matrix]]:
        """Add the squares, and scale by their root."""
        squares = memory["squares"] + gradients**2
        return gradients / (np.sqrt(squares) + self.epsilon), {"squares": squares}
