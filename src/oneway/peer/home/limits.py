"""Resource limits of a peer: what it puts up with from others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from oneway.errors import ConfigError
from oneway.files.typed_values import check_fields
from oneway.protocol.compact import FORMATS, Format
from oneway.protocol.rules import Rules
from oneway.task.task import Task

_BYTES_PER_NUMBER = 8
_NUMBERS_IN_WINDOW = 2**17
"""Totals that are not yet acknowledged are kept: a megabyte per receiver is enough."""

_BYTES_BESIDES = 2**16
"""Of a message, besides the model: a description of the task has to fit, too."""

_COMPACT_ABOVE = 1000
"""Parameters of a model above which pushes are compact by default."""

_LARGEST_WINDOW = 16
_MOST_EDGES = 16
_NUMBERS_IN_EDGES = 2**22
"""Edges of one sender that are kept: 32 megabytes, and as much again of those that ended."""


_NUMBERS_IN_TICKETS = 2**24
"""Of predictions that wait, a sample and a model each: 128 megabytes in the store."""
_LEAST_TICKETS = 16


def _parse_clip(value: object) -> object:
    # Zero is how `Limits` says "off"; who writes it into a file means the opposite.
    if value == 0:
        raise ValueError
    return 0.0 if value == "off" else value


_Positive: TypeAlias = Annotated[float, Meta(gt=0)]


@dataclass(frozen=True)
class Limits:
    """How far this peer trusts the network.

    Attributes:
        window: "auto" is 16 for small models and falls to 1 for large ones.
        format: "total" is lossless, eight bytes a number; then others are asked for it, too. What a
            code of one byte ("int8") or half of one ("int4") cannot say stays here for the next
            push. "auto" is "int8" above 1,000 parameters; others may choose what they send here.
        clip: Relative to 1 + the norm of one's own model; what goes beyond is dropped. 0 means no
            limit ("off" in the file).
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
    format: Annotated[
        Format | Literal["auto"],
        Meta(
            description='how pushes are written: "total", "int8" or "int4"; "auto" goes by the '
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
        float,
        Meta(
            ge=0,
            description="how far a sender's model may lie from one's own, relative to that; or "
            '"off"',
            extra={"parse": _parse_clip, "rule": 'a number above 0, or "off" for no limit'},
        ),
    ] = 0.5
    max_message_bytes: Annotated[
        int, Meta(ge=1024, le=2**31 - 1, description="larger messages are refused")
    ] = 2**24
    pushes_per_second: Annotated[_Positive, Meta(description="how often to push at most")] = 1000.0
    presume_dead_after: Annotated[
        _Positive, Meta(description="seconds of silence after which a receiver is given up")
    ] = 120.0

    open_tickets: Annotated[
        int, Meta(ge=0, le=10**6, description="predictions that may wait for their label at a time")
    ] = 10_000
    ticket_days: Annotated[
        _Positive, Meta(description="days after which a prediction no longer waits for its label")
    ] = 30.0

    def __post_init__(self) -> None:
        check_fields(self)

    def tickets_for(self, dim: int) -> int:
        """Return how many predictions of a model with so many parameters may wait."""
        return min(self.open_tickets, max(_LEAST_TICKETS, _NUMBERS_IN_TICKETS // (2 * dim + 1)))

    def window_for(self, dim: int) -> int:
        """Return the window of a model with so many parameters."""
        if self.window != "auto":
            return self.window
        return max(1, min(_LARGEST_WINDOW, _NUMBERS_IN_WINDOW // (dim + 1)))

    def format_for(self, dim: int) -> Format:
        """Return how pushes of a model with so many parameters are written."""
        if self.format != "auto":
            return self.format
        return "int8" if dim > _COMPACT_ABOVE else "total"

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
            clip=self.clip or math.inf,
            format=self.format_for(task.dim),
            takes=("total",) if self.format == "total" else FORMATS,
        )

    def frame_for(self, dim: int) -> int:
        """Return how many bytes a message of others may have, given the size of the model.

        No more than twice the model and some: a sender can make a receiver hold many of them.
        """
        needed = 2 * _BYTES_PER_NUMBER * (dim + 1) + _BYTES_BESIDES
        return min(self.max_message_bytes, needed)

    def check_dim(self, dim: int) -> None:
        """Check that a message with a model of so many parameters may travel.

        Raises:
            ConfigError: If it is larger than `max_message_bytes`.
        """
        needed = 1024 + _BYTES_PER_NUMBER * (dim + 1)
        if needed > self.max_message_bytes:
            raise ConfigError(
                f"a model of {dim:,} parameters needs messages of {needed:,} bytes, and "
                f"max_message_bytes is {self.max_message_bytes:,}; raise it under [limits] in "
                "peer.toml, at every peer"
            )
