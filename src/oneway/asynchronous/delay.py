"""Distributions of durations, as quantile tables: both levels draw from the same numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from oneway.errors import ConfigError
from oneway.records import Vector
from oneway.sentences import shown

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

    def draw(self, uniform: float) -> float:
        """The delay at a quantile from 0 to 1, which whoever draws has drawn."""
        place = uniform * (len(self.quantiles) - 1)
        low = min(int(place), len(self.quantiles) - 2)
        first, second = self.quantiles[low], self.quantiles[low + 1]
        return float(first + (place - low) * (second - first))

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
    def measured(cls, seconds: Sequence[float] | Vector, name: str = "measured") -> Delay:
        """As often as they were measured."""
        found = np.sort(np.asarray(seconds, np.float64).ravel())
        if not len(found):
            raise ConfigError(f"the delay {name!r} has no values; measure at least one")
        return cls(np.quantile(found, np.linspace(0.0, 1.0, min(POINTS, max(2, len(found))))), name)

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
