"""Gradient clipping by norm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from oneway.errors import ConfigError
from oneway.methods.transforms.base import TRANSFORMS, Transform
from oneway.records import Matrix


@TRANSFORMS.register
@dataclass(frozen=True)
class Clip(Transform):
    """g * min(1, norm / ||g||): no gradient is longer than `norm`."""

    name = "clip"
    norm: float = 1.0

    def __post_init__(self) -> None:
        if not (isinstance(self.norm, int | float) and 0 < self.norm < np.inf):
            raise ConfigError(f"norm is {self.norm!r}; it must be a finite number above 0")

    def update(
        self, gradients: Matrix, memory: Mapping[str, Matrix], rng: np.random.Generator
    ) -> tuple[Matrix, dict[str, Matrix]]:
        """Shorten the rows that are too long."""
        lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
        return gradients * (self.norm / np.maximum(lengths, self.norm)), {}
