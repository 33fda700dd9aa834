"""Average of a peer's last estimates: the settled model, which does not jump with every sample.

The estimate of a live peer leaps where its mass is small, and by the noise of every batch. Suffix
averaging takes that out: the n-th estimate gets the weight 4 / (n + 3), polynomial decay as by
Shamir and Zhang (2013), so that the beginning is soon forgotten; from the 397th on it gets 1 / 100,
an exponential average, so that a model that changes is followed. It never travels, and it is made
of what is noised already, so that it promises what the estimates do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oneway.protocol.fixed_point import pieces
from oneway.records import Vector

HORIZON = 100
"""How many of the last estimates count, about."""
DECAY = 3
"""How fast the first estimates are forgotten: half of the weight is on the last sixth of them."""


@dataclass(frozen=True, eq=False, slots=True)
class ModelAverage:
    """What the estimates of a peer were, on average.

    Attributes:
        count: How many estimates are in it; above `HORIZON`, only that there were enough.
        params: Their average.
    """

    count: int
    params: Vector


def with_estimate(average: ModelAverage | None, estimate: Vector) -> ModelAverage:
    """The average with one estimate more; with the first one, that itself."""
    if average is None:
        return ModelAverage(1, estimate)
    count = average.count + 1
    weight = max((DECAY + 1) / (count + DECAY), 1.0 / HORIZON)
    params = np.empty_like(estimate)
    for piece in pieces(len(params)):
        part, before = params[piece], average.params[piece]
        np.subtract(estimate[piece], before, out=part)
        part *= weight
        part += before
    return ModelAverage(count, params)
