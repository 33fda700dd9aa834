"""Push pacing: whether a peer has something new to hand over, and whether it is time to."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from oneway.protocol.fixed_point import ONE, extent
from oneway.protocol.pace import idle_seconds, is_worth_passing_on
from oneway.protocol.state import PeerState
from oneway.records import Vector


@dataclass
class PushPace:
    """What a peer last pushed, and what it has to push since.

    Attributes:
        estimate: The model as it was with the last push.
        last_step: When the last step of its own came, or this life began.
        pushes_due: So many pushes are to follow the last step.
        has_stepped: Whether a step came since the last push.
        last: When something was last pushed, or made ready for it.
        learns: Whether it ever had a sample, also in a life before.
        between: Seconds between its last two steps, or from the start to the first.
    """

    estimate: Vector
    last_step: float
    pushes_due: int = 0
    has_stepped: bool = False
    last: float = -math.inf
    between: float = 0.0
    learns: bool = False

    def stepped(self, pushes: int, now: float, moved: bool = True) -> None:
        """A step was taken, which so many pushes are to follow.

        None follow if nothing moved since the last one: there is nothing new to hand over.
        """
        if moved:
            self.has_stepped, self.pushes_due = True, pushes
        self.between, self.last_step = now - self.last_step, now

    def idle_seconds(self, dim: int, now: float) -> float:
        """How long after a push what others sent may be passed on; longer for large models."""
        return float(idle_seconds(self.between, now - self.last_step, self.learns, dim))

    def pushed(self, estimate: Vector) -> None:
        """Something was handed over."""
        self.pushes_due, self.has_stepped = max(0, self.pushes_due - 1), False
        self.estimate = estimate

    def is_due(self, estimate: Vector, state: PeerState, now: float, shortest: float) -> bool:
        """Whether to push now; not before `shortest` seconds after the last time."""
        since = now - self.last
        if since < shortest:
            return False
        idle = since >= self.idle_seconds(state.dim, now)
        return bool(self.pushes_due or state.leaving or (idle and self.moved(estimate, state)))

    def has_news(self, estimate: Vector, state: PeerState) -> bool:
        """Whether there is something to hand over, at once or later."""
        return self.pushes_due > 0 or self.moved(estimate, state)

    def moved(self, estimate: Vector, state: PeerState) -> bool:
        """Whether the estimate moved since the last push, or there is a parcel to pass on."""
        moved = float(np.linalg.norm(estimate - self.estimate))
        return _is_worth(moved, estimate) or self.has_parcel(estimate, state)

    def has_parcel(self, estimate: Vector, state: PeerState) -> bool:
        """Whether there is a parcel to deposit or to pass on."""
        layout = state.layout
        parcels = [state.holding[it] for it in layout.carried if it in layout.forwarded]
        return any(_is_worth(extent(parcel) / ONE, estimate) for parcel in parcels)


def _is_worth(moved: float, estimate: Vector) -> bool:
    return bool(is_worth_passing_on(moved, float(np.linalg.norm(estimate))))
