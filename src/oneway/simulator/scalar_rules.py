"""Scalar rules of a compiled round: the loss of a score, and how much of a parcel is deposited."""

from __future__ import annotations

import math

from numba import njit

LOGISTIC, RIDGE, HINGE = range(3)
"""Which loss of the score a kernel is compiled for."""


@njit(inline="always")
def plain_loss(kind: int, score: float, label: float) -> tuple[float, float]:
    """The loss of a score and its derivative, for the losses that need no exponential."""
    if kind == RIDGE:
        return 0.5 * (score - label) ** 2, score - label
    margin = label * score
    return max(1.0 - margin, 0.0), (-label if margin < 1.0 else 0.0)


@njit(inline="always")
def deposited_fraction(mass: float, count: float, amount: float, by_count: bool) -> float:
    """As `oneway.methods.Relay.fractions`: how much of a parcel enters the numerator."""
    bearable = amount * max(mass, 0.0)
    if not by_count:
        return min(1.0, bearable)
    root = math.sqrt(max(count, 0.0))
    return bearable / root if root > bearable else 1.0
