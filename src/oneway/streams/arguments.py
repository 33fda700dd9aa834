"""Arguments as callers give them, checked or turned into what the streams work with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oneway.errors import DataError
from oneway.records import Bools, Floats

NUMBERS_AT_A_TIME = 2**20


def whole_number(name: str, value: object) -> int:
    """Return an integer, or a float that is one, as a plain integer.

    Raises:
        DataError: If it is anything else.

    >>> whole_number("num_nodes", 6.0)
    6
    """
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return int(value)
    raise DataError(f"{name} is {value!r}; it must be a whole number")


def as_floats(values: ArrayLike, what: str) -> Floats:
    """Return native float32 or float64, in the order given; what already is that is not copied.

    Half precision becomes float32, everything else that is a number float64.

    Raises:
        DataError: If the values are not real numbers, or some of them are masked.
    """
    refuse_masked(values, what)
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufOUS":
            raise DataError(
                f"{what} have the type {array.dtype}; they must be real numbers, convert them first"
            )
        single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
        return np.asarray(array, dtype=np.float32 if single else np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} are not an array of numbers ({error})") from None


def check_all_finite(values: Floats, what: str) -> None:
    """Check that every number is finite.

    Raises:
        DataError: If one is not; names its indices (counted from 0).
    """
    step = max(1, NUMBERS_AT_A_TIME // max(1, values[:1].size))
    for start in range(0, len(values), step):
        broken = ~np.isfinite(values[start : start + step])
        if broken.any():
            first, *others = np.argwhere(broken)[0].tolist()
            place = (start + first, *others)
            raise DataError(
                f"{what}[{', '.join(map(str, place))}] is {values[place]}; {what} must be finite; "
                "drop or fill it"
            )


def with_missing(values: ArrayLike, what: str) -> tuple[NDArray[Any], Bools]:
    """Return numbers or strings as an array, and where it has None, nan or the like.

    Raises:
        DataError: If some of them are masked, or they are no array.
    """
    refuse_masked(values, what)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise DataError(f"{what} are not an array ({error})") from None
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        array = np.asarray(values, dtype=object)  # NumPy has turned a nan into the string "nan"
    if array.dtype.kind == "O":
        missing = np.array([_is_missing(value) for value in array.flat], dtype=np.bool_)
        return array, missing.reshape(array.shape)
    return array, np.asarray(array != array, dtype=np.bool_)


def refuse_masked(values: ArrayLike, what: str) -> None:
    """Refuse an array with masked entries, whose mask NumPy would drop in silence.

    Raises:
        DataError: If there are any.
    """
    if np.ma.is_masked(values):
        raise DataError(f"{what} have masked entries; drop them or fill them first")


def _is_missing(value: object) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA is neither equal nor unequal to itself
        return True
