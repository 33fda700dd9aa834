"""What an asynchronous network is like: clocks, links, faults and liars, and the peers' limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from oneway.asynchronous.delay import LONGEST_DELAY, Delay
from oneway.errors import ConfigError
from oneway.sentences import shown
from oneway.task.keys import key

DEFAULT_DELAY = "lognormal:0.05,0.5"
_LONGEST = 1e9
"""Seconds: 32 years. Clocks in float64 tell a tenth of a microsecond apart till then."""
Rule = tuple[str, Callable[[float], bool]]
"""What a number must be, in words and as a test."""


def _up_to(most: float, what: str = "") -> Rule:
    return f"a number above 0, at most {most:,.0f}{what}", lambda it: 0 < it <= most


def _from_0_to(most: float, what: str = "") -> Rule:
    return f"a number from 0 to {most:,.0f}{what}", lambda it: 0 <= it <= most


_TIME = _up_to(_LONGEST, " seconds")
_SHARE: Rule = ("a number from 0 to below 1", lambda it: 0 <= it < 1)
_NUMBERS: dict[str, Rule] = {
    "rate": _up_to(1e6, " a second"),
    "unequal": _from_0_to(10.0),
    "loss": _SHARE,
    "bandwidth": ("a number from 1 byte a second on", lambda it: it >= 1),
    "sleepers": _SHARE,
    "awake": _TIME,
    "asleep": _TIME,
    "crashes": (
        "0, or a finite number from 1e-9 a second on",
        lambda it: it == 0 or 1e-9 <= it < math.inf,
    ),
    "down": _TIME,
    "joining": _SHARE,
    "leaving": _SHARE,
    "liars": _SHARE,
    "lie": _from_0_to(1e6),
    "clip": ("a number above 0", lambda it: it > 0),
    "commit": _from_0_to(LONGEST_DELAY, " seconds"),
    "presume_dead_after": _TIME,
    "seconds": _TIME,
}


def _key(description: str, metavar: str = "", flag: str = "") -> Meta:
    return key(description, metavar or "TEXT", "Asynchronous network", flag=flag)


@dataclass(frozen=True)
class Conditions:
    """The world around the peers of an asynchronous simulation, and how they are set.

    All times are seconds of virtual time. Who is slow, asleep or a liar is drawn from the run's
    seed; nothing else is random but the order of events that follows.

    Attributes:
        rate: Samples that a node of ordinary speed learns from, a second: at most 1e6.
        unequal: Sigma of the logarithm of the nodes' speeds: 0 for equal ones, 1 for a tenth of
            them 3.6 times as fast and a tenth 3.6 times as slow as the median; at most 10.
        poisson: Whether samples come at random moments; else each node's come at equal distances,
            from a moment of its own on.
        delay: Of every message on its way, each drawn for itself; at most 3600 seconds.
        ordered: Whether messages over one link arrive in the order they were sent, as in TCP.
        loss: The probability that a message never arrives.
        bandwidth: Bytes a second that a node can send, at least 1; infinite if that is no limit.
        sleepers: The share of nodes that sleep now and then: no samples, no messages, nothing lost
            but what was sent to them. At first as many of them are asleep as later on.
        awake: How long a sleeper is awake, on average; each time is exponential. At most 1e9.
        asleep: How long it then sleeps, on average; at most 1e9.
        crashes: How often a node crashes, a second: what it had not made durable is forgotten. 0,
            or from 1e-9 on.
        down: How long it then is down; at most 1e9.
        joining: The share of nodes that are not there at first, and join at random moments.
        leaving: The share that leave at random moments, handing over all they hold.
        liars: The share of nodes that push a model of their own, far from all others, whatever
            they receive; their mass is honest.
        lie: The norm of the model that liars push; at most 1e6.
        window: Pushes to one receiver that may be unacknowledged, 1 to 64; None for the peers'
            default.
        clip: How far a sender's model may lie from one's own, relative to 1 + its norm; infinite
            for no limit.
        commit: How long a peer takes to make something durable before it speaks of it; at most
            3600.
        presume_dead_after: Silence after which a receiver is given up; at most 1e9.
        seconds: How long it lasts, at most 1e9; None for as long as a node of ordinary speed needs
            for all its samples. Who is faster has no more samples then, who is slower does not come
            to its end.

    Raises:
        ConfigError: One of them is of another kind, or beyond its bounds.
    """

    rate: Annotated[float, _key("samples a second of a node of ordinary speed", "N")] = 10.0
    unequal: Annotated[float, _key("sigma of the logarithm of the nodes' speeds", "X")] = 0.0
    poisson: Annotated[bool, _key("whether samples come at random moments, or evenly")] = True
    delay: Annotated[
        Delay, _key("of messages: seconds, or uniform:A,B, exponential:A, lognormal:MEDIAN,SIGMA")
    ] = field(default_factory=lambda: Delay.parse(DEFAULT_DELAY))
    ordered: Annotated[bool, _key("whether messages over a link arrive in order")] = False
    loss: Annotated[float, _key("share of the messages that never arrive", "SHARE")] = 0.0
    bandwidth: Annotated[float, _key("bytes a second that a node can send", "N")] = math.inf
    sleepers: Annotated[float, _key("share of nodes that sleep now and then", "SHARE")] = 0.0
    awake: Annotated[float, _key("seconds that a sleeper is awake, on average", "S")] = 300.0
    asleep: Annotated[float, _key("seconds that it then sleeps, on average", "S")] = 300.0
    crashes: Annotated[float, _key("crashes of a node, a second", "N")] = 0.0
    down: Annotated[float, _key("seconds that a node is down after a crash", "S")] = 10.0
    joining: Annotated[float, _key("share of nodes that come at random moments", "SHARE")] = 0.0
    leaving: Annotated[float, _key("share of nodes that leave at random moments", "SHARE")] = 0.0
    liars: Annotated[float, _key("share of nodes that push a model far from all", "SHARE")] = 0.0
    lie: Annotated[float, _key("norm of the model that liars push", "X")] = 10.0
    window: Annotated[int | None, _key("pushes that may be unacknowledged", "N")] = None
    clip: Annotated[
        float, _key("how far a sender's model may lie from one's own", "X", flag="push_clip")
    ] = 0.5
    commit: Annotated[float, _key("seconds to make something durable", "S")] = 0.002
    presume_dead_after: Annotated[
        float, _key("seconds of silence after which a receiver is given up", "S")
    ] = 120.0
    seconds: Annotated[
        float | None, _key("how long it lasts; until an ordinary node is through", "S")
    ] = None

    def __post_init__(self) -> None:
        for name, (rule, holds) in _NUMBERS.items():
            value = getattr(self, name)
            if name == "seconds" and value is None:
                continue
            number = _number(value)
            self._require(name, rule, number is not None and holds(number))
            object.__setattr__(self, name, number)
        for name in ("poisson", "ordered"):
            value = getattr(self, name)
            self._require(name, "True or False", isinstance(value, bool | np.bool_))
            object.__setattr__(self, name, bool(value))
        if self.window is not None:
            whole = isinstance(self.window, Integral) and not isinstance(self.window, bool)
            self._require("window", "a whole number from 1 to 64", whole and 1 <= self.window <= 64)
            object.__setattr__(self, "window", int(self.window))
        if not isinstance(self.delay, Delay):
            object.__setattr__(self, "delay", Delay.parse(self.delay))

    def _require(self, name: str, rule: str, holds: bool) -> None:
        if not holds:
            raise ConfigError(f"{name} is {shown(getattr(self, name))}; it must be {rule}")

    def duration(self, num_rounds: int) -> float:
        """How many seconds a run lasts whose nodes have so many samples each.

        Raises:
            ConfigError: It would last longer than `seconds` may say.
        """
        lasts = num_rounds / self.rate if self.seconds is None else self.seconds
        if lasts > _LONGEST:
            raise ConfigError(
                f"rate is {self.rate:g}, with which {num_rounds:,} samples take {lasts:g} seconds; "
                f"a run lasts at most {_LONGEST:,.0f}: use a higher rate, or set seconds"
            )
        return lasts

    def describe(self) -> dict[str, Any]:
        """For records, in terms JSON can hold; a delay goes by its name."""
        known = {name: getattr(self, name) for name in self.__dataclass_fields__}
        plain = {name: "infinite" if it == math.inf else it for name, it in known.items()}
        return {**plain, "delay": self.delay.name}


def _number(value: object) -> float | None:
    """A value as a plain float; None if it is no number, or too large for one."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


Level = Literal["fast", "exact"]
"""A compiled event loop with the running-sum semantics, or the peers' own state machine."""
