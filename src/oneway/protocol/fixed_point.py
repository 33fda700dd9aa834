"""Numerator and mass as whole numbers: sums are exact, NaN cannot be represented.

A `Fixed` is one int64 vector `(numerator..., mass)` in units of 2^-40. Sums wrap; a difference of
two running totals is exact however often they wrapped, as long as the difference itself fits.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oneway.records import MASS_UNITS, Vector

Fixed: TypeAlias = NDArray[np.int64]
"""`(numerator..., mass)` in units of 2^-40."""

ONE = MASS_UNITS
"""The number 1, in units: of mass, and of a numerator."""

LARGEST = float(1 << 62)
"""Numbers beyond this many units are refused: a sum of two must still fit."""


def zeros(dim: int) -> Fixed:
    """Nothing: no numerator, no mass."""
    return np.zeros(dim + 1, dtype=np.int64)


def fixed(numerator: Vector, mass: float = 0.0) -> Fixed:
    """The nearest whole numbers of units.

    Raises:
        OverflowError: If a number is not finite or does not fit.

    >>> fixed(np.array([0.5, -2.0]), 1.0) / ONE
    array([ 0.5, -2. ,  1. ])
    """
    scaled = np.empty(len(numerator) + 1)
    scaled[:-1], scaled[-1] = numerator, mass
    with np.errstate(over="ignore"):
        scaled *= ONE
    if not (scaled.max() < LARGEST and scaled.min() > -LARGEST):  # neither if one is no number
        raise OverflowError("a number does not fit into 63 bits at a resolution of 2^-40")
    return nearest(scaled)


_SHIFT = 1.5 * 2.0**52
"""Added to a number below 2^51, it leaves the nearest whole number in the last bits of the sum."""
_SHIFT_BITS = np.float64(_SHIFT).view(np.int64)
_MANY = 4096


def nearest(numbers: NDArray[np.floating[Any]]) -> Fixed:
    """The nearest whole numbers, ties to even; their places may be used for them.

    >>> nearest(np.array([0.5, -1.5, 2.0**61]))
    array([                  0,                  -2, 2305843009213693952])
    """
    units: Fixed
    if len(numbers) > _MANY and numbers.max() < 2.0**51 and numbers.min() > -(2.0**51):
        # A conversion takes several times as long as two additions.
        numbers += _SHIFT
        units = numbers.view(np.int64)
        units -= _SHIFT_BITS
        return units
    units = np.rint(numbers, out=numbers).astype(np.int64)
    return units


def mass_of(amount: Fixed) -> int:
    """The mass, in units."""
    return int(amount[-1])


def portion(amount: Fixed, share: float) -> Fixed:
    """The floor of a share; what is left over is whatever the caller subtracts it from.

    >>> portion(np.array([7, -7, 4]), 0.5)
    array([ 3, -4,  2])
    """
    scaled = amount * share
    return nearest(np.floor(scaled, out=scaled))


def extent(numbers: Fixed) -> int:
    """The largest absolute number; 0 if there is none."""
    # The absolute value of the smallest int64 does not fit: take both ends as Python integers.
    return max(int(numbers.max(initial=0)), -int(numbers.min(initial=0)))
