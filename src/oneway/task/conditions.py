"""The world of an asynchronous network: delays, clocks, faults, liars, and the peers' limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Annotated, Any, TypeAlias, get_type_hints

import numpy as np
from msgspec import Meta

from oneway.errors import ConfigError
from oneway.files.validation import checked
from oneway.records import Bools, Matrix, Vector
from oneway.sentences import shown
from oneway.task.keys import key

Seed: TypeAlias = int | Sequence[int]
"""Seeds all randomness of a run."""
POINTS = 1024
"""Quantiles of a table; between two of them a draw is interpolated."""
LONGEST_DELAY = 3600.0
"""In seconds: a message that takes longer is as good as lost."""


@dataclass(frozen=True, eq=False)
class Delay:
    """How long something takes: a distribution over seconds, by its quantiles.

    Attributes:
        quantiles: Non-decreasing, not negative; the first is the shortest delay and the last the
            longest, which is at most 3600 seconds.
        name: How it was written, for records: "uniform:0.01,0.1".

    Raises:
        ConfigError: The quantiles break that rule.

    >>> Delay.parse("uniform:0.01,0.03").mean
    0.02
    """

    quantiles: Vector
    name: str

    def __post_init__(self) -> None:
        table = np.asarray(self.quantiles, np.float64)
        object.__setattr__(self, "quantiles", table)
        if table.ndim != 1 or len(table) < 2 or np.isnan(table).any():
            raise ConfigError(
                f"the delay {self.name!r} is not a distribution; give at least two finite "
                "quantiles, in seconds"
            )
        if (table < 0).any():
            raise ConfigError(
                f"the delay {self.name!r} has values down to {table.min():g} seconds; nothing "
                "arrives before it was sent: give values from 0 on"
            )
        if table.max() > LONGEST_DELAY:
            raise ConfigError(
                f"the delay {self.name!r} has values up to {table.max():g} seconds; it must be at "
                f"most {LONGEST_DELAY:g}: give shorter ones, or a smaller sigma"
            )
        if (np.diff(table) < 0).any():
            raise ConfigError(f"the quantiles of the delay {self.name!r} fall; they must not")

    @property
    def mean(self) -> float:
        """The mean of the interpolated quantiles, in seconds."""
        return float(np.trapezoid(self.quantiles, dx=1.0 / (len(self.quantiles) - 1)))

    def draw(self, uniform: float | Vector) -> Vector:
        """The delays at some quantiles from 0 to 1."""
        return np.asarray(np.interp(uniform, self._levels, self.quantiles))

    @cached_property
    def _levels(self) -> Vector:
        return np.linspace(0.0, 1.0, len(self.quantiles))

    @classmethod
    def fixed(cls, seconds: float) -> Delay:
        """Always the same."""
        return cls(np.full(2, float(seconds)), f"{seconds:g}")

    @classmethod
    def uniform(cls, shortest: float, longest: float) -> Delay:
        """Anything in between is as likely."""
        return cls(np.array([shortest, longest], np.float64), f"uniform:{shortest:g},{longest:g}")

    @classmethod
    def exponential(cls, mean: float) -> Delay:
        """Without memory; the longest of a thousand is the longest at all."""
        levels = (np.arange(POINTS) + 0.5) / POINTS
        with np.errstate(over="ignore"):  # what is infinite is refused
            return cls(-mean * np.log1p(-levels), f"exponential:{mean:g}")

    @classmethod
    def lognormal(cls, median: float, sigma: float) -> Delay:
        """As round trips on the internet are: most are short, some take long."""
        levels = (np.arange(POINTS) + 0.5) / POINTS
        normal = NormalDist()
        # No float is above exp(710); what comes near it is refused.
        factors = [math.exp(min(sigma * normal.inv_cdf(level), 709.0)) for level in levels]
        with np.errstate(over="ignore"):
            return cls(median * np.array(factors), f"lognormal:{median:g},{sigma:g}")

    @classmethod
    def parse(cls, text: str | float) -> Delay:
        """Read how delays are written: "0.05", "uniform:0.01,0.1", "exponential:0.05", ...

        Raises:
            ConfigError: It is written in no such way, or has values below 0 or above 3600 seconds.
        """
        kinds: dict[str, tuple[Callable[..., Delay], int]] = {
            "fixed": (cls.fixed, 1),
            "uniform": (cls.uniform, 2),
            "exponential": (cls.exponential, 1),
            "lognormal": (cls.lognormal, 2),
        }
        make, count, numbers = cls.fixed, -1, []
        with suppress(ValueError):  # not even an integer of very many digits is text to Python
            kind, _, rest = str(text).rpartition(":")
            make, count = kinds.get(kind or "fixed", (cls.fixed, -1))
            numbers = [float(part) for part in rest.split(",")]
        if len(numbers) != count:
            raise ConfigError(
                f"the delay is {shown(text)}; it must be seconds, such as 0.05, or "
                "uniform:0.01,0.1, exponential:0.05 or lognormal:0.05,0.5 (median and sigma)"
            )
        return make(*numbers)


DEFAULT_DELAY = "lognormal:0.05,0.5"
_LONGEST = 1e9
"""Seconds: 32 years. Clocks in float64 tell a tenth of a microsecond apart till then."""
_SHARE = {"ge": 0.0, "lt": 1.0}
_TIME = {"gt": 0.0, "le": _LONGEST}


def _key(description: str, metavar: str = "TEXT", flag: str = "", **bounds: Any) -> Meta:
    return key(description, metavar, "Asynchronous network", flag=flag, **bounds)


@dataclass(frozen=True)
class Conditions:
    """The world around the peers of an asynchronous simulation, and the limits of the peers.

    All times are seconds of virtual time. Which nodes are slow, asleep or liars is drawn from the
    seed of the run.

    Attributes:
        rate: Samples a second that a node of ordinary speed learns from; at most 1e6.
        unequal: Sigma of the logarithm of the nodes' speeds: 0 for equal ones, 1 for a tenth of
            them 3.6 times as fast and a tenth 3.6 times as slow as the median; at most 10.
        poisson: Whether samples come at random moments; otherwise at equal distances, from a random
            moment on.
        delay: Time of every message on its way, each drawn for itself; at most 3600.
        loss: The probability that a message never arrives.
        sleepers: The share of nodes that sleep now and then: no samples, no messages; messages to
            them are lost. At first as many of them are asleep as later on.
        awake: Mean time that a sleeper is awake, exponential.
        asleep: Mean time that it then sleeps.
        crashes: Crashes of a node a second: what it had not made durable is forgotten.
        down: How long it then is down.
        joining: The share of nodes that join at random moments.
        leaving: The share of nodes that leave at random moments, handing over all they hold.
        liars: The share of nodes that push a model of their own, far from all others, whatever
            they receive; their mass is honest.
        lie: The norm of the model that liars push; at most 1e6.
        window: Pushes to one receiver that may be unacknowledged, 1 to 64; None for the peers'
            default.
        clip: How far a sender's model may lie from one's own, relative to 1 + its norm; infinite
            for no limit.
        commit: Time that a peer takes to make something durable before it sends it; at most 3600.
        presume_dead_after: Silence after which a receiver is given up.
        seconds: Length of the run; None for as long as a node of ordinary speed needs for all its
            samples. Faster nodes then run out of samples, slower ones do not use all of theirs.

    Raises:
        ConfigError: One of them is of another kind, or beyond its bounds.
    """

    rate: Annotated[
        float, _key("samples a second of a node of ordinary speed", "N", gt=0.0, le=1e6)
    ] = 10.0
    unequal: Annotated[
        float, _key("sigma of the logarithm of the nodes' speeds", "X", ge=0.0, le=10.0)
    ] = 0.0
    poisson: Annotated[bool, _key("whether samples come at random moments, or evenly")] = True
    delay: Annotated[
        Delay, _key("of messages: seconds, or uniform:A,B, exponential:A, lognormal:MEDIAN,SIGMA")
    ] = field(default_factory=lambda: Delay.parse(DEFAULT_DELAY))
    loss: Annotated[float, _key("share of the messages that never arrive", "SHARE", **_SHARE)] = 0.0
    sleepers: Annotated[
        float, _key("share of nodes that sleep now and then", "SHARE", **_SHARE)
    ] = 0.0
    awake: Annotated[float, _key("seconds that a sleeper is awake, on average", "S", **_TIME)] = (
        300.0
    )
    asleep: Annotated[float, _key("seconds that it then sleeps, on average", "S", **_TIME)] = 300.0
    crashes: Annotated[float, _key("crashes of a node, a second", "N", ge=0.0)] = 0.0
    down: Annotated[float, _key("seconds that a node is down after a crash", "S", **_TIME)] = 10.0
    joining: Annotated[
        float, _key("share of nodes that come at random moments", "SHARE", **_SHARE)
    ] = 0.0
    leaving: Annotated[
        float, _key("share of nodes that leave at random moments", "SHARE", **_SHARE)
    ] = 0.0
    liars: Annotated[
        float, _key("share of nodes that push a model far from all", "SHARE", **_SHARE)
    ] = 0.0
    lie: Annotated[float, _key("norm of the model that liars push", "X", ge=0.0, le=1e6)] = 10.0
    window: Annotated[
        Annotated[int, Meta(ge=1, le=64)] | None, _key("pushes that may be unacknowledged", "N")
    ] = None
    clip: Annotated[
        float,
        _key("how far a sender's model may lie from one's own", "X", flag="push_clip", gt=0.0),
    ] = 0.5
    commit: Annotated[
        float, _key("seconds to make something durable", "S", ge=0.0, le=LONGEST_DELAY)
    ] = 0.002
    presume_dead_after: Annotated[
        float, _key("seconds of silence after which a receiver is given up", "S", **_TIME)
    ] = 120.0
    seconds: Annotated[
        Annotated[float, Meta(**_TIME)] | None,
        _key("how long it lasts; until an ordinary node is through", "S"),
    ] = None

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(Conditions, include_extras=True).items():
            value: Any = getattr(self, name)
            if name == "delay":
                value = value if isinstance(value, Delay) else Delay.parse(value)
            elif not (name == "clip" and value == math.inf):
                value = checked(name, value, hint)
            object.__setattr__(self, name, value)

    def duration(self, num_rounds: int) -> float:
        """Seconds that a run lasts whose nodes have `num_rounds` samples each.

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


