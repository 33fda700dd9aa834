"""Arguments as callers give them, checked or turned into what the streams work with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oneway.errors import DataError
from oneway.records import Bools, Floats

NUMBERS_AT_A_TIME = 2**20


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


def first_not_finite(values: Floats) -> tuple[int, ...] | None:
    """Return the indices (counted from 0) of the first number that is not finite, if any."""
    step = max(1, NUMBERS_AT_A_TIME // max(1, values[:1].size))
    for start in range(0, len(values), step):
        finite = np.isfinite(values[start : start + step])
        if not finite.all():
            first, *others = np.argwhere(~finite)[0].tolist()
            return (start + first, *others)
    return None


def check_finite(
    values: Floats,
    what: Literal["feature", "label"],
    names: Sequence[str] | None = None,
) -> None:
    """Check that every number is finite.

    Raises:
        DataError: If one is not; names its indices or, with the `names` of the columns of
            `values[row, column]`, its row and its column.
    """
    found = first_not_finite(values)
    if found is None:
        return
    if names is None:
        culprit = f"{what}s[{', '.join(map(str, found))}]"
    else:
        culprit = f"row {found[0]}, column {names[found[1]]!r}"
    raise DataError(f"{culprit} is {values[found]}; {what}s must be finite; drop or fill it")


def with_missing(values: ArrayLike, what: str) -> tuple[NDArray[Any], Bools]:
    """Return numbers or strings as an array, and where it has None, nan or the like."""
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
    """Refuse an array with masked entries, whose mask NumPy would drop in silence."""
    if np.ma.is_masked(values):
        raise DataError(f"{what} have masked entries; drop them or fill them first")


def _is_missing(value: object) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA is neither equal nor unequal to itself
        return True
