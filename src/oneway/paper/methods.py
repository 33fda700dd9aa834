"""The methods an experiment can name, each still without its learning rate."""

from __future__ import annotations

import math

from oneway.methods import BY_NAME, OnlinePushSum
from oneway.methods.base import Algorithm


def make(method: str, rate: float) -> Algorithm:
    """A method at a learning rate: one of the five, or OPS with another step.

    `ops-capped` steps by rate * min(1, mass), `ops-mass` by rate * mass.
    """
    if method == "ops-capped":
        return OnlinePushSum(rate, cap_step=True)
    if method == "ops-mass":
        return OnlinePushSum(rate, cap_step=math.inf)
    return BY_NAME[method](rate)
