"""Resource limits of a peer: what it puts up with from others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from oneway.files.validation import check_fields
from oneway.protocol.rules import Rules
from oneway.task.task import Task

_BYTES_PER_NUMBER = 8
_NUMBERS_IN_WINDOW = 2**17
"""Totals that are not yet acknowledged are kept: a megabyte per receiver is enough."""

_BYTES_BESIDES = 2**16
"""Of a message, besides the model: a description of the task has to fit, too."""

_COMPACT_ABOVE = 1000
"""Pushes of models with more parameters are compact: one byte a number, and the rest stays."""

_LARGEST_WINDOW = 16
_MOST_EDGES = 16
_NUMBERS_IN_EDGES = 2**22
"""Edges of one sender that are kept: 32 megabytes, and as much again of those that ended."""


_Positive: TypeAlias = Annotated[float, Meta(gt=0)]


@dataclass(frozen=True)
class Limits:
    """How far this peer trusts the network.

    Attributes:
        window: "auto" is 16 for small models and falls to 1 for large ones.
        clip: Relative to 1 + the norm of one's own model; what goes beyond is dropped. "off" means
            no limit, and no limit either on how far one sender may move this peer over time
            (`peer.inflow`).
        pushes_per_second: What is learned in between travels with the next push.
        presume_dead_after: What a dead receiver never acknowledged is taken back.

    Raises:
        ConfigError: If one of them breaks its rule.
    """

    window: Annotated[
        Annotated[int, Meta(ge=1, le=64)] | Literal["auto"],
        Meta(
            description='pushes to one receiver that may be unacknowledged; "auto" goes by the '
            "model's size"
        ),
    ] = "auto"
    max_strikes: Annotated[
        int,
        Meta(
            ge=1,
            le=2**31 - 1,
            description="rejected messages after which a sender is quarantined",
        ),
    ] = 10
    clip: Annotated[
        _Positive | Literal["off"],
        Meta(
            description="how far a sender's model may lie from one's own, relative to that; or "
            '"off", which also lets each sender move this peer without limit'
        ),
    ] = 0.5
    pushes_per_second: Annotated[_Positive, Meta(description="how often to push at most")] = 1000.0
    presume_dead_after: Annotated[
        _Positive, Meta(description="seconds of silence after which a receiver is given up")
    ] = 120.0

    def __post_init__(self) -> None:
        check_fields(self)

    def window_for(self, dim: int) -> int:
        """Return the window of a model with so many parameters."""
        if self.window != "auto":
            return self.window
        return max(1, min(_LARGEST_WINDOW, _NUMBERS_IN_WINDOW // (dim + 1)))

    def rules(self, task: Task, secret: bytes) -> Rules:
        """Return the same for the protocol, with the task's part and the peer's own secret."""
        width = task.layout.width
        return Rules(
            secret=secret,
            window=self.window_for(width),
            mass_cap=task.mass_at_once,
            mass_limit=task.mass_limit,
            radius=task.radius,
            most_edges=max(2, min(_MOST_EDGES, _NUMBERS_IN_EDGES // (width + 1))),
            clip=math.inf if self.clip == "off" else self.clip,
            longest_step=task.longest_step,
            compact=task.dim > _COMPACT_ABOVE,
        )

    @staticmethod
    def frame_for(dim: int) -> int:
        """Return how many bytes a message may have for a model of so many parameters.

        It is twice the model and some more: a sender can make a receiver hold many of them.
        """
        return 2 * _BYTES_PER_NUMBER * (dim + 1) + _BYTES_BESIDES
