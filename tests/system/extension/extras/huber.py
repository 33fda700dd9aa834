"""Huber regression: squared for small residuals, linear for large ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oneway.models import MODELS, Model
from oneway.records import Batch, Floats, Matrix, Vector


@MODELS.register
@dataclass(frozen=True)
class HuberRegression(Model):
    """A linear model without second derivatives: it has none of the optional capabilities."""

    name = "huber"
    labels = "number"
    delta: float = 1.0
    l2: float = 0.0

    def dim(self, num_features: int) -> int:
        """One number per feature, and a constant."""
        return num_features + 1

    def losses(self, params: Vector | Matrix, batch: Batch) -> Vector:
        """r^2 / 2 up to delta, delta * (|r| - delta / 2) beyond."""
        size = np.abs(self._residuals(params, batch))
        inner = np.minimum(size, self.delta)
        penalty = 0.5 * self.l2 * (params**2).sum(axis=-1)
        return inner * (size - 0.5 * inner) + penalty

    def gradients(self, stack: Matrix, batch: Batch) -> Matrix:
        """The residual, cut at delta, times the sample."""
        slopes = np.clip(self._residuals(stack, batch), -self.delta, self.delta)
        rows = np.column_stack([batch.features, np.ones(len(batch))])
        return slopes[:, None] * rows + self.l2 * stack

    def predict(self, params: Vector, features: Floats) -> Vector:
        """The linear score."""
        return features @ params[:-1] + params[-1]

    def _residuals(self, params: Vector | Matrix, batch: Batch) -> Vector:
        scores = (batch.features * params[..., :-1]).sum(axis=1) + params[..., -1]
        return scores - batch.labels