@dataclass(frozen=True, eq=False)
class Roles:
    """What each node is, `[node]`.

    Attributes:
        speeds: Factor of the rate.
        sleepers: Who sleeps now and then.
        liars: Who pushes a model of its own.
        joins: When a node comes; 0 for most.
        leaves: When a node begins to leave; infinite for most.
    """

    speeds: Vector
    sleepers: Bools
    liars: Bools
    joins: Vector
    leaves: Vector

    @classmethod
    def draw(cls, conditions: Conditions, num_nodes: int, seconds: float, seed: Seed) -> Roles:
        """Draw as many of each as the shares say; at least one if the share is not 0.

        Joins and leaves are uniform over the run; nobody leaves before it came, and liars neither
        sleep, come nor leave.
        """
        rng = np.random.default_rng(seeds(seed, 0x20135))
        speeds = np.exp(conditions.unequal * rng.standard_normal(num_nodes))
        liars = _some(conditions.liars, np.ones(num_nodes, np.bool_), rng)
        sleepers = _some(conditions.sleepers, ~liars, rng)
        joins, leaves = np.zeros(num_nodes), np.full(num_nodes, np.inf)
        joining = _some(conditions.joining, ~liars, rng)
        joins[joining] = seconds * rng.random(joining.sum())
        leaving = _some(conditions.leaving, ~liars, rng)
        begin = joins[leaving]
        leaves[leaving] = begin + (seconds - begin) * rng.random(leaving.sum())
        return cls(speeds, sleepers, liars, joins, leaves)


