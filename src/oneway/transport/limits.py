"""What bounds the ZeroMQ transport: sizes, queues and times."""

from __future__ import annotations

from dataclasses import dataclass, fields

from oneway.errors import ConfigError


@dataclass(frozen=True)
class Limits:
    """Bounds on what the network can make a peer hold, and on how long it waits.

    One sender can make a receiver hold about `queue * max_frame` bytes, so a peer sets `max_frame`
    to what its model needs.

    Attributes:
        max_frame: Bytes; larger frames are lost.
        queue: Frames that wait per connection and direction. Small, because a frame carries a
            running total: when the queue is full, what is in it is out of date anyway.
        heartbeat: Seconds between signs of life; three missed ones end a connection.
        handshake: Seconds in which a connection must have proven both keys.
        reconnect: Seconds before the first attempt to reconnect; doubles up to `reconnect_max`.
        reconnect_max: Longest pause between two attempts.
        redial: Seconds without a connection after which dialling starts afresh.

    Raises:
        ConfigError: One of them is not positive.
    """

    max_frame: int = 2**20
    queue: int = 64
    heartbeat: float = 5.0
    handshake: float = 5.0
    reconnect: float = 0.1
    reconnect_max: float = 1.0
    redial: float = 5.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 < value < 2**31:
                raise ConfigError(f"limits: {field.name} is {value!r}, but it must be positive")
