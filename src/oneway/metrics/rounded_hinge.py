"""A hinge without its kink: how the best fixed model of a hinge is found with Newton's method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oneway.models.base import row_shares
from oneway.models.linear import LinearClassifier
from oneway.records import Batch, Floats, Vector


@dataclass(frozen=True)
class RoundedHinge(LinearClassifier):
    """max(0, t) of the gap t = 1 - y s replaced by the hyperbola (t + sqrt(t^2 + 4 width^2)) / 2.

    It exceeds the hinge by at most `width`, at the kink. Unlike a hinge with a quadratic piece it
    is curved everywhere, so that Newton's method needs few steps however small the width.
    """

    width: float = 1.0

    @property
    def largest_curvature(self) -> float:
        """1 / (4 width), at the kink."""
        return 0.25 / self.width

    def sample_losses(self, scores: Vector, labels: Floats) -> Vector:
        """Return the hyperbola's height."""
        gaps = 1.0 - labels * scores
        losses: Vector = 0.5 * (gaps + np.hypot(gaps, 2.0 * self.width))
        return losses

    def slopes(self, scores: Vector, labels: Floats) -> Vector:
        """Return -y steepness, with a steepness between 0 and 1."""
        slopes: Vector = -labels * self._steepness(1.0 - labels * scores)
        return slopes

    def curvatures(self, scores: Vector, labels: Floats) -> Vector:
        """Return 2 width^2 / (t^2 + 4 width^2)^(3/2)."""
        curvatures: Vector = (
            2.0 * self.width**2 / np.hypot(1.0 - labels * scores, 2.0 * self.width) ** 3
        )
        return curvatures

    def excess(self, params: Vector, batch: Batch, counts: Vector) -> float:
        """Bound what a minimiser of this model costs more, in mean hinge loss, than the best does.

        Whatever the parameters, a gap t costs at least steepness * t for any steepness from 0 to
        1. With the steepnesses at `params` that lower bound is linear, and if this model's gradient
        vanishes at `params`, the bound plus the l2 term is smallest right there. So the best
        hinge loss is at least the mean of steepness * t here, whereas ours is that of max(0, t).
        """
        gaps = 1.0 - batch.labels * self.scores(params, batch.features)
        excesses = np.maximum(0.0, gaps) - self._steepness(gaps) * gaps
        return float(excesses @ row_shares(batch, counts))

    def _steepness(self, gaps: Vector) -> Vector:
        steepness: Vector = 0.5 * (1.0 + gaps / np.hypot(gaps, 2.0 * self.width))
        return steepness