@dataclass(frozen=True)
class Absence:
    """A time during which a node is not there.

    Attributes:
        node: Which one.
        begins, ends: In seconds.
        is_crash: Whether it forgets what is not durable; otherwise it sleeps.
    """

    node: int
    begins: float
    ends: float
    is_crash: bool


def absences(conditions: Conditions, roles: Roles, seconds: float, seed: Seed) -> list[Absence]:
    """When nodes sleep and are down; at first as many sleepers are asleep as later on."""
    rng = np.random.default_rng(seeds(seed, 0xAB5E7))
    found = []
    on, off = conditions.awake, conditions.asleep
    for node in np.flatnonzero(roles.sleepers).tolist():
        begins = rng.exponential(on) if rng.random() * (on + off) < on else 0.0
        while begins < seconds:
            ends = begins + rng.exponential(off)
            found.append(Absence(node, begins, ends, is_crash=False))
            begins = ends + rng.exponential(on)
    if conditions.crashes:
        for node in range(len(roles.sleepers)):
            begins = rng.exponential(1.0 / conditions.crashes)
            while begins < seconds:
                ends = begins + conditions.down
                found.append(Absence(node, begins, ends, is_crash=True))
                begins = ends + rng.exponential(1.0 / conditions.crashes)
    return found


def moments(conditions: Conditions, roles: Roles, num_rounds: int, seed: Seed) -> Matrix:
    """`[round, node]`, when a node comes to a sample, by a clock that stands while it is away."""
    rng = np.random.default_rng(seeds(seed, 0x53C0D))
    periods = 1.0 / (conditions.rate * roles.speeds)
    shape = num_rounds, len(periods)
    if conditions.poisson:
        return np.asarray(periods * np.cumsum(rng.exponential(size=shape), axis=0))
    return np.asarray(periods * (rng.random(len(periods)) + np.arange(num_rounds)[:, None]))


def _some(share: float, among: Bools, rng: np.random.Generator) -> Bools:
    """A random choice `among` nodes, as many as this share of all nodes."""
    chosen = np.zeros(len(among), np.bool_)
    candidates = np.flatnonzero(among)
    count = min(max(round(share * len(among)), int(share > 0)), len(candidates))
    chosen[rng.permutation(candidates)[:count]] = True
    return chosen


def lies(liars: Bools, dim: int, norm: float, seed: Seed) -> dict[int, Vector]:
    """The model that each liar pushes: of this norm, in a direction of its own."""
    rng = np.random.default_rng(seeds(seed, 0x11E5))
    found = {}
    for node in np.flatnonzero(liars).tolist():
        direction = rng.standard_normal(dim)
        found[node] = norm * direction / np.linalg.norm(direction)
    return found


def seeds(seed: Seed, purpose: int) -> list[int]:
    """The seed of one purpose: what is drawn for it depends on nothing else that is drawn."""
    return [*([seed] if isinstance(seed, int) else seed), purpose]
