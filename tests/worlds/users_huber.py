"""A regression model of a user: the one that docs/architecture.md has as its example."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oneway.models import LinearModel


@dataclass(frozen=True)
class Huber(LinearModel):
    """Squared error up to delta, linear beyond."""

    name = "huber"
    labels = "number"
    delta: float = 1.0
    largest_curvature = 1.0

    def sample_losses(self, scores, labels):
        away = np.abs(scores - labels)
        return np.where(away <= self.delta, away**2 / 2, self.delta * (away - self.delta / 2))

    def slopes(self, scores, labels):
        return np.clip(scores - labels, -self.delta, self.delta)

    def curvatures(self, scores, labels):
        return (np.abs(scores - labels) <= self.delta).astype(float)

    def predict(self, params, features):
        return self.scores(params, features)
