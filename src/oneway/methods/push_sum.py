"""Online Push-Sum (OPS), Algorithm 1 of the paper."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass

from oneway.errors import ConfigError
from oneway.methods.base import Method
from oneway.methods.step_rules import Capped, Mass
from oneway.records import Segment


@dataclass(frozen=True)
class OnlinePushSum(Method):
    """Every node pushes shares of its numerator and of its mass to those it trusts.

    With W = `mixing[sender, receiver]`, z the numerators, omega the masses, x = z / omega:

        z'     = W.T @ (z - gamma * gradient(x))
        omega' = W.T @ omega

    Rows of W sum to 1, so the total mass never changes, and dividing by the mass removes the bias
    that a directed graph puts on the numerators. With another step rule than the paper's, gamma
    depends on the mass, and nodes of little mass count for less.

    Attributes:
        cap_step: The former way to say `step="capped"` (True), `step=Capped(cap)` (a number) or
            `step="mass"` (infinity).
    """

    cap_step: InitVar[bool | float] = False

    name = "ops"
    label = "Online Push-Sum"
    meaning = "one-way edges, corrected by mass"
    colour = "#0072b2"
    payload = (Segment("numerator", "split"), Segment("mass", "split", is_vector=False))

    def __post_init__(self, cap_step: bool | float = False) -> None:  # noqa: RUF033
        if cap_step:
            if self.step != "paper":
                raise ConfigError(
                    f"step is {self.step!r} and cap_step is {cap_step!r}, which is another way to "
                    "say a step; leave cap_step out"
                )
            rule = Mass() if cap_step == math.inf else Capped(float(cap_step))
            object.__setattr__(self, "step", rule)
        super().__post_init__()
