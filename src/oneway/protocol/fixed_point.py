"""Numerator and mass as whole numbers: sums are exact, NaN cannot be represented.

A `Fixed` is one int64 vector `(numerator..., mass)` in units of 2^-40. Sums wrap; a difference of
two running totals is exact however often they wrapped, as long as the difference itself fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
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

PIECE = 1 << 16
"""Numbers of a piece: few enough to stay in a processor's cache from one operation to the next."""


def pieces(size: int) -> Iterator[slice]:
    """Cache blocking: where the pieces of a long vector lie, which several operations work on.

    >>> list(pieces(PIECE + 3))
    [slice(0, 65536, None), slice(65536, 65539, None)]
    """
    return (slice(start, min(start + PIECE, size)) for start in range(0, size, PIECE))


def zeros(dim: int) -> Fixed:
    """Nothing: no numerator, no mass."""
    return np.zeros(dim + 1, dtype=np.int64)


def freeze(*amounts: Fixed) -> None:
    """Make arrays read-only, for frozen values that own them."""
    for amount in amounts:
        amount.flags.writeable = False


def fixed(numerator: Vector, mass: float = 0.0) -> Fixed:
    """The nearest whole numbers of units.

    Raises:
        OverflowError: If a number is not finite or does not fit.

    >>> fixed(np.array([0.5, -2.0]), 1.0) / ONE
    array([ 0.5, -2. ,  1. ])
    """
    units = zeros(len(numerator))
    with np.errstate(over="ignore"):
        for piece in pieces(len(numerator)):
            if not numerator[piece].any():
                continue  # what nobody has written to takes no memory
            _fit(np.multiply(numerator[piece], float(ONE), dtype=np.float64), units[piece])
    if not abs(mass) * ONE < LARGEST:
        raise _does_not_fit()
    units[-1] = round(mass * ONE)
    return units


def numbers_of(units: Fixed) -> Vector:
    """The numbers that units stand for.

    >>> numbers_of(np.array([ONE, -ONE // 2]))
    array([ 1. , -0.5])
    """
    numbers = np.empty(len(units))
    for piece in pieces(len(units)):
        # One by one: an operation that converts on the way takes twice as long.
        np.copyto(numbers[piece], units[piece])
        numbers[piece] *= 1.0 / ONE
    return numbers


_SHIFT = 1.5 * 2.0**52
"""Added to a number below 2^51, it leaves the nearest whole number in the last bits of the sum."""
_SHIFT_BITS = np.float64(_SHIFT).view(np.int64)
_SHIFTED = 2.0**51
_MANY = 4096


def nearest(
    numbers: NDArray[np.floating[Any]], out: Fixed | None = None, most: float | None = None
) -> Fixed:
    """The nearest whole numbers, ties to even; the places of the numbers may be used for them.

    None is larger than `most`, if that is given.

    >>> nearest(np.array([0.5, -1.5, 2.0**61]))
    array([                  0,                  -2, 2305843009213693952])
    """
    if len(numbers) <= _MANY or (most is not None and most >= _SHIFTED):
        return _converted(numbers, out)
    if most is None and not (numbers.max() < _SHIFTED and numbers.min() > -_SHIFTED):
        return _converted(numbers, out)
    return _shifted(numbers, out)


def _fit(numbers: NDArray[np.floating[Any]], out: Fixed) -> None:
    """As `nearest`, of numbers that may be too large."""
    highest, lowest = numbers.max(), numbers.min()
    if not (highest < LARGEST and lowest > -LARGEST):  # neither if one is no number
        raise _does_not_fit()
    is_small = len(numbers) > _MANY and highest < _SHIFTED and lowest > -_SHIFTED
    (_shifted if is_small else _converted)(numbers, out)


def _does_not_fit() -> OverflowError:
    return OverflowError("a number does not fit into 63 bits at a resolution of 2^-40")


def _shifted(numbers: NDArray[np.floating[Any]], out: Fixed | None) -> Fixed:
    # A conversion takes several times as long as two additions.
    numbers += _SHIFT
    units: Fixed = numbers.view(np.int64)
    return np.subtract(units, _SHIFT_BITS, out=units if out is None else out)


def _converted(numbers: NDArray[np.floating[Any]], out: Fixed | None) -> Fixed:
    units: Fixed = np.rint(numbers, out=numbers).astype(np.int64)
    if out is None:
        return units
    out[:] = units
    return out


def mass_of(amount: Fixed) -> int:
    """The mass, in units."""
    return int(amount[-1])


def portion(amount: Fixed, share: float, out: Fixed | None = None) -> Fixed:
    """The floor of a share; what is left over is whatever the caller subtracts it from.

    >>> portion(np.array([7, -7, 4]), 0.5)
    array([ 3, -4,  2])
    """
    units = np.empty_like(amount) if out is None else out
    for piece in pieces(len(amount)):
        scaled = amount[piece] * share
        nearest(np.floor(scaled, out=scaled), units[piece])
    return units


def length_of(units: Fixed) -> float:
    """The Euclidean length of the numbers that units stand for."""
    squares = 0.0
    for piece in pieces(len(units)):
        numbers = units[piece] / ONE
        squares += float(numbers @ numbers)
    return math.sqrt(squares)


def extent(numbers: Fixed) -> int:
    """The largest absolute number; 0 if there is none."""
    # The absolute value of the smallest int64 does not fit: take both ends as Python integers.
    return max(int(numbers.max(initial=0)), -int(numbers.min(initial=0)))
