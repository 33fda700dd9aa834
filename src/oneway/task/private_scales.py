"""Private scaling: centers and scales of a task that tell little or nothing about its maker's data.

A task is handed to everybody, and a mean is a statistic of somebody's rows. With a range from
public knowledge there are two ways around that: take center and scale from the range alone; or
estimate them with the Gaussian mechanism. For the latter every value x of a column is clipped to
its range and becomes u = (x - middle) / half in [-1, 1], and what is released of n rows is

    a = (sum of u + sigma z) / n,    b = (sum of u^2 + sigma z') / n,

from which center = middle + half a and scale = half sqrt(max(b - a^2, sigma / n)). The contents of
one row move each sum by at most 1; that it was counted is not hidden, as everywhere here. Releases
compose in mu, mu^2 = sum of mu_i^2, so each of two sums per column has sigma = sqrt(2 columns)/mu.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from oneway.errors import ConfigError
from oneway.methods.batches import Normals
from oneway.privacy import Guarantee
from oneway.sentences import shown
from oneway.tables.cells import as_number

STATISTICS = 2
"""Of every column: the sum of its values, and of their squares."""


@dataclass(frozen=True)
class Range:
    """Where the values of a column lie, by public knowledge: not looked up in the data.

    Raises:
        ConfigError: If it is empty or not finite.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.half) and self.low < self.high and self.half > 0):
            raise ConfigError(
                f"a range goes from {self.low:g} to {self.high:g}; both must be finite numbers, "
                "the first below the second"
            )

    @property
    def middle(self) -> float:
        """Halfway between its ends."""
        return self.low / 2 + self.high / 2

    @property
    def half(self) -> float:
        """From the middle to an end."""
        return self.high / 2 - self.low / 2

    @property
    def scaling(self) -> tuple[float, float]:
        """Center and scale without any data: those of values spread evenly.

        >>> Range(0.0, 6.0).scaling[0], f"{Range(0.0, 6.0).scaling[1]:.4f}"
        (3.0, '1.7321')
        """
        return self.middle, self.half / math.sqrt(3.0)

    def placed(self, value: float) -> float:
        """Where in the range a value lies, from -1 to 1; outside of it, at its nearest end."""
        return min(1.0, max(-1.0, (value - self.middle) / self.half))


def parse_ranges(texts: Iterable[str]) -> dict[str, Range]:
    """Ranges as flags give them: `COLUMN=LOW..HIGH`.

    Raises:
        ConfigError: One does not have that form, or a column has two.

    >>> parse_ranges(["Light=0..2000"])
    {'Light': Range(low=0.0, high=2000.0)}
    """
    ranges: dict[str, Range] = {}
    for text in texts:
        column, _, ends = text.rpartition("=")
        first, _, last = ends.partition("..")
        low, high = as_number(first), as_number(last)
        if not column or low is None or high is None:
            raise ConfigError(
                f"range {shown(text)} is not of the form COLUMN=LOW..HIGH; write for example "
                "Temperature=-20..50"
            )
        if column in ranges:
            raise ConfigError(f"column {shown(column)} has two ranges; leave one of them out")
        try:
            ranges[column] = Range(low, high)
        except ConfigError as error:
            raise ConfigError(f"column {shown(column)}: {error}") from None
    return ranges


@dataclass
class BoundedSums:
    """The sums that are released of a column; a row without a value adds nothing."""

    range: Range
    total: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        """Take in the value of one row."""
        place = self.range.placed(value)
        self.total += place
        self.squares += place * place


def noise_of(guarantee: Guarantee, num_columns: int) -> float:
    """The standard deviation of the noise on each sum: the budget is split evenly over all."""
    mu = guarantee.mu / math.sqrt(STATISTICS * num_columns)
    return math.nextafter(1.0 / math.nextafter(mu, 0.0), math.inf)


def private_scalings(
    columns: Mapping[str, BoundedSums], num_rows: int, guarantee: Guarantee, normals: Normals
) -> dict[str, tuple[float, float]]:
    """Center and scale of every column, from sums with noise.

    Args:
        columns: Their sums; if the unit is a group, over at most `records_per_group` rows of each.
        num_rows: How many rows were counted, also those without a value.
        guarantee: What holds for all that is returned together.
        normals: Where noise comes from.
    """
    sigma = noise_of(guarantee, len(columns))
    noise = sigma * normals.standard_normal((len(columns), STATISTICS))
    scalings = {}
    for (name, sums), (on_total, on_squares) in zip(columns.items(), noise.tolist(), strict=True):
        mean = min(1.0, max(-1.0, (sums.total + on_total) / num_rows))
        variance = (sums.squares + on_squares) / num_rows - mean * mean
        # What is smaller than its noise is not known; too small a scale would do more harm.
        spread = math.sqrt(min(1.0, max(variance, sigma / num_rows)))
        scalings[name] = sums.range.middle + sums.range.half * mean, sums.range.half * spread
    return scalings
