"""Ranges: where the values of columns lie by public knowledge.

A task goes to every peer, and a mean is a statistic of one site's rows. Center and scale that come
from a range reveal nothing about the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from oneway.errors import ConfigError
from oneway.sentences import shown
from oneway.tables.cells import as_number


@dataclass(frozen=True)
class Range:
    """Where the values of a column lie, by public knowledge.

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
    def half(self) -> float:
        """Half its length."""
        return self.high / 2 - self.low / 2

    @property
    def scaling(self) -> tuple[float, float]:
        """Mean and standard deviation of a uniform distribution over the range.

        >>> Range(0.0, 6.0).scaling[0], f"{Range(0.0, 6.0).scaling[1]:.4f}"
        (3.0, '1.7321')
        """
        return self.low / 2 + self.high / 2, self.half / math.sqrt(3.0)


def parse_ranges(texts: Iterable[str]) -> dict[str, Range]:
    """Return ranges as flags give them: `COLUMN=LOW..HIGH`.

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
