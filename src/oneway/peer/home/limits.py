"""What a peer puts up with from others, and what it pretends to suffer in a lab."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from oneway.errors import ConfigError
from oneway.files.toml import checked_number
from oneway.peer.identity.card import check_name
from oneway.protocol.absorbing import MOST_PUSHES
from oneway.sentences import shown
from oneway.transport import faulty

_BYTES_PER_NUMBER = 8
_NUMBERS_IN_WINDOW = 2**17
"""Totals that are not yet acknowledged are kept: a megabyte per receiver is enough."""

_BYTES_BESIDES = 2**16
"""Of a message, besides the model: a description of the task has to fit, too."""

_LARGEST_WINDOW = 16


@dataclass(frozen=True)
class Limits:
    """How far this peer trusts the network.

    Attributes:
        window: How many pushes to one receiver may be unacknowledged; "auto" is 16 for small
            models and falls to 1 for large ones.
        max_strikes: After so many rejected messages a sender is quarantined.
        clip: How far a sender's model may lie from one's own, relative to 1 + the norm of one's
            own; what goes beyond is dropped. 0 means no limit ("off" in the file).
        max_message_bytes: Larger messages are refused.
        pushes_per_second: How often this peer pushes at most; what it learns in between travels
            with the next push.
        presume_dead_after: Seconds of silence after which a receiver is given up and what it never
            acknowledged is taken back.

    Raises:
        ConfigError: If one of them breaks its rule.
    """

    window: int | Literal["auto"] = "auto"
    max_strikes: int = 10
    clip: float = 0.5
    max_message_bytes: int = 2**24
    pushes_per_second: float = 1000.0
    presume_dead_after: float = 86400.0

    def __post_init__(self) -> None:
        if self.window != "auto":
            _check_whole("window", self.window, 1, ', or "auto"')
            if self.window > MOST_PUSHES:
                raise ConfigError(
                    f"window is {self.window:,}; it must be at most {MOST_PUSHES:,}, the number of "
                    "pushes that a receiver takes in at once"
                )
        _check_whole("max_strikes", self.max_strikes, 1)
        _check_whole("max_message_bytes", self.max_message_bytes, 1024)
        rule = 'a number above 0, or "off" for no limit'
        _set_number(self, "clip", self.clip, rule, lambda v: v >= 0)
        for name in ("pushes_per_second", "presume_dead_after"):
            value = getattr(self, name)
            _set_number(self, name, value, "a number above 0", lambda v: v > 0)

    def window_for(self, dim: int) -> int:
        """Return the window of a model with so many parameters."""
        if self.window != "auto":
            return self.window
        return max(1, min(_LARGEST_WINDOW, _NUMBERS_IN_WINDOW // (dim + 1)))

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


@dataclass(frozen=True)
class Faults(faulty.Faults):
    """What goes wrong on purpose with the messages this peer sends; for labs and tests only.

    Attributes:
        cut: Names of peers that nothing is sent to, and nothing taken from.

    Raises:
        ConfigError: If one of them breaks its rule.
    """

    cut: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("loss", "duplicate", "reorder"):
            value = getattr(self, name)
            _set_number(self, name, value, "a share from 0 to 1", lambda v: 0 <= v <= 1)
        _set_number(self, "delay", self.delay, "seconds, at least 0", lambda v: v >= 0)
        if not isinstance(self.cut, list | tuple):
            raise ConfigError(f'cut is {shown(self.cut)}; it must be a list of names, as ["bob"]')
        object.__setattr__(self, "cut", tuple(check_name(name) for name in self.cut))


def _set_number(
    owner: object, name: str, value: object, rule: str, holds: Callable[[float], bool]
) -> None:
    object.__setattr__(owner, name, checked_number(name, value, rule, holds, ConfigError))


def _check_whole(name: str, value: object, least: int, besides: str = "") -> None:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**31:
        return
    raise ConfigError(
        f"{name} is {shown(value)}; it must be a whole number of at least {least}{besides}"
    )
