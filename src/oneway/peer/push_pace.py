"""Push pacing: whether a peer has something new to hand over, and whether it is time to."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from oneway.protocol.fixed_point import ONE, extent
from oneway.protocol.state import PeerState
from oneway.records import Vector

IDLE_SECONDS = 0.05
"""A peer passes on what it received this often at most, as long as that moves it."""

PASSES = 32
"""In a time as long as that between its last two steps it does so this often at most: more taught
nobody anything (docs/asynchronous.md), and in a large network something always moves."""

LONGEST_IDLE = 30.0
"""Seconds after which what moved a peer is passed on, however rare its own steps are."""

LONGEST_WAITING = 1.0
"""The same while nobody knows how rare: since its last step, or its start, more time has passed
than before. A peer that never had a sample does not wait for one: mass must not get stuck there."""

IDLE_BYTES = 32e6
"""Bytes per second that it passes on at most: what moves a large model takes long."""

MOVED = 1e-6
"""A change of the estimate, relative to its size, that is worth passing on."""


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
        by_steps = min(self.between / PASSES, LONGEST_IDLE)
        by_waiting = min((now - self.last_step) / PASSES, LONGEST_WAITING) if self.learns else 0.0
        return max(IDLE_SECONDS, by_steps, by_waiting, 8 * dim / IDLE_BYTES)

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
    return moved > MOVED * (1.0 + float(np.linalg.norm(estimate)))
