"""Online standardisation: means and variances of columns, one block of rows after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from oneway.records import Matrix, Vector

LARGEST = 1e15
"""Beyond so many standard deviations a value says nothing more, and could not be learned from."""


@dataclass(frozen=True, eq=False)
class RunningScale:
    """Mean and variance of every column of all rows so far (Chan's parallel form of Welford's).

    Attributes:
        counts: How many rows had the column.
        means: Of those.
        squares: The sums of their squared distances from the mean.
    """

    counts: Vector
    means: Vector
    squares: Vector

    @classmethod
    def blank(cls, width: int) -> RunningScale:
        """Before the first row."""
        return cls(np.zeros(width), np.zeros(width), np.zeros(width))

    @property
    def scales(self) -> Vector:
        """Standard deviations; 1 where a column has not varied."""
        deviations = np.sqrt(self.squares / np.maximum(self.counts, 1.0))
        # What a constant column differs by is roundings.
        varies = deviations > 1e-12 * np.maximum(np.abs(self.means), 1e-300)
        return np.where(varies, deviations, 1.0)

    def seen(self, block: ArrayLike) -> RunningScale:
        """The same with the rows of `block[row, column]`; a nan is a row without that column."""
        values = np.asarray(block, np.float64)
        there = np.isfinite(values)
        new = there.sum(axis=0)
        shift = np.where(there, values, 0.0).sum(axis=0) / np.maximum(new, 1)
        squares = (np.where(there, values - shift, 0.0) ** 2).sum(axis=0)
        counts = self.counts + new
        away = shift - self.means
        share = new / np.maximum(counts, 1.0)
        return RunningScale(
            counts,
            self.means + away * share,
            self.squares + squares + away**2 * self.counts * share,
        )

    def apply(self, block: ArrayLike) -> Matrix:
        """The rows standardised; a value that is not there becomes the mean, which is 0."""
        scaled = (np.asarray(block, np.float64) - self.means) / self.scales
        return np.clip(np.where(np.isfinite(scaled), scaled, 0.0), -LARGEST, LARGEST)

    def with_columns(self, width: int) -> RunningScale:
        """The same with new columns after the others, up to so many."""
        room = np.zeros(width - len(self.counts))
        return RunningScale(
            *(np.concatenate([it, room]) for it in (self.counts, self.means, self.squares))
        )
