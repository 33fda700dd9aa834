"""Memo of a function of large arrays, by identity: computed once, kept as long as the array lives.

States share the arrays that do not change, and the same digest or extent of millions of numbers is
asked for again and again: to sign, to answer and to compare, and before everything that is said.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import ref

from oneway.protocol.fixed_point import Fixed, extent

LARGE_BYTES = 1 << 16
"""Of smaller arrays, everything is computed anew: that takes no longer than to look it up."""

Result = TypeVar("Result")


def once_per_array(function: Callable[[Fixed], Result]) -> Callable[[Fixed], Result]:
    """The function, computed once for every large array, which can no longer be written to then."""
    known: dict[int, tuple[ref[Fixed], Result]] = {}

    @wraps(function)
    def remembered(array: Fixed) -> Result:
        is_window = array.base is not None and array.flags.writeable  # onto what may change
        if array.nbytes < LARGE_BYTES or is_window:
            return function(array)
        name = id(array)
        found = known.get(name)
        if found is not None and found[0]() is array:
            return found[1]
        array.flags.writeable = False
        result = function(array)
        known[name] = ref(array, lambda _: known.pop(name, None)), result
        return result

    return remembered


extent_of_all = once_per_array(extent)
"""The largest absolute number of an amount."""
