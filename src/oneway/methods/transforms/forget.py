"""Forgetting factor: a chosen learning rate goes by the last updates, not by all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from oneway.errors import ConfigError
from oneway.methods.transforms.base import TRANSFORMS, Transform
from oneway.records import Matrix


@TRANSFORMS.register
@dataclass(frozen=True)
class Forget(Transform):
    """s' = factor * s + ||g||^2: the rate never falls below what the last updates ask for.

    About 1 / (1 - factor) updates are remembered, each of them a sample or a batch: models follow
    what changes more slowly than that, and are the noisier for it where nothing changes. A learning
    rate that is a number never falls, so that there is nothing to forget.
    """

    name = "forget"
    factor: float = 0.97

    def __post_init__(self) -> None:
        if not (isinstance(self.factor, int | float) and 0 < self.factor < 1):
            raise ConfigError(f"factor is {self.factor!r}; it must be above 0 and below 1")

    def update(
        self, gradients: Matrix, memory: Mapping[str, Matrix], rng: np.random.Generator
    ) -> tuple[Matrix, dict[str, Matrix]]:
        """Nothing happens to the gradients."""
        return gradients, {}

    def squares_kept(self, memory: Mapping[str, Matrix]) -> float:
        """The factor."""
        return float(self.factor)
