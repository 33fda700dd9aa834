"""Zero mean and unit variance per feature, with moments in float64 however large the table is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError
from oneway.records import Floats, Ints, Matrix, Vector
from oneway.streams.arguments import first_not_finite

ROWS_AT_A_TIME = 65_536


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
        self.count = 0
        self._means, self._squares = np.zeros(num_features), np.zeros(num_features)
        self._lows, self._highs = np.full(num_features, np.inf), np.full(num_features, -np.inf)

    def add(self, block: Matrix) -> None:
        """Take in `block[row, feature]` (at least one row of finite numbers)."""
        count = self.count + len(block)
        with np.errstate(over="ignore", invalid="ignore"):
            means = block.mean(axis=0)
            away = means - self._means
            self._squares += ((block - means) ** 2).sum(axis=0)
            self._squares += away**2 * (self.count * len(block) / count)
            self._means += away * (len(block) / count)
        self._lows = np.minimum(self._lows, block.min(axis=0))
        self._highs = np.maximum(self._highs, block.max(axis=0))
        self.count = count

    @property
    def too_wide(self) -> Ints:
        """The features that are too large for their variance to be a number."""
        return np.flatnonzero(~np.isfinite(self._squares) | ~np.isfinite(self._means))

    def scaling(self, names: Sequence[str]) -> Scaling:
        """The standardisation of the rows so far; a constant feature has scale 1."""
        if self.too_wide.size:
            feature = int(self.too_wide[0])
            raise DataError(
                f"column {names[feature]!r} reaches from {self._lows[feature]:.6g} to "
                f"{self._highs[feature]:.6g}, too far to be standardised; rescale it first"
            )
        scales = np.sqrt(self._squares / self.count)
        # Compared by range, not by variance: rounding gives a constant 0.1 a variance above 0.
        # And a spread so small that its square vanishes must not divide by zero.
        scales[(self._lows == self._highs) | (scales == 0.0)] = 1.0
        return Scaling(self._means.copy(), scales)


def to_float32(
    values: Floats, feature_names: Sequence[str], *, first_row: int = 0, where: str = ""
) -> NDArray[np.float32]:
    """Round to float32, in C order; a DataError names the row and column that does not fit."""
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32, order="C")
    place = first_not_finite(rounded)
    if place is not None:
        row, feature = place
        raise DataError(
            f"{where}row {first_row + row}, column {feature_names[feature]!r} is "
            f"{values[place]:.6g}, which does not fit in float32; rescale the column"
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
        scaled[rows] = to_float32(scaling.apply(features[rows]), feature_names, first_row=start)
    return scaled, scaling


def rescale_file(file: BinaryIO, num_rows: int, before: Scaling, after: Scaling) -> None:
    """Turn float32 rows scaled by `before` into rows scaled by `after`, in place in their file."""
    num_features = len(before.means)
    row_bytes = 4 * num_features
    gain = before.scales / after.scales
    offset = (before.means - after.means) / after.scales
    for start in range(0, num_rows, ROWS_AT_A_TIME):
        count = min(ROWS_AT_A_TIME, num_rows - start)
        file.seek(start * row_bytes)
        block = np.frombuffer(file.read(count * row_bytes), dtype=np.float32)
        scaled = block.reshape(count, num_features) * gain + offset
        file.seek(start * row_bytes)
        file.write(scaled.astype(np.float32).tobytes())
