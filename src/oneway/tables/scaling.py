"""Zero mean and unit variance per feature, with moments in float64 however large the table is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError
from oneway.records import Floats, Ints, Matrix, Vector
from oneway.streams.arguments import first_not_finite

ROWS_AT_A_TIME = 65_536
MORE_DECIMALS = 4
"""Further decimal places that are tried, beyond six significant digits of a column's scale."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """The map x -> (x - means) / scales, one mean and one scale per feature."""

    means: Vector
    scales: Vector

    @classmethod
    def identity(cls, num_features: int) -> Scaling:
        """The map that changes nothing."""
        return cls(np.zeros(num_features), np.ones(num_features))

    def apply(self, values: Floats) -> Matrix:
        """Return the scaled values in float64."""
        return np.asarray((values - self.means) / self.scales, dtype=np.float64)


class Moments:
    """Mean, variance and range per feature of rows that arrive in blocks."""

    def __init__(self, num_features: int) -> None:
        self._counts = np.zeros(num_features)
        self._means, self._squares = np.zeros(num_features), np.zeros(num_features)
        self._lows, self._highs = np.full(num_features, np.inf), np.full(num_features, -np.inf)

    def add(self, block: Matrix) -> None:
        """Take in `block[row, feature]` (at least one row of finite numbers); nan is no number."""
        gaps = np.isnan(block)
        if gaps.any():
            for feature in range(block.shape[1]):
                numbers = block[~gaps[:, feature], feature]
                if numbers.size:
                    self._add(numbers[:, None], slice(feature, feature + 1))
        else:
            self._add(block, slice(None))

    def _add(self, block: Matrix, where: slice) -> None:
        """Take in some features of a block without gaps."""
        before, added = self._counts[where], len(block)
        counts = before + added
        with np.errstate(over="ignore", invalid="ignore"):
            means = block.mean(axis=0)
            away = means - self._means[where]
            self._squares[where] += ((block - means) ** 2).sum(axis=0)
            self._squares[where] += away**2 * (before * added / counts)
            self._means[where] += away * (added / counts)
        self._lows[where] = np.minimum(self._lows[where], block.min(axis=0))
        self._highs[where] = np.maximum(self._highs[where], block.max(axis=0))
        self._counts[where] = counts

    @property
    def count(self) -> int:
        """How many numbers the first feature had."""
        return int(self._counts[0])

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest number of the first feature."""
        return float(self._lows[0]), float(self._highs[0])

    @property
    def too_wide(self) -> Ints:
        """The features that are too large for their variance to be a number."""
        return np.flatnonzero(~np.isfinite(self._squares) | ~np.isfinite(self._means))

    def scaling(self, names: Sequence[str]) -> Scaling:
        """The standardisation of the rows so far; a constant or empty feature has scale 1."""
        if self.too_wide.size:
            feature = int(self.too_wide[0])
            raise DataError(
                f"column {names[feature]!r} reaches from {self._lows[feature]:.6g} to "
                f"{self._highs[feature]:.6g}, too far to be standardised; rescale it first"
            )
        scales = np.sqrt(self._squares / np.maximum(self._counts, 1.0))
        # Compared by range, not by variance: rounding gives a constant 0.1 a variance above 0.
        # And a spread so small that its square vanishes must not divide by zero.
        scales[(self._lows == self._highs) | (scales == 0.0)] = 1.0
        return Scaling(self._means.copy(), scales)


def to_float32(
    values: Floats,
    feature_names: Sequence[str],
    *,
    place: Callable[[int], str] = "row {}".format,
) -> NDArray[np.float32]:
    """Round to float32, in C order; a DataError names the row and column that does not fit."""
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32, order="C")
    found = first_not_finite(rounded)
    if found is not None:
        row, feature = found
        raise DataError(
            f"{place(row)}, column {feature_names[feature]!r} is {values[found]:.6g}, which does "
            "not fit in float32; rescale the column"
        )
    return rounded


def standardise(
    features: Floats, feature_names: Sequence[str]
) -> tuple[NDArray[np.float32], Scaling]:
    """Return the standardised features as float32, and the scaling that was applied."""
    moments = Moments(len(feature_names))
    for start in range(0, len(features), ROWS_AT_A_TIME):
        moments.add(features[start : start + ROWS_AT_A_TIME].astype(np.float64))
    scaling = moments.scaling(feature_names)
    scaled = np.empty(features.shape, dtype=np.float32)
    for start in range(0, len(features), ROWS_AT_A_TIME):
        rows = slice(start, start + ROWS_AT_A_TIME)
        place = row_after(start)
        scaled[rows] = to_float32(scaling.apply(features[rows]), feature_names, place=place)
    return scaled, scaling


def row_after(start: int, where: str = "") -> Callable[[int], str]:
    """What errors call the rows of a block that comes after so many rows."""
    return lambda row: f"{where}row {start + row}"


def raw_numbers(scaled: Floats, center: float, scale: float) -> Vector:
    """The shortest numbers that a scaling brings back to `scaled`, a float32 column."""
    wanted = scaled.astype(np.float32)
    chosen = wanted.astype(np.float64) * scale + center
    first = 6 - math.floor(math.log10(scale))
    # The shortest last, so that it is the one that stays.
    for places in reversed(range(first, min(first + MORE_DECIMALS, 300))):
        with np.errstate(over="ignore", invalid="ignore"):
            shorter = chosen.round(places)
            same = ((shorter - center) / scale).astype(np.float32) == wanted
        chosen[same] = shorter[same]
    return chosen + 0.0
