"""What an asynchronous network is like: clocks, links, faults and liars, and the peers' limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from oneway.asynchronous.delay import Delay
from oneway.errors import ConfigError


@dataclass(frozen=True)
class Conditions:
    """The world around the peers of an asynchronous simulation, and how they are set.

    All times are seconds of virtual time. Who is slow, asleep or a liar is drawn from the run's
    seed; nothing else is random but the order of events that follows.

    Attributes:
        rate: Samples that a node of ordinary speed learns from, a second.
        unequal: Sigma of the logarithm of the nodes' speeds: 0 for equal ones, 1 for a tenth of
            them 3.6 times as fast and a tenth 3.6 times as slow as the median.
        poisson: Whether samples come at random moments; else each node's come at equal distances,
            from a moment of its own on.
        delay: Of every message on its way, each drawn for itself.
        ordered: Whether messages over one link arrive in the order they were sent, as in TCP.
        loss: The probability that a message never arrives.
        bandwidth: Bytes a second that a node can send; infinite if that is no limit.
        sleepers: The share of nodes that sleep now and then: no samples, no messages, nothing lost
            but what was sent to them.
        awake: How long a sleeper is awake, on average; each time is exponential.
        asleep: How long it then sleeps, on average.
        crashes: How often a node crashes, a second: what it had not made durable is forgotten.
        down: How long it then is down.
        joining: The share of nodes that are not there at first, and join at random moments.
        leaving: The share that leave at random moments, handing over all they hold.
        liars: The share of nodes that push a model of their own, far from all others, whatever
            they receive; their mass is honest.
        lie: The norm of the model that liars push.
        window: Pushes to one receiver that may be unacknowledged; None for the peers' default.
        clip: How far a sender's model may lie from one's own, relative to 1 + its norm; infinite
            for no limit.
        commit: How long a peer takes to make something durable before it speaks of it.
        presume_dead_after: Silence after which a receiver is given up.
        seconds: How long it lasts; None for as long as a node of ordinary speed needs for all its
            samples. Who is faster has no more samples then, who is slower does not come to its end.

    Raises:
        ConfigError: One of them breaks its rule.
    """

    rate: float = 10.0
    unequal: float = 0.0
    poisson: bool = True
    delay: Delay = field(default_factory=lambda: Delay.parse("lognormal:0.05,0.5"))
    ordered: bool = False
    loss: float = 0.0
    bandwidth: float = math.inf
    sleepers: float = 0.0
    awake: float = 300.0
    asleep: float = 300.0
    crashes: float = 0.0
    down: float = 10.0
    joining: float = 0.0
    leaving: float = 0.0
    liars: float = 0.0
    lie: float = 10.0
    window: int | None = None
    clip: float = 0.5
    commit: float = 0.002
    presume_dead_after: float = 120.0
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("rate", "bandwidth", "awake", "asleep", "down", "presume_dead_after", "clip"):
            self._require(name, "above 0", getattr(self, name) > 0)
        for name in ("unequal", "crashes", "lie", "commit"):
            value = getattr(self, name)
            self._require(name, "a finite number from 0 on", 0 <= value < math.inf)
        for name in ("loss", "sleepers", "joining", "leaving", "liars"):
            self._require(name, "from 0 to below 1", 0 <= getattr(self, name) < 1)
        if self.seconds is not None:
            self._require("seconds", "above 0, and finite", 0 < self.seconds < math.inf)
        if self.window is not None:
            self._require("window", "from 1 to 64", 1 <= self.window <= 64)
        if not isinstance(self.delay, Delay):
            object.__setattr__(self, "delay", Delay.parse(self.delay))

    def _require(self, name: str, rule: str, holds: bool) -> None:
        if not holds:
            raise ConfigError(f"{name} is {getattr(self, name)!r}; it must be {rule}")

    def duration(self, num_rounds: int) -> float:
        """How many seconds a run lasts whose nodes have so many samples each."""
        return num_rounds / self.rate if self.seconds is None else self.seconds

    def describe(self) -> dict[str, Any]:
        """For records; a delay goes by its name."""
        known = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**known, "delay": self.delay.name}


Level = Literal["fast", "exact"]
"""A compiled event loop with the running-sum semantics, or the peers' own state machine."""
